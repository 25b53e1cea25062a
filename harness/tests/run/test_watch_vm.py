# SPDX-License-Identifier: Apache-2.0
"""Looking at a topology while it is up: as an interface of tshark, and line by line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sundial.machines.waiting import wait_until
from sundial.model.catalog import LAUNCHER
from sundial.model.timeline import VERBS
from sundial.report.viewer_profile import extcap_script
from sundial.run.places import Places
from tests.run.live import HARNESS, VARIABLES, start, sundial, up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]


def _sent(counted: Path) -> int:
    """Frames that the client's port has sent by the last whole line of counters."""
    whole = counted.read_text().split("\n")[:-1]
    return json.loads(whole[-1])["ports"][0]["tx_frames"] if whole else 0


@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.night)])
def test_frames_are_seen_as_they_pass(tmp_path: Path, clock: str) -> None:
    name = f"seen-{clock}"
    topology = tmp_path / f"{name}.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-10base-t.yaml").read_text())
    (tmp_path / "extcap").mkdir()
    script = tmp_path / "extcap" / "sundial"
    script.write_text(extcap_script(LAUNCHER))
    script.chmod(0o755)
    environment = {**os.environ, "WIRESHARK_EXTCAP_DIR": str(script.parent)}
    own = [sys.executable, "-m", "sundial.cli", "watch"]
    with up(topology, "--clock", clock) as kept:
        at = f"sundial:{name}:lan:client:eth0"
        source = at if os.geteuid() else str(_read_as_wireshark_does(at, tmp_path))
        if os.geteuid():
            listed = subprocess.run(["tshark", "-D"], capture_output=True, text=True, check=False, env=environment)
            assert f"{at} (Sundial: {name}, client:eth0 on lan)" in listed.stdout, listed.stderr
        tshark = start(
            ["tshark", "-n", "-l", "-i", source, "-c", "4"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        output = tmp_path / "lines"
        with output.open("w") as file:
            lines = start([*own, name, "-Y", "icmp", "--json"], cwd=HARNESS, env=VARIABLES, stdout=file)
        counters = start([*own, "--counters", name], cwd=HARNESS, env=VARIABLES, stdout=subprocess.PIPE, text=True)
        done = sundial("exec", "--topology", name, "client", "--", "ping", "-c", "2", "-W", "30", "10.0.0.2")
        assert done.returncode == 0, done.stdout
        shown, said = tshark.communicate(timeout=120)
        assert "ARP" in shown, said
        assert len(shown.splitlines()) == 4
        wait_until(lambda: output.read_text().count("\n") >= 4, seconds=120, what="four lines of the ping")
    # The topology is down, and what followed it ends.
    assert (lines.wait(60), counters.wait(60)) == (0, 0)
    assert counters.stdout is not None
    last = json.loads(counters.stdout.read().splitlines()[-1])
    assert [port["port"] for port in last["ports"]] == ["client:eth0", "server:eth0"]
    assert last["ports"][0]["tx_frames"] >= 3
    shutil.rmtree(kept["final"], ignore_errors=True)


def _read_as_wireshark_does(interface: str, folder: Path) -> Path:
    """A pipe with what an interface captures. Wireshark takes no folder for extcap from root's environment."""
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    words = ["wireshark", "extcap", "--capture", "--extcap-interface", interface, "--fifo", str(fifo)]
    start([sys.executable, "-m", "sundial.cli", *words], cwd=HARNESS, env=VARIABLES)
    return fifo


@pytest.mark.parametrize("clock", ["virtual", pytest.param("real", marks=pytest.mark.night)])
def test_a_network_is_changed_by_hand(tmp_path: Path, clock: str) -> None:
    name = f"changed-{clock}"
    topology = tmp_path / f"{name}.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-wan.yaml").read_text())

    def passes() -> bool:
        done = sundial("exec", "--topology", name, "client", "--", "ping", "-c", "1", "-W", "1", "10.0.0.2")
        return done.returncode == 0

    def change(*words: str) -> None:
        done = sundial(*words, "--topology", name)
        assert done.returncode == 0, done.stderr

    with up(topology, "--clock", clock) as kept:
        change("impair", "wan", "loss=0%", "limit=2000")
        assert passes()
        change("impair", "wan", "server:eth0", "loss=100%")
        assert not passes()
        change("impair", "wan", "loss=0%", "jitter=9ms")
        assert passes()
        change("cut", "server:eth0")
        assert not passes()
        assert sundial("cut", "server:eth0", "--topology", name).returncode == 2
        change("heal", "wan")
        change("partition", "wan", "client", "server")
        assert not passes()
        shown = json.loads(sundial("impair", "--show", "--json", "--topology", name).stdout)
        assert shown["wan"]["partition"] == [["client:eth0"], ["server:eth0"]]
    done = sundial("verify", kept["final"])
    assert done.returncode == 0, done.stdout
    record = json.loads(Path(kept["final"], "run.json").read_text())
    verbs = [next(verb for verb in VERBS if verb in event) for event in record["timeline"]]
    assert verbs == [*["impair"] * 3, "cut", "heal", "partition"]
    # A state that was not in force is a mismatch.
    record["timeline"][2]["loss"] = "100 %"
    Path(kept["final"], "run.json").write_text(json.dumps(record))
    assert sundial("verify", kept["final"]).returncode == 1


@pytest.mark.night
def test_a_machine_loses_its_power_by_hand_and_boots_again(tmp_path: Path) -> None:
    """Under the real clock: its QEMU ends, the other machine goes on, and what it sends is lost with a cause. Then the
    machine boots, without what it had in memory."""
    topology = tmp_path / "off-by-hand.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-switched.yaml").read_text())

    def ping() -> int:
        words = ("ping", "-c", "2", "-W", "1", "10.0.0.2")
        return sundial("exec", "--topology", "off-by-hand", "client", "--", *words).returncode

    with up(topology, "--clock", "real") as kept:
        assert ping() == 0
        assert sundial("exec", "--topology", "off-by-hand", "server", "--", "touch", "/root/file").returncode == 0
        early = sundial("power", "on", "server", "--topology", "off-by-hand")
        assert (early.returncode, "'server' is not off" in early.stderr) == (2, True)
        done = sundial("power", "off", "server", "--topology", "off-by-hand")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("power_off server, from ")
        assert ping() != 0
        again = sundial("power", "off", "server", "--topology", "off-by-hand")
        assert (again.returncode, "is off already" in again.stderr) == (2, True)
        shown = json.loads(sundial("impair", "--show", "--json", "--topology", "off-by-hand").stdout)
        assert shown["lan"]["off"] == ["server:eth0"]
        done = sundial("power", "on", "server", "--topology", "off-by-hand")
        assert done.stdout.startswith("power_on server, from "), done.stderr
        assert sundial("exec", "--topology", "off-by-hand", "server", "--", "ls", "/root").stdout == ""
        assert ping() == 0
        assert sundial("power", "off", "server", "--topology", "off-by-hand").returncode == 0
    done = sundial("verify", kept["final"])
    assert done.returncode == 0, done.stdout
    record = json.loads(Path(kept["final"], "run.json").read_text())
    assert record["status"] == "complete"
    assert record["nodes"]["server"]["ended"] == "powered off by hand"
    assert [[*event][-1] for event in record["timeline"]] == ["power_off", "power_on", "power_off"]
    assert Path(kept["final"], "nodes/server/samples.jsonl").read_text().count('"hello"') == 2
    assert b"lost: server:eth0 is off, from client:eth0" in Path(kept["final"], "wire/lan.pcapng").read_bytes()
    # A machine that stayed on is a mismatch.
    record["timeline"] = []
    Path(kept["final"], "run.json").write_text(json.dumps(record))
    assert sundial("verify", kept["final"]).returncode == 1

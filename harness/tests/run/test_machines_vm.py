# SPDX-License-Identifier: Apache-2.0
"""What a run promises when nothing goes wrong: the same bytes again, from snapshots that heal."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sundial.run.places import Places
from tests.run.live import (
    END_S,
    HARNESS,
    LiveRun,
    evidence,
    hog,
    require_guests,
    stirred,
    sundial,
    up,
    write_scenario,
)

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]

IN_ORDER = """
import sys
from sundial.run import runner
original = runner.run
order = tuple(sys.argv.pop(1).split(","))
runner.run = lambda request, progress: original(request, progress, start_order=order)
from sundial.cli.main import main
main()
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


def made(run: LiveRun, seconds: float = END_S) -> str:
    """What a run that came to its end has said."""
    status, output = run.end(seconds)
    assert status in (0, 1), output
    assert run.record()["status"] == "complete"
    return output


def test_a_cold_run_and_one_with_other_gates_beside_it_give_the_same_bytes(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, sizes="0:1024:512", calls=10)
    small = ("--set", "mtu=576")
    cold = LiveRun(scenario, tmp_path / "cold", "--cold", *small)
    counted = stirred(3_000, scenario, tmp_path / "often", *small)
    assert "booting the guests" in made(cold)
    # More than ten times as many as the six a frame that a call needs at most.
    assert counted["gates"] > 60 * counted["sent"]
    assert_equal(tmp_path / "cold", tmp_path / "often")
    assert cold.record()["nodes"] == LiveRun.read(tmp_path / "often")["nodes"]


def test_full_adapters_go_on_where_the_fabric_has_their_places(tmp_path: Path) -> None:
    """A ring of one frame, and processors that are busy for longer than a frame takes."""
    scenario = write_scenario(tmp_path, sizes="4096:8192:1024", calls=20)
    slow = [f"machines.{name}.mips=15.625" for name in ("client", "server")]
    fields = ["segments.lan.adapter.ring_frames=1", "workloads.0.transports=tcp", *slow]
    options = [word for field in fields for word in ("--set", field)]
    stirred(0, scenario, tmp_path / "plain", *options)
    stirred(3_000, scenario, tmp_path / "often", *options)
    assert_equal(tmp_path / "plain", tmp_path / "often")


def assert_equal(first: Path, second: Path) -> None:
    if LiveRun.read(first)["images"] != LiveRun.read(second)["images"]:
        pytest.skip("the image was changed meanwhile")
    one, other = evidence(first), evidence(second)
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    assert len(one["wire/lan.pcapng"]) > 10_000


@pytest.mark.night
@pytest.mark.alone
def test_the_same_run_again_gives_the_same_bytes(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, sizes="0:4096:512", calls=10)
    made(LiveRun(scenario, tmp_path / "quiet"))
    argv = [sys.executable, "-c", IN_ORDER, "server,client", "run", str(scenario), "--out", str(tmp_path / "busy")]
    with hog():
        done = subprocess.run(
            argv, cwd=HARNESS, env={**os.environ, "PYTHONPATH": str(HARNESS)}, capture_output=True, check=False
        )
    assert done.returncode in (0, 1), done.stderr
    assert_equal(tmp_path / "quiet", tmp_path / "busy")


@pytest.mark.night
def test_booted_guests_and_restored_ones_give_the_same_bytes(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, sizes="0:64:16", calls=5)
    made(LiveRun(scenario, tmp_path / "warm"))
    said = made(LiveRun(scenario, tmp_path / "cold", "--cold"))
    assert "booting the guests" in said
    warm, cold = (LiveRun.read(tmp_path / name) for name in ("warm", "cold"))
    if warm["images"] != cold["images"]:
        pytest.skip("the image was changed meanwhile")
    # The boot is the same to the nanosecond, and so is everything after it.
    assert warm["nodes"] == cold["nodes"]
    assert warm["captures"] == cold["captures"]


@pytest.mark.night
def test_when_the_clock_looks_changes_nothing(tmp_path: Path) -> None:
    scenario = write_scenario(tmp_path, sizes="0:1024:512", calls=10)
    plain = stirred(0, scenario, tmp_path / "plain")
    often = stirred(3_000, scenario, tmp_path / "often")
    assert often["gates"] > 10 * plain["gates"]
    assert often["looks"] > plain["looks"]
    # A call is a few gates: where frames are handed in and delivered, and where the CPU falls asleep.
    assert 0 < plain["gates"] < 6 * plain["sent"]
    assert plain["looks"] > 10 * plain["splits"]
    assert_equal(tmp_path / "plain", tmp_path / "often")


def memory_of_its_own() -> list[str]:
    """Options for a size of memory that there are no snapshots of, and that a run beside this one has but by chance."""
    taken = {memory.stat().st_size >> 20 for memory in Places().snapshots.glob("*/memory")}
    size = random.choice([size for size in range(100, 400) if size not in taken])
    return [word for name in ("client", "server") for word in ("--set", f"machines.{name}.memory={size} MiB")]


@pytest.mark.night
@pytest.mark.parametrize("part", ["state", "memory"])
def test_a_damaged_snapshot_is_made_anew_with_one_line(tmp_path: Path, part: str) -> None:
    scenario = write_scenario(tmp_path, sizes="0:32:16", calls=2)
    size = memory_of_its_own()
    said = made(LiveRun(scenario, tmp_path / "one", *size))
    (digest,) = re.findall(r"no snapshot (\w+) yet", said)
    (used,) = Places().snapshots.glob(f"{digest}*/{part}")
    with used.open("r+b") as file:
        file.seek(100_000)
        byte = file.read(1)
        file.seek(100_000)
        file.write(bytes([byte[0] ^ 1]))
    output = made(LiveRun(scenario, tmp_path / "two", *size))
    if LiveRun.read(tmp_path / "one")["images"] != LiveRun.read(tmp_path / "two")["images"]:
        pytest.skip("the image was changed meanwhile")
    assert len(re.findall("is damaged .*making it again", output)) == 1
    assert "making it again" not in made(LiveRun(scenario, tmp_path / "three", *size))


def test_a_write_to_the_memory_that_machines_share_fails_the_run_and_the_next_one_makes_it_again(
    tmp_path: Path,
) -> None:
    scenario = write_scenario(tmp_path, sizes="0:512:16", calls=10)
    size = memory_of_its_own()
    run = LiveRun(scenario, tmp_path / "run", *size)
    run.wait_batches()
    domain = (run.partial / "nodes" / "client" / "domain.xml").read_text()
    (used,) = re.findall(r"mem-path=([^,]+),share=off", domain)
    with Path(used).open("r+b") as file:
        first = file.read(1)[0]
        file.seek(0)
        file.write(bytes([first ^ 1]))
    status, output = run.end()
    assert status == 4, output
    assert "was changed while they ran" in output
    assert run.leftovers() == []
    said = made(LiveRun(scenario, tmp_path / "next", *size, "--set", "workloads.0.sizes=0"))
    assert len(re.findall("is damaged .*making it again", said)) == 1


def test_a_topology_is_up_until_it_is_down(tmp_path: Path) -> None:
    topology = tmp_path / "kept-pair.yaml"
    topology.write_text((Places().checkout / "topologies" / "two-hosts-switched.yaml").read_text())
    with up(topology) as kept:
        name = kept["topology"]
        assert Path(kept["captures"]).is_dir()
        again = sundial("up", str(topology))
        assert again.returncode == 2
        assert "is up already" in again.stderr
        result = sundial("exec", "--topology", name, "client", "--", "sh", "-c", "echo $SUNDIAL_MACHINE; exit 7")
        assert (result.returncode, result.stdout) == (7, "client\n")
        unknown = sundial("exec", "--topology", name, "absent", "--", "true")
        assert unknown.returncode == 2
        listed = sundial("virsh", "--topology", name, "list")
        states = {line.split()[1].rpartition("-")[2]: line.split()[2] for line in listed.stdout.splitlines()[2:4]}
        assert states == {"client": "running", "server": "running"}
        monitored = sundial("virsh", "--topology", name, "qemu-monitor-command", "client", "--hmp", "info", "uuid")
        assert monitored.stdout.split() == ["53554e44-4941-4c00-0000-000000000001"]
        for words in (["suspend", "client"], ["rubbish"], ["dominfo", "absent"]):
            refused = sundial("virsh", "--topology", name, *words)
            assert (refused.returncode, refused.stdout) == (2, "")
        assert kept["connect"] == "embedded"
    captures = Path(kept["final"])
    try:
        assert json.loads((captures / "run.json").read_text())["status"] == "complete"
        assert list((captures / "wire").glob("*.pcapng"))
        assert sundial("down", name).returncode == 2
    finally:
        shutil.rmtree(captures, ignore_errors=True)

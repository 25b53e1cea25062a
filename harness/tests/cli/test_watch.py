# SPDX-License-Identifier: Apache-2.0
"""`sundial watch`: frames of runs and of what is up, and counters."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.cli.watch import in_line
from sundial.observe.counted import PortCounts, adapter_rules, port_counts
from sundial.plan.request import Kept
from tests.fates import collision, lost
from tests.verify.bed import CLIENT, IN, OUT, SERVER, Record, capture, udp_packets

Call = Callable[..., Result]
pytestmark = pytest.mark.usefixtures("viewer_asked_once")
NAMES = ["client:eth0", "server:eth0", "lan:fate"]
(FRAME,) = udp_packets(CLIENT, SERVER, (700, 7007), bytes(20), 1, 1500)
RECORDS = [
    Record(100, 2, 0, FRAME, collision("client:eth0", 1, 96)),
    Record(1000, 0, OUT, FRAME),
    Record(1500, 2, 0, FRAME, lost("client:eth0", "server:eth0")),
    Record(2000, 0, OUT, FRAME),
    Record(3000, 1, IN, FRAME),
]


@pytest.fixture
def run(make_run: Callable[..., Path]) -> Path:
    folder = make_run("run-1")
    (folder / "wire" / "lan.pcapng").write_bytes(capture(NAMES, RECORDS))
    return folder


@pytest.fixture
def up(run: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A topology that is up until its keeper ends."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as keeper:
        kept = Kept("pair", "real", run, run, keeper.pid, ())
        monkeypatch.setattr(rooms, "kept", lambda: [kept])
        yield keeper
        keeper.kill()


def test_a_run_is_printed_as_one_port_saw_it(call: Call, run: Path) -> None:
    result = call("watch", "run-1")
    assert result.exit_code == 0, result.output
    first, second = result.stdout.splitlines()
    assert first.split()[:5] == ["1", "0.000000000", CLIENT, ">", SERVER]
    assert first.endswith("[collision: client:eth0, attempt 1, 96 bits on the wire; lost: client:eth0 to server:eth0]")
    assert second.split()[:2] == ["2", "0.000001000"]
    assert not second.endswith("]")
    assert result.stderr == "showing client:eth0; also: --at server:eth0, --all\n"
    assert len(call("watch", "run-1", "--at", "server:eth0").stdout.splitlines()) == 1
    everything = call("watch", "run-1", "lan", "--all").stdout.splitlines()
    assert [line.split()[2] for line in everything] == [
        "lan:fate",
        "client:eth0",
        "lan:fate",
        "client:eth0",
        "server:eth0",
    ]


def test_frames_as_json(call: Call, run: Path) -> None:
    result = call("watch", "run-1", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["number"], first["frame"], first["time_s"], first["port"]) == (1, 2, 0.0, "client:eth0")
    assert (second["frame"], second["fate"], second["bytes"], second["source"]) == (4, None, len(FRAME), CLIENT)
    assert result.stderr == ""


def test_a_filter_selects_frames_and_a_wrong_one_is_refused(call: Call, run: Path) -> None:
    assert len(call("watch", "run-1", "-Y", 'frame.comment contains "lost"').stdout.splitlines()) == 1
    assert call("watch", "run-1", "--filter", "tcp").stdout == ""
    for wrong in ("udp &&&", "no.such.field"):
        result = call("watch", "run-1", "-Y", wrong)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.splitlines()[-1].startswith("sundial: --filter: ")
        assert result.stderr.endswith("allowed: a display filter of Wireshark\n")


@pytest.mark.parametrize("target", [(), ("pair",), ("lan",), ("client:eth0",), ("pair", "lan")])
def test_what_is_up_is_followed_until_it_is_down(
    call: Call, run: Path, up: subprocess.Popen[bytes], target: tuple[str, ...]
) -> None:
    def go_on() -> None:
        assert up.stdin is not None
        with (run / "wire" / "lan.pcapng").open("ab") as file:
            file.write(Record(9000, 0, OUT, FRAME).block())
        up.stdin.close()

    timer = threading.Timer(1.0, go_on)
    timer.start()
    result = call("watch", *target)
    timer.join()
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 3)


def test_a_port_of_what_is_up_is_its_point_of_view(call: Call, up: subprocess.Popen[bytes]) -> None:
    up.kill()
    up.wait()
    assert len(call("watch", "server:eth0").stdout.splitlines()) == 1
    result = call("watch", "server:eth0", "--all")
    assert (result.exit_code, "is a port already" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (("far:eth0",), "no port 'far:eth0' is up; allowed: client:eth0, server:eth0"),
        (("nothing",), "'nothing' is neither up nor a run; allowed: pair, lan, client:eth0, server:eth0"),
        (("pair", "wan"), "there is no capture of segment 'wan'; allowed: lan"),
        (("--counters", "run-1"), "TARGET: run-1 is not up; allowed: pair"),
        (("--counters", "-Y", "tcp"), "--counters shows all ports; allowed: TARGET and --json alone"),
    ],
)
def test_what_is_not_there_is_refused(
    call: Call, up: subprocess.Popen[bytes], target: tuple[str, ...], message: str
) -> None:
    result = call("watch", *target)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("target", [(), ("client:eth0",), ("--counters",)])
def test_nothing_is_up(call: Call, monkeypatch: pytest.MonkeyPatch, target: tuple[str, ...]) -> None:
    monkeypatch.setattr(rooms, "kept", list)
    result = call("watch", *target)
    assert (result.exit_code, result.stderr.splitlines()[0]) == (2, "sundial: nothing is up")


def test_counters_are_lines_of_json_without_a_terminal(
    call: Call, up: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = [[PortCounts("lan", "client:eth0", 1, 60, 0, 0, 0, 2, 3)], [], None]
    monkeypatch.setattr(rooms, "port_counts", lambda kept: answers.pop(0))
    monkeypatch.setattr(rooms, "ended", lambda pid, seconds: False)
    result = call("watch", "--counters")
    assert result.exit_code == 0
    (line,) = map(json.loads, result.stdout.splitlines())
    assert line == {
        "topology": "pair",
        "ports": [
            {
                "segment": "lan", "port": "client:eth0", "tx_frames": 1, "tx_bytes": 60, "rx_frames": 0, "rx_bytes": 0,
                "lost": 0, "collisions": 2, "queue": 3,
            }
        ],
    }  # fmt: skip


def test_a_frame_that_an_adapter_holds_is_in_its_queue() -> None:
    counted = {
        "offered_frames": 20, "tx_frames": 10, "tx_bytes": 600, "rx_frames": 4, "rx_bytes": 240, "collisions": 1,
        "dropped": {"adapter full": 3, "lost": 2, "too long": 1},
    }  # fmt: skip
    (row,) = port_counts({"segments": {"lan": {"kind": "link", "ports": {"client:eth0": counted}}}})
    assert (row.lost, row.queue) == (6, 6)
    assert port_counts({}) == []
    assert {"adapter full", "too long", "excessive collisions", "no VC"} <= adapter_rules()
    assert not {"queue full", "wrong CRC", "lost"} & adapter_rules()


def test_words_of_a_frame_cannot_move_the_cursor() -> None:
    frame = dict.fromkeys(("number", "time_s", "port", "source", "protocol", "target", "bytes", "fate"), "1")
    assert "\x1b" not in in_line({**frame, "info": "\x1b[2J"}, with_port=True)


def test_a_reader_that_has_enough_ends_it_quietly(run: Path) -> None:
    from sundial.model.catalog import ROOT

    line = f"{sys.executable} -P -m sundial.cli watch {run} | head -1"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "harness")}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, env=environment)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr

# SPDX-License-Identifier: Apache-2.0
"""`sundial replay`: bad input starts nothing, and lines say where to go next."""

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from sundial.cli import replay, rooms
from sundial.cli.main import sundial
from sundial.plan.request import Standing
from sundial.replay import debugger, recorded, stand
from sundial.replay.instants import Frames
from sundial.replay.machines import Cpu
from sundial.replay.recorded import Recorded

Call = Callable[..., Result]
MakeRun = Callable[..., Path]
CPU = Cpu(0x401000, halted=True, ring=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--until", "1 s", "--continue", "-i"), "--continue: has no effect when the next instants are asked for"),
        (("--until", "1 s", "--gdb", "server", "--json"), "--json: has no effect when the next instants are asked for"),
        (("--until", "1 s"), "the run was made under the real clock"),
    ],
)
def test_what_cannot_be_replayed_is_one_line_and_status_2(
    call: Call, make_run: MakeRun, arguments: tuple[str, ...], message: str
) -> None:
    make_run("old", clock="real", scenario={"name": "quickstart"}, nodes={}, topology={})
    result = call("replay", "old", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch, make_run: MakeRun) -> Callable[..., tuple[Result, list[int]]]:
    """Runs the command with these lines on its standard input; its result, and the instants where the run stood."""
    folder = make_run("old", nodes={})
    network = SimpleNamespace(nodes=[SimpleNamespace(name="server")])
    frames = {"lan": Frames(np.array([100, 200, 300], np.int64))}
    run = Recorded(folder, {}, SimpleNamespace(network=network), frames, 1000, 0)  # type: ignore[arg-type]
    monkeypatch.setattr(recorded, "read_recorded", lambda folder: run)
    monkeypatch.setattr(rooms, "able_room", rooms.named_room)
    monkeypatch.setattr(rooms, "check_state", lambda: None)
    stood: list[int] = []

    def look(run: Recorded, standing: Standing) -> stand.Stand:
        stood.append(standing.at_ns)
        machines = {"server": stand.MachineStands(standing.at_ns, CPU, ["ready"])}
        count = frames["lan"].before(standing.at_ns)
        return stand.Stand(standing.at_ns, {"lan": count}, {"lan": [f"frame {count}"]}, machines)

    def replay(run: Recorded, first_ns: int, ask: Any, ended: Any, progress: Any, **more: Any) -> Any:
        at_ns: int | None = first_ns
        try:
            while at_ns is not None:
                at_ns = ask(Standing(at_ns, {}, folder, folder, lambda *_, **__: "", lambda *_: []))
        except stand.Enough:
            return None
        return ended(folder)

    monkeypatch.setattr(stand, "look", look)
    monkeypatch.setattr(stand, "replay", replay)

    def invoke(*arguments: str, typed: str = "") -> tuple[Result, list[int]]:
        return CliRunner().invoke(sundial, ["replay", "old", *arguments], input=typed), stood

    return invoke


def test_a_run_stands_once_and_is_ended(lines: Any) -> None:
    result, stood = lines("--until", "lan:2")
    assert result.exit_code == 0, result.output
    assert stood == [201]
    assert "lan      2 of 3 frames\n         frame 2\n" in result.stdout
    assert "server   halted, kernel, pc 0x401000" in result.stdout
    assert "         | ready" in result.stdout
    assert "end " not in result.stdout


def test_it_goes_on_to_the_end_and_is_compared(lines: Any) -> None:
    result, stood = lines("--until", "0 ns", "--continue")
    assert (result.exit_code, stood) == (0, [0])
    assert "end      1 file equal those of" in result.stdout


def test_lines_say_where_to_go(lines: Any) -> None:
    typed = "step\ns\nlan:1\nnonsense\n500 ns\nstep\nquit\n"
    result, stood = lines("--until", "0 ns", "-i", typed=typed)
    assert result.exit_code == 0, result.output
    assert stood == [0, 101, 201, 500]
    assert "the machines are there, or later; allowed: instants after 201 ns" in result.stdout
    assert "'nonsense' is not a time" in result.stdout
    assert "there is no later frame" in result.stdout


def test_the_end_of_the_lines_ends_the_run(lines: Any) -> None:
    result, stood = lines("--until", "1 ns", "-i")
    assert (result.exit_code, stood) == (0, [1])


def test_what_gdb_does_counts_as_continue_until_a_line_comes() -> None:
    states = iter([True, False, False, True])
    standing = SimpleNamespace(qmp=lambda machine, command: {"running": next(states)})
    resumed = debugger.Resumed(standing, "server")  # type: ignore[arg-type]
    assert [resumed() for _ in range(4)] == [False, False, False, True]
    lines: SimpleQueue[str] = SimpleQueue()
    assert replay._line(lines, lambda: True) == "continue\n"
    lines.put("step\n")
    assert replay._line(lines, lambda: True) == "step\n"

# SPDX-License-Identifier: Apache-2.0
"""`sundial replay`: make a run again up to an instant or a frame, and look at its machines there."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, print_json, progress
from sundial.cli.twice import compared, first_difference
from sundial.errors import BadInput, VerificationFailed
from sundial.units import counted

LOOK_S = 0.1
"""Between looks at what gdb does."""
HELP = "step (to the next frame), TIME or SEGMENT:FRAME (to there), continue (to the end), quit"


@click.command(cls=Verb)
@click.argument("run", shell_complete=completion.RUNS)
@click.option(
    "--until", required=True, metavar="WHERE", help="Where it stands: a time such as 2.345s, or SEGMENT:FRAME."
)
@click.option("--continue", "to_the_end", is_flag=True, help="Go on from there, and compare all files at the end.")
@click.option("--interactive", "-i", is_flag=True, help="Read where to go next from standard input.")
@click.option("--gdb", "machine", metavar="MACHINE", help="Serve gdb at this machine; implies --interactive.")
@as_json
def replay(run: str, until: str, to_the_end: bool, interactive: bool, machine: str | None, as_json: bool) -> None:
    """Make RUN again up to an instant or a frame, equal to the byte, and stop all machines and wires there.

    Prints the frames so far, where each CPU is and its console's last lines, then ends the run and removes it. RUN
    stays as it is. A difference from RUN is exit status 1.

    \b
    sundial replay latest --until 2.345s
    sundial replay latest --until lan:1234 --continue
    sundial replay latest --until lan:1234 --gdb server
    """
    interactive = interactive or machine is not None
    if interactive and (to_the_end or as_json):
        given = "--continue" if to_the_end else "--json"
        raise BadInput("has no effect when the next instants are asked for", field=given, allowed="--interactive alone")
    folder = find_run(run)
    recorded = rooms.named_room("sundial.replay.recorded").read_recorded(folder)
    recorded.check_machine(machine)
    first_ns = recorded.instant(until)
    rooms.check_state()
    room = rooms.able_room("sundial.replay.stand")
    seen: list[dict[str, Any]] = []
    lines = None if machine is None else _lines()

    def ask(standing: Any) -> int | None:
        stand = room.look(recorded, standing)
        seen.append(_document(stand))
        if not as_json:
            _print(recorded, stand)
        if not interactive:
            if to_the_end:
                return None
            raise room.Enough()
        if machine is None or lines is None:
            return _next(recorded, stand.at_ns, room.Enough, sys.stdin.readline)
        debugger = rooms.named_room("sundial.replay.debugger")
        if len(seen) == 1:
            _print_debugger(debugger.serve(recorded, standing, machine))
        return _next(recorded, stand.at_ns, room.Enough, partial(_line, lines, debugger.Resumed(standing, machine)))

    def ended(made: Path) -> tuple[int, str | None]:
        return len(compared(folder)), first_difference(folder, made)

    with progress(quiet=as_json) as shown:
        outcome = room.replay(recorded, first_ns, ask, ended, shown, patient=machine is not None)
    files, difference = outcome or (None, None)
    if as_json:
        print_json({"run": str(folder), **seen[0], "files": files, "difference": difference})
    elif files is not None and difference is None:
        click.echo(f"end      {counted(files, 'file')} equal those of {folder}")
    if difference is not None:
        raise VerificationFailed(f"{folder}: the run made again differs: {difference}")


def _lines() -> SimpleQueue[str]:
    """Lines of standard input as they come, and an empty one at its end."""
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        while line := sys.stdin.readline():
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()
    return lines


def _line(lines: SimpleQueue[str], resumed: Callable[[], bool]) -> str:
    """The next line, or `continue` once gdb lets the machine run."""
    while True:
        with suppress(Empty):
            return lines.get(timeout=LOOK_S)
        if resumed():
            click.echo("gdb lets the machine run, so all machines go on")
            return "continue\n"


def _next(recorded: Any, at_ns: int, enough: Callable[[], Exception], read: Callable[[], str]) -> int | None:
    """What a line of standard input asks for; at its end, that is enough."""
    instants = rooms.named_room("sundial.replay.instants")
    while True:
        if sys.stdin.isatty():
            click.echo("> ", nl=False)
        line = read()
        asked = line.strip()
        if not line or asked in ("quit", "q"):
            raise enough()
        if asked in ("continue", "c"):
            return None
        try:
            if asked in ("step", "s"):
                found: int | None = instants.next_frame_ns(recorded.segments, at_ns)
                if found is None:
                    raise BadInput("there is no later frame", allowed="continue, quit")
                return found
            if asked:
                there = int(recorded.instant(asked))
                if there <= at_ns:
                    raise BadInput("the machines are there, or later", allowed=f"instants after {at_ns} ns")
                return there
        except BadInput as error:
            click.echo(error.message)
        click.echo(HELP)


def _document(stand: Any) -> dict[str, Any]:
    machines = {
        name: {
            "clock_ns": each.clock_ns,
            "halted": each.cpu.halted,
            "pc": f"{each.cpu.pc:#x}",
            "ring": each.cpu.ring,
            "console": list(each.console),
        }
        for name, each in stand.machines.items()
    }
    return {"at_ns": stand.at_ns, "frames": dict(stand.frames), "last": dict(stand.last), "machines": machines}


def _print(recorded: Any, stand: Any) -> None:
    click.echo(f"stands   at {stand.at_ns} ns, equal to {recorded.folder} so far")
    for name, count in stand.frames.items():
        click.echo(f"{name:8} {count} of {counted(len(recorded.segments[name].at_ns), 'frame')}")
        for line in stand.last[name]:
            click.echo(f"         {line}")
    for name, each in stand.machines.items():
        click.echo(f"{name:8} {each.cpu}")
        for line in each.console:
            click.echo(f"         | {line}")


def _print_debugger(lines: list[str]) -> None:
    for line in lines:
        click.echo(f"gdb      {line}")
    click.echo(f"next     {HELP}")

# SPDX-License-Identifier: Apache-2.0
"""`sundial cp`: copy files to or from a machine that is up."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, in_bytes, print_json, progress, say
from sundial.errors import BadInput, RunFailed
from sundial.units import counted

SHOWN = 10
"""Names that were left out, one a line."""
ALLOWED = "one of SRC and DST as MACHINE:PATH, the other as a local path or -"


@click.command(cls=Verb)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.option("--topology", metavar="T", shell_complete=completion.UP, help="The topology, if several are up.")
@as_json
@click.pass_context
def cp(ctx: click.Context, source: str, target: str, topology: str | None, as_json: bool) -> None:
    """Copy SRC to DST; one of them is MACHINE:PATH, the other a path here or - (standard input or output).

    A folder is copied with all that is in it, without an option. If DST is a folder, the copy gets SRC's name in it.
    Modes are kept; in the machine all files belong to root. Links are copied as links. Devices, pipes, and from a
    machine links that lead out of the folder, are left out and named; the exit status is then 4.

    \b
    sundial cp build/server server:/usr/local/bin/
    sundial cp client:/var/log logs
    """
    room = rooms.named_room("sundial.run.copying")
    from_machine, to_machine = room.parse(source), room.parse(target)
    if (from_machine is None) == (to_machine is None):
        raise BadInput("both are in machines" if from_machine else "neither is in a machine", field="SRC, DST",
                       allowed=ALLOWED)  # fmt: skip
    piped = room.PIPE in (source, target)
    if as_json and target == room.PIPE:
        raise BadInput("--json cannot be combined with standard output", field="DST", allowed="a file")
    with progress(quiet=as_json or piped) as shown:
        copy = room.Copy((from_machine or to_machine).machine, topology, shown)
        if copy.kept.clock == "virtual":
            say("the clock is virtual: a copy takes virtual time, and no two runs with one are equal; what runs that "
                "repeat need is in their topology (files:)")  # fmt: skip
        try:
            _copy(copy, room.PIPE, source, from_machine, target, to_machine)
        except BrokenPipeError:
            ctx.exit(128 + signal.SIGPIPE)
    _print(copy.copied, source, target, as_json=as_json, quiet=target == room.PIPE)


def _copy(copy: Any, pipe: str, source: str, from_machine: Any, target: str, to_machine: Any) -> None:
    if to_machine is not None:
        if source == pipe:
            copy.put_bytes(sys.stdin.fileno(), to_machine)
        else:
            copy.put(Path(source), to_machine)
    elif target == pipe:
        copy.get_bytes(from_machine, sys.stdout.fileno())
    else:
        copy.get(from_machine, Path(target), as_folder=target.endswith(os.sep))


def _print(copied: Any, source: str, target: str, *, as_json: bool, quiet: bool) -> None:
    left_out = [{"name": name, "why": why} for name, why in copied.left_out]
    if as_json:
        print_json({"from": source, "to": target, "entries": copied.entries, "bytes": copied.bytes,
                    "left_out": left_out})  # fmt: skip
    elif not quiet:
        say(f"copied {counted(copied.entries, 'entry')}, {in_bytes(copied.bytes)}")
    for each in left_out[:SHOWN]:
        say(f"left out: {each['name']}: {each['why']}")
    if left_out and not as_json:
        raise RunFailed(f"{counted(len(left_out), 'entry')} left out, the others are copied")

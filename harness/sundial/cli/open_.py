# SPDX-License-Identifier: Apache-2.0
"""`sundial open`: look at a capture in Wireshark, or in tshark where there is none."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import click

from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, say
from sundial.errors import BadInput, HostLacks

PREFERENCES = ("rpc.dissect_unknown_programs:TRUE", "tcp.relative_sequence_numbers:TRUE", "nameres.mac_name:FALSE")
COLUMNS = (
    ("No.", "%m"),
    ("Time", "%t"),
    ("Interface", "%Cus:frame.interface_name:0:R"),
    ("Source", "%s"),
    ("Destination", "%d"),
    ("Protocol", "%p"),
    ("Length", "%L"),
    ("XID", "%Cus:rpc.xid:0:R"),
    ("Fate", "%Cus:frame.comment:0:R"),
    ("Info", "%i"),
)
"""What one wants to see of a Sundial capture: which port a frame was seen at, whose call it is, what became of it."""


@click.command(name="open", cls=Verb, short_help="Look at a capture in Wireshark or tshark.")
@click.argument("run")
@click.argument("segment", required=False)
@click.option("--filter", "shown", metavar="FILTER", help="A display filter, such as one from `sundial verify`.")
@click.option("--print", "only_print", is_flag=True, help="Print the command line and start nothing.")
@click.pass_context
def open_(ctx: click.Context, run: str, segment: str | None, shown: str | None, only_print: bool) -> None:
    """Open the capture of RUN's SEGMENT in Wireshark; without a display, list it with tshark."""
    capture = find_capture(find_run(run), segment)
    wireshark = shutil.which("wireshark") if _has_display() else None
    tshark = shutil.which("tshark")
    if wireshark is None and tshark is None and not only_print:
        raise HostLacks("neither wireshark nor tshark is installed", hint="apt-get install wireshark")
    command = viewer_command(wireshark or tshark or "wireshark", capture, shown)
    if only_print:
        click.echo(shlex.join(command))
    elif wireshark is not None:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        say(f"wireshark is opening {capture}")
    else:
        ctx.exit(subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode and 4)


def find_capture(folder: Path, segment: str | None) -> Path:
    """The capture of a segment, or the only one (the first where a run has several). Raises BadInput."""
    captures = {path.stem: path for path in sorted((folder / "wire").glob("*.pcapng"))}
    if not captures:
        raise BadInput("has no captures", file=str(folder))
    if segment is None:
        return next(iter(captures.values()))
    if segment not in captures:
        raise BadInput(f"there is no capture of segment {segment!r}", file=str(folder), allowed=", ".join(captures))
    return captures[segment]


def viewer_command(program: str, capture: Path, shown: str | None) -> list[str]:
    """The command line that shows `capture` with our columns and preferences; wireshark and tshark take the same."""
    columns = ",".join(f'"{title}","{field}"' for title, field in COLUMNS)
    command = [program, "-r", str(capture), "-o", f"gui.column.format:{columns}"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    return [*command, "-Y", shown] if shown else command


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

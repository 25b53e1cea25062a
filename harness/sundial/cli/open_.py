# SPDX-License-Identifier: Apache-2.0
"""`sundial open`: look at a capture in Wireshark; where there is none, the line that lists it with tshark."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from sundial.cli import rooms
from sundial.cli.checks import Host, started_by
from sundial.cli.points import Point, all_ports, at_port, find_point
from sundial.cli.talk import Verb, say
from sundial.errors import BadInput, HostLacks
from sundial.model.catalog import LAUNCHER
from sundial.plan.request import Kept

Columns = tuple[tuple[str, str], ...]
COLUMNS: Columns = (
    ("No.", "%m"),
    ("Frame", "%Cus:frame.packet_id:0:R"),
    ("Time", "%t"),
    ("Interface     ", "%Cus:frame.interface_name:0:R"),
    ("Source", "%s"),
    ("Destination", "%d"),
    ("Protocol        ", "%p"),
    ("Length", "%L"),
    ("XID         ", "%Cus:rpc.xid or dcerpc.dg_seqnum or http2.streamid or vmmc.shrimp.seq:0:U"),
    ("Seq", "%Cus:tcp.seq or mbcf.seq or dcerpc.dg_frag_num or vmmc.seq:0:R"),
    ("Fragment (8 B)", "%Cus:ip.frag_offset:0:R"),
    ("Fate                    ", "%Cus:frame.comment:0:R"),
    ("Info                                                        ", "%i"),
)
"""The columns for a Sundial capture: the frame's number in the run's capture (of a view); when (to the ns, as in the
file) and at which port it was captured; whose call it is (DCE RPC, ShrimpRPC: its sequence number; gRPC: its stream)
and which part of it (the fragment of DCE RPC; IP counts offsets in 8 bytes); what became of it. Wireshark makes a
column as wide as its title, so some titles end in spaces."""
FURTHER_COLUMNS: Columns = (
    *COLUMNS[:4],
    ("VCI", "%Cus:atm.vci:0:R"),
    ("Cells", "%Cus:atm.cells:0:R"),
    ("Last", "%Cus:atm.payload_type:0:R"),
    *COLUMNS[4:9],
    *COLUMNS[11:],
)
"""The same for captures of PDUs and cells: the virtual channel, the cells of a PDU, the payload type of a cell (1 in
the last of a PDU)."""


@click.command(name="open", cls=Verb)
@click.argument("run", metavar="RUN|TOPOLOGY")
@click.argument("segment", required=False)
@at_port
@all_ports
@click.option("--filter", "shown", metavar="FILTER", help="A display filter, such as one from `sundial verify`.")
@click.option("--print", "only_print", is_flag=True, help="Print the command line and start nothing.")
def open_(run: str, segment: str | None, port: str | None, all_: bool, shown: str | None, only_print: bool) -> None:
    """Open the capture of RUN's SEGMENT in Wireshark, with columns for calls, fragments and fates.

    It is shown as one port saw it. The column Frame has the frame numbers of the run's capture. With a TOPOLOGY that is
    up, its capture is followed while it grows. PDUs and cells of an ATM segment are captures of their own: SEGMENT.pdus
    and SEGMENT.cells.
    """
    point = find_point(run, segment, port, all_=all_)
    lacking = _lacking()
    program = "tshark" if lacking else "wireshark"
    viewer = [*started_by(Host()), program]
    if point.kept is None:
        command = viewer_command(viewer, _file(point), point.capture, shown)
        line = shlex.join(command)
    else:
        command = live_command(viewer, point, point.kept, shown)
        line = command[-1]
    if only_print:
        click.echo(line)
    elif lacking:
        raise HostLacks(lacking, hint=f"list it with: {line}")
    else:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        say(f"wireshark is opening {point.capture}")
    say(point.in_words())
    if point.other_captures:
        say(f"there are others: {', '.join(point.other_captures)}")


def _file(point: Point) -> Path:
    """The run's own capture, or the view of a port, in the run's folder `views`. Raises BadInput."""
    if point.port is None:
        return point.capture
    folder = next(parent for parent in point.capture.parents if parent.name == "wire").with_name("views")
    view = folder / f"{point.capture.stem}@{point.port}.pcapng"
    try:
        if not view.exists() or view.stat().st_mtime_ns < point.capture.stat().st_mtime_ns:
            folder.mkdir(exist_ok=True)
            rooms.write_view(point.capture, point.port, view)
    except OSError as error:
        raise BadInput(
            f"the view cannot be written: {error.strerror}", file=str(view), allowed="--all, or sundial export -o FILE"
        ) from error
    return view


def viewer_command(program: Sequence[str], file: Path, capture: Path, shown: str | None) -> list[str]:
    """The command line that shows a file, a capture of a run or a view of it, with columns, preferences and dissectors;
    wireshark and tshark take the same."""
    return [*program, *_look(["-r", str(file)], capture, shown)]


def live_command(program: Sequence[str], point: Point, kept: Kept, shown: str | None) -> list[str]:
    """The same for a capture that grows: all of it from the first frame on, until its topology is down."""
    view = ["--all"] if point.port is None else ["--at", point.port]
    follow = [str(LAUNCHER), "export", kept.topology, point.capture.stem, *view, "--follow"]
    at_once = "-k" if program[-1] == "wireshark" else "-l"
    viewer = [*program, *_look([at_once, "-i", "-"], point.capture, shown)]
    return ["sh", "-c", f"{shlex.join(follow)} | {shlex.join(viewer)}"]


def _columns(capture: Path) -> Columns:
    return FURTHER_COLUMNS if capture.parent.parent.name == "wire" else COLUMNS


def _look(source: list[str], capture: Path, shown: str | None) -> list[str]:
    given = ",".join(f'"{title}","{field}"' for title, field in _columns(capture))
    scripts, preferences = rooms.dissection(capture)
    arguments = [*scripts, *source, "-o", f"gui.column.format:{given}", *preferences]
    return [*arguments, "-Y", shown] if shown else arguments


def _lacking() -> str | None:
    """What keeps Wireshark from being shown here."""
    if shutil.which("wireshark") is None:
        return "wireshark is not installed"
    shows = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return None if shows else "there is no display for wireshark (DISPLAY is not set)"

# SPDX-License-Identifier: Apache-2.0
"""`sundial open`: look at a capture in Wireshark; where there is none, the line that lists it with tshark."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import click

from sundial.cli import rooms
from sundial.cli.checks import DISSECTORS, Host, started_by
from sundial.cli.runs import captures as captures_of
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, say
from sundial.errors import BadInput, HostLacks
from sundial.model.catalog import ROOT
from sundial.plan.request import Kept
from sundial.report.registry import CLIENTS

PREFERENCES = ("rpc.dissect_unknown_programs:TRUE", "tcp.relative_sequence_numbers:TRUE", "nameres.mac_name:FALSE")
FOREIGN = ("wg",)
"""Heuristic dissectors that are not asked: the first request of DCE RPC without flags looks like WireGuard's data."""
Columns = tuple[tuple[str, str], ...]
COLUMNS: Columns = (
    ("No.", "%m"),
    ("Time", "%t"),
    ("Interface", "%Cus:frame.interface_name:0:R"),
    ("Source", "%s"),
    ("Destination", "%d"),
    ("Protocol", "%p"),
    ("Length", "%L"),
    ("XID", "%Cus:rpc.xid or dcerpc.dg_seqnum or http2.streamid or vmmc.shrimp.seq:0:R"),
    ("Seq", "%Cus:tcp.seq or mbcf.seq or dcerpc.dg_frag_num or vmmc.seq:0:R"),
    ("Fragment (8 B)", "%Cus:ip.frag_offset:0:R"),
    ("Fate", "%Cus:frame.comment:0:R"),
    ("Info", "%i"),
)
"""The columns for a Sundial capture: when (to the ns, as in the file) and at which port a frame was captured,
whose call it is (DCE RPC, ShrimpRPC: its sequence number; gRPC: its stream) and which part of it (the fragment of DCE
RPC; IP counts offsets in 8 bytes), what became of it."""
FURTHER_COLUMNS: Columns = (
    *COLUMNS[:3],
    ("VCI", "%Cus:atm.vci:0:R"),
    ("Cells", "%Cus:atm.cells:0:R"),
    ("Last", "%Cus:atm.payload_type:0:R"),
    *COLUMNS[3:8],
    *COLUMNS[10:],
)
"""The same for captures of PDUs and cells: the virtual channel, the cells of a PDU, the payload type of a cell (1 in
the last of a PDU)."""


@click.command(name="open", cls=Verb)
@click.argument("run", metavar="RUN|TOPOLOGY")
@click.argument("segment", required=False)
@click.option("--filter", "shown", metavar="FILTER", help="A display filter, such as one from `sundial verify`.")
@click.option("--print", "only_print", is_flag=True, help="Print the command line and start nothing.")
def open_(run: str, segment: str | None, shown: str | None, only_print: bool) -> None:
    """Open the capture of RUN's SEGMENT in Wireshark, with columns for calls, fragments and fates.

    With a TOPOLOGY that is up, its capture is followed while it grows. PDUs and cells of an ATM segment are captures of
    their own: SEGMENT.pdus and SEGMENT.cells.
    """
    kept = next((kept for kept in rooms.kept() if kept.topology == run), None)
    folder = kept.captures if kept is not None else find_run(run)
    capture = find_capture(folder, segment)
    lacking = _lacking()
    program = "tshark" if lacking else "wireshark"
    view = [*started_by(Host()), program]
    command = viewer_command(view, capture, shown) if kept is None else live_command(view, capture, shown, kept)
    line = shlex.join(command) if kept is None else command[-1]
    if only_print:
        click.echo(line)
    elif lacking:
        raise HostLacks(lacking, hint=f"list it with: {line}")
    else:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        say(f"wireshark is opening {capture}")
    others = [name for name in captures_of(folder) if name != capture.stem]
    if segment is None and others:
        say(f"there are others: {', '.join(others)}")


def find_capture(folder: Path, segment: str | None) -> Path:
    """The capture of a segment, or the only one (the first where a run has several). Raises BadInput."""
    captures = captures_of(folder)
    if not captures:
        raise BadInput("has no captures", file=str(folder))
    if segment is None:
        return next(iter(captures.values()))
    if segment not in captures:
        raise BadInput(f"there is no capture of segment {segment!r}", file=str(folder), allowed=", ".join(captures))
    return captures[segment]


def viewer_command(program: Sequence[str], capture: Path, shown: str | None) -> list[str]:
    """The command line that shows `capture` with our columns, preferences and dissector; wireshark and tshark take the
    same."""
    return [*program, *_look(["-r", str(capture)], capture, shown)]


def live_command(program: Sequence[str], capture: Path, shown: str | None, kept: Kept) -> list[str]:
    """The same for a capture that grows: all of it from the first frame on, until its topology is down."""
    follow = ["tail", f"--pid={kept.pid}", "-c", "+1", "-f", str(capture)]
    at_once = "-k" if program[-1] == "wireshark" else "-l"
    view = [*program, *_look([at_once, "-i", "-"], capture, shown)]
    return ["sh", "-c", f"{shlex.join(follow)} | {shlex.join(view)}"]


def _columns(capture: Path) -> Columns:
    return FURTHER_COLUMNS if capture.parent.parent.name == "wire" else COLUMNS


def _look(source: list[str], capture: Path, shown: str | None) -> list[str]:
    given = ",".join(f'"{title}","{field}"' for title, field in _columns(capture))
    dissectors = [part for path in DISSECTORS for part in ("-X", f"lua_script:{path}")]
    arguments = [*dissectors, *source, "-o", f"gui.column.format:{given}"]
    for preference in PREFERENCES:
        arguments += ["-o", preference]
    # Where Wireshark finds the types of messages in protocol buffers.
    for folder in sorted({path.parent for path in (ROOT / "guest-apps").glob("*/*.proto")}):
        arguments += ["-o", f'uat:protobuf_search_paths:"{folder}","TRUE"']
    for port, dissector in sorted(decoded(capture).items()):
        arguments += ["-d", f"tcp.port=={port},{dissector}"]
    for heuristic in FOREIGN:
        arguments += ["--disable-heuristic", heuristic]
    return [*arguments, "-Y", shown] if shown else arguments


def decoded(capture: Path) -> dict[int, str]:
    """The dissector of each port whose streams do not name it: the usual ones, and those that clients of the run
    called."""
    found = {port: client.dissector for client in CLIENTS.values() for port in client.ports}
    folder = next((parent for parent in capture.parents if (parent / "nodes").is_dir()), None)
    for path in [] if folder is None else sorted((folder / "nodes").glob("*/job.json")):
        for step in json.loads(path.read_text()).get("steps", []):
            port, known = step.get("options", {}).get("port"), CLIENTS.get(step["app"])
            if known is not None and known.dissector and isinstance(port, int):
                found[port] = known.dissector
    return found


def _lacking() -> str | None:
    """What keeps Wireshark from being shown here."""
    if shutil.which("wireshark") is None:
        return "wireshark is not installed"
    shows = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return None if shows else "there is no display for wireshark (DISPLAY is not set)"

# SPDX-License-Identifier: Apache-2.0
"""`sundial watch`: a line for each frame of what is up, or of a run; or the counters of all ports."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sundial.cli import completion, rooms
from sundial.cli.points import Point, all_ports, at_port, find_point
from sundial.cli.runs import captures as captures_of
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, say
from sundial.errors import BadInput
from sundial.plan.request import Kept
from sundial.printable import printable

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS: Mapping[str, str] = {
    "number": "%m",
    "frame": "%Cus:frame.packet_id:0:R",
    "time_s": "%t",
    "port": "%Cus:frame.interface_name:0:R",
    "source": "%s",
    "protocol": "%p",
    "target": "%d",
    "bytes": "%L",
    "info": "%i",
    "fate": "%Cus:frame.comment:0:R",
}
"""Of a frame, by name in JSON: Wireshark's format of a column. Between source and target tshark would draw an arrow."""
_NUMBERS = ("number", "frame", "bytes")
_WIDTHS = {"number": 6, "time_s": 13, "source": 11, "target": 11, "protocol": 8, "bytes": 5}
_RIGHT = ("number", "time_s", "bytes")
_FATE = re.compile(r"(?:^|,)([^|]+) \| \{[^{}]*\}")
"""Words of a packet comment in front of their record; tshark puts commas between several."""
EVERY_S = 1.0
_HEADS = ("segment", "port", "sent", "bytes", "/s", "received", "bytes", "/s", "lost", "collisions", "queue")


@click.command(cls=Verb)
@click.argument("target", required=False, metavar="[TARGET]", shell_complete=completion.RUNS_OR_KEPT)
@click.argument("segment", required=False)
@at_port
@all_ports
@click.option("-Y", "--filter", "shown", metavar="FILTER", help="Print only frames that this display filter selects.")
@click.option(
    "--counters", is_flag=True, help="Show frames, bytes, losses, collisions and queues by port, each second."
)
@as_json
def watch(
    target: str | None, segment: str | None, port: str | None, all_: bool, shown: str | None, counters: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Print a line for each frame while a topology is up, until it goes down.

    TARGET is a topology that is up, one of its segments or ports (client:eth0), or a run: then the frames of its
    capture are printed. It may be left out if one topology is up. Without --at, frames are shown as one port saw them.
    The filter is in Wireshark's language. Without a terminal, --counters prints a line of JSON each second.

    \b
    Examples:
      sundial watch
      sundial watch server:eth0 -Y "tcp.analysis.retransmission"
      sundial watch --counters
      sundial watch latest lan --at client:eth0
    """
    if counters:
        if shown is not None or segment is not None or port is not None or all_:
            raise BadInput("--counters shows all ports", allowed="TARGET and --json alone")
        _watch_counters(_topology(target), as_json)
        return
    point = _find(target, segment, port, all_=all_)
    if not as_json:
        say(point.in_words())
    for line in rooms.watch(point.capture, point.port, list(COLUMNS.values()), shown, _keeper(point)):
        frame = dict(zip(COLUMNS, line, strict=True))
        if point.port is None:
            frame["frame"] = frame["number"]
        click.echo(json.dumps(_document(frame)) if as_json else in_line(frame, with_port=point.port is None))
        sys.stdout.flush()


def _keeper(point: Point) -> int | None:
    return None if point.kept is None else point.kept.pid


def _document(frame: Mapping[str, str]) -> dict[str, Any]:
    """As JSON: numbers as numbers, null for what is not there."""
    found: dict[str, Any] = {name: value or None for name, value in frame.items()}
    return {
        **found,
        **{name: int(frame[name]) for name in _NUMBERS if frame[name].isdigit()},
        "time_s": float(frame["time_s"]) if frame["time_s"] else None,
    }


def in_line(frame: Mapping[str, str], *, with_port: bool) -> str:
    """A frame as one line: its number in the view, time, addresses, protocol, length, words, and what became of it."""
    cells = {
        name: frame[name].rjust(width) if name in _RIGHT else frame[name].ljust(width)
        for name, width in _WIDTHS.items()
    }
    port = f"{frame['port']:<14} " if with_port else ""
    # Words are enough here; the record behind them is for programs.
    fates = "; ".join(_FATE.findall(frame["fate"]))
    fate = f"  [{fates}]" if fates else ""
    begin = f"{cells['number']} {cells['time_s']} {port}{cells['source']} > {cells['target']}"
    return printable(f"{begin} {cells['protocol']} {cells['bytes']} {frame['info']}{fate}".rstrip())


# ---- what is meant ----


def _find(target: str | None, segment: str | None, port: str | None, *, all_: bool) -> Point:
    """What TARGET [SEGMENT] means: a topology, a run, or a part of what is up. Raises BadInput."""
    kept = rooms.kept()
    if target is None:
        return find_point(_topology(None).topology, None, port, all_=all_)
    if segment is not None or target in [each.topology for each in kept]:
        return find_point(target, segment, port, all_=all_)
    parts = list(_parts(kept, target))
    if len({each.topology for each, *_ in parts}) > 1:
        names = ", ".join(each.topology for each, *_ in parts)
        raise BadInput(f"{target!r} is in several topologies", allowed=f"one of {names}, then the segment")
    if parts:
        topology, name, at = parts[0]
        if at is not None and (port is not None or all_):
            raise BadInput(f"{target!r} is a port already", allowed="neither --at nor --all")
        return replace(find_point(topology.topology, name, at or port, all_=all_), other_captures=[])
    if ":" in target:
        if not kept:
            raise BadInput("nothing is up", hint="bring a topology up with: ./sundial up TOPOLOGY")
        raise BadInput(f"no port {target!r} is up", allowed=", ".join(_all_ports(kept)))
    if kept:
        try:
            find_run(target)
        except BadInput:
            allowed = ", ".join(dict.fromkeys(_all_names(kept)))
            raise BadInput(f"{target!r} is neither up nor a run", allowed=allowed) from None
    return find_point(target, None, port, all_=all_)


def _parts(kept: Sequence[Kept], target: str) -> Iterator[tuple[Kept, str, str | None]]:
    """Segments of this name, and segments with a port of this name, of what is up."""
    for each in kept:
        for name, capture in captures_of(each.captures).items():
            if name == target:
                yield each, name, None
            elif ":" in target and "." not in name and target in rooms.ports(capture):
                yield each, name, target


def _all_ports(kept: Sequence[Kept]) -> list[str]:
    found = [port for each in kept for capture in captures_of(each.captures).values() for port in rooms.ports(capture)]
    return list(dict.fromkeys(found))


def _all_names(kept: Sequence[Kept]) -> list[str]:
    return [name for each in kept for name in (each.topology, *captures_of(each.captures))] + _all_ports(kept)


def _topology(name: str | None) -> Kept:
    """The topology of this name that is up, or the only one. Raises BadInput."""
    kept = rooms.kept()
    if not kept:
        raise BadInput("nothing is up", hint="bring a topology up with: ./sundial up TOPOLOGY")
    found = [each for each in kept if name is None or each.topology == name]
    if len(found) == 1:
        return found[0]
    what = "several topologies are up" if name is None else f"{name} is not up"
    raise BadInput(what, field="TARGET", allowed=", ".join(each.topology for each in kept))


# ---- counters ----


def _watch_counters(kept: Kept, as_json: bool) -> None:
    if as_json or not sys.stdout.isatty():
        for rows in _each_second(kept):
            ports = [row._asdict() for row in rows]
            click.echo(json.dumps({"topology": kept.topology, "ports": ports}))
            sys.stdout.flush()
        return
    from rich.console import Console
    from rich.live import Live

    before: Sequence[Any] = ()
    with Live(console=Console(highlight=False, emoji=False), auto_refresh=False) as live:
        for rows in _each_second(kept):
            live.update(_table(rows, before), refresh=True)
            before = rows


def _each_second(kept: Kept) -> Iterator[Sequence[Any]]:
    """The counters of all ports, again and again until the topology is down."""
    while (rows := rooms.port_counts(kept)) is not None:
        if rows:  # none while it goes down
            yield rows
        if rooms.ended(kept.pid, EVERY_S):
            return


def _table(rows: Sequence[Any], before: Sequence[Any]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, head in enumerate(_HEADS):
        table.add_column(head, justify="left" if place < 2 else "right")
    past = {(row.segment, row.port): row for row in before}
    for row in rows:
        last = past.get((row.segment, row.port), row)
        sent, received = (_rate(row, last, way) for way in ("tx_bytes", "rx_bytes"))
        numbers = (
            row.tx_frames, row.tx_bytes, sent, row.rx_frames, row.rx_bytes, received, row.lost, row.collisions,
            row.queue,
        )  # fmt: skip
        table.add_row(printable(row.segment), printable(row.port), *(f"{number:,}" for number in numbers))
    return table


def _rate(row: Any, last: Any, way: str) -> int:
    """Bytes in the second before."""
    return int(getattr(row, way) - getattr(last, way))

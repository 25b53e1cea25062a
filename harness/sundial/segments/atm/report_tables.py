# SPDX-License-Identifier: Apache-2.0
"""Tables of an ATM segment from its counters: virtual channels, and what was lost by cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sundial.report.tables import Column, Table, numbers, whole, words
from sundial.segments.atm.report_lane import CHANNELS
from sundial.segments.atm.report_pdus import DATA_DIRECT, PERMANENT

Counted = Mapping[str, Any]

MOST_CHANNELS = 60
"""Rows of the table of channels; of more, those that lost or carried most."""


def purpose(vci: int, ports: Sequence[str], permanent: bool) -> str:
    """What a channel is for, by its VCI; `permanent`: channels to ports are configured, not set up."""
    if vci in CHANNELS:
        return CHANNELS[vci]
    place = vci - (PERMANENT if permanent else DATA_DIRECT)
    if not 0 <= place < len(ports):
        return ""
    return f"{'permanent' if permanent else 'data direct'}, to {ports[place]}"


def channels(counted: Mapping[str, Counted], ports: Sequence[str], permanent: bool) -> Table | None:
    """Cells in and out of each channel, and dropped by cause. A channel to all ports has more out than in."""
    if not counted:
        return None
    rows = [(*key.rpartition(" ")[::2], values) for key, values in counted.items()]
    causes = _causes(values.get("dropped") or {} for *_, values in rows)
    if len(rows) > MOST_CHANNELS:
        rows = sorted(rows, key=lambda row: (_lost(row[2]), row[2].get("cells_in", 0)), reverse=True)[:MOST_CHANNELS]
    place = {port: index for index, port in enumerate(ports)}
    rows.sort(key=lambda row: (place.get(row[0], len(ports)), _numbers(row[1])))
    cells = tuple(
        (port, channel, purpose(_numbers(channel)[-1], ports, permanent), whole(values.get("cells_in")),
         whole(values.get("cells_out")), *(whole((values.get("dropped") or {}).get(cause, 0)) for cause in causes))
        for port, channel, values in rows
    )  # fmt: skip
    dropped = (f"dropped: {cause}" for cause in causes)
    columns = (*words("from", "VPI.VCI", "purpose"), *numbers("cells in", "cells out", *dropped))
    more = f": {MOST_CHANNELS} of {len(counted)}" if len(counted) > MOST_CHANNELS else ""
    return Table(f"Virtual channels at the switch, in cells{more}", columns, cells)


def losses(ports: Mapping[str, Counted], counted: Mapping[str, Counted]) -> Table | None:
    """Everything lost by cause: cells at the switch, and frames that did not get through for it; None: nothing was."""
    cells: dict[str, int] = {}
    frames: dict[str, int] = {}
    for found, many in ((cells, counted.values()), (frames, ports.values())):
        for values in many:
            for cause, count in (values.get("dropped") or {}).items():
                found[cause] = found.get(cause, 0) + int(count)
    causes = [cause for cause in dict.fromkeys((*cells, *frames)) if cells.get(cause) or frames.get(cause)]
    if not causes:
        return None
    rows = tuple((cause, whole(cells.get(cause, 0)), whole(frames.get(cause, 0))) for cause in sorted(causes))
    return Table("Losses by cause", (Column("cause", "word"), *numbers("cells", "frames")), rows)


def _causes(dropped: Any) -> list[str]:
    return sorted({cause for each in dropped for cause, count in each.items() if count})


def _lost(values: Counted) -> int:
    return sum(int(count) for count in (values.get("dropped") or {}).values())


def _numbers(channel: str) -> tuple[int, ...]:
    """VPI and VCI; what is not written so stands first."""
    parts = channel.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else (-1,)


def of_segment(counters: Counted | None, name: str, wanted: Collection[str] = ("ports", "channels")) -> list[Counted]:
    """The parts of a segment's counters; empty ones where they are not there."""
    segment = ((counters or {}).get("segments") or {}).get(name) or {}
    return [segment.get(part) or {} for part in wanted]

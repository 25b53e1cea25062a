# SPDX-License-Identifier: Apache-2.0
"""Tables of an ATM segment from its counters: virtual channels, and what was lost by cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.observe.fates import fate_columns
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


def losses(pdus: pl.DataFrame | None, ports: Mapping[str, Counted]) -> Table | None:
    """What was lost, by the cause that was first: PDUs and the cells missing of them, as captured, and frames, as
    counted; None: nothing was. `pdus`: comment, cells and lctr of all PDUs."""
    table = _fates(pdus) if pdus is not None else pl.DataFrame(schema={"cause": pl.String})
    seen = {str(row["cause"]): row for row in table.iter_rows(named=True)}
    frames: dict[str, int] = {}
    for values in ports.values():
        for cause, count in (values.get("dropped") or {}).items():
            frames[cause] = frames.get(cause, 0) + int(count)
    causes = sorted({*seen, *(cause for cause, count in frames.items() if count)})
    if not causes:
        return None
    rows = tuple(
        (cause, *(whole(seen.get(cause, {}).get(name, 0 if pdus is not None else None)) for name in ("pdus", "cells")),
         whole(frames.get(cause, 0)))
        for cause in causes
    )  # fmt: skip
    return Table("Losses by cause", (Column("cause", "word"), *numbers("PDUs", "cells missing", "frames")), rows)


def _fates(pdus: pl.DataFrame) -> pl.DataFrame:
    """Lost PDUs by cause, with the cells that are missing of them."""
    return (
        pdus.select("lctr", cause=fate_columns(pdus["comment"])["fate_rule"])
        .drop_nulls("cause")
        .group_by("cause")
        .agg(pdus=pl.len().cast(pl.Int64), cells=pl.col("lctr").cast(pl.Int64).sum())
    )


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

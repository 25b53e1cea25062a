# SPDX-License-Identifier: Apache-2.0
"""Where each frame was seen, and what a segment's own interface says became of some."""

from __future__ import annotations

import polars as pl

from sundial.observe import compact
from sundial.observe.fates import FATE_COLUMNS, fate_columns

FATE_SUFFIX = ":fate"
INBOUND, OUTBOUND = 1, 2

LOST, DROPPED, DUPLICATED, CORRUPTED, COLLISION = "lost", "dropped", "duplicated", "corrupted", "collision"
"""`fate` of the records on a fate interface (harness/schemas/README.md); `unnamed` without a valid record.

A `collision` says nothing about what arrives: the frame is sent again, or `dropped`."""


FATE = {name: FATE_COLUMNS[name] for name in
        ("fate", "fate_rule", "fate_adapter", "fate_from", "fate_to", "fate_bit", "fate_byte")}  # fmt: skip
"""Of the table of frames, from the records on fate interfaces: what happened, and the rule that dropped the frame; the
port whose adapter had it, or the ports between which, or at whose side of a switch, it was (one of two is null there);
the bit that was flipped. `Wire.fates` has the other fields, too."""


def with_places(frames: pl.DataFrame) -> pl.DataFrame:
    """Adds `row`, `end` (one text for capture and interface) and FATE."""
    ends = frames.select("capture", "interface").unique()
    ends = ends.with_columns(end=end_of("interface"))
    return (
        frames.join(ends, on=["capture", "interface"], how="left", maintain_order="left")
        .with_row_index("row")
        .pipe(with_fates)
        .pipe(compact)
    )


def with_fates(frames: pl.DataFrame) -> pl.DataFrame:
    """Adds FATE."""
    is_fate = pl.col("interface").str.ends_with(FATE_SUFFIX)
    records = fate_columns(frames.select(pl.when(is_fate).then("comment")).to_series()).select(*FATE)
    return frames.with_columns(records).with_columns(fate=pl.when(is_fate).then(pl.col("fate").fill_null("unnamed")))


def end_of(interface: str) -> pl.Expr:
    """`end` of the interface that a column names."""
    return pl.concat_str("capture", pl.lit("|"), interface)


def end_name(capture: str, interface: str) -> str:
    """`end` of a capture's interface."""
    return f"{capture}|{interface}"


def machine() -> pl.Expr:
    """The machine of a frame's interface."""
    return machine_of(pl.col("interface"))


def machine_of(port: pl.Expr) -> pl.Expr:
    """The machine of a port that is named as `client:eth0`."""
    return port.str.extract(r"^([^:]*)")


def turn(*key: str) -> pl.Expr:
    """The number of each row among those of its key, from 0, of a table that is sorted by it: `over` would search."""
    place = pl.int_range(pl.len())
    begins = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in key) | (place == 0)
    return place - pl.when(begins).then(place).forward_fill()


def refused() -> pl.Expr:
    """True of the record of a frame that its sender's adapter dropped, so that it never was at the port."""
    return ((pl.col("fate") == DROPPED) & pl.col("fate_adapter").is_not_null()).fill_null(False)


def end_of_sender() -> pl.Expr:
    """`end`; of what an adapter dropped, that of the adapter."""
    segment = pl.col("interface").cast(pl.String).str.strip_suffix(FATE_SUFFIX)
    adapter = pl.concat_str(pl.format("wire/{}.pcapng|", segment), "fate_adapter")
    return pl.when(refused()).then(adapter).otherwise(pl.col("end").cast(pl.String))


CUT_NS = 100_000_000
"""More than a packet of Ethernet's size takes on a line of 125 kbit/s."""


def cut_off(frames: pl.DataFrame, end_ns: int | None) -> pl.Series:
    """Rows of the frames that ports sent last, where the run ended within CUT_NS of that: what should follow them may
    not have left. `frames` with row, end, direction, fate; `end_ns`: of the run, None: not known."""
    sent = frames.filter(pl.col("direction") == OUTBOUND, pl.col("fate").is_null())
    last = sent.group_by("end").agg(pl.col("row", "time_ns").sort_by("time_ns", "row").last())
    return last.filter(pl.col("time_ns") > (2**63 - 1 if end_ns is None else end_ns - CUT_NS))["row"]

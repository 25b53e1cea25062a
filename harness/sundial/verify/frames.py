# SPDX-License-Identifier: Apache-2.0
"""Where each frame was seen, and what a segment's own interface says became of some."""

from __future__ import annotations

import polars as pl

from sundial.observe import compact

FATE_SUFFIX = ":fate"
INBOUND, OUTBOUND = 1, 2

LOST, DROPPED, DUPLICATED, CORRUPTED, COLLISION = "lost", "dropped", "duplicated", "corrupted", "collision"
"""Reasons on a fate interface: the word before the colon of the packet comment.

A `collision` says nothing about what arrives: the frame is sent again, or `dropped`."""


def with_places(frames: pl.DataFrame) -> pl.DataFrame:
    """Adds `row`, `end` (one text for capture and interface) and `fate`, the reason on a fate interface."""
    ends = frames.select("capture", "interface").unique()
    ends = ends.with_columns(end=end_of("interface"))
    return (
        frames.join(ends, on=["capture", "interface"], how="left", maintain_order="left")
        .with_row_index("row")
        .with_columns(
            fate=pl.when(pl.col("interface").str.ends_with(FATE_SUFFIX)).then(
                pl.col("comment").fill_null("").str.extract(r"^\s*([a-z]+)").fill_null("unnamed")
            ),
        )
        .pipe(compact)
    )


def end_of(interface: str) -> pl.Expr:
    """`end` of the interface that a column names."""
    return pl.concat_str("capture", pl.lit("|"), interface)


def end_name(capture: str, interface: str) -> str:
    """`end` of a capture's interface."""
    return f"{capture}|{interface}"


def machine() -> pl.Expr:
    """The machine of a frame's interface."""
    return pl.col("interface").str.extract(r"^([^:]*)")


def turn(*key: str) -> pl.Expr:
    """The number of each row among those of its key, from 0, of a table that is sorted by it: `over` would search."""
    place = pl.int_range(pl.len())
    begins = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in key) | (place == 0)
    return place - pl.when(begins).then(place).forward_fill()


def way_from() -> pl.Expr:
    """The sending port of a fate that befell a frame on its way: `lost: A to B`."""
    return pl.col("comment").str.extract(r"(\S+:\S+) to \S+:\S+$")


def dropped_by() -> pl.Expr:
    """The port whose adapter did not send a frame: `dropped: transmit ring full (A)`, `... 16 attempts of A`."""
    return pl.coalesce(
        pl.col("comment").str.extract(r"\((\S+:\S+)\)$"), pl.col("comment").str.extract(r"attempts of (\S+:\S+)$")
    )

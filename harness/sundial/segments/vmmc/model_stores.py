# SPDX-License-Identifier: Apache-2.0
"""When the store was made, or the transfer begun, that a packet of a backplane ends with: what its capture says of it.

A packet that combines waits for the end of its timer, a deliberate one is set up and read first, and any may wait until
the line is free. A CPU notices the end of a timer between two instructions, so what is said of those is less than one
instruction late; of others that waited for the line nothing is known but that they were there when it became free.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sundial.segments.vmmc.model import Backplane, duration_ps
from sundial.segments.vmmc.wire import AU, DU, GAP, HEADER, NOTIFY, PAGE_END, TIMER, UNCOMBINED
from sundial.units import NS_PER_S

FLIGHTS: Mapping[str, pl.DataType] = {
    "sender": pl.String(), "receiver": pl.String(), "kind": pl.UInt32(), "reason": pl.UInt32(), "length": pl.UInt32(),
    "stored_ns": pl.Int64(), "sent_ns": pl.Int64(), "at_ns": pl.Int64(), "wakes": pl.Boolean(), "exact": pl.Boolean(),
}  # fmt: skip
"""Of each packet that arrived, in the order in which they left: machines; bytes of data; from the store until it is in
the other memory. `exact`: the store is an instruction at just that instant."""

_INBOUND, _OUTBOUND = 1, 2


def flights(segment: Backplane, frames: pl.DataFrame) -> pl.DataFrame:
    """FLIGHTS. `frames`: of the segment's capture, those at its ports."""
    names = {name: name.removeprefix("vmmc_") for name in frames.columns if name.startswith("vmmc_")}
    packets = frames.filter(pl.col("vmmc_kind").is_not_null()).with_columns(
        machine=pl.col("interface").str.extract(r"^([^:]+):")
    )
    key = ["vmmc_sender", "vmmc_receiver", "vmmc_sequence"]
    came = packets.filter(pl.col("direction") == _INBOUND).select(*key, receiver_name="machine", at_ns="time_ns")
    left = packets.filter(pl.col("direction") == _OUTBOUND).sort("time_ns", "frame")
    timed = left.rename({"time_ns": "sent_ns", "machine": "sender_name"}).with_columns(_times(segment))
    both = timed.join(came.unique(key, keep="first"), on=key, how="inner", maintain_order="left").rename(names)
    both = both.with_columns(
        wakes=pl.col("flags") & NOTIFY != 0, sender=pl.col("sender_name"), receiver=pl.col("receiver_name")
    )
    return both.select(pl.col(name).cast(dtype) for name, dtype in FLIGHTS.items())


def _times(segment: Backplane) -> list[pl.Expr]:
    """stored_ns and exact, of what one sender has sent in order."""
    sent, kind, reason = pl.col("sent_ns"), pl.col("vmmc_kind"), pl.col("vmmc_reason")
    length = pl.col("vmmc_length").cast(pl.Int64)

    def before(value: pl.Expr) -> pl.Expr:
        return value.shift(1).over("sender_name", order_by="sent_ns")

    byte_ns = 8 * NS_PER_S // segment.link_rate
    queued = (sent == before(sent + (HEADER + length) * byte_ns)).fill_null(False)
    alone = (kind == AU) & (reason == UNCOMBINED)
    # The store that leaves alone has pushed out what was combined.
    pushed = queued & alone & before((kind == AU) & (reason == GAP)).fill_null(False)
    read_ns = length.map_elements(lambda each: duration_ps(each, segment.dma_rate) // 1000, pl.Int64)
    waited = (
        pl.when((kind == AU) & (reason == TIMER))
        .then(segment.combine_timeout)
        .when(kind == DU)
        .then(segment.deliberate_setup + read_ns)
        .otherwise(0)
    )
    at_once = alone | ((kind == AU) & (reason == PAGE_END))
    return [
        pl.when(pushed).then(before(sent)).otherwise(sent - waited).alias("stored_ns"),
        (at_once & (~queued | (pushed & ~before(queued).fill_null(False)))).alias("exact"),
    ]

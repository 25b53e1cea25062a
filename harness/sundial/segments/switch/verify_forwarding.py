# SPDX-License-Identifier: Apache-2.0
"""The law of a learning switch (IEEE 802.1D, 7.7 to 7.9): which ports a frame leaves at, and when.

A frame is received whole, waits for the forwarding latency, and leaves where `verify/learning.py` says: first come,
first served. An output queue that is full drops what comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sundial.segments.switch.model import Switch
from sundial.verify.findings import findings
from sundial.verify.learning import Received
from sundial.verify.wire import (
    GAP_BITS,
    MOST,
    PS_PER_NS,
    SECOND_PS,
    Arrivals,
    Line,
    Mask,
    Numbers,
    Wire,
    bits_of,
    queue_starts,
    whole_ns,
)


def received(segment: Switch, wire: Wire) -> Received:
    """What the ports sent, when its last bit is in the switch, in ps."""
    columns = []
    for port, (sent, rate_bps) in enumerate(zip(wire.sent, segment.by_port(segment.rate), strict=True)):
        line, bits = Line(rate_bps), bits_of(sent.length)
        ready = line.ends_ps(line.starts(sent.time_ns, bits), bits) + segment.propagation * PS_PER_NS
        columns.append((ready, np.full(len(sent), port), sent.row, sent.length, sent.content, sent.source, sent.target))
    every = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.lexsort((every[1], every[0]))
    return Received(*(column[order] for column in every))


@dataclass(frozen=True)
class Output:
    """What goes to one port: arrivals, and the frames whose fate is to be dropped (places in Received)."""

    arrivals: Arrivals
    dropped: Numbers
    dropped_ns: Numbers


def outputs(segment: Switch, frames: Received, port: Numbers) -> Iterator[Output]:
    """Of each port, in port order."""
    for place, rate_bps in enumerate(segment.by_port(segment.rate)):
        mine = np.flatnonzero((port == place) | ((port == -1) & (frames.port != place)))
        ready = frames.ready[mine] + segment.forwarding_latency * PS_PER_NS
        bits = bits_of(frames.length[mine])
        line = Line(rate_bps, SECOND_PS)
        starts, kept = _through(line, ready, bits, segment.queue_frames)
        ends = whole_ns(line.ends(starts[kept], bits[kept])) + segment.propagation
        arrivals = Arrivals(ends, frames.content[mine][kept], frames.row[mine][kept])
        yield Output(arrivals, mine[~kept], whole_ns(ready[~kept]))


def _through(line: Line, ready: Numbers, bits: Numbers, places: int) -> tuple[Numbers, Mask]:
    """When frames begin to leave, in parts of a ps, and which are not dropped. One that is being sent waits no more."""
    fine, busy = line.fine(ready), line.time(bits + GAP_BITS)
    kept = np.ones(len(ready), np.bool_)
    if not len(ready):
        return fine, kept
    starts = queue_starts(fine, busy)
    waiting = np.arange(len(ready)) - np.searchsorted(starts, fine, "right")
    if int(waiting.max()) < places:
        return starts, kept
    return _with_drops(fine.tolist(), busy.tolist(), places, fine.dtype)


def _with_drops(
    ready: Sequence[int], busy: Sequence[int], places: int, dtype: np.dtype[np.int64]
) -> tuple[Numbers, Mask]:
    """Frame by frame: whether one is dropped decides what the next finds."""
    starts, kept = list(ready), np.ones(len(ready), np.bool_)
    queue: list[int] = []
    begun, free = 0, 0
    for place, (at, takes) in enumerate(zip(ready, busy, strict=True)):
        while begun < len(queue) and queue[begun] <= at:
            begun += 1
        if len(queue) - begun >= places:
            kept[place] = False
            continue
        starts[place] = max(at, free)
        free = starts[place] + takes
        queue.append(starts[place])
    return np.array(starts, dtype), kept


def check_drops(port: str, wire: Wire, fates: pl.DataFrame, frames: Received, output: Output) -> pl.DataFrame:
    """The `fates` of a port's queue are those of the frames that found it full, each when it came."""
    end = wire.end_ns if wire.end_ns is not None else int(output.dropped_ns.max(initial=0))
    due = pl.DataFrame(
        {
            "at": output.dropped_ns,
            "content": frames.content[output.dropped],
            "cause": frames.row[output.dropped],
        }
    ).filter(pl.col("at") <= end)
    came = fates.select(
        at=pl.col("time_ns"), content=pl.col("octets_hash").cast(pl.Int64), row=pl.col("row").cast(pl.Int64)
    )
    number = pl.int_range(pl.len()).over("at", "content").alias("number")
    table = due.with_columns(number).join(
        came.with_columns(number), on=["at", "content", "number"], how="full", coalesce=True
    )
    table = table.filter(pl.col("row").is_null() | pl.col("cause").is_null()).sort("at").head(MOST)
    return findings(
        table.with_columns(
            call=pl.lit(None, pl.UInt32), rows=pl.concat_list("cause", "row").list.drop_nulls(), place=pl.lit(port)
        ),
        pl.lit(True),
        pl.format("queue towards {}", "place"),
        pl.when(pl.col("cause").is_null()).then(pl.lit("room")).otherwise(pl.format("dropped at {} ns", "at")),
        pl.when(pl.col("row").is_null()).then(pl.lit("not dropped")).otherwise(pl.format("dropped at {} ns", "at")),
    )

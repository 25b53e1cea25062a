# SPDX-License-Identifier: Apache-2.0
"""The law of a learning switch (IEEE 802.1D, 7.7 to 7.9): which ports a frame leaves at, and when.

A frame is received whole, waits for the forwarding latency, and leaves where `verify/learning.py` says: first come,
first served. An output queue that is full drops what comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from sundial.seams.fate import MachineOff, Severed
from sundial.segments.switch.model import Switch
from sundial.verify.findings import findings
from sundial.verify.learning import Received
from sundial.verify.power import is_off
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
    """What goes to one port: arrivals, and the frames whose fate is to be dropped (places in Received), or to be lost
    since nothing passed."""

    arrivals: Arrivals
    dropped: Numbers
    dropped_ns: Numbers
    severed: pl.DataFrame


def outputs(segment: Switch, frames: Received, begins_ns: Numbers, port: Numbers) -> Iterator[Output]:
    """Of each port, in port order. `begins_ns`: when their senders began with the frames."""
    apart = groups_apart(segment, frames.port, begins_ns)
    for place, rate_bps in enumerate(segment.by_port(segment.rate)):
        mine = np.flatnonzero((port == place) | ((port == -1) & (frames.port != place)))
        parted = mine[apart[place][mine]]
        mine = mine[~apart[place][mine]]
        ready = frames.ready[mine] + segment.forwarding_latency * PS_PER_NS
        bits = bits_of(frames.length[mine])
        line = Line(rate_bps, SECOND_PS)
        starts, kept = _through(line, ready, bits, segment.queue_frames)
        ends = whole_ns(line.ends(starts[kept], bits[kept]))
        begins = whole_ns(line.whole(starts[kept]))
        cut = is_cut(segment, place, begins)
        off = is_off(segment, segment.ports[place], begins) & ~cut
        gone = cut | off
        passed = mine[kept][~gone]
        arrivals = Arrivals(ends[~gone] + segment.propagation, frames.content[passed], frames.row[passed])
        queued_ns = whole_ns(frames.ready[parted] + segment.forwarding_latency * PS_PER_NS)
        severed = pl.concat(
            [
                _severed(segment, frames, parted, "partition", place, queued_ns),
                _severed(segment, frames, mine[kept][cut], "cut", place, ends[cut]),
                _severed(segment, frames, mine[kept][off], "off", place, ends[off]),
            ]
        )
        yield Output(arrivals, mine[~kept], whole_ns(ready[~kept]), severed)


def begins_of(wire: Wire, frames: Received) -> Numbers:
    """When the sender of each frame began with it, in whole ns as its stamp."""
    rows = np.concatenate([sent.row for sent in wire.sent])
    times = np.concatenate([sent.time_ns for sent in wire.sent])
    order = np.argsort(rows)
    return np.asarray(times[order][np.searchsorted(rows[order], frames.row)])


def stages_of(segment: Switch, begins_ns: Numbers) -> Numbers:
    """The number of the state in which each frame begins: 0 as the topology says."""
    return np.searchsorted(np.array([state.at_ns for state in segment.timeline], np.int64), begins_ns, "right")


def is_cut(segment: Switch, place: int, begins_ns: Numbers) -> Mask:
    """Which of what begins on the cable of a port meets a cut."""
    cut = np.array([False, *(segment.ports[place] in state.cut for state in segment.timeline)])
    return cut[stages_of(segment, begins_ns)]


def groups_apart(segment: Switch, port: Numbers, begins_ns: Numbers) -> list[Mask]:
    """For each output port, which frames come from a port of another group."""
    groups = np.zeros((1 + len(segment.timeline), len(segment.ports)), np.int64)
    for number, state in enumerate(segment.timeline, start=1):
        for group, ends in enumerate(state.partition):
            groups[number, [segment.ports.index(end) for end in ends]] = group
    here = groups[stages_of(segment, begins_ns)]
    own = here[np.arange(len(port)), port] if len(port) else port
    return [own != here[:, place] for place in range(len(segment.ports))]


def before_the_switch(segment: Switch, frames: Received, begins_ns: Numbers) -> tuple[Mask, pl.DataFrame]:
    """Frames that met a cut on their way to the switch, and their fates."""
    gone = np.zeros(len(frames), np.bool_)
    for place in range(len(segment.ports)):
        here = frames.port == place
        gone[here] = is_cut(segment, place, begins_ns[here])
    which = np.flatnonzero(gone)
    ends_ns = whole_ns(frames.ready[which] - segment.propagation * PS_PER_NS)
    return gone, _severed(segment, frames, which, "cut", None, ends_ns)


SEVERED = {
    "at": pl.Int64,
    "content": pl.Int64,
    "rule": pl.String,
    "from": pl.String,
    "to": pl.String,
    "cause": pl.Int64,
}


def _severed(
    segment: Switch, frames: Received, which: Numbers, rule: str, place: int | None, at_ns: Numbers
) -> pl.DataFrame:
    columns = (at_ns, frames.content[which], [rule] * len(which), [segment.ports[each] for each in frames.port[which]])
    to = [None if place is None else segment.ports[place]] * len(which)
    return pl.DataFrame(dict(zip(SEVERED, (*columns, to, frames.row[which]), strict=True)), schema=SEVERED)


def check_severed(wire: Wire, due: pl.DataFrame, end_ns: int | None) -> pl.DataFrame:
    """Each frame that meets a cut or a partition has its fate, and no other frame has one."""
    due = due if end_ns is None else due.filter(pl.col("at") <= end_ns)
    seen = pl.concat([wire.fates_of(Severed), wire.fates_of(MachineOff)]).sort("time_ns", "row").select(
        at="time_ns", content=pl.col("octets_hash").cast(pl.Int64), rule="fate_rule",
        **{"from": "fate_from", "to": "fate_to"}, row=pl.col("row").cast(pl.Int64),
    )  # fmt: skip
    keys = ["at", "content", "rule", "from", "to"]
    number = pl.int_range(pl.len()).over(keys).alias("number")
    table = due.with_columns(number).join(
        seen.with_columns(number), on=[*keys, "number"], how="full", coalesce=True, nulls_equal=True
    )
    table = table.filter(pl.col("row").is_null() | pl.col("cause").is_null()).sort("at").head(MOST)
    words = pl.format("lost: {} from {} at {} ns", "rule", "from", "at")
    return findings(
        table.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("cause", "row").list.drop_nulls()),
        pl.lit(True),
        pl.format("time on the wire: fate on {}", pl.lit(wire.name)),
        pl.when(pl.col("cause").is_null()).then(pl.lit("none")).otherwise(words),
        pl.when(pl.col("row").is_null()).then(pl.lit("none")).otherwise(words),
    )


def taken(frames: Received, which: Mask) -> Received:
    """Some of them."""
    return Received(*(getattr(frames, part.name)[which] for part in fields(frames)))


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

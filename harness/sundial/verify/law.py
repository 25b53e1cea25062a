# SPDX-License-Identifier: Apache-2.0
"""What the law of a kind of segment says of one capture, and the fates that all kinds have in common.

A fate is a frame on the segment's own interface with a record of what became of it (harness/schemas/README.md).
Each must belong to a frame, in time and place, and be allowed by the configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from sundial.expect.ip import ETHERNET_HEADER
from sundial.model.network import Device
from sundial.model.segment import SegmentBase
from sundial.seams.fate import AdapterOff, Record, RingFull, TooLong, TooShort
from sundial.verify.findings import findings, none
from sundial.verify.wire import GAP_BITS, Line, Numbers, Passages, Wire, bits_of, problem

Bounds = tuple[int, int]
"""The fewest and the most."""

ANY: Bounds = (0, 1 << 62)

BY_LENGTH = ("too long", "too short")
"""Rules by which an adapter refuses a frame for its length."""
_COMMON = (RingFull, TooLong, TooShort)


@dataclass(frozen=True)
class Law:
    """`counted`: by port and counter, what must have been counted; a dropped frame's counter is `dropped REASON`."""

    findings: pl.DataFrame = field(default_factory=none)
    counted: Mapping[tuple[str, str], Bounds] = field(default_factory=dict)
    cut: Mapping[str, Bounds] = field(default_factory=dict)
    """By port: how many more frames may have been counted as sent and as received, since the end of the run came before
    that of their way."""
    channels: Mapping[tuple[str, str], Bounds] = field(default_factory=dict)
    """By virtual channel and counter, as `counted`; of segments that have channels."""


@dataclass(frozen=True)
class Counted:
    """What the fabric must have counted by the laws of the segments and devices."""

    laws: Mapping[str, Law] = field(default_factory=dict)
    """By segment, of those whose law is known."""
    devices: Sequence[Device] = ()
    of_devices: Mapping[tuple[str, str], Bounds] = field(default_factory=dict)
    """By port of a device and counter."""
    inner: Collection[str] = ()
    """Captures of segments within machines, of which the fabric knows nothing."""


def check_fates(wire: Wire, segment: SegmentBase, records: Iterable[type[Record]]) -> pl.DataFrame:
    """A finding for each fate that this kind of segment does not have, or whose reason its length does not show; one
    for all those without a valid record."""
    known = pl.col("record").is_in([each.__name__ for each in (*_COMMON, *records)])
    longest = segment.mtu + ETHERNET_HEADER
    length = pl.col("frame_length").cast(pl.Int64)
    wrong_long = (pl.col("fate_rule") == "too long") & (
        (length <= longest) | (pl.col("fate_bytes") != length) | (pl.col("fate_longest") != longest)
    )
    wrong_short = (pl.col("fate_rule") == "too short") & (
        (length >= ETHERNET_HEADER) | (pl.col("fate_bytes") != length)
    )
    table = wire.fates.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    strange = findings(
        table.filter(pl.col("record").is_not_null()),
        ~known | wrong_long.fill_null(False) | wrong_short.fill_null(False),
        pl.lit(f"fate on {wire.name}"),
        pl.lit("a fate that this segment has, and as configured"),
        pl.col("comment"),
    )
    return merged([strange, check_records(wire)])


def check_records(wire: Wire) -> pl.DataFrame:
    """One finding for all fates without a valid record."""
    bad = wire.fates.filter(pl.col("record").is_null())
    return findings(
        bad.head(1).with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row")),
        pl.lit(True),
        pl.lit(f"fate on {wire.name}"),
        pl.lit("a valid record in each comment"),
        pl.format("{} of {} without one, the first: {}", pl.lit(len(bad)), pl.lit(len(wire.fates)),
                  pl.col("comment").fill_null("no comment")),
    )  # fmt: skip


def ring_of(wire: Wire, segment: SegmentBase, port: str) -> tuple[int, bool]:
    """Places in the transmit ring of a port, and whether it drops a frame that finds them taken; a device cannot be
    stopped."""
    if port in wire.rings:
        return wire.rings[port], True
    return segment.adapter.ring_frames, segment.adapter.when_full == "drop"


def ring_drops(wire: Wire, port: str) -> pl.DataFrame:
    """Frames that a port's full ring refused."""
    return wire.fates_of(RingFull, fate_adapter=port)


def check_ring(
    wire: Wire, segment: SegmentBase, port: str, sent: Passages, rate_bps: int
) -> tuple[pl.DataFrame, Bounds]:
    """Frames that a full ring refused, on a line that no other takes; and how often a ring can have been full.

    A full ring holds as many frames as it has places (`ring_of`) that have not left. The last of them was handed in
    before the one that is refused, so it leaves before that would have, if it follows a pause, or is one of those that
    follow such a frame without one.
    """
    drops = ring_drops(wire, port)
    line, bits = Line(rate_bps), bits_of(sent.length)
    starts = line.starts(sent.time_ns, bits)
    free = line.whole(starts + line.time(bits + GAP_BITS))
    head = np.append(True, sent.time_ns[1:] > free[:-1])[: len(sent)]
    begin = np.maximum.accumulate(np.where(head, np.arange(len(sent)), 0))
    places, drops_frames = ring_of(wire, segment, port)
    full = np.arange(len(sent)) - begin + 1 >= places
    room = check_room(wire, segment, port, sent, line.ends(starts, bits))
    if not drops_frames:
        refused = problem(f"ring of {port}", np.ones(len(drops), np.bool_), [drops["row"].to_numpy().astype(np.int64)],
                          iter(["the machine stops"] * len(drops)), iter(["a frame refused"] * len(drops)))  # fmt: skip
        return merged([room, refused]), (0, int(full.sum()))
    at = drops["time_ns"].to_numpy()
    oldest = np.searchsorted(line.ends(starts, bits), at - wire.latency_ns.get(port, 0), "left")
    last = oldest + places - 1
    there = last < len(sent)
    first = begin[np.minimum(last, max(len(sent) - 1, 0))] if len(sent) else last
    holds = there & (sent.time_ns[first] <= at) if len(sent) else there
    open_end = ~there if wire.end_ns is not None else np.zeros(len(at), np.bool_)
    wrong = ~holds & ~open_end
    findings_ = problem(
        f"ring of {port}",
        wrong,
        [drops["row"].to_numpy().astype(np.int64)],
        (f"{places} frames that wait" for _ in range(len(at))),
        ("a frame refused" for _ in range(len(at))),
    )
    return merged([room, findings_]), (len(at), len(at))


def check_room(wire: Wire, segment: SegmentBase, port: str, sent: Passages, ends: Numbers) -> pl.DataFrame:
    """A frame has a place in its ring since it was handed in, the adapter's latency before its first bit at the latest:
    by then the one that had the place before it has left."""
    latency_ns, (places, _) = wire.latency_ns.get(port, 0), ring_of(wire, segment, port)
    if not latency_ns or len(sent) <= places:
        return none()
    due = ends[:-places] + latency_ns
    wrong = np.append(np.zeros(places, np.bool_), sent.time_ns[places:] < due)
    return problem(
        f"ring of {port}",
        wrong,
        [np.append(np.full(places, -1), sent.row[:-places]), sent.row],
        (f"no start before {at} ns" for at in due[wrong[places:]]),
        (f"begins at {at} ns" for at in sent.time_ns[wrong]),
    )


def offered(wire: Wire, segment: SegmentBase, port: str, done: int) -> Bounds:
    """Frames offered by a machine: `done` are those sent, given up and refused by a full ring; others are refused for
    their length or lost with their machine's power, and at the end its ring may hold more."""
    done += sum(wire.fates_of(record, fate_adapter=port).height for record in (TooLong, TooShort, AdapterOff))
    return done, done + cut_off(wire, segment, port, 0)[0]


def cut_off(wire: Wire, segment: SegmentBase, port: str, late: int) -> Bounds:
    """What a port may have counted and not shown, where `late` frames were still to come to it at the end."""
    if wire.end_ns is None:
        return 0, 0
    last = max((int(sent.time_ns[-1]) for sent in wire.sent if len(sent)), default=None)
    line = Line(segment.rate_bps(port))
    longest = int(line.time(bits_of(np.array([segment.mtu + ETHERNET_HEADER])))[0]) // line.parts
    busy = last is not None and last + 2 * longest > wire.end_ns
    return (ring_of(wire, segment, port)[0] if busy else 0), late


def merged(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Findings of several checks."""
    return pl.concat(parts) if parts else none()

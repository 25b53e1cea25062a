# SPDX-License-Identifier: Apache-2.0
"""What the law of a kind of segment says of one capture, and the fates that all kinds have in common.

A fate is a record of the segment's own interface with its reason as a comment (harness/schemas/README.md). Each must
belong to a frame, in time and place, and be allowed by the configuration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from sundial.expect.ip import ETHERNET_HEADER
from sundial.model.network import Device
from sundial.model.segment import SegmentBase
from sundial.verify.findings import findings, none
from sundial.verify.wire import GAP_BITS, Line, Numbers, Passages, Wire, bits_of, problem

Bounds = tuple[int, int]
"""The fewest and the most."""

ANY: Bounds = (0, 1 << 62)

RING_FULL = r"^dropped: transmit ring full \((\S+)\)$"
TOO_LONG = r"^dropped: (\d+) bytes, longest is (\d+) \((\S+)\)$"
TOO_SHORT = r"^dropped: (\d+) bytes are no Ethernet frame \((\S+)\)$"
COMMON = (RING_FULL, TOO_LONG, TOO_SHORT)
_LENGTHS = ((TOO_LONG, "longest", "port"), (TOO_SHORT, "port"))


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


def fates_matching(wire: Wire, pattern: str, *names: str) -> pl.DataFrame:
    """The fates whose comment matches `pattern`, with its groups as columns `names`."""
    groups = pl.col("comment").str.extract_groups(pattern)
    met = wire.fates.lazy().filter(pl.col("comment").str.contains(pattern))
    return met.with_columns(groups.struct[place].alias(name) for place, name in enumerate(names)).collect()


def check_fates(wire: Wire, segment: SegmentBase, patterns: Iterable[str]) -> pl.DataFrame:
    """A finding for each fate that this kind of segment does not have, or whose reason its length does not show."""
    known = pl.any_horizontal(pl.col("comment").str.contains(each) for each in (*COMMON, *patterns))
    longest = segment.mtu + ETHERNET_HEADER
    length = pl.col("frame_length").cast(pl.Int64)
    long, short = (pl.col("comment").str.contains(each) for each in (TOO_LONG, TOO_SHORT))
    wrong_long = long & (
        (length <= longest)
        | ~pl.col("comment").str.starts_with(pl.format("dropped: {} bytes, longest is {} (", length, pl.lit(longest)))
    )
    wrong = ~known.fill_null(False) | wrong_long | (short & (length >= ETHERNET_HEADER))
    table = wire.fates.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    return findings(
        table,
        wrong.fill_null(True),
        pl.lit(f"fate on {wire.name}"),
        pl.lit("a fate that this segment has, and as configured"),
        pl.coalesce("comment", pl.lit("none")),
    )


def ring_of(wire: Wire, segment: SegmentBase, port: str) -> tuple[int, bool]:
    """Places in the transmit ring of a port, and whether it drops a frame that finds them taken; a device cannot be
    stopped."""
    if port in wire.rings:
        return wire.rings[port], True
    return segment.adapter.ring_frames, segment.adapter.when_full == "drop"


def ring_drops(wire: Wire, port: str) -> pl.DataFrame:
    """Frames that a port's full ring refused."""
    return fates_matching(wire, RING_FULL, "port").filter(pl.col("port") == port)


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
    their length, and at the end its ring may hold more."""
    done += sum(
        fates_matching(wire, form, "bytes", *more).filter(pl.col("port") == port).height for form, *more in _LENGTHS
    )
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

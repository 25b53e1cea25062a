# SPDX-License-Identifier: Apache-2.0
"""What a backplane's capture must show: each packet leaves when its line is free, and is in memory when the way and the
receiver's engine have taken their time; the packets themselves are `verify_packets`."""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.segments.vmmc import model_stores
from sundial.segments.vmmc.model import PS_PER_S, Backplane
from sundial.segments.vmmc.verify_fields import Packets, packets_of
from sundial.segments.vmmc.verify_packets import Sender, check_packets
from sundial.segments.vmmc.wire import HEADER
from sundial.verify.law import Bounds, Law, merged
from sundial.verify.segment import FLIGHTS, SegmentVerifier
from sundial.verify.wire import SECOND_NS, Arrivals, Numbers, Passages, Wire, check_arrivals, problem

UNPROVEN = (
    "vmmc: when a node made the stores of a packet, and their values",
    "vmmc: that the memory of a node has what its backplane's adapter was given",
    "vmmc: when a packet left that then waited for its receiver's engine, between those before and after it",
    "vmmc: that a kernel asked for what left because of that (reason 6)",
    "vmmc: that stores after a gap at a packet's very end were to another page",
    "vmmc: which bindings and transfers notify, and that a kernel was interrupted",
    "vmmc: that a packet for no export was refused, and one for an export was not",
)

_RULES = ("no packet", "sender", "unknown node")
"""By which an adapter refuses packets."""


class _Backplane(SegmentVerifier[Backplane]):
    def check_times(self, segment: Backplane, wire: Wire) -> Law:
        nodes = _nodes(wire)
        sent = [_packets(wire, passages) for passages in wire.sent]
        found = [_unknown_fates(wire)]
        counted: dict[tuple[str, str], Bounds] = {}
        cut: dict[str, Bounds] = {}
        for place, port in enumerate(segment.ports):
            passages, packets = wire.sent[place], sent[place]
            queued = _queued(segment, passages)
            found.append(_line(segment, port, passages))
            seen = wire.received[place]
            refused = {rule: wire.given_up(port).filter(fate_rule=rule).height for rule in _RULES}
            sender = Sender(port, nodes[place], passages, packets, queued, any(refused.values()))
            found += check_packets(segment, sender, seen, _packets(wire, seen))
            arrived, late = check_arrivals(port, _due(segment, wire, sent, nodes, place), seen, wire.end_ns)
            found.append(arrived)
            # What waits for its line when the run ends was counted when it was handed in.
            waiting = 1 << 20 if wire.end_ns is not None and queued[-1:].any() else 0
            cut[port] = (waiting, late)
            counted[port, "undelivered"] = (0, late + waiting)
            counted |= {(port, f"dropped {reason}"): (each, each) for reason, each in refused.items()}
            offered = len(passages) + sum(refused.values())
            counted[port, "offered_frames"] = (offered, offered + waiting)
        return Law(merged(found), counted, cut)

    def receives_all(self, segment: Backplane) -> bool:
        return False

    def flights(self, segment: Backplane, frames: pl.DataFrame) -> pl.DataFrame:
        return model_stores.flights(segment, frames).select(list(FLIGHTS))


def _packets(wire: Wire, passages: Passages) -> Packets:
    if wire.octets is None:
        raise ValueError(f"the bytes of {wire.name} are needed")
    rows = pl.DataFrame({"row": passages.row})
    frames = wire.frames.with_columns(pl.col("row").cast(pl.Int64))
    return packets_of(wire.octets(rows.join(frames, on="row", maintain_order="left")))


def _nodes(wire: Wire) -> list[int]:
    """The number of the node at each port: the place of its machine among those of the topology, which its address
    ends with."""
    return [wire.macs[port] & 0xFF for port in wire.ports]


def _taken_ns(segment: Backplane, passages: Passages) -> Numbers:
    """How long packets take their line; a byte takes whole nanoseconds."""
    return passages.length * (8 * SECOND_NS // segment.link_rate)


def _queued(segment: Backplane, passages: Passages) -> Numbers:
    """1 where a packet leaves just as the one before has left, so that it may have waited."""
    ends = passages.time_ns + _taken_ns(segment, passages)
    return np.append(0, (passages.time_ns[1:] == ends[:-1]).astype(np.int64))[: len(passages)]


def _line(segment: Backplane, port: str, passages: Passages) -> pl.DataFrame:
    ends = passages.time_ns + _taken_ns(segment, passages)
    wrong = np.append(False, passages.time_ns[1:] < ends[:-1])[: len(passages)]
    places = np.flatnonzero(wrong)
    return problem(
        f"line of {port}",
        wrong,
        [np.append(-1, passages.row[:-1])[: len(passages)], passages.row],
        (f"no start before {ends[place - 1]} ns" for place in places),
        (f"begins at {passages.time_ns[place]} ns" for place in places),
    )


def _due(segment: Backplane, wire: Wire, sent: list[Packets], nodes: list[int], receiver: int) -> Arrivals:
    """All that arrives at a node, in the order in which it left; of one instant, in the order of ports."""
    parts = []
    for place, (passages, packets) in enumerate(zip(wire.sent, sent, strict=True)):
        which = np.flatnonzero(packets.receiver == nodes[receiver]) if place != receiver else np.zeros(0, np.int64)
        some = passages.take(which)
        parts.append((some.time_ns, np.full(len(some), place), some.length, some.content, some.row))
    time, port, length, content, row = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((row, port, time))
    due, free = [], 0
    # In parts of a ps in which each bit takes a whole number of them.
    rate = segment.dma_rate
    for at, bytes_ in zip(time[order].tolist(), length[order].tolist(), strict=True):
        ready = 1000 * at + segment.way_ps
        if ready >= -(-free // rate):
            free = ready * rate
        free += 8 * (bytes_ - HEADER) * PS_PER_S
        due.append(-(-free // (1000 * rate)))
    return Arrivals(np.array(due, np.int64), content[order], row[order])


def _unknown_fates(wire: Wire) -> pl.DataFrame:
    unknown = wire.fates.filter(~pl.col("fate_rule").is_in(_RULES).fill_null(False))
    return problem(
        f"fate on {wire.name}",
        np.ones(len(unknown), np.bool_),
        [unknown["row"].to_numpy().astype(np.int64)],
        ("a fate that a backplane has" for _ in range(len(unknown))),
        iter(unknown["comment"].fill_null("none")),
    )


KIND: SegmentVerifier[Backplane] = _Backplane()

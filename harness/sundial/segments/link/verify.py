# SPDX-License-Identifier: Apache-2.0
"""Full duplex: only what a port itself sends takes the wire in front of it; and what the link does with each frame."""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.segments.link.model import Link
from sundial.segments.link.verify_fates import (
    RECORDS,
    Fates,
    check_corrupted,
    check_severed,
    check_stages,
    fates_of,
)
from sundial.segments.link.verify_netem import (
    LONGEST,
    SHORTEST,
    Copies,
    Way,
    copies_of,
    entries,
    let_past,
    matched,
    rematched,
    spans,
    way_of,
)
from sundial.verify.contention import Contention, of_own_frames
from sundial.verify.law import Bounds, Law, check_fates, check_ring, cut_off, merged, offered, ring_drops
from sundial.verify.offered import check_full_duplex
from sundial.verify.power import check_power
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import Arrivals, Mask, Numbers, Passages, Wire, check_arrivals, check_line, problem

UNPROVEN = (
    "link: the delay of a frame within the bounds of its jitter, and its distribution and correlation",
    "link: which frames are lost, duplicated, corrupted and reordered; only their share",
    "link: when a machine handed a frame to its adapter",
)


class _Link(SegmentVerifier[Link]):
    def contention(self, segment: Link, port: str, frames: pl.DataFrame) -> Contention | None:
        return of_own_frames(port, segment.rate, frames)

    def keeps_order(self, segment: Link, port: str) -> bool:
        every = segment.every(port)
        delays = {(each.delay, each.rate, each.packet_overhead, each.cell_size, each.cell_overhead) for each in every}
        # A reordered frame overtakes those that wait; a duplicate is sent behind its original. Where the delay
        # changes, frames that are sent later may come first.
        return len(delays) == 1 and all(each.jitter is None and each.reorder is None for each in every)

    def check_times(self, segment: Link, wire: Wire) -> Law:
        power, counted = check_power(wire, segment)
        found = [check_fates(wire, segment, RECORDS), power]
        cut: dict[str, Bounds] = {}
        for place in (0, 1):
            port, other = segment.ports[place], segment.ports[1 - place]
            sent, seen = wire.sent[place], wire.received[1 - place]
            found.append(check_line(port, sent, segment.rate))
            ring, full = check_ring(wire, segment, port, sent, segment.rate)
            found.append(ring)
            refused = len(ring_drops(wire, port))
            way = way_of(segment, port)
            entered = entries(way, sent)
            fates = fates_of(wire, port, other, sent, entered)
            stage = way.stage(sent.time_ns)
            found += [fates.findings, check_stages(segment, fates, port, stage)]
            found.append(check_severed(segment, port, other, stage, sent, fates))
            found.append(check_corrupted(wire, fates, sent, seen))
            after = 0 if wire.end_ns is None else int((entered > wire.end_ns).sum())
            copies = copies_of(sent, entered, fates.copies, way)
            plain = fates.plain(seen)
            check = _exact if way.exact else _bounded
            findings, left, reordered = check(way, copies, sent, plain, other, wire.end_ns, fates)
            found += findings
            cut[other] = cut_off(wire, segment, other, left)
            counted |= {
                (port, "adapter_full"): full,
                (port, "dropped adapter full"): (refused, refused),
                (port, "offered_frames"): offered(wire, segment, port, refused + len(sent)),
                (other, "undelivered"): (0, left),
                (port, "reordered"): reordered,
                **{(port, name): (number, number + after + cut[other][0]) for name, number in fates.counted.items()},
            }
        return Law(merged(found), counted, cut)

    def check_offered(self, segment: Link, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
        return check_full_duplex(segment, wire, port, handed_in)


def _exact(
    way: Way, copies: Copies, sent: Passages, seen: Passages, other: str, end_ns: int | None, fates: Fates
) -> tuple[list[pl.DataFrame], int, Bounds]:
    """Nothing is drawn: each arrival is known."""
    inside = way.let_go(copies, SHORTEST)
    order = np.argsort(inside, kind="stable")
    due, place = way.arrive(inside[order], copies.bits[order]), copies.place[order]
    if way.tolerance_ns and len(seen):
        both = min(len(due), len(seen))
        near = np.abs(due[:both] - seen.time_ns[:both]) <= way.tolerance_ns
        due[:both] = np.where(near, seen.time_ns[:both], due[:both])
    arrivals = Arrivals(due, sent.content[place], sent.row[place])
    found, late = check_arrivals(other, arrivals, seen, end_ns)
    inside = way.whole(inside)
    return [found, _limit(way, copies, inside, inside, fates, sent)], late, (0, 0)


def _bounded(
    way: Way, copies: Copies, sent: Passages, seen: Passages, other: str, end_ns: int | None, fates: Fates
) -> tuple[list[pl.DataFrame], int, Bounds]:
    """Delays are drawn: each arrival is within bounds, and keeps its distance to the one before."""
    copy, arrival = matched(sent.content, seen.content, seen.time_ns, copies)
    came = seen.time_ns[arrival]
    span = spans(way, copies, copy, came)
    if way.overtakes and not span.right.all():
        copy = rematched(way, copies, copy, came, seen.content[arrival], span)
        span = spans(way, copies, copy, came)
    rows = [sent.row[copies.place[copy]], seen.row[arrival]]
    wrong = ~span.right
    found = [
        problem(
            f"arrival at {other}",
            wrong,
            rows,
            (f"{low} to {high} ns" for low, high in zip(span.low[wrong], span.high[wrong], strict=True)),
            (f"at {at} ns" for at in came[wrong]),
        )
    ]
    strange = np.ones(len(seen), np.bool_)
    strange[arrival] = False
    found.append(
        problem(f"arrival at {other}", strange, [seen.row], iter(["none"] * len(seen)),
                (f"at {at} ns" for at in seen.time_ns[strange]))
    )  # fmt: skip
    missing = np.ones(len(copies.place), np.bool_)
    missing[copy] = False
    latest = way.whole(way.let_go(copies, LONGEST)) + way.propagation_ns
    latest = np.maximum.accumulate(latest) if len(latest) else latest
    due = missing & (latest <= (end_ns if end_ns is not None else 1 << 62))
    found.append(
        problem(f"arrival at {other}", due, [sent.row[copies.place]],
                (f"by {at} ns" for at in latest[due]), iter(["none"] * int(due.sum())))
    )  # fmt: skip
    found.append(_gaps(way, copy, span.past, sent, copies))
    let_go = came - way.propagation_ns
    earliest = way.whole(way.let_go(copies, SHORTEST))
    if not way.reorders:
        found.append(_limit(way, copies, earliest, np.append(let_go, latest[missing]), fates, sent))
    unseen = int(missing.sum())
    if not way.reorders:
        return found, unseen, (0, 0)
    if len(way.stages) > 1:
        return found, unseen, (int(span.past.sum()), int(way.each("reorders", copies).sum()))
    least, most = let_past(way, copies, copy, came, sent.content, seen.content[arrival])
    return found, unseen, (least, most + unseen)


def _limit(way: Way, copies: Copies, earliest: Numbers, latest: Numbers, fates: Fates, sent: Passages) -> pl.DataFrame:
    """A frame is dropped where the queue is full, and only there. One that is doubled met a place; its copy goes in
    before it, and it then goes in, full or not (netem_enqueue)."""
    tried = 1 + fates.doubled - fates.lost - fates.gone > 0
    before = np.cumsum(fates.copies) - fates.copies
    fewest = before - np.searchsorted(np.sort(earliest), fates.entered, "right")
    most = before - np.searchsorted(np.sort(latest), fates.entered, "right")
    limit = np.array([stage.limit for stage in way.stages])[way.stage(sent.time_ns)]
    least, greatest = tried & (fewest >= limit), tried & (most >= limit)
    if way.tolerance_ns:
        near = np.searchsorted(np.sort(latest), fates.entered - way.tolerance_ns, "right")
        greatest = tried & (before - near >= limit)
        near = np.searchsorted(np.sort(earliest), fates.entered + way.tolerance_ns, "right")
        least = tried & (before - near >= limit)
    wrong = (fates.full < least) | (fates.full > greatest)
    return problem(
        "queue of the link",
        wrong,
        [sent.row],
        (
            f"{int(some)} dropped, {inside} of {places} places taken"
            for some, inside, places in zip(least[wrong], most[wrong], limit[wrong], strict=True)
        ),
        (f"{number} dropped" for number in fates.full[wrong]),
    )


def _gaps(way: Way, copy: Numbers, past: Mask, sent: Passages, copies: Copies) -> pl.DataFrame:
    """Of those let past others no two are nearer than `gap` frames. Of a frame and its copy either can be the one."""
    order = np.sort(copy[past])
    place = copies.place[order]
    earliest = np.searchsorted(copies.place, place, "left")
    latest = np.searchsorted(copies.place, place, "right") - 1
    apart = latest[1:] - earliest[:-1]
    wrong = np.zeros(len(order), np.bool_)
    gap = way.each("gap", copies)[order]
    wrong[1:] = apart < gap[1:]
    return problem(
        "gap of reordering",
        wrong,
        [sent.row[place]],
        (f"every {each}th frame at most" for each in gap[wrong]),
        (f"{each} frames after the one before" for each in apart[wrong[1:]]),
    )


KIND: SegmentVerifier[Link] = _Link()

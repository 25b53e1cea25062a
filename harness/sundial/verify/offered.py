# SPDX-License-Identifier: Apache-2.0
"""What becomes of frames that a device hands in at a port: when, is known, unlike of a machine's.

A frame is refused for its length, finds the transmit ring full and is dropped, or waits there until all of it has left
(`core::Ring` of the fabric). The kind of segment says when it is sent.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.expect.ip import ETHERNET_HEADER
from sundial.model.segment import SegmentBase
from sundial.seams.fate import RingFull, TooLong, TooShort
from sundial.verify.findings import findings
from sundial.verify.law import BY_LENGTH, ring_of
from sundial.verify.wire import (
    GAP_BITS,
    MOST,
    Arrivals,
    Line,
    Mask,
    Numbers,
    Passages,
    Wire,
    bits_of,
    check_sent,
    problem,
    queue_starts,
)


def check_full_duplex(segment: SegmentBase, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
    """On a line that no other takes: each frame leaves as soon as those before it have left, with a gap."""
    places, _ = ring_of(wire, segment, port)
    fits = of_right_length(segment, handed_in)
    inside = handed_in.take(fits)
    line, bits = Line(segment.rate_bps(port)), bits_of(inside.length)
    starts, kept = _through_ring(line, inside.time_ns, bits, places)
    due = Arrivals(line.whole(starts[kept]), inside.content[kept], inside.row[kept])
    full = np.zeros(len(handed_in), np.bool_)
    full[np.flatnonzero(fits)[~kept]] = True
    return [check_sent(port, due, wire.sent_at(port), wire.end_ns), check_refused(segment, wire, port, handed_in, full)]


def _through_ring(line: Line, ready: Numbers, bits: Numbers, places: int) -> tuple[Numbers, Mask]:
    """When frames begin to leave, in parts of a ns, and which find a place in the ring; it is held to the last bit."""
    fine, busy, own = line.fine(ready), line.time(bits + GAP_BITS), line.time(bits)
    kept = np.ones(len(ready), np.bool_)
    if not len(ready):
        return fine, kept
    starts = queue_starts(fine, busy)
    if int((np.arange(len(ready)) - np.searchsorted(starts + own, fine, "right")).max()) < places:
        return starts, kept
    # Frame by frame: whether one is dropped decides what the next finds.
    found, left, free = fine.tolist(), 0, 0
    ends: list[int] = []
    for place, (at, takes, whole) in enumerate(zip(fine.tolist(), busy.tolist(), own.tolist(), strict=True)):
        while left < len(ends) and ends[left] <= at:
            left += 1
        if len(ends) - left >= places:
            kept[place] = False
            continue
        found[place] = max(at, free)
        free = found[place] + takes
        ends.append(found[place] + whole)
    return np.array(found, fine.dtype), kept


def of_right_length(segment: SegmentBase, handed_in: Passages) -> Mask:
    """Which frames an adapter takes."""
    return (handed_in.length >= ETHERNET_HEADER) & (handed_in.length <= segment.mtu + ETHERNET_HEADER)


def refused(wire: Wire, port: str) -> pl.DataFrame:
    """Frames that the adapter of a port did not take, for whatever reason."""
    return wire.fates.filter(pl.col("fate_rule").is_in(["adapter full", *BY_LENGTH]), fate_adapter=port)


def was_refused(wire: Wire, port: str, handed_in: Passages) -> Mask:
    """Which of the frames handed in have such a fate, each of its own."""
    fates = refused(wire, port).select(
        time_ns="time_ns", content=pl.col("octets_hash").cast(pl.Int64), has_fate=pl.lit(True)
    )
    key = ["time_ns", "content"]
    number = pl.int_range(pl.len()).over(key).alias("number")
    table = pl.DataFrame({"time_ns": handed_in.time_ns, "content": handed_in.content}).with_columns(number)
    joined = table.join(fates.with_columns(number), on=[*key, "number"], how="left", maintain_order="left")
    return joined["has_fate"].fill_null(False).to_numpy()


def check_refused(segment: SegmentBase, wire: Wire, port: str, handed_in: Passages, full: Mask) -> pl.DataFrame:
    """The fates of an adapter are those of frames that it cannot carry, and of those that found its ring `full`."""
    length = pl.col("length")
    longest = segment.mtu + ETHERNET_HEADER
    due = (
        pl.DataFrame(
            {
                "time_ns": handed_in.time_ns, "content": handed_in.content, "cause": handed_in.row,
                "length": handed_in.length, "full": full,
            }
        )
        .filter((length > longest) | (length < ETHERNET_HEADER) | pl.col("full"))
    )  # fmt: skip
    comments = [_refusal(port, each, longest) for each in due["length"]]
    due = due.with_columns(comment=pl.Series(comments, dtype=pl.String))
    if wire.end_ns is not None:
        due = due.filter(pl.col("time_ns") <= wire.end_ns)
    came = refused(wire, port).select(
        "time_ns", "comment", content=pl.col("octets_hash").cast(pl.Int64), row=pl.col("row").cast(pl.Int64)
    )
    key = ["time_ns", "content", "comment"]
    number = pl.int_range(pl.len()).over(key).alias("number")
    table = due.with_columns(number).join(came.with_columns(number), on=[*key, "number"], how="full", coalesce=True)
    table = table.filter(pl.col("row").is_null() | pl.col("cause").is_null()).sort("time_ns", "comment").head(MOST)
    return findings(
        table.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("cause", "row").list.drop_nulls()),
        pl.lit(True),
        pl.lit(f"ring of {port}"),
        pl.when(pl.col("cause").is_null())
        .then(pl.lit("room"))
        .otherwise(pl.format("{} at {} ns", "comment", "time_ns")),
        pl.when(pl.col("row").is_null()).then(pl.lit("none")).otherwise(pl.format("{} at {} ns", "comment", "time_ns")),
    )


def _refusal(port: str, length: int, longest: int) -> str:
    """The comment on a frame that an adapter does not take; of one that it could carry, since its ring is full."""
    if length > longest:
        return TooLong(fate="dropped", rule="too long", adapter=port, bytes=length, longest=longest).comment
    if length < ETHERNET_HEADER:
        return TooShort(fate="dropped", rule="too short", adapter=port, bytes=length).comment
    return RingFull(fate="dropped", rule="adapter full", adapter=port).comment


def check_places(
    segment: SegmentBase, wire: Wire, port: str, handed_in: Passages, left_ns: Numbers, slack_ns: int = 0
) -> tuple[pl.DataFrame, Passages]:
    """Where it is seen when frames have left the ring (`left_ns`, in order, or up to `slack_ns` before): which were
    refused, and the others."""
    places, _ = ring_of(wire, segment, port)
    fits = of_right_length(segment, handed_in)
    gone = was_refused(wire, port, handed_in)
    enters: Numbers = (fits & ~gone).astype(np.int64)
    entered = np.cumsum(enters) - enters
    most, least = (entered - np.searchsorted(left_ns - slack, handed_in.time_ns, "right") for slack in (0, slack_ns))
    full = fits & (np.where(gone, most, least) >= places)
    return check_refused(segment, wire, port, handed_in, full), handed_in.take(fits & ~gone)


def check_not_before(wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
    """Where nothing more is known: a frame is sent once or has a fate of its adapter, not before it was handed in, and
    those between the same two addresses in order."""
    sent = wire.sent_at(port)
    fates = wire.given_up(port)
    key = ["content"]
    number = pl.int_range(pl.len()).over(key).alias("number")
    given = pl.DataFrame(
        {
            "content": handed_in.content, "given_ns": handed_in.time_ns, "cause": handed_in.row,
            "source": handed_in.source, "target": handed_in.target,
        }
    ).with_columns(number, place=pl.int_range(pl.len()))  # fmt: skip
    dropped = fates.select(
        content=pl.col("octets_hash").cast(pl.Int64), done_ns="time_ns", row=pl.col("row").cast(pl.Int64),
        sent=pl.lit(False),
    )  # fmt: skip
    done = pl.DataFrame({"content": sent.content, "done_ns": sent.time_ns, "row": sent.row}).with_columns(
        sent=pl.lit(True)
    )
    done = pl.concat([done, dropped]).sort("done_ns", "row").with_columns(number)
    pairs = given.join(done, on=[*key, "number"], how="full", coalesce=True).sort("place", nulls_last=True)
    strange = pairs.filter(pl.col("cause").is_null())
    early = pairs.filter(pl.col("done_ns") < pl.col("given_ns"))
    of = ["source", "target"]
    ordered = pairs.filter(pl.col("sent"), pl.col("cause").is_not_null()).with_columns(
        latest=pl.col("done_ns").cum_max().over(of)
    )
    passed = ordered.filter(pl.col("done_ns") < pl.col("latest"))
    # What is still in the ring at the end has nothing behind it that was sent.
    lost = pairs.filter(pl.col("cause").is_not_null()).with_columns(
        later=pl.col("row").is_not_null().reverse().cum_sum().reverse().over(of)
    )
    lost = lost.filter(pl.col("row").is_null(), pl.col("later") > 0)
    found = []
    for table, expected, seen in (
        (strange, "a frame that was handed in", "one that was not"),
        (early, "not before it was handed in", "earlier"),
        (passed, "in the order of their hand-in", "behind a later one"),
        (lost, "sent, or a fate", "neither"),
    ):
        rows = [table[name].fill_null(-1).to_numpy() for name in ("cause", "row")]
        found.append(
            problem(f"frames of {port}", np.ones(len(table), np.bool_), rows,
                    iter([expected] * len(table)), iter([seen] * len(table)))
        )  # fmt: skip
    return found

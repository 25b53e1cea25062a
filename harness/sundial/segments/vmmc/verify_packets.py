# SPDX-License-Identifier: Apache-2.0
"""What the packets of one node say of themselves: numbers without gaps, lengths, and why each left when it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sundial.segments.vmmc.model import Backplane
from sundial.segments.vmmc.verify_fields import Packets
from sundial.segments.vmmc.wire import (
    AU,
    CONTROL,
    DU,
    FULL,
    GAP,
    HEADER,
    KINDS,
    LAST,
    MESSAGE_MOST,
    NACK,
    NOTIFY,
    PAGE,
    PAGE_END,
    REASONS,
    TIMER,
    UNCOMBINED,
    VERSION,
    WORD,
)
from sundial.units import MAX_SHIFT
from sundial.verify.wire import SECOND_NS, Mask, Numbers, Passages, problem

INSTRUCTION_MOST_NS = 1 << MAX_SHIFT


@dataclass(frozen=True)
class Sender:
    """A node and what it sent, in the order in which it left."""

    port: str
    node: int
    passages: Passages
    packets: Packets
    queued: Numbers
    """1 where it may have waited for its line."""
    refused: bool
    """Whether some of its packets are not among them, since its adapter took them for no node."""


def check_packets(segment: Backplane, sender: Sender, received: Passages, arrived: Packets) -> Iterator[pl.DataFrame]:
    """Findings of what a node sent; `received` is what came to it."""
    yield from _headers(sender)
    yield _sequences(sender)
    yield from _unused(sender)
    yield from _automatic(segment, sender)
    yield _pushed(segment, sender)
    yield _deliberate(segment, sender)
    yield _refusals(segment, sender, received, arrived)


def _found(sender: Sender, what: str, wrong: Mask, expected: Sequence[object], seen: Numbers) -> pl.DataFrame:
    places = np.flatnonzero(wrong)
    return problem(
        f"{what} of {sender.port}",
        wrong,
        [sender.passages.row],
        (str(expected[int(place)]) for place in places),
        (str(seen[place]) for place in places),
    )


def _headers(sender: Sender) -> Iterator[pl.DataFrame]:
    packets, count = sender.packets, len(sender.passages)
    lengths = sender.passages.length - HEADER
    yield _found(sender, "version", packets.version != VERSION, [VERSION] * count, packets.version)
    yield _found(sender, "sender", packets.sender != sender.node, [sender.node] * count, packets.sender)
    yield _found(sender, "length", packets.length != lengths, lengths.tolist(), packets.length)
    known = np.isin(packets.kind, list(KINDS))
    yield _found(sender, "kind", ~known, [f"1 to {max(KINDS)}"] * count, packets.kind)
    most = np.select([packets.kind == NACK, packets.kind == CONTROL], [0, MESSAGE_MOST], PAGE)
    expected = [f"at most {each}" for each in most.tolist()]
    yield _found(sender, "length", packets.length > most, expected, packets.length)
    within = packets.offset % PAGE + packets.length <= PAGE
    yield _found(sender, "offset", ~within, ["within a page"] * count, packets.offset)


def _unused(sender: Sender) -> Iterator[pl.DataFrame]:
    """What a packet of its kind does not have is 0. Of a transfer only the last packet may notify."""
    packets = sender.packets
    of_last = np.where(packets.flags & LAST, LAST | NOTIFY, LAST)
    flags = np.select([packets.kind == AU, packets.kind == DU], [NOTIFY, of_last], 0)
    expected = [f"no bits but {each}" for each in flags.tolist()]
    yield _found(sender, "flags", (packets.flags & ~flags) != 0, expected, packets.flags)
    zeros = ["0"] * len(sender.passages)
    yield _found(sender, "reason", (packets.kind != AU) & (packets.reason != 0), zeros, packets.reason)
    for name in ("export", "generation", "offset", "count"):
        seen = getattr(packets, name)
        yield _found(sender, name, (packets.kind == CONTROL) & (seen != 0), zeros, seen)


def _sequences(sender: Sender) -> pl.DataFrame:
    """Packets from one node to another are numbered from 0."""
    table = pl.DataFrame({"to": sender.packets.receiver})
    expected = table.select(pl.int_range(pl.len()).over("to")).to_series().to_numpy()
    wrong = sender.packets.sequence != expected % (1 << 32)
    return _found(sender, "sequence", wrong, expected.tolist(), sender.packets.sequence)


def _follows(packets: Packets) -> Mask:
    """Where a packet goes on exactly where the one before ends."""
    same = np.ones(max(len(packets.kind) - 1, 0), np.bool_)
    for name in ("kind", "receiver", "export", "generation"):
        column = getattr(packets, name)
        same &= column[1:] == column[:-1]
    same &= packets.offset[1:] == packets.offset[:-1] + packets.length[:-1]
    return np.append(False, same)[: len(packets.kind)]


def _automatic(segment: Backplane, sender: Sender) -> Iterator[pl.DataFrame]:
    packets, count = sender.packets, len(sender.passages)
    automatic = packets.kind == AU
    end = (packets.offset + packets.length) % PAGE == 0
    reason = packets.reason
    combined = automatic & (reason != UNCOMBINED)
    known = np.isin(reason, list(REASONS))
    yield _found(sender, "reason", automatic & ~known, ["1 to 6"] * count, reason)
    yield _found(sender, "reason", combined & ((reason == PAGE_END) != end), ["2, where its page ends"] * count, reason)
    # One that is full has all bytes, or the store that follows at its end did not fit.
    room = segment.combine_bytes - packets.length
    goes_on = np.append(_follows(packets)[1:], False)[:count]
    full = (room == 0) | (goes_on & (room < WORD))
    full |= np.append(np.zeros(max(count - 1, 0), np.bool_), room[-1:] < WORD)  # what followed was cut off
    yield _found(sender, "reason", combined & (reason == FULL) & ~full, ["3, where it is full"] * count, reason)
    must = combined & (room == 0) & ~end & (reason != FULL)
    yield _found(sender, "reason", must, ["3: it is full"] * count, reason)
    most = np.where(reason == UNCOMBINED, WORD, segment.combine_bytes)
    wrong = automatic & ((packets.length < 1) | (packets.length > most))
    yield _found(sender, "length", wrong, [f"1 to {each}" for each in most.tolist()], packets.length)
    least = -(-packets.length // WORD)
    most = np.where(reason == UNCOMBINED, 1, packets.length)
    stores = automatic & ((packets.count < least) | (packets.count > most))
    expected = [f"{low} to {high} stores" for low, high in zip(least.tolist(), most.tolist(), strict=True)]
    yield _found(sender, "count", stores, expected, packets.count)
    yield _timer(segment, sender, automatic & (reason == TIMER))


def _timer(segment: Backplane, sender: Sender, timed: Mask) -> pl.DataFrame:
    """Nothing else leaves between the last store and the end of its time: it would have pushed the stores out. Where a
    line was busy the instants are not known."""
    time, free = sender.passages.time_ns, sender.queued == 0
    apart = np.append(segment.combine_timeout, np.diff(time))[: len(time)]
    both = free & np.append(True, free[:-1])[: len(time)]
    wrong = timed & both & (apart < segment.combine_timeout)
    return _found(sender, "timer", wrong, [f"{segment.combine_timeout} ns after others"] * len(time), apart)


def _pushed(segment: Backplane, sender: Sender) -> pl.DataFrame:
    """What leaves for a gap is pushed out by what is next: by a packet that leaves alone, at that instant; by the first
    store of one that is combined, each of whose stores is made before the time of the one before it is over."""
    packets, time = sender.packets, sender.passages.time_ns
    count = len(time)
    combined = (packets.kind == AU) & (packets.reason != UNCOMBINED)
    # Of the packet that follows.
    most = np.append(np.where(combined, packets.count * (segment.combine_timeout + INSTRUCTION_MOST_NS), 0)[1:], 0)[
        :count
    ]
    later = np.append(np.diff(time), 0)[:count]
    free = np.append(sender.queued[1:] == 0, False)[:count]
    wrong = (packets.kind == AU) & (packets.reason == GAP) & free & (later > most)
    wrong &= not sender.refused
    return _found(sender, "gap", wrong, [f"the next within {each} ns" for each in most.tolist()], later)


def _deliberate(segment: Backplane, sender: Sender) -> pl.DataFrame:
    """Transfers are numbered from 0, each from one packet to its last, page by page, and read one after another."""
    which = np.flatnonzero(sender.packets.kind == DU)
    packets, passages = sender.packets.take(which), sender.passages.take(which)
    last = (packets.flags & LAST) != 0
    number = np.append(0, np.cumsum(last))[: len(which)]
    begins = np.append(True, last[:-1])[: len(which)]
    end = (packets.offset + packets.length) % PAGE == 0
    wrong = packets.count != number
    wrong |= (packets.length < 1) | (~last & ~end) | (~begins & ~_follows(packets))
    free = sender.queued[which] == 0
    read_ns = packets.length * 8 * SECOND_NS // segment.dma_rate
    gap = np.append(read_ns[:1], np.diff(passages.time_ns))[: len(which)]
    # The stamp before is at most one instruction later than the end of that reading.
    wrong |= free & np.append(False, free[:-1])[: len(which)] & (gap + INSTRUCTION_MOST_NS < read_ns)
    return problem(
        f"transfers of {sender.port}",
        wrong,
        [passages.row],
        (f"transfer {number[place]} in order, {read_ns[place]} ns to read" for place in np.flatnonzero(wrong)),
        (f"transfer {packets.count[place]}, {gap[place]} ns later" for place in np.flatnonzero(wrong)),
    )


def _busy_since(segment: Backplane, passages: Passages) -> Numbers:
    """For each packet, since when its line has not been free for as long as an instruction takes, in which a node
    notices the end of a packet; its own time where the line was."""
    time = passages.time_ns
    ends = time + passages.length * (8 * SECOND_NS // segment.link_rate)
    begins = np.append(True, time[1:] - ends[:-1] >= INSTRUCTION_MOST_NS)[: len(passages)]
    return np.maximum.accumulate(np.where(begins, time, 0))


def _refusals(segment: Backplane, sender: Sender, received: Passages, arrived: Packets) -> pl.DataFrame:
    """A NACK repeats what a packet from its receiver said of itself, at the instant at which that came; each packet is
    refused once at most, and only data are. Where the line was busy then, the NACK waits for it; one that came while
    the FIFO was high, until that is low, during all of which the line is busy."""
    keys = ["to", "export", "generation", "offset", "count"]
    nacks = np.flatnonzero(sender.packets.kind == NACK)
    packets, passages = sender.packets.take(nacks), sender.passages.take(nacks)
    said = pl.DataFrame(
        {
            "row": passages.row, "at": passages.time_ns, "to": packets.receiver, "export": packets.export,
            "generation": packets.generation, "offset": packets.offset, "count": packets.count,
            "busy": _busy_since(segment, sender.passages)[nacks],
        }
    )  # fmt: skip
    came = pl.DataFrame(
        {
            "came": received.time_ns, "to": arrived.sender, "export": arrived.export,
            "generation": arrived.generation, "offset": arrived.offset, "count": arrived.count,
        }
    ).filter(pl.Series((arrived.kind == AU) | (arrived.kind == DU), dtype=pl.Boolean))  # fmt: skip
    number = pl.int_range(pl.len()).over(keys).alias("number")
    joined = said.with_columns(number).join(came.with_columns(number), on=[*keys, "number"], how="left")
    # Of equal packets the first may have been taken: at that instant just one must have come.
    latest = came.rename({"came": "latest"}).with_columns(pl.col("latest").alias("at")).sort("at")
    joined = joined.sort("at").join_asof(latest, on="at", by=keys, check_sortedness=False)
    late = pl.col("busy") - pl.col("latest") >= INSTRUCTION_MOST_NS
    wrong = joined.filter(pl.col("came").is_null() | (pl.col("came") > pl.col("at")) | late)
    return problem(
        f"refusals of {sender.port}",
        np.ones(len(wrong), np.bool_),
        [wrong["row"].to_numpy().astype(np.int64)],
        ("data that came just then" for _ in range(len(wrong))),
        (f"export {export}, offset {offset}" for export, offset in wrong.select("export", "offset").iter_rows()),
    )

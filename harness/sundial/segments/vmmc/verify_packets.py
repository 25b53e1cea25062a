# SPDX-License-Identifier: Apache-2.0
"""What the packets of one node say of themselves: numbers without gaps, lengths, and why each left when it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sundial.segments.vmmc.model import HEADER_BYTES, PAGE_BYTES, WORD_BYTES, Backplane
from sundial.segments.vmmc.verify_fields import (
    AU,
    DU,
    FLUSHED,
    FULL,
    GAP,
    LAST,
    NACK,
    PAGE_END,
    TIMER,
    UNCOMBINED,
    VERSION,
    Packets,
)
from sundial.units import MAX_SHIFT
from sundial.verify.wire import SECOND_NS, Mask, Numbers, Passages, problem

INSTRUCTION_MOST_NS = 1 << MAX_SHIFT


@dataclass(frozen=True)
class Sender:
    """A node and what it sent, in the order in which it left. `queued`: 1 where it may have waited for its line."""

    port: str
    node: int
    passages: Passages
    packets: Packets
    queued: Numbers


def check_packets(segment: Backplane, sender: Sender, received: Passages, arrived: Packets) -> Iterator[pl.DataFrame]:
    """Findings of what a node sent; `received` is what came to it."""
    yield from _headers(sender)
    yield _sequences(sender)
    yield from _automatic(segment, sender)
    yield _deliberate(segment, sender)
    yield _refusals(sender, received, arrived)


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
    lengths = sender.passages.length - HEADER_BYTES
    yield _found(sender, "version", packets.version != VERSION, [VERSION] * count, packets.version)
    yield _found(sender, "sender", packets.sender != sender.node, [sender.node] * count, packets.sender)
    yield _found(sender, "length", packets.length != lengths, lengths.tolist(), packets.length)
    known = np.isin(packets.kind, (AU, DU, NACK))
    yield _found(sender, "kind", ~known, ["1, 2 or 4"] * count, packets.kind)
    within = packets.offset % PAGE_BYTES + packets.length <= PAGE_BYTES
    yield _found(sender, "offset", ~within, ["within a page"] * count, packets.offset)


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
    end = (packets.offset + packets.length) % PAGE_BYTES == 0
    reason = packets.reason
    combined = automatic & (reason != UNCOMBINED)
    known = np.isin(reason, (GAP, PAGE_END, FULL, TIMER, UNCOMBINED, FLUSHED))
    yield _found(sender, "reason", automatic & ~known, ["1 to 6"] * count, reason)
    yield _found(sender, "reason", combined & ((reason == PAGE_END) != end), ["2, where its page ends"] * count, reason)
    # One that is full has all bytes, or the store that follows at its end did not fit.
    room = segment.combine_bytes - packets.length
    goes_on = np.append(_follows(packets)[1:], False)[:count]
    full = (room == 0) | (goes_on & (room < WORD_BYTES))
    full |= np.append(np.zeros(max(count - 1, 0), np.bool_), room[-1:] < WORD_BYTES)  # what followed was cut off
    yield _found(sender, "reason", combined & (reason == FULL) & ~full, ["3, where it is full"] * count, reason)
    must = combined & (room == 0) & ~end & (reason != FULL)
    yield _found(sender, "reason", must, ["3: it is full"] * count, reason)
    most = np.where(reason == UNCOMBINED, WORD_BYTES, segment.combine_bytes)
    wrong = automatic & ((packets.length < 1) | (packets.length > most))
    yield _found(sender, "length", wrong, [f"1 to {each}" for each in most.tolist()], packets.length)
    least = -(-packets.length // WORD_BYTES)
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


def _deliberate(segment: Backplane, sender: Sender) -> pl.DataFrame:
    """Transfers are numbered from 0, each from one packet to its last, page by page, and read one after another."""
    which = np.flatnonzero(sender.packets.kind == DU)
    packets, passages = sender.packets.take(which), sender.passages.take(which)
    last = (packets.flags & LAST) != 0
    number = np.append(0, np.cumsum(last))[: len(which)]
    begins = np.append(True, last[:-1])[: len(which)]
    end = (packets.offset + packets.length) % PAGE_BYTES == 0
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


def _refusals(sender: Sender, received: Passages, arrived: Packets) -> pl.DataFrame:
    """A NACK names a packet that has come from its receiver; each packet is refused once at most."""
    keys = ["to", "export", "generation", "offset"]
    nacks = np.flatnonzero(sender.packets.kind == NACK)
    packets, passages = sender.packets.take(nacks), sender.passages.take(nacks)
    said = pl.DataFrame(
        {
            "row": passages.row, "at": passages.time_ns, "to": packets.receiver, "export": packets.export,
            "generation": packets.generation, "offset": packets.offset,
        }
    )  # fmt: skip
    came = pl.DataFrame(
        {
            "came": received.time_ns, "to": arrived.sender, "export": arrived.export,
            "generation": arrived.generation, "offset": arrived.offset,
        }
    ).filter(pl.Series(arrived.kind != NACK, dtype=pl.Boolean))  # fmt: skip
    number = pl.int_range(pl.len()).over(keys).alias("number")
    joined = said.with_columns(number).join(came.with_columns(number), on=[*keys, "number"], how="left")
    wrong = joined.filter(pl.col("came").is_null() | (pl.col("came") > pl.col("at")))
    return problem(
        f"refusals of {sender.port}",
        np.ones(len(wrong), np.bool_),
        [wrong["row"].to_numpy().astype(np.int64)],
        ("a packet that came before" for _ in range(len(wrong))),
        (f"export {export}, offset {offset}" for export, offset in wrong.select("export", "offset").iter_rows()),
    )

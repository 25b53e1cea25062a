# SPDX-License-Identifier: Apache-2.0
"""Packets of automatic and deliberate updates, from the rules of the adapter (harness/clock/README.md), and what
vmmc-client and vmmc-server write where (guest-apps/sss-core/tasks/common/vmmc_target.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sundial.segments.vmmc.wire import AU, DU, FULL, LAST, PAGE, PAGE_END, UNCOMBINED, WORD

HASH = int.from_bytes(b"vmmc.tg1")
"""That both sides mean the same by all this."""
DATA_PAGES = 64
CONTROL_PAGE = PAGE
"""Bytes in front of the data pages."""
BATCH_AT, TAKEN_AT = 256, 264
"""Words of the control page."""
_FLAG = 0x434D4D56 << 32
_STREAM_AT, _TRANSFERS_AT, _SIZE_AT = 16, 20, 44
_ACKNOWLEDGED_PART = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One packet: what its header says. `stores` is 0 where it is none of automatic update."""

    kind: int
    flags: int
    reason: int
    offset: int
    length: int
    stores: int


def word(offset: int) -> Piece:
    """A word by itself: the control page does not combine."""
    return Piece(AU, 0, UNCOMBINED, offset, WORD, 1)


@lru_cache(maxsize=4096)
def pieces(operation: str, offset: int, size: int, combine_bytes: int) -> tuple[Piece, ...]:
    """Packets of one transfer, which ends with its page: stores of words that follow one another, or one deliberate
    update."""
    if operation == "au":
        return tuple(word(at) for at in range(offset, offset + size, WORD))
    if operation == "du":
        parts = list(_parts(offset, size, PAGE))
        return tuple(Piece(DU, LAST if at + length == offset + size else 0, 0, at, length, 0) for at, length in parts)
    # A packet has whole stores only.
    return tuple(
        Piece(AU, 0, FULL if (at + length) % PAGE else PAGE_END, at, length, length // WORD)
        for at, length in _parts(offset, size, combine_bytes // WORD * WORD)
    )


def _parts(offset: int, size: int, most: int) -> Iterator[tuple[int, int]]:
    """Offsets and lengths of at most `most` bytes that cross no page."""
    end = offset + size
    while offset < end:
        length = min(most, end - offset, PAGE - offset % PAGE)
        yield offset, length
        offset += length


def slots(size: int) -> int:
    """Transfers there is room for."""
    return DATA_PAGES // _slot_pages(size)


def _slot_pages(size: int) -> int:
    return -(-size // PAGE)


def place(size: int, number: int) -> int:
    """Offset of the `number`th transfer of a batch in its export."""
    return CONTROL_PAGE + (number % slots(size) + 1) * _slot_pages(size) * PAGE - size


def acknowledged(size: int, transfers: int) -> list[int]:
    """After how many transfers of a stream its server says so."""
    each = slots(size) // _ACKNOWLEDGED_PART
    return [done for done in range(1, transfers + 1) if done % each == 0 or done == transfers]


def batch_word(number: int, stream: bool, transfers: int, size: int) -> int:
    """What both sides store before a batch, the `number`th of its pair."""
    return number | stream << _STREAM_AT | transfers << _TRANSFERS_AT | size << _SIZE_AT


def flag(sequence: int) -> int:
    """The last word of a transfer, the `sequence`th of its pair, counted from 1."""
    return _FLAG | sequence

# SPDX-License-Identifier: Apache-2.0
"""Where the blocks of a pcapng file are (draft-ietf-opsawg-pcapng), checked to be whole.

Only the length of each block has to be asked one after another; what blocks say is read of many at once.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sundial.errors import BadInput

ALLOWED = "a complete pcapng or pcap file"
SECTION, INTERFACE, PACKET, SIMPLE, STATISTICS, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 5, 6
"""PACKET is obsolete: as ENHANCED, with 16 bits for its interface and 16 for a count of drops."""
SIMPLE_HEAD, HEAD = 12, 28
"""Bytes in front of the packet: of SIMPLE, and of the others."""
BYTE_ORDER = 0x1A2B3C4D
_COMMENT = 1
"""opt_comment."""
_RECEIVED, _DROPPED = 4, 5
"""isb_ifrecv and isb_ifdrop."""
_STATISTICS_LEAST = 24
"""Of an interface statistics block."""
_FIXED = {SECTION: 28, INTERFACE: 20, PACKET: 32, SIMPLE: 16, ENHANCED: 32}
"""Least total length of a block with its fixed fields."""
_LEAST = 12
"""Of any block: its kind, and its length in front and behind."""
_AT_ONCE_BYTES = 4 << 20

_Numbers = NDArray[np.int64]
_Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Blocks:
    """Blocks of one section, in their order; numbers of other kinds than frames are of no meaning."""

    order: str
    kind: NDArray[np.uint32]
    offset: _Numbers
    """In the file."""
    total: _Numbers
    interface: _Numbers
    """Of frames, counted over all sections."""
    captured: _Numbers
    original: _Numbers
    number: _Numbers
    """Of frames, from 1."""
    head: _Numbers
    """Bytes of a frame's block in front of the packet."""

    @property
    def frames(self) -> _Mask:
        """Which are frames."""
        found: _Mask = np.isin(self.kind, (PACKET, SIMPLE, ENHANCED))
        return found


def read_blocks(path: Path, data: mmap.mmap) -> Iterator[Blocks]:
    """All blocks, some MB at once. Raises BadInput at the first that is not complete."""
    base = interfaces = frames = offset = 0
    order = "<"
    while offset < len(data):
        if len(data) - offset < _LEAST:
            raise bad_file(path, offset, "truncated block")
        if data[offset : offset + 4] == SECTION.to_bytes(4):
            order, base = _byte_order(path, data, offset), interfaces
        words, places = _walk(data, offset, order)
        kind = words[places]
        total = words[places + 1].astype(np.int64)
        begin = offset + places * 4

        def word(place: int | _Numbers, words: NDArray[np.uint32] = words, places: _Numbers = places) -> _Numbers:
            found: _Numbers = words[np.minimum(places + place, len(words) - 1)].astype(np.int64)
            return found

        simple, packet = kind == SIMPLE, kind == PACKET
        owner = np.where(packet, word(2) >> 16 if order == ">" else word(2) & 0xFFFF, word(2))
        found = Blocks(
            order,
            kind,
            begin,
            total,
            base + np.where(simple, 0, owner),
            np.where(simple, np.minimum(word(2), total - 16), word(5)),
            np.where(simple, word(2), word(6)),
            frames + np.cumsum(simple | packet | (kind == ENHANCED)),
            np.where(simple, SIMPLE_HEAD, HEAD),
        )
        known = interfaces + np.cumsum(kind == INTERFACE)
        odd = total % 4 != 0
        odd |= total < np.select([kind == each for each in _FIXED], list(_FIXED.values()), _LEAST)
        strange = found.interface >= known
        rules = {
            "impossible block length {total}": odd,
            "truncated block": begin + total > len(data),
            "block whose two lengths differ": word(total // 4 - 1) != total,
            "impossible frame {number}": (packet | (kind == ENHANCED)) & (strange | (found.captured > total - 32)),
            "frame {number} without an interface": simple & strange,
        }
        _refuse(path, found, rules)
        yield found
        interfaces, frames, offset = int(known[-1]), int(found.number[-1]), int(begin[-1] + total[-1])
        data.madvise(mmap.MADV_DONTNEED)


def bad_file(path: Path, offset: int, what: str) -> BadInput:
    """The error for an incomplete capture."""
    return BadInput(f"{what} at byte {offset}", file=str(path), allowed=ALLOWED)


def _walk(data: mmap.mmap, offset: int, order: str) -> tuple[NDArray[np.uint32], _Numbers]:
    """The words of some MB of a file, and at which of them a block begins: blocks that end there, or one that does
    not end in the file, and none of another section."""
    (first,) = struct.unpack_from(f"{order}I", data, offset + 4)
    octets = data[offset : offset + max(_AT_ONCE_BYTES, first // 4 * 4)]
    words = np.frombuffer(octets, f"{order}u4", len(octets) // 4).astype(np.uint32, copy=False)
    runs = _Runs(words)
    places: list[_Numbers] = []
    at, last = 0, len(words) - _LEAST // 4
    while at <= last:
        places.append(runs.of(at))
        begin = int(places[-1][-1])
        step = int(words[begin + 1]) >> 2
        if step < _LEAST // 4:
            break
        at = begin + step
    found = np.concatenate(places) if places else np.empty(0, np.int64)
    if at > len(words) and len(found) > 1 and offset + len(octets) < len(data):
        found = found[:-1]
    sections = np.flatnonzero(words[found] == SECTION)
    others = sections[sections > 0]
    return words, found[: others[0]] if len(others) else found


class _Runs:
    """Blocks of frames that follow each other: what looks like one ends where the next that does begins."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        first = words[: max(0, len(words) - _LEAST // 4 + 1)]
        # Two passes over all words, and not one for each kind.
        like = np.flatnonzero(first - np.uint32(PACKET) <= ENHANCED - PACKET)
        like = like[np.isin(first[like], (PACKET, SIMPLE, ENHANCED))]
        step = words[like + 1].astype(np.int64) >> 2
        fits = (step >= _FIXED[SIMPLE] // 4) & (like + step <= len(words))
        like, step = like[fits], step[fits]
        both = words[like + step - 1] >> 2 == step
        self._like, ends = like[both], (like + step)[both]
        followed = np.append(ends[:-1] == self._like[1:], False)[: len(ends)]
        self._breaks = np.flatnonzero(~followed)

    def of(self, at: int) -> _Numbers:
        """The places of blocks from `at` on, as far as they follow each other; of another block, its own."""
        place = int(np.searchsorted(self._like, at))
        if place == len(self._like) or self._like[place] != at:
            return np.array([at], np.int64)
        found: _Numbers = self._like[place : int(self._breaks[np.searchsorted(self._breaks, place)]) + 1]
        return found


def _refuse(path: Path, found: Blocks, rules: Mapping[str, _Mask]) -> None:
    """Raises BadInput for the first block that breaks a rule, and of that the first rule."""
    broken = np.any(list(rules.values()), axis=0)
    if broken.any():
        place = int(np.argmax(broken))
        text = next(text for text, wrong in rules.items() if wrong[place])
        what = text.format(total=found.total[place], number=found.number[place])
        raise bad_file(path, int(found.offset[place]), what)


def _byte_order(path: Path, data: mmap.mmap, offset: int) -> str:
    for order in "<>":
        if struct.unpack_from(f"{order}I", data, offset + 8) == (BYTE_ORDER,):
            return order
    raise bad_file(path, offset, "section header without byte order")


@dataclass(frozen=True)
class Statistics:
    """Counts of the kernel for a capture: isb_ifrecv and isb_ifdrop of an interface statistics block."""

    received: int
    dropped: int


def interface_statistics(path: Path) -> Statistics | None:
    """Of the last such block of a capture; None where it has none with both numbers, or is not there. Raises BadInput
    where the file is not whole."""
    if not path.is_file() or not path.stat().st_size:
        return None
    found = None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for blocks in read_blocks(path, data):
            for place in np.flatnonzero(blocks.kind == STATISTICS).tolist():
                begin, total = int(blocks.offset[place]), int(blocks.total[place])
                numbers = dict(_numbers(data[begin + 20 : begin + total - 4], blocks.order))
                if _RECEIVED in numbers and _DROPPED in numbers:
                    found = Statistics(numbers[_RECEIVED], numbers[_DROPPED])
    return found


def _numbers(options: bytes, order: str) -> Iterator[tuple[int, int]]:
    """Options of eight octets."""
    for code, value in _options(options, order):
        if len(value) == 8:
            yield code, struct.unpack(f"{order}Q", value)[0]


def comments_alone(path: Path) -> list[tuple[int, str]]:
    """Time in ns since 1970 and text of each comment that belongs to no packet, in the order of the file: those of
    interface statistics blocks, whose interfaces count ns. Raises BadInput where the file is not whole."""
    if not path.is_file() or not path.stat().st_size:
        return []
    found = []
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for blocks in read_blocks(path, data):
            for place in np.flatnonzero(blocks.kind == STATISTICS).tolist():
                begin, total = int(blocks.offset[place]), int(blocks.total[place])
                if total < _STATISTICS_LEAST:
                    raise bad_file(path, begin, "truncated block")
                high, low = struct.unpack_from(f"{blocks.order}II", data, begin + 12)
                for code, value in _options(data[begin + 20 : begin + total - 4], blocks.order):
                    if code == _COMMENT:
                        found.append((high << 32 | low, value.decode("utf-8", "replace")))
    return found


def _options(octets: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(octets):
        code, length = struct.unpack_from(f"{order}HH", octets, at)
        if at + 4 + length <= len(octets):
            yield code, octets[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4

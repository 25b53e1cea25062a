# SPDX-License-Identifier: Apache-2.0
"""The first frame in which two captures differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sundial.observe import Capture
from sundial.observe.pcap import BLOCK

_PIECE = 16 << 20
_NS = 10**9
"""Bytes of a record before the packet: pcapng, classic."""


@dataclass(frozen=True)
class Frame:
    """A frame as a capture has it."""

    number: int
    port: str
    time_ns: int
    """Since 1970."""
    octets: bytes
    rest: bytes
    """Behind the packet: padding and options, such as a comment."""
    alone: bytes
    """The frame as a capture of its own."""


Pair = tuple[Frame | None, Frame | None]


def ports_of(capture: Capture) -> list[str]:
    """Names of the interfaces, in order."""
    return [interface.name for interface in capture.interfaces]


def first_difference(first: Capture, other: Capture, *, times: bool) -> Pair | None:
    """The first frames that differ; one is None if that capture has ended. None: no frame differs.

    Not `times`, frames differ in port or octets only. Both captures have the same ports.
    """
    ours, theirs = _Index(first), _Index(other)
    place = _first_byte(ours, theirs) if times else _first_octets(ours, theirs)
    if place is None:
        return None
    pair = ours.frame(place), theirs.frame(place)
    return None if pair == (None, None) else pair


def first_octet(first: bytes, other: bytes) -> int | None:
    """The place of the first octet that differs, or where the shorter ends; None if they are equal."""
    if first == other:
        return None
    pairs = enumerate(zip(first, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(other)))


class _Index:
    """The frames of a capture in the order of the file."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        parts = [interface.blocks for interface in capture.interfaces]
        blocks = np.concatenate([np.empty(0, BLOCK), *parts])
        owner = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        order = np.argsort(blocks["number"], kind="stable")
        self.blocks, self.owner = blocks[order], owner[order]

    def __len__(self) -> int:
        return len(self.blocks)

    def place_of(self, offset: int) -> int:
        """The first frame that ends behind this byte of the file."""
        ends = self.blocks["offset"] + self.blocks["total"]
        return int(np.searchsorted(ends, offset, side="right"))

    def seen(self) -> Iterator[tuple[int, bytes]]:
        """Interface and octets of each frame."""
        for owner, block in zip(self.owner.tolist(), self.blocks.tolist(), strict=True):
            yield owner, self.capture.packet(block)

    def frame(self, place: int) -> Frame | None:
        if place >= len(self):
            return None
        capture, block = self.capture, self.blocks[place].tolist()
        interface = capture.interfaces[int(self.owner[place])]
        row = int(np.searchsorted(interface.blocks["number"], block[-1]))
        ticks = capture.ticks(interface)
        per_second, offset_s = capture.clock(interface)
        time_ns = 0 if ticks is None else int(ticks[row]) * _NS // per_second + offset_s * _NS
        record = capture.data[block[0] : block[0] + block[1]]
        octets, rest = capture.packet(block), record[block[4] + block[2] :]
        alone = b"".join(capture.parts(replace(interface, blocks=interface.blocks[row : row + 1])))
        return Frame(block[-1], interface.name, time_ns, octets, rest, alone)


def _first_octets(first: _Index, other: _Index) -> int | None:
    pairs = itertools.zip_longest(first.seen(), other.seen())
    return next((place for place, (ours, theirs) in enumerate(pairs) if ours != theirs), None)


def _first_byte(first: _Index, other: _Index) -> int | None:
    """The place of the frame in which the files' first differing byte is."""
    ours, theirs = (np.memmap(each.capture.path, np.uint8, "r") for each in (first, other))
    offset = _differs_at(ours, theirs)
    return None if offset is None else first.place_of(offset)


def _differs_at(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> int | None:
    both = min(len(ours), len(theirs))
    for begin in range(0, both, _PIECE):
        end = min(begin + _PIECE, both)
        unequal = ours[begin:end] != theirs[begin:end]
        if unequal.any():
            return begin + int(np.argmax(unequal))
    return None if len(ours) == len(theirs) else both

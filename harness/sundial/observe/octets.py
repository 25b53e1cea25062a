# SPDX-License-Identifier: Apache-2.0
"""The captured bytes of many frames at once: read where they are in the file, without a loop over frames.

tshark and this reader know nothing of each other, so that a field which both read is read twice.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

# Polars 2.1 takes up numpy at its first use, and fails where two threads are the first at once.
pl.DataFrame({"numpy": np.zeros(1)})

_FRAMES = 1 << 14
"""Frames that are read until the memory in which they were read is given back."""
_WORDS = (4, 2, 1)
"""Bytes of numbers that numpy reads at once: one of each makes up any number of at most 7."""
_BEGINNING = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], np.int64)
"""Of a little-endian word of 4 bytes: the first so many bytes."""
_MIXED = 1 << 16
"""Words that are summed at once: they stay in a core's cache."""
_SEED = np.random.SeedSequence()


@dataclass(frozen=True)
class Octets:
    """Frames in `data`: where each begins, and how many of its bytes are there."""

    data: NDArray[np.uint8]
    begin: Numbers
    length: Numbers

    def take(self, which: Numbers | NDArray[np.bool_]) -> Octets:
        """Those of some frames, by place or by mask."""
        return Octets(self.data, self.begin[which], self.length[which])

    def frame(self, place: int) -> bytes:
        """All bytes of one."""
        return bytes(self.data[self.begin[place] : self.begin[place] + self.length[place]])

    def has(self, end: int | Numbers) -> NDArray[np.bool_]:
        """Whether the bytes before `end` are all there."""
        return self.length >= end

    def matrix(self, offset: int | Numbers, width: int) -> NDArray[np.uint8]:
        """`width` bytes from `offset` of each frame, a row a frame; bytes that are not there are 0."""
        offsets = np.broadcast_to(np.asarray(offset, dtype=np.int64), self.length.shape)
        everywhere = (offsets >= 0) & (offsets + width <= self.length)
        if 0 < len(self.begin) <= _FRAMES and everywhere.all():
            return gathered(self.data, self.begin + offsets, width)
        found = np.zeros((len(self.begin), width), np.uint8)
        data = np.asarray(self.data)
        for some in self._slices():
            at, begin, length, whole = offsets[some], self.begin[some], self.length[some], everywhere[some]
            found[some][whole] = gathered(data, (begin + at)[whole], width)
            if whole.all():
                continue
            cut = np.flatnonzero(~whole)
            # Nearly all have other bytes of the file behind them, which are taken out again.
            near = (at[cut] >= 0) & (begin[cut] + at[cut] + width <= len(data))
            short, cut = cut[near], cut[~near]
            rest = gathered(data, begin[short] + at[short], width)
            rest *= np.arange(width) < (length[short] - at[short])[:, None]
            found[some][short] = rest
            places = at[cut, None] + np.arange(width)
            inside = (places >= 0) & (places < length[cut, None])
            rest = np.zeros(inside.shape, np.uint8)
            rest[inside] = data[(begin[cut, None] + places)[inside]]
            found[some][cut] = rest
        return found

    def heads(self, width: int) -> Octets:
        """The first `width` bytes of each frame side by side in memory: many fields of them are read at the price of
        one walk through the file."""
        return _Heads(self.matrix(0, width), np.minimum(self.length, width))

    def number(self, offset: int | Numbers, size: int) -> Numbers:
        """The big-endian number of `size` bytes (at most 7) at `offset`; bytes that are not there are 0."""
        octets, value, at = self.matrix(offset, size), np.zeros(len(self.begin), np.int64), 0
        for width in _WORDS:
            if at + width <= size:
                word = octets[:, at : at + width].view(f">u{width}")[:, 0].astype(np.int64)
                value = value << 8 * width | word if at else word
                at += width
        return value

    def flat(self, offset: int | Numbers, end: int | Numbers) -> tuple[NDArray[np.uint8], Numbers]:
        """The bytes from `offset` to `end` of all frames, concatenated, and the number of each frame."""
        low, high = (np.clip(np.broadcast_to(each, self.length.shape), 0, self.length) for each in (offset, end))
        sizes = np.maximum(high - low, 0)
        behind = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(self.begin + low - behind, sizes)
        return self.data[places], sizes

    def sums(self, offset: int | Numbers, end: int | Numbers) -> Numbers:
        """The sum of the 16-bit words from `offset` to `end` of each frame, with the carries added; a last odd byte is
        a high one (RFC 1071)."""
        low, high = (np.clip(np.broadcast_to(each, self.length.shape), 0, self.length) for each in (offset, end))
        part = Octets(self.data, self.begin + low, np.maximum(high - low, 0))
        found = np.zeros(len(self.begin), np.int64)
        for size, rows in part._alike():
            # Little-endian words of 4 bytes are two each.
            found[rows] = np.einsum("ij,j->i", part._words(rows, size), np.ones(-(-size // 4), np.int64))
        # Summed in the order of this machine: turned round, such a sum is that of the words turned round.
        found = fold(found)
        turned: Numbers = found >> 8 | (found & 0xFF) << 8
        return turned

    def hashes(self) -> Numbers:
        """A number of each frame's bytes, the same for equal frames in one process, which cannot be foreseen: the sum
        of its words of 4 bytes and of its length, each times a secret of its place, modulo 2^64. Two other frames have
        the same one with a probability of 2^-33 at most (Carter and Wegman 1979), and of 2^-64 if an odd number is
        between any two of their words."""
        found = np.zeros(len(self.begin), np.uint64)
        for size, rows in self._alike():
            words = -(-size // 4)
            secrets = _secrets(1 << words.bit_length())[: words + 1]
            of_length = np.uint64(int(secrets[0]) * size % (1 << 64))
            found[rows] = np.einsum("ij,j->i", self._words(rows, size), secrets[1:]) + of_length
        return found.view(np.int64)

    def _alike(self) -> Iterator[tuple[int, Numbers]]:
        """The places of frames of one size, and the size: of as many as stay in a core's cache."""
        for some in self._slices():
            length = self.length[some]
            order = np.argsort(length, kind="stable")
            sizes, first = np.unique(length[order], return_index=True)
            ends = np.append(first[1:], len(order))
            for size, low, high in zip(sizes.tolist(), first.tolist(), ends.tolist(), strict=False):
                height = max(1, _MIXED // (size // 4 + 1))
                for at in range(low, high, height):
                    yield size, some.start + order[at : min(at + height, high)]

    def _words(self, rows: Numbers, size: int) -> NDArray[np.uint32]:
        """The words of 4 bytes of frames of one size, a row a frame; the last is filled with zeros."""
        wide, begin = -(-size // 4) * 4, self.begin[rows]
        if begin.max() + wide > len(self.data):
            octets = np.zeros((len(rows), wide), np.uint8)
            octets[:, :size] = gathered(self.data, begin, size)
            return octets.view("<u4")
        words: NDArray[np.uint32] = gathered(self.data, begin, wide).view("<u4")
        if size % 4:
            words[:, -1] &= np.uint32(_BEGINNING[size % 4])
        return words

    def forget(self) -> None:
        """Give back the memory in which a file has been read so far; it is read again where it is needed."""
        owner: object = self.data
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, mmap.mmap):
            owner.madvise(mmap.MADV_DONTNEED)

    def _slices(self) -> Iterator[slice]:
        """Some frames after others; where they are many, what was read of them is given back."""
        for first in range(0, len(self.begin), _FRAMES):
            yield slice(first, first + _FRAMES)
            if len(self.begin) > _FRAMES:
                self.forget()


def gathered(data: NDArray[np.uint8], begin: Numbers, width: int) -> NDArray[np.uint8]:
    """`width` bytes from each place of `data`, where all are there, a row a place."""
    if not width or not len(begin):
        return np.zeros((len(begin), width), np.uint8)
    # As elements of that many bytes: numpy copies them whole, rows of a matrix byte by byte.
    elements = np.ndarray((len(data) - width + 1,), f"V{width}", np.asarray(data), strides=(1,))
    return elements[begin].view(np.uint8).reshape(-1, width)


class _Heads(Octets):
    """Frames of which all that is asked for is in a matrix, a row a frame; bytes that are not there are 0 in it."""

    grid: NDArray[np.uint8]

    def __init__(self, grid: NDArray[np.uint8], length: Numbers) -> None:
        super().__init__(grid.reshape(-1), np.arange(len(grid), dtype=np.int64) * grid.shape[1], length)
        object.__setattr__(self, "grid", grid)

    def matrix(self, offset: int | Numbers, width: int) -> NDArray[np.uint8]:
        first, last = (int(np.min(offset)), int(np.max(offset))) if len(self.grid) else (0, 0)
        if first == last and 0 <= first <= self.grid.shape[1] - width:
            return self.grid[:, first : first + width]
        return super().matrix(offset, width)


@cache
def _secrets(count: int) -> NDArray[np.uint64]:
    """So many numbers, the first of them always the same in one process."""
    return np.random.Generator(np.random.PCG64(_SEED)).integers(0, 1 << 64, count, np.uint64)


def fold(sums: Numbers) -> Numbers:
    """Sums of 16-bit words as one such word, with the carries added (RFC 1071)."""
    while (sums > 0xFFFF).any():
        sums = (sums & 0xFFFF) + (sums >> 16)
    return sums


def octets_together(frames: Sequence[bytes]) -> Octets:
    """Of frames that are in no file."""
    length = np.array([len(frame) for frame in frames], np.int64)
    return Octets(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(length) - length, length)


def octets_of(frames: pl.DataFrame, files: Sequence[tuple[Path, str]]) -> Octets:
    """The bytes of rows of the table of frames, in their order; `files` as given to `read_frames`."""
    begin, length = frames["octets_begin"].to_numpy(), frames["captured_length"].cast(pl.Int64).to_numpy()
    paths = {name: path for path, name in files}
    names = frames["capture"].unique().to_list()
    if len(names) == 1:
        return Octets(np.memmap(paths[names[0]], np.uint8, "r"), begin, length)
    behind = np.cumsum(length) - length
    data = np.zeros(int(length.sum()), dtype=np.uint8)
    for name in names:
        which = (frames["capture"] == name).to_numpy()
        part = Octets(np.memmap(paths[name], np.uint8, "r"), begin[which], length[which])
        flat, sizes = part.flat(0, part.length)
        data[np.arange(len(flat)) + np.repeat(behind[which] - (np.cumsum(sizes) - sizes), sizes)] = flat
    return Octets(data, behind, length)

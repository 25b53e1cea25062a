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
_SPAN = 4_000_000
"""Bytes of a file that are summed at once."""
_MIXED = 1 << 16
"""Words that are mixed at once: they stay in a core's cache."""
_MIX = (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB))
"""Shifts and factors. Without the first shift two flips of the highest bits of words could cancel."""
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
        found = np.zeros((len(self.begin), width), np.uint8)
        offsets = np.broadcast_to(np.asarray(offset, dtype=np.int64), self.length.shape)
        data = np.asarray(self.data)
        windows = np.lib.stride_tricks.sliding_window_view(data, width) if len(data) >= width else data[:0, None]
        for some in self._slices():
            at, begin, length = offsets[some], self.begin[some], self.length[some]
            whole = (at >= 0) & (at + width <= length)
            if whole.all():
                found[some] = windows[begin + at]
                continue
            found[some][whole] = windows[(begin + at)[whole]]
            cut = np.flatnonzero(~whole)
            places = at[cut, None] + np.arange(width)
            inside = (places >= 0) & (places < length[cut, None])
            rest = np.zeros(inside.shape, np.uint8)
            rest[inside] = data[(begin[cut, None] + places)[inside]]
            found[some][cut] = rest
        return found

    def heads(self, width: int) -> Octets:
        """The first `width` bytes of each frame side by side in memory: many fields of them are read at the price of
        one walk through the file."""
        begin = np.arange(len(self.begin), dtype=np.int64) * width
        return Octets(self.matrix(0, width).reshape(-1), begin, np.minimum(self.length, width))

    def number(self, offset: int | Numbers, size: int) -> Numbers:
        """The big-endian number of `size` bytes (at most 7) at `offset`; bytes that are not there are 0."""
        octets = self.matrix(offset, size)
        value = octets[:, 0].astype(np.int64)
        for place in range(1, size):
            value = value << 8 | octets[:, place]
        return value

    def flat(self, offset: int | Numbers, end: int | Numbers) -> tuple[NDArray[np.uint8], Numbers]:
        """The bytes from `offset` to `end` of all frames, concatenated, and the number of each frame."""
        low, high = (np.clip(np.broadcast_to(each, self.length.shape), 0, self.length) for each in (offset, end))
        sizes = np.maximum(high - low, 0)
        behind = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(self.begin + low - behind, sizes)
        return self.data[places], sizes

    def sums(self, offset: int | Numbers, end: int | Numbers) -> Numbers:
        """The sum of the 16-bit words from `offset` to `end` of each frame, not folded; a last odd byte is a high one
        (RFC 1071)."""
        shape = self.length.shape
        low, high = (np.clip(np.broadcast_to(each, shape), 0, self.length) + self.begin for each in (offset, end))
        high = np.maximum(low, high)
        result = np.zeros(shape, dtype=np.int64)
        for which in self._spans(low, high):
            for odd in (0, 1):
                some = which[low[which] % 2 == odd]
                if len(some):
                    result[some] = self._word_sums(low[some], high[some])
            if len(self.begin) > _FRAMES:
                self.forget()
        return result

    def _word_sums(self, low: Numbers, high: Numbers) -> Numbers:
        """`sums` of bytes from `low` to `high` of the file, which all begin at even places, or all at odd ones."""
        first, last = int(low.min()), int(high.max())
        piece = np.zeros((last - first + 3) // 2 * 2, np.uint8)
        piece[: last - first] = self.data[first:last]
        words = piece.view(">u2").astype(np.uint16)
        ends = np.stack([low - first, high - first], axis=1) // 2
        # Every second one is of what is between two frames.
        found = np.add.reduceat(words, ends.reshape(-1), dtype=np.int64)[::2]
        found[ends[:, 0] == ends[:, 1]] = 0
        odd = (high - low) % 2 == 1
        found[odd] += piece[(high - first - 1)[odd]].astype(np.int64) << 8
        return found

    def hashes(self) -> Numbers:
        """A number of each frame's bytes, the same for equal frames in one process, which cannot be foreseen: the sum
        of its words of 8 bytes, each mixed with a secret of its place (the finalizer of splitmix64)."""
        found = np.zeros(len(self.begin), np.uint64)
        order = np.argsort(self.length, kind="stable")
        sizes, first = np.unique(self.length[order], return_index=True)
        ends = np.append(first[1:], len(order))
        for size, low, high in zip(sizes.tolist(), first.tolist(), ends.tolist(), strict=False):
            which = order[low:high]
            words = -(-size // 8)
            secrets = _secrets(1 << words.bit_length())[: words + 1]
            height = max(1, _MIXED // (words + 1))
            for rows in (which[at : at + height] for at in range(0, len(which), height)):
                padded = np.zeros((len(rows), (words + 1) * 8), np.uint8)
                padded[:, :size] = self.take(rows).matrix(0, size)
                mixed = padded.view(np.uint64)
                # Beside the bytes, their number: zeros at the end count.
                mixed[:, -1] = size
                mixed ^= secrets
                for shift, factor in _MIX:
                    mixed ^= mixed >> shift
                    mixed *= factor
                mixed ^= mixed >> np.uint64(31)
                found[rows] = mixed.sum(axis=1)
        return found.view(np.int64)

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

    def _spans(self, low: Numbers, high: Numbers) -> Iterator[Numbers]:
        """Frames that lie near each other in the file together."""
        order = np.argsort(low, kind="stable")
        start = 0
        while start < len(order):
            near = int(np.searchsorted(low[order], low[order[start]] + _SPAN))
            yield order[start : max(near, start + 1)]
            start = max(near, start + 1)


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

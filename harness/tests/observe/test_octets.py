# SPDX-License-Identifier: Apache-2.0
"""The bytes of many frames at once, against the same done frame by frame."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sundial.observe.octets import Octets, fold, octets_of

FRAMES = st.lists(st.binary(max_size=70), min_size=1, max_size=12)


def octets(frames: list[bytes], gap: int = 0) -> Octets:
    data = b"".join(b"\xee" * gap + frame for frame in frames)
    length = np.array([len(frame) for frame in frames], dtype=np.int64)
    begin = np.cumsum(length + gap) - length
    return Octets(np.frombuffer(data or b"\xee", np.uint8), begin, length)


def word_sum(data: bytes) -> int:
    whole = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(whole[at : at + 2]) for at in range(0, len(whole), 2))
    return (total - 1) % 0xFFFF + 1 if total else 0


@given(frames=FRAMES, gap=st.integers(0, 5), offset=st.integers(0, 60), size=st.integers(1, 6))
def test_numbers_and_matrices(frames: list[bytes], gap: int, offset: int, size: int) -> None:
    read = octets(frames, gap)
    cut = [frame[offset : offset + size].ljust(size, b"\0") for frame in frames]
    assert read.number(offset, size).tolist() == [int.from_bytes(part) for part in cut]
    assert [bytes(row) for row in read.matrix(offset, size)] == cut
    assert read.has(offset).tolist() == [len(frame) >= offset for frame in frames]
    cut = [frame[:64][offset : offset + size].ljust(size, b"\0") for frame in frames]
    apart = np.arange(len(frames)) % 2 + offset
    for offsets in (offset, np.full(len(frames), offset)):
        assert read.heads(64).number(offsets, size).tolist() == [int.from_bytes(part) for part in cut]
    assert read.heads(80).number(apart, size).tolist() == read.number(apart, size).tolist()


@given(frames=FRAMES, gap=st.integers(0, 5), low=st.integers(0, 40), more=st.integers(0, 50))
def test_sums_and_flat_bytes(frames: list[bytes], gap: int, low: int, more: int) -> None:
    read = octets(frames, gap)
    parts = [frame[low : low + more] for frame in frames]
    assert read.sums(low, low + more).tolist() == [word_sum(part) for part in parts]
    flat, sizes = read.flat(low, low + more)
    assert bytes(flat) == b"".join(parts)
    assert sizes.tolist() == [len(part) for part in parts]


def test_sums_of_frames_far_apart_and_out_of_order() -> None:
    data = np.arange(9_000_001, dtype=np.uint8)
    begin = np.array([8_999_000, 1, 4_000_001, 4_500_000, 0])
    read = Octets(data, begin, np.array([1001, 1500, 2_000_000, 0, 3]))
    expected = [word_sum(bytes(data[at : at + size])) for at, size in zip(begin, read.length, strict=True)]
    assert read.sums(0, read.length).tolist() == expected


def test_folding_adds_the_carries() -> None:
    assert fold(np.array([0, 0xFFFF, 0x10000, 0x1FFFF, 0x2FFFD])).tolist() == [0, 0xFFFF, 1, 1, 0xFFFF]


def test_equal_frames_have_equal_hashes() -> None:
    hashes = octets([b"abc", b"abd", b"abc", b"", b"abc\0"], gap=1).hashes().tolist()
    assert hashes[0] == hashes[2]
    assert len(set(hashes)) == 4


def test_rows_of_several_captures_keep_their_order(tmp_path: Path) -> None:
    files = [(tmp_path / "one", "wire/one"), (tmp_path / "two", "wire/two")]
    for place, (path, _) in enumerate(files):
        path.write_bytes(bytes(range(place * 100, place * 100 + 50)))
    table = pl.DataFrame(
        {"capture": ["wire/two", "wire/one", "wire/two"], "octets_begin": [10, 5, 0], "captured_length": [2, 3, 1]}
    )
    both = octets_of(table, files)
    assert bytes(both.flat(0, both.length)[0]) == bytes([110, 111, 5, 6, 7, 100])
    assert octets_of(table.filter(capture="wire/two"), files).number(0, 1).tolist() == [110, 100]


def test_polars_knows_numpy_before_any_thread_asks() -> None:
    """Asked for it first by two threads at once, its stand-in for numpy fails in one of them."""
    code = (
        "import sys, polars._dependencies as known; before = known.numpy; import numpy, sundial.observe\n"
        "sys.exit(before is numpy or known.numpy is not numpy)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_frames_with_two_flipped_bits_have_other_hashes() -> None:
    """Each pair of bits of a frame: 20,100 frames. The highest bits of two words are the hard case of a sum."""
    frame = bytes(25)
    flipped = [
        (int.from_bytes(frame, "little") ^ (1 << one) ^ (1 << two)).to_bytes(25, "little")
        for one in range(200)
        for two in range(one)
    ]
    assert len(set(octets([frame, *flipped], gap=0).hashes().tolist())) == 1 + 199 * 100

# SPDX-License-Identifier: Apache-2.0
"""Packets of updates against a combiner that takes store by store, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sundial.workloads.vmmc.expect import Piece, acknowledged, batch_word, flag, pieces, place, slots

PAGE_END, FULL, UNCOMBINED = 2, 3, 5


def combined(offset: int, size: int, most: int) -> list[tuple[int, int, int, int]]:
    """(offset, length, stores, reason), as the adapter's README says it."""
    left, begin, length = [], 0, 0
    for at in range(offset, offset + size, 8):
        if length and length + 8 > most:
            left.append((begin, length, length // 8, FULL))
            length = 0
        begin = begin if length else at
        length += 8
        if (at + 8) % 4096 == 0:
            left.append((begin, length, length // 8, PAGE_END))
            length = 0
        elif length == most:
            left.append((begin, length, length // 8, FULL))
            length = 0
    assert length == 0
    return left


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 8192), st.integers(0, 70), st.integers(8, 4096))
def test_combined_as_store_by_store(words: int, number: int, most: int) -> None:
    size = 8 * words
    found = pieces("au-combined", place(size, number), size, most)
    assert [(one.offset, one.length, one.stores, one.reason) for one in found] == combined(
        place(size, number), size, most
    )


def test_a_store_is_a_packet() -> None:
    assert pieces("au", 8176, 16, 1024) == (Piece(1, 0, UNCOMBINED, 8176, 8, 1), Piece(1, 0, UNCOMBINED, 8184, 8, 1))


def test_a_deliberate_update_by_pages_of_its_destination() -> None:
    """10,000 bytes end with the third data page: 1,808 in the first, then whole pages."""
    assert place(10_000, 0) == 4096 + 3 * 4096 - 10_000
    found = pieces("du", place(10_000, 0), 10_000, 1024)
    assert [(one.offset, one.length, one.flags) for one in found] == [
        (6384, 1808, 0),
        (8192, 4096, 0),
        (12288, 4096, 2),
    ]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 8192), st.integers(0, 200))
def test_slots_follow_one_another_and_end_with_the_data(words: int, number: int) -> None:
    size = 8 * words
    assert 4096 <= place(size, number) <= 65 * 4096 - size
    assert (place(size, number) + size) % 4096 == 0
    assert place(size, number) == place(size, number + slots(size))
    if number % slots(size):
        assert place(size, number) >= place(size, number - 1) + size


@pytest.mark.parametrize(
    ("size", "transfers", "said"),
    [(65536, 3, [1, 2, 3]), (8, 20, [16, 20]), (4096, 32, [16, 32]), (8192, 9, [8, 9]), (8, 0, [])],
)
def test_a_stream_is_acknowledged_each_quarter_of_its_room(size: int, transfers: int, said: list[int]) -> None:
    assert acknowledged(size, transfers) == said


def test_words_of_a_batch_and_of_a_transfer() -> None:
    assert batch_word(3, True, 5, 65536) == 0x1000_0000_0051_0003
    assert flag(9).to_bytes(8, "little") == b"\x09\0\0\0VMMC"

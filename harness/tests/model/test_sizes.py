# SPDX-License-Identifier: Apache-2.0
"""Lists of sizes: numbers, ranges, edges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.model.sizes import SIZE_MOST, Sizes, expand


def no_edges(smallest: int, largest: int) -> list[int]:
    raise AssertionError("edges were not asked for")


def expanded(value: object) -> list[int]:
    return expand(Sizes().parse(value), {"edges": no_edges}, (0, 8192))


def test_text_and_lists_mean_the_same() -> None:
    assert expanded("1472,1473") == expanded([1472, 1473]) == expanded(["1472", 1473]) == [1472, 1473]


def test_a_range_has_its_last_size() -> None:
    sizes = expanded("16:8192:16")
    assert len(sizes) == 512
    assert (sizes[0], sizes[-1]) == (16, 8192)


def test_sizes_come_sorted_and_once() -> None:
    assert expanded("5,1:3,3,0") == [0, 1, 2, 3, 5]


def test_edges_are_looked_for_between_the_sizes_written() -> None:
    asked = []

    def edges(smallest: int, largest: int) -> list[int]:
        asked.append((smallest, largest))
        return [1428, 1429]

    assert expand(Sizes().parse("16,4096,edges"), {"edges": edges}, (0, 8192)) == [16, 1428, 1429, 4096]
    assert expand(Sizes().parse("edges"), {"edges": edges}, (0, 8192)) == [1428, 1429]
    assert asked == [(16, 4096), (0, 8192)]


def test_words_are_looked_for_apart() -> None:
    asked = []

    def cell_edges(smallest: int, largest: int) -> list[int]:
        asked.append((smallest, largest))
        return [48, 49]

    searches = {"edges": lambda smallest, largest: [1428, 1429], "cell-edges": cell_edges}
    assert expand(Sizes().parse("0,2048,cell-edges"), searches, (0, 8192)) == [0, 48, 49, 2048]
    assert expand(Sizes().parse("edges"), searches, (0, 8192)) == [1428, 1429]
    assert expand(Sizes().parse("cell-edges,edges"), searches, (0, 8192)) == [48, 49, 1428, 1429]
    assert asked == [(0, 2048), (0, 8192)]


@given(st.integers(0, 9000), st.integers(0, 9000), st.integers(1, 9000))
def test_ranges_are_pythons_with_the_end_included(first: int, length: int, step: int) -> None:
    last = first + length
    assert expanded(f"{first}:{last}:{step}") == list(range(first, last + 1, step))


@given(st.lists(st.one_of(st.integers(0, SIZE_MOST), st.sampled_from(["edges", "cell-edges"])), min_size=1))
def test_what_is_shown_is_read_back(items: list[int | str]) -> None:
    parsed = Sizes().parse(items)
    assert Sizes().parse(Sizes().show(parsed)) == parsed


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("", "'' is not a size"),
        ([], "the list of sizes is empty"),
        (None, "None is not a list of sizes"),
        ([True], "True is not a size"),
        ("-1", "'-1' is not a size"),
        ("1.5", "'1.5' is not a size"),
        ("9:1", "'9:1' is not a range"),
        ("1:9:0", "'1:9:0' is not a range"),
        (SIZE_MOST + 1, f"{SIZE_MOST + 1} is out of range"),
        ("0:999999", "1000000 sizes are too many"),
    ],
)
def test_wrong_sizes(value: object, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        Sizes().parse(value)
    assert caught.value.problems[0].what == what

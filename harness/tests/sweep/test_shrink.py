# SPDX-License-Identifier: Apache-2.0
"""The shrinker on runs that are functions: what it ends with has the same fault, and no part too many."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.sweep.design import Axis, number_of
from sundial.sweep.shrink import Case, Shrinker, bisected, minimal, name_of

SIZES = Axis("size", "sizes", ("64", "1024", "4096"), None, False)
LOSS = Axis("loss", "loss", (), ('"0 %"', '"20 %"'), False)
CALLS = Axis("calls", "calls", (), ("1", "1000"), False)


@given(
    parts=st.lists(st.integers(0, 30), max_size=20, unique=True),
    needed=st.sets(st.integers(0, 30), max_size=4),
    together=st.booleans(),
)
def test_what_is_left_is_what_is_needed(parts: list[int], needed: set[int], together: bool) -> None:
    whole = parts + sorted(needed - set(parts))
    tried = []

    def fails(kept: Sequence[int]) -> bool:
        tried.append(tuple(kept))
        return needed <= set(kept) if together else bool(needed & set(kept)) or not needed

    found = minimal(whole, fails)
    assert found == [part for part in whole if part in found]
    assert fails(found)
    for part in found:
        assert not fails([each for each in found if each != part])
    if together:
        assert set(found) == needed


@given(
    events=st.lists(st.integers(0, 9), max_size=6, unique=True),
    cause=st.integers(0, 9),
    loss=st.floats(1, 19),
    limit=st.floats(0.5, 18),
    calls=st.integers(2, 1000),
    least=st.integers(2, 900),
    size=st.sampled_from(SIZES.values),
)
def test_a_case_becomes_small_and_keeps_its_fault(
    events: list[int], cause: int, loss: float, limit: float, calls: int, least: int, size: str
) -> None:
    def fault(case: Case) -> str | None:
        share, count = number_of(case.values[1]), number_of(case.values[2])
        assert share is not None
        assert count is not None
        if case.values[0] == "64" and share * 100 > 15:
            return "another"
        enough = cause in case.parts["timeline"] and share * 100 >= limit and count >= least
        return "mine" if enough and case.values[0] != "64" else None

    case = Case({"timeline": tuple(events), "workloads": ("a", "b")}, (size, f'"{loss:.3f} %"', str(calls)))
    if fault(case) != "mine":
        return
    shrinker = Shrinker(fault, "mine", (SIZES, LOSS, CALLS), 10_000)
    found = shrinker.shrink(case)
    assert fault(found) == "mine"
    assert found.parts == {"timeline": (cause,), "workloads": ()}
    assert 64 < int(found.values[0]) < 128
    share, count = number_of(found.values[1]), number_of(found.values[2])
    assert share is not None
    assert count is not None
    assert limit <= share * 100 <= max(limit * 1.2, limit + 0.2)
    assert least <= count <= max(least * 1.1, least + 10)


def test_a_limit_of_runs_ends_with_the_smallest_so_far() -> None:
    case = Case({"timeline": tuple(range(8))}, ())
    for most in range(12):
        shrinker = Shrinker(lambda each: "f" if 5 in each.parts["timeline"] else None, "f", (), most)
        found = shrinker.shrink(case)
        assert shrinker.probes <= most
        assert 5 in found.parts["timeline"]
    assert len(found.parts["timeline"]) < 8


def test_values_that_are_no_numbers_stay() -> None:
    assert bisected("udp", "tcp", lambda text: True) == "tcp"
    assert bisected('"1 ms"', '"5 %"', lambda text: True) == '"5 %"'


@pytest.mark.parametrize(
    ("verdict", "first", "name"),
    [
        ("fail", "request.packets: expected 2, seen 1", "fail: request.packets"),
        ("fail", "max(rtt_ms) < 20 s: seen 31 s", "fail: max(rtt_ms) < N s"),
        ("failed", "server: its kernel panicked: BUG at 0xffffc01a", "failed: server: its kernel panicked: BUG at N"),
        ("differs", "wire/lan.pcapng", "differs: wire/lan.pcapng"),
    ],
)
def test_the_name_of_a_fault_has_no_numbers(verdict: str, first: str, name: str) -> None:
    assert name_of(verdict, first) == name

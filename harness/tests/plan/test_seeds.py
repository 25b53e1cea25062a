# SPDX-License-Identifier: Apache-2.0
"""Seeds: fixed for ever, one for each thing."""

from hypothesis import given
from hypothesis import strategies as st

from sundial.plan.seeds import derive, machine_seed, series_seed, shuffled


def test_seeds_are_the_same_in_every_version() -> None:
    assert machine_seed(1, "client") == 3925693625085367385
    assert shuffled([16, 32, 48, 64, 80], 7) == [48, 64, 80, 16, 32]


@given(st.integers(0, 2**63 - 1))
def test_seeds_differ_by_machine_series_and_run(seed: int) -> None:
    seeds = {machine_seed(seed, "client"), machine_seed(seed, "server"), series_seed(seed, 0), series_seed(seed, 1)}
    assert len({*seeds, machine_seed(seed ^ 1, "client")}) == 5
    assert all(0 <= one < 2**63 for one in seeds)


def test_names_are_kept_apart() -> None:
    assert derive(1, "a", "b") != derive(1, "ab") != derive(1, "a\0b", "")


@given(st.lists(st.integers(0, 10**6), unique=True), st.integers(0, 2**63 - 1))
def test_shuffling_keeps_what_it_shuffles(sizes: list[int], seed: int) -> None:
    assert sorted(shuffled(sizes, seed)) == sorted(sizes)

# SPDX-License-Identifier: Apache-2.0
"""Quantities are exact, and everything else is refused with words that help."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.units import MIPS_VALUES, RATE, SIZE, TIME, Quantity, icount_shift, parse_mips, parse_percent, show_percent

QUANTITIES = [TIME, RATE, SIZE]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("10 ms", 10_000_000),
        ("1.5us", 1500),
        ("0 ns", 0),
        ("25 ns", 25),
        ("2 min", 120 * 10**9),
        ("0.000000001 s", 1),
        ("24 h", 86_400 * 10**9),
    ],
)
def test_times_are_whole_nanoseconds(text: str, ns: int) -> None:
    assert TIME.parse(text) == ns


@pytest.mark.parametrize(
    ("text", "rate"), [("10 Mbit/s", 10**7), ("155.52 Mbit/s", 155_520_000), ("149.76Mbit/s", 149_760_000)]
)
def test_rates_lose_no_digit(text: str, rate: int) -> None:
    assert RATE.parse(text) == rate


def test_sizes_take_bare_bytes_and_binary_prefixes() -> None:
    assert SIZE.parse("1500") == SIZE.parse(1500) == SIZE.parse("1500 B") == 1500
    assert SIZE.parse("128 MiB") == 128 * 2**20


@given(st.sampled_from(QUANTITIES), st.data())
def test_what_is_shown_is_read_back(kind: Quantity, data: st.DataObject) -> None:
    amount = data.draw(st.integers(kind.least, kind.most))
    assert kind.parse(kind.show(amount)) == amount


@given(st.sampled_from(QUANTITIES), st.text(max_size=20))
def test_any_text_is_a_quantity_in_range_or_bad_input(kind: Quantity, text: str) -> None:
    try:
        amount = kind.parse(text)
    except BadInput:
        return
    assert kind.least <= amount <= kind.most


@given(st.integers(0, 100_000_000))
def test_percentages_are_exact_both_ways(millionths: int) -> None:
    fraction = Decimal(millionths) / 10**8
    assert parse_percent(show_percent(fraction)) == fraction


def test_mips_are_powers_of_two_of_ns() -> None:
    assert [icount_shift(parse_mips(str(mips))) for mips in MIPS_VALUES] == list(range(11))
    assert icount_shift(parse_mips(Decimal("62.5"))) == 4
    with pytest.raises(BadInput, match=r"100 mips is not a power of two of ns an instruction; allowed: 1000, 500, 250"):
        parse_mips(100)

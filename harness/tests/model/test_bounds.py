# SPDX-License-Identifier: Apache-2.0
"""Bounds as text: what is read, what is printed, and what is refused at which character."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.model.bounds import COMPARISONS, UNITS, Amount, Bound, Condition, Name, parse, resolve
from sundial.model.scenario import Expect
from sundial.model.tables import TABLES, TIME_UNITS

FUNCTIONS = ("count", "sum", "mean", "min", "max", "p50", "p99", "p99.9")
NUMBERS = st.decimals(-(10**9), 10**9, places=3).map(lambda number: Decimal(f"{number:f}"))


@st.composite
def bounds(draw: st.DrawFn) -> Bound:
    """Valid ones, of columns of one table, written with their table."""
    table = draw(st.sampled_from(sorted(TABLES)))
    columns = TABLES[table]

    def written(name: str) -> Name:
        column = columns[name]
        unit = draw(st.sampled_from(sorted(TIME_UNITS))) if column.kind == "time" else ""
        return Name(f"{name.rpartition('_')[0]}_{unit}" if unit else name, table)

    def amount(kind: str) -> Amount:
        return Amount(draw(NUMBERS), draw(st.sampled_from([None, *UNITS[kind]])))

    def condition() -> Condition:
        name = draw(st.sampled_from(sorted(columns)))
        kind = columns[name].kind
        sign = draw(st.sampled_from(sorted(COMPARISONS) if kind not in ("text", "flag") else ["==", "!="]))
        if kind == "flag":
            return Condition(written(name), sign, draw(st.booleans()))
        if kind == "text":
            return Condition(written(name), sign, draw(st.text(st.sampled_from("ab-:. 1'<"), max_size=8)))
        return Condition(written(name), sign, amount(kind))

    of = draw(st.sampled_from([name for name, column in columns.items() if column.kind not in ("text", "flag")]))
    function = draw(st.sampled_from(FUNCTIONS))
    value = amount("number" if function == "count" else columns[of].kind)
    sign = draw(st.sampled_from(sorted(COMPARISONS)))
    conditions = tuple(condition() for _ in range(draw(st.integers(0, 3))))
    return Bound(function, written(of), sign, value, conditions)


@given(bounds())
def test_what_is_printed_is_read_as_the_same(bound: Bound) -> None:
    assert parse(str(bound)) == bound
    assert str(parse(str(bound))) == str(bound)


@given(st.text(st.sampled_from("p99(rtu_s) <=.where and'5m%/"), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        bound = parse(text)
    except BadInput:
        return
    assert parse(str(bound)) == bound


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("p99(rtt_us) where size = 1024 < 900", "p99(rtt_us) < 900 where size = 1024"),
        (
            "p99(rtt_us) where size = 1024 and transport = udp < 900",
            "p99(rtt_us) < 900 where size = 1024 and transport = udp",
        ),
        ("p99.9( rtt_ns )<5ms", "p99.9(rtt_ns) < 5 ms"),
        ("rate(size) >= 400kB/s", "rate(size) >= 400 kB/s"),
        ("rate() > 10/s", "rate() > 10/s"),
        ("mean(ok)=100%", "mean(ok) == 100 %"),
        ("count() == 0 where ok = false", "count() == 0 where ok = false"),
        ("count() > 0 where error = 'RPC: Timed out'", "count() > 0 where error = 'RPC: Timed out'"),
        ("max(counters.tx_frames) < 10 where port = client:eth0",) * 2,
    ],
)
def test_texts_and_how_they_are_printed(text: str, printed: str) -> None:
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("text", "table", "unit"),
    [
        ("p99(rtt_us) < 900", "samples", "us"),
        ("p99(rtt_us) < 5 ms", "samples", "ms"),
        ("sum(retransmissions) == 0 where size = 64", "observed", ""),
        ("max(rtt_p99_us) < 5 ms where client = c1", "summary", "ms"),
        ("sum(tx_bytes) < 1 MiB", "counters", "MiB"),
        ("max(size) < 10", "samples", "B"),
    ],
)
def test_a_column_without_a_table_is_of_the_first_that_has_all(text: str, table: str, unit: str) -> None:
    resolved = resolve(parse(text))
    assert (resolved.table, resolved.unit) == (table, unit)


def test_units_are_exact() -> None:
    assert resolve(parse("p99(rtt_us) < 900")).limit == 900_000
    assert resolve(parse("p99(rtt_us) < 0.9 ms")).limit == 900_000
    assert resolve(parse("rate(size) > 8 Mbit/s")).limit == 10**6
    assert resolve(parse("mean(ok) > 99.9 %")).limit * 1000 == 999


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99(rtt_ms_) < 5", "at character 5: there is no column 'rtt_ms_'; did you mean rtt_ms?"),
        ("p99(samples.rtu_us) < 5", "at character 5: there is no column 'samples.rtu_us'; did you mean rtt_us?"),
        ("p99(sample.rtt_us) < 5", "at character 5: there is no table 'sample'; allowed: samples, observed"),
        ("p999(rtt_us) < 5", "at character 1: 'p999' is not a function; did you mean p99?"),
        ("mode(rtt_us) < 5", "at character 1: 'mode' is not a function"),
        ("p99(rtt_us < 5", "at character 12: '<' is unexpected; allowed: ) after the column"),
        ("p99(rtt_us) 5", "at character 13: '5' is unexpected; allowed: <=, >=, ==, !=, <, >"),
        ("p99(rtt_us) <", "at character 14: the bound ends here; allowed: a number"),
        ("p99(rtt_us) < 5 parsecs", "at character 17: 'parsecs' is not a unit; allowed: ns, us, ms"),
        ("p99(rtt_us) < 5 ms wher size = 4", "at character 20: 'wher' is unexpected"),
        ("p99(rtt_us) < 5 where size = 4 where size = 4", "at character 32: 'where' is unexpected"),
        ("p99(rtt_us) < 5 where size = ", "at character 29: the bound ends here; allowed: a number, a word"),
        ("p99(rtt_us) < 5 # ms", "at character 17: '#' is not part of a bound"),
        ("p99(rtt_us) < 5 kB", "kB is not a unit of p99(rtt_us), which is a time; allowed: a unit of it: ns, us"),
        ("count() < 5 ms", "ms is not a unit of count(), which is a plain number"),
        ("max(size) < 5 ms", "ms is not a unit of max(size), which is a number of bytes"),
        ("rate(size) < 5 B", "B is not a unit of rate(size)"),
        ("p99() < 5", "p99() needs a column"),
        ("rate(rtt_us) < 5", "times have no rate"),
        ("rate(summary.calls) < 5", "table summary have no rate"),
        ("max(transport) < 5", "transport is text, which has no max; allowed: count"),
        ("max(ok) < 5", "ok is true or false; allowed: count, sum, mean"),
        ("count() < 5 where size = udp", "size cannot be udp; allowed: a number"),
        ("count() < 5 where transport = 5", "transport cannot be 5; allowed: a word"),
        ("count() < 5 where transport < udp", "transport is text; allowed: =, !="),
        ("count() < 5 where ok = yes", "ok cannot be yes; allowed: true or false"),
        ("count() < 5 where size = 4 ms", "ms is not a unit of max(size)"),
        ("max(rtt_us) < 5 where tx_frames = 4", "no table has all of rtt_us, tx_frames"),
        ("max(samples.rtt_us) < 5 where observed.size = 4", "columns of tables samples and observed"),
        (" ", "is not a bound"),
        (5, "5 is not a bound"),
        ("count() < 5" + " " * 600, "is not a bound"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: object, words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        parse(text)
    assert "\n" not in caught.value.message


def test_a_scenario_without_bounds_says_nothing_of_them() -> None:
    assert "metrics" not in Expect().model_dump(mode="json", exclude_none=True)
    written = Expect.model_validate({"metrics": ["count()<5", "max(rtt_us) < 5 ms"]})
    assert written.model_dump(mode="json", exclude_none=True)["metrics"] == ["count() < 5", "max(rtt_us) < 5 ms"]
    assert Expect.model_validate(written.model_dump(mode="json", exclude_none=True)) == written

# SPDX-License-Identifier: Apache-2.0
"""Bounds on tables, beside an evaluation with lists and fractions of Python."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.errors import BadInput
from sundial.model.bounds import parse
from sundial.model.tables import TABLES
from sundial.observe import SAMPLE_COLUMNS
from sundial.seams.counters import Port
from sundial.verify import bounds
from sundial.verify.result import IDENTITY
from sundial.verify.rules import rule_of
from sundial.verify.run import _OBSERVED, _SAMPLED
from sundial.verify.summary import of_calls
from sundial.verify.workload import FIGURES, PROGRAM_TABLES

SAMPLE = {
    "scenario": "s", "series": 0, "client": "c1", "server": "s1", "transport": "udp", "app": "raw-client",
    "procedure": "echo", "size": 64, "thread": 0, "call": 0, "warmup": False, "start_ns": 0, "end_ns": 1000,
    "rtt_ns": 1000, "xid": 1, "ok": True, "retransmits": 0, "error": None, "client_address": "10.0.0.1",
    "server_address": "10.0.0.2", "client_port": 1, "server_port": 2, "batch": 0, "node_step": 0,
}  # fmt: skip

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "size": st.sampled_from([16, 64, 1024]),
            "transport": st.sampled_from(["udp", "tcp"]),
            "warmup": st.booleans(),
            "ok": st.booleans(),
            "start_ns": st.integers(0, 10**12),
            "rtt_ns": st.integers(0, 10**10) | st.none(),
        }
    ),
    max_size=30,
)


def table_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    whole = [{**SAMPLE, **row, "end_ns": row.get("start_ns", 0) + (row.get("rtt_ns") or 0)} for row in rows]
    return pl.DataFrame(whole, schema=SAMPLE_COLUMNS, orient="row")


def tables(rows: list[dict[str, Any]]) -> dict[str, pl.DataFrame]:
    return {"samples": table_of(rows)}


def naive(function: str, rows: list[dict[str, Any]], size: int | None, transport: str | None) -> Fraction | None:
    """The rows that count, then the function, in plain Python; ns."""
    rows = [row for row in rows if not row["warmup"]]
    rows = [row for row in rows if size in (None, row["size"]) and transport in (None, row["transport"])]
    values = sorted(row["rtt_ns"] for row in rows if row["rtt_ns"] is not None)
    if function == "count":
        return Fraction(len(values))
    if not values:
        return None
    if function in ("min", "max"):
        return Fraction({"min": min, "max": max}[function](values))
    if function in ("sum", "mean"):
        return Fraction(sum(values)) / (1 if function == "sum" else len(values))
    whole = Fraction(function[1:]) / 100 * (len(values) - 1)
    low = int(whole)
    high = min(low + 1, len(values) - 1)
    return values[low] * (1 - (whole - low)) + values[high] * (whole - low)


@given(
    ROWS,
    st.sampled_from(["count", "sum", "mean", "min", "max", "p0", "p50", "p95", "p99", "p99.9"]),
    st.sampled_from([None, 16, 1024]),
    st.sampled_from([None, "udp"]),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.integers(0, 10**10),
)
def test_a_bound_is_what_plain_python_says(
    rows: list[dict[str, Any]], function: str, size: int | None, transport: str | None, sign: str, limit: int
) -> None:
    conditions = [f"size = {size}"] * (size is not None) + [f"transport = {transport}"] * (transport is not None)
    where = f" where {' and '.join(conditions)}" if conditions else ""
    outcome = bounds.evaluate(parse(f"{function}(rtt_ns) {sign} {limit}{where}"), tables(rows), None)
    expected = naive(function, rows, size, transport)
    kept = [
        row for row in rows
        if not row["warmup"] and size in (None, row["size"]) and transport in (None, row["transport"])
    ]  # fmt: skip
    assert outcome.rows == len(kept)
    assert outcome.seen == expected
    compared = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__", "==": "__eq__", "!=": "__ne__"}[sign]
    assert outcome.met == (bool(kept) and expected is not None and getattr(expected, compared)(Fraction(limit)))
    assert bounds.check([outcome]).height == (not outcome.met)


def seen(text: str, rows: list[dict[str, Any]], virtual_ns: int | None = None, **more: pl.DataFrame) -> Any:
    return bounds.evaluate(parse(text), {**tables(rows), **more}, virtual_ns)


def test_rates_are_by_the_second_between_the_first_begin_and_the_last_end() -> None:
    rows = [{"start_ns": 0, "rtt_ns": 10**9, "size": 64}, {"start_ns": 10**9, "rtt_ns": 10**9, "size": 64}]
    assert seen("rate() == 1", rows).met
    assert seen("rate(size) == 64 B/s", rows).met
    assert seen("rate(size) == 512 bit/s", rows).met
    assert not seen("rate() >= 0", [{"start_ns": 0, "rtt_ns": 0}]).met  # no time, no rate


def test_figures_of_programs_are_exact_and_have_no_rate() -> None:
    rows = [{"program": "p", "machine": "m", "figure": "f", "value": Decimal(text)} for text in ("0.1", "0.2")]
    table = pl.DataFrame(rows, schema=FIGURES)
    texts = ["sum(value) == 0.3", "mean(value) == 0.15", "max(value) == 0.2", "p50(value) == 0.15", "p0(value) == 0.1"]
    assert [seen(f"{text} where figure = f", [], figures=table).met for text in texts] == [True] * 5
    assert seen("count() == 1 where figures.value > 0.1", [], figures=table).met
    with pytest.raises(BadInput, match="table figures have no rate"):
        parse("rate(figures.value) > 1")


def test_calls_before_the_measured_ones_count_where_a_condition_names_them() -> None:
    rows = [{"warmup": True}, {"warmup": False}, {"warmup": False}]
    assert [seen(text, rows).met for text in ("count() == 2", "count() == 1 where warmup = true")] == [True, True]


def test_a_bound_that_no_row_meets_is_a_finding_with_its_rule() -> None:
    outcome = seen("p99(rtt_us) < 900 where size = 4096", [{}])
    (finding,) = bounds.check([outcome]).to_dicts()
    assert (finding["field"], finding["expected"], finding["seen"]) == (
        "bound p99(rtt_us) where size = 4096", "< 900 us", "no row meets the condition"
    )  # fmt: skip
    assert rule_of(finding["field"]).name == "expect.metric"
    assert seen("count() == 0 where size = 4096", [{}]).met is False
    assert seen("mean(rtt_us) < 9", [{"rtt_ns": None}]).seen_text == "no value in 1 rows"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p99(rtt_us) < 1", "1.5 us"),
        ("p99(rtt_ms) < 1", "0.0015 ms"),
        ("p99(rtt_us) < 1.4999999 us", "1.5 us"),
        ("p99(rtt_s) < 0 s", "0.0000015 s"),
        ("mean(ok) > 99 %", "100 %"),
        ("rate() > 1/s", "666666.667/s"),
    ],
)
def test_what_was_seen_has_its_unit(text: str, words: str) -> None:
    assert seen(text, [{"rtt_ns": 1500}]).seen_text == words


def test_a_fraction_in_a_condition_is_exact() -> None:
    rows = [{"rtt_ns": 1499}, {"rtt_ns": 1500}, {"rtt_ns": 1501}]
    assert seen("count() == 1 where rtt_us < 1.4995", rows).met
    assert seen("count() == 2 where rtt_us <= 1.5", rows).met


COUNTERS = {
    "segments": {
        "lan": {
            "kind": "hub",
            "ports": {
                "c:eth0": {**dict.fromkeys(Port.model_fields, 1), "dropped": {"lost": 2, "queue": 3}, "tx_frames": 7},
                "s:eth0": {**dict.fromkeys(Port.model_fields, 1), "dropped": {}, "tx_frames": 9},
            },
        }
    }
}


def test_counters_are_a_row_a_port() -> None:
    table = bounds._of_ports(COUNTERS)
    assert table["dropped"].to_list() == [5, 0]
    assert seen("sum(tx_frames) == 16", [], counters=table).met
    assert seen("max(tx_frames) == 7 where port = c:eth0", [], counters=table).met
    assert seen("rate(tx_frames) == 8/s", [], virtual_ns=2 * 10**9, counters=table).met
    assert bounds._of_ports({}).height == 0


def test_the_columns_for_validation_are_those_that_are_written() -> None:
    assert set(TABLES["samples"]) == set(SAMPLE_COLUMNS)
    written = [*(name for name in IDENTITY if name != "call"), *_SAMPLED, *_OBSERVED, "retransmissions", "verdict"]
    assert set(TABLES["observed"]) == set(written)
    assert set(TABLES["summary"]) == set(of_calls(table_of([{}])).columns)
    assert {name: list(TABLES[name]) for name in PROGRAM_TABLES} == {
        name: list(schema) for name, schema in PROGRAM_TABLES.items()
    }
    assert set(TABLES["counters"]) == {"segment", "kind", "port", *Port.model_fields}


def test_the_kinds_of_columns_are_those_of_their_values() -> None:
    for name, column in TABLES["samples"].items():
        dtype = SAMPLE_COLUMNS[name]
        assert column.kind == ("text" if dtype is pl.String else "flag" if dtype is pl.Boolean else column.kind)
        assert (column.kind in ("text", "flag")) == (dtype in (pl.String, pl.Boolean))

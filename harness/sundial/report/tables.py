# SPDX-License-Identifier: Apache-2.0
"""The tables of the report, as finished text. Pure: data of a run in, rows of words out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.report.workload import Curve, Look
from sundial.verify.rules import rules
from sundial.verify.words import grouped, in_words, joined_in, open_command, to_show

THIN = "\u202f"
DASH = "\u2013"
MOST_PROBLEMS = 20
TIMES = ("min", "median", "mean", "p95", "p99", "max", "stddev")


QUARTILES = ("least", "low", "median", "high", "mean", "most")
"""Names of `quartiles_us`, in the order of `QUARTILE_TITLES`."""
QUARTILE_TITLES = ("min", "quartile", "median", "quartile", "mean", "max")


def quartiles_us() -> dict[str, pl.Expr]:
    """Aggregates of the round trips of calls that succeeded."""
    us = pl.col("rtt_ns").filter("ok") / 1e3
    return {
        "least": us.min(),
        "low": us.quantile(0.25, "linear"),
        "median": us.median(),
        "high": us.quantile(0.75, "linear"),
        "mean": us.mean(),
        "most": us.max(),
    }


@dataclass(frozen=True)
class Column:
    """A heading; numbers are set right, words left, code in a fixed-width face."""

    title: str
    kind: str = "number"


@dataclass(frozen=True)
class Table:
    """A heading, columns, rows of text, and the rows that are bad news (by index)."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    alarms: frozenset[int] = frozenset()


def whole(value: object) -> str:
    """An integer with thin spaces between thousands; a dash for what is not there."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH
    return f"{round(value):,}".replace(",", THIN)


def decimal(value: object, digits: int = 1) -> str:
    """A number with so many decimals and thin spaces between thousands."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DASH
    return f"{value:,.{digits}f}".replace(",", THIN)


def size_text(first: int, last: int) -> str:
    """One size or a range of them."""
    return whole(first) if first == last else f"{whole(first)} to {whole(last)}"


def words(*titles: str) -> tuple[Column, ...]:
    """Columns of words."""
    return tuple(Column(title, "word") for title in titles)


def numbers(*titles: str) -> tuple[Column, ...]:
    """Columns of numbers."""
    return tuple(Column(title) for title in titles)


def what_was_run(batches: pl.DataFrame, looks: Mapping[Curve, Look]) -> Table:
    """One row a curve: who called whom, sizes, calls. `batches` as from `stats.batches`."""
    rows = []
    for curve, look in looks.items():
        part = _of(batches, curve)
        least, most = _bounds(part["calls"])
        clients = part["client"].unique().sort().to_list()
        rows.append(
            (
                look.label,
                curve[2],
                ", ".join(clients) if len(clients) <= 3 else f"{len(clients)} clients",
                ", ".join(part["server"].unique().sort().to_list()),
                f"{whole(part['size'].n_unique())} ({size_text(*_bounds(part['size']))} B)",
                whole(part["series"].n_unique()),
                whole(part["thread"].n_unique()),
                size_text(least, most),
                whole(part["calls"].sum()),
                whole(part["warmups"].sum()),
            )
        )
    columns = (
        *words("traffic", "procedure", "from", "to", "sizes"),
        *numbers("series", "threads", "calls a size", "calls", "warm-up"),
    )
    return Table("Workloads", columns, tuple(rows))


def _bounds(values: pl.Series) -> tuple[int, int]:
    low, high = values.min(), values.max()
    return (low if isinstance(low, int) else 0, high if isinstance(high, int) else 0)


def _of(table: pl.DataFrame, curve: Curve) -> pl.DataFrame:
    app, transport, procedure = curve
    return table.filter(pl.col("app") == app, pl.col("transport") == transport, pl.col("procedure") == procedure)


def key_numbers(
    curves: pl.DataFrame, sizes: Sequence[int], looks: Mapping[Curve, Look],
    bounds: Mapping[Curve, Mapping[int, float]], cells: pl.DataFrame,
) -> Table:  # fmt: skip
    """Round trip and throughput at a few sizes; the rest is in summary.csv.

    `bounds`: most throughput that the wires allow, by size; `cells`: of calls as captured, which get columns where
    there are any.
    """
    rows = []
    for size in sizes:
        for curve, look in looks.items():
            seen = _of(cells, curve).filter(pl.col("size") == size)
            ways = (seen.filter(pl.col("direction") == direction)["cells"] for direction in ("request", "reply"))
            counted = " + ".join(map(_range_text, ways))
            bound = bounds.get(curve, {}).get(size)
            for row in _of(curves, curve).filter(pl.col("size") == size).iter_rows(named=True):
                times = [
                    decimal(row[f"rtt_{name}_us"]) for name in ("min", "median", "mean", "p95", "p99", "max", "stddev")
                ]
                rate = row["throughput_kBps"]
                share = f"{decimal(100 * rate / bound)}{THIN}%" if bound and rate is not None else DASH
                rows.append(
                    (whole(size), look.label, whole(row["calls"]), *((counted,) if cells.height else ()), *times,
                     decimal(rate, 2), *((share,) if bounds else ()), decimal(row["throughput_stddev_pct"], 2))
                )  # fmt: skip
    columns = (
        Column("size (B)"), *words("traffic"), *numbers("calls"),
        *(numbers("cells") if cells.height else ()),
        *numbers("min", "median", "mean", "p95", "p99", "max", "std. dev.", "kB/s"),
        *(numbers("of wire's bound") if bounds else ()), *numbers("series sd (%)"),
    )  # fmt: skip
    return Table("Round trip (µs) and throughput at some sizes", columns, tuple(rows))


def _range_text(values: pl.Series) -> str:
    return size_text(*_bounds(values)) if len(values) else DASH


def stage_numbers(stages: pl.DataFrame, sizes: Sequence[int], looks: Mapping[Curve, Look], common_axis: bool) -> Table:
    """Mean time of each stage at a few sizes, in us."""
    names = ["client_call", "wire_out", "server", "wire_back", "client_return"] if common_axis else [
        "client", "wire_out", "server", "wire_back"]  # fmt: skip
    heads = {
        "client_call": "client: call",
        "wire_out": "wire out",
        "wire_back": "wire back",
        "client_return": "client: return",
    }
    rows = []
    for size in sizes:
        for curve, look in looks.items():
            for row in _of(stages, curve).filter(pl.col("size") == size).iter_rows(named=True):
                wire = 100 * (row["wire_out"] + row["wire_back"]) / row["rtt"] if row["rtt"] else None
                rows.append(
                    (whole(size), look.label, whole(row["calls"]), *(decimal(row[name]) for name in names),
                     decimal(row["rtt"]), f"{decimal(wire)}{THIN}%")
                )  # fmt: skip
    columns = (
        Column("size (B)"), *words("traffic"),
        *numbers("calls", *(heads.get(name, name) for name in names), "round trip", "on the wire"),
    )  # fmt: skip
    return Table("Mean time of each stage (µs)", columns, tuple(rows))


def packets_in(leg: object) -> int | None:
    """Packets of one direction as verify.json expects them."""
    value = leg.get("packets") if isinstance(leg, Mapping) else None
    return value if isinstance(value, int) else None


def packets_seen(leg: object) -> tuple[int | None, int | None]:
    """Fewest and most packets of one direction as verify.json has them seen."""
    value = leg.get("packets") if isinstance(leg, Mapping) else None
    if isinstance(value, list) and len(value) == 2:
        low, high = value
        return (low if isinstance(low, int) else None, high if isinstance(high, int) else None)
    return None, None


def size_ranges(rows: Sequence[tuple[int, object]]) -> list[tuple[int, int, int, object]]:
    """Runs of neighbouring sizes with the same value: (first size, last size, how many sizes, value).

    `rows` holds (size, value) with each size once; neighbours are neighbours among the sizes that were run.
    """
    runs: list[tuple[int, int, int, object]] = []
    for size, value in sorted(rows, key=lambda row: row[0]):
        if runs and runs[-1][3] == value:
            first, _, count, _ = runs[-1]
            runs[-1] = (first, size, count + 1, value)
        else:
            runs.append((size, size, 1, value))
    return runs


def verdicts(verify: Mapping[str, Any] | None, looks: Mapping[Curve, Look]) -> Table | None:
    """One row per curve and range of sizes with the same expectation; clients are added up."""
    groups = [group for group in (verify or {}).get("groups", []) if isinstance(group, Mapping)]
    if not groups:
        return None
    by_curve: dict[Curve, dict[int, dict[str, Any]]] = {}
    for group in groups:
        curve = (str(group.get("app")), str(group.get("transport")), str(group.get("procedure")))
        expected, seen = group.get("expected") or {}, group.get("seen") or {}
        size = by_curve.setdefault(curve, {}).setdefault(
            int(group.get("size") or 0), {"calls": 0, "mismatches": 0, "expected": (None, None), "seen": []}
        )
        size["calls"] += int(group.get("calls") or 0)
        bad = int(group.get("mismatches") or 0)
        size["mismatches"] += bad
        size["expected"] = tuple(packets_in(expected.get(side)) for side in ("request", "reply"))
        size["seen"] += [packets_seen(seen.get(side)) for side in ("request", "reply")] if bad else []
    rows: list[tuple[str, ...]] = []
    alarms: set[int] = set()
    order = [curve for curve in looks if curve in by_curve] + [curve for curve in by_curve if curve not in looks]
    for curve in order:
        sizes = by_curve[curve]
        label = looks[curve].label if curve in looks else " / ".join(curve)
        keyed = [(size, (row["expected"], row["mismatches"] > 0)) for size, row in sizes.items()]
        for first, last, count, _ in size_ranges(keyed):
            inside = [row for size, row in sizes.items() if first <= size <= last]
            bad = sum(row["mismatches"] for row in inside)
            want = inside[0]["expected"]
            got = [legs for row in inside for legs in row["seen"]]
            if bad:
                alarms.add(len(rows))
            rows.append(
                (label, curve[2], size_text(first, last), whole(count), whole(sum(row["calls"] for row in inside)),
                 *(whole(value) for value in want),
                 _seen_text(want, got) if bad else "as expected", whole(bad), "FAIL" if bad else "pass")
            )  # fmt: skip
    columns = (
        *words("traffic", "procedure"),
        *numbers("sizes (B)", "sizes", "calls", "request packets", "reply packets"),
        Column("seen", "word"), Column("mismatches"), Column("verdict", "word"),
    )  # fmt: skip
    return Table("Verdict by size", columns, tuple(rows), frozenset(alarms))


def _seen_text(want: tuple[int | None, int | None], got: Sequence[tuple[int | None, int | None]]) -> str:
    """What was seen at sizes with mismatches, as far as numbers of packets tell; `got` alternates request and reply."""
    texts = []
    for side in (0, 1):
        found = sorted({count for leg in got[side::2] for count in leg if count is not None})
        texts.append(size_text(found[0], found[-1]) if found else "nothing")
    as_wanted = [whole(count) for count in want]
    return "see the mismatches" if texts == as_wanted else f"{texts[0]}; {texts[1]}"


@dataclass(frozen=True)
class ProblemText:
    """One mismatch, ready to read and to paste."""

    words: str
    command: str
    """That opens the capture at its frames; empty where it has none."""
    rule: str = ""
    joined: int = 1
    """How many mismatches of verify.json it is."""


def rules_of(shown: Sequence[ProblemText]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, severity and explanation of the rules of these mismatches."""
    names = dict.fromkeys(each.rule for each in shown if each.rule in rules())
    return [(name, rules()[name].severity, list(rules()[name].parts.items())) for name in names]


def problems(verify: Mapping[str, Any] | None, run: str) -> list[ProblemText]:
    """The first mismatches of verify.json."""
    found = [item for item in (verify or {}).get("problems") or [] if isinstance(item, Mapping)]
    return [problem(item, run) for item in grouped(found)[:MOST_PROBLEMS]]


def bounds(verify: Mapping[str, Any] | None) -> Table | None:
    """The bounds of the scenario with what was seen."""
    found = [each for each in (verify or {}).get("bounds") or [] if isinstance(each, Mapping)]
    if not found:
        return None
    rows = tuple(
        (str(each["bound"]), "met" if each["met"] else "NOT MET", str(each["words"]), whole(each["rows"]))
        for each in found
    )
    alarms = frozenset(place for place, each in enumerate(found) if not each["met"])
    columns = (*words("bound", "verdict", "seen"), Column("rows"))
    return Table("Bounds of the scenario", columns, rows, alarms)


def checks(verify: Mapping[str, Any] | None) -> Table | None:
    """What the scenario's own check said."""
    found = [each for each in (verify or {}).get("checks") or [] if isinstance(each, Mapping)]
    if not found:
        return None
    rows = tuple((str(each["check"]), "pass" if each["met"] else "FAIL", str(each["words"])) for each in found)
    alarms = frozenset(place for place, each in enumerate(found) if not each["met"])
    return Table("Check of the scenario", (*words("check", "verdict"), Column("words", "prose")), rows, alarms)


def first_problem(verify: Mapping[str, Any] | None, run: str) -> ProblemText | None:
    """The one to begin with."""
    item = to_show((verify or {}).get("problems") or [])
    return None if item is None else problem(item, run)


def problem(item: Mapping[str, Any], run: str) -> ProblemText:
    """One mismatch of verify.json."""
    return ProblemText(in_words(item), open_command(run, item) or "", str(item.get("rule") or ""), joined_in(item))

# SPDX-License-Identifier: Apache-2.0
"""Bounds of a scenario (`expect.metrics`) on the tables of a run. Pure but for `measured`: tables in, outcomes out.

Calls before the measured ones are left out unless a condition names `warmup`. Missing values are left out. All
arithmetic is exact: a bound with `==` means what it says where time is virtual.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl

from sundial.model.bounds import COMPARISONS, Bound, Resolved, Test, parse, resolve
from sundial.model.tables import TABLES
from sundial.verify.findings import Finding, as_table
from sundial.verify.summary import of_calls
from sundial.verify.workload import PROGRAM_TABLES

FIELD = "bound"
"""Fields of findings begin with it (rule `expect.metric`)."""
DIGITS = 3
NS_PER_S = 10**9


@dataclass(frozen=True)
class Outcome:
    """What a bound came to. `seen` in ns, bytes, ones, or those a second; None: no row, or no value, to take it of."""

    bound: Bound
    resolved: Resolved
    rows: int
    """How many rows met the conditions."""
    seen: Fraction | None

    @property
    def met(self) -> bool:
        """A bound that no row meets is not met: it would never notice anything."""
        return self.rows > 0 and self.seen is not None and self._compare(self.seen)

    def _compare(self, seen: Fraction) -> bool:
        return bool(COMPARISONS[self.bound.comparison](seen, self.resolved.limit))

    @property
    def seen_text(self) -> str:
        """With its unit, in as many digits as it takes to differ from the limit."""
        if not self.rows:
            return "no row meets the condition" if self.bound.where else "no row"
        if self.seen is None:
            return f"no value in {self.rows} rows"
        return with_unit(decimal(self.seen / self.resolved.factor, self.resolved.limit / self.resolved.factor),
                         self.resolved.unit)  # fmt: skip

    @property
    def limit_text(self) -> str:
        """The comparison and its limit, with the unit."""
        return f"{self.bound.comparison} {with_unit(f'{self.bound.value.number:f}', self.resolved.unit)}"

    def to_json(self) -> dict[str, Any]:
        """As verify.json has it."""
        seen = None if self.seen is None else float(self.seen / self.resolved.factor)
        return {
            "bound": str(self.bound),
            "table": self.resolved.table,
            "limit": self.limit_text,
            "seen": seen,
            "unit": self.resolved.unit,
            "rows": self.rows,
            "met": self.met,
            "words": self.seen_text,
        }


def decimal(value: Fraction, beside: Fraction) -> str:
    """A number with up to DIGITS decimals; with more where these say nothing, or where it would look like another."""
    if value.denominator == 1:
        return str(value.numerator)
    for digits in (DIGITS, 6, 9, 12):
        text = f"{float(value):.{digits}f}"
        if value == beside or (Fraction(text) != beside and abs(value) >= Fraction(1, 10 ** (digits - 1))):
            break
    return text.rstrip("0").rstrip(".")


def with_unit(number: str, unit: str) -> str:
    """`5 ms`, `3`, `10/s`."""
    return f"{number}{unit}" if unit.startswith("/") or not unit else f"{number} {unit}"


def of_scenario(scenario: Mapping[str, Any]) -> list[Bound]:
    """The bounds of a run's scenario. Raises BadInput for one that this version cannot read."""
    return [parse(text) for text in (scenario.get("expect") or {}).get("metrics") or ()]


def tables_of(
    samples: pl.DataFrame,
    observed: pl.DataFrame,
    counters: Mapping[str, Any] | None,
    of_programs: Mapping[str, pl.DataFrame],
) -> dict[str, pl.DataFrame]:
    """The tables that bounds are about, by name. `of_programs`: those of PROGRAM_TABLES that are there."""
    return {
        **{name: of_programs.get(name, pl.DataFrame(schema=schema)) for name, schema in PROGRAM_TABLES.items()},
        "samples": samples.select(list(TABLES["samples"])),
        "observed": observed.select(list(TABLES["observed"])),
        "summary": of_calls(samples),
        "counters": _of_ports(counters or {}),
    }


def _of_ports(counters: Mapping[str, Any]) -> pl.DataFrame:
    """One row a port of the wires."""
    rows = []
    for name, segment in (counters.get("segments") or {}).items():
        for port, values in segment["ports"].items():
            known = {column: values.get(column) for column in TABLES["counters"]}
            dropped = sum(values.get("dropped", {}).values())
            rows.append({**known, "segment": name, "kind": segment["kind"], "port": port, "dropped": dropped})
    texts = {name: pl.String for name, column in TABLES["counters"].items() if column.kind == "text"}
    return pl.DataFrame(rows, schema={name: texts.get(name, pl.Int64) for name in TABLES["counters"]})


def evaluate(bound: Bound, tables: Mapping[str, pl.DataFrame], virtual_ns: int | None) -> Outcome:
    """What a bound comes to. `virtual_ns`: the length of the run, for rates of `counters`."""
    resolved = resolve(bound)
    table = tables[resolved.table]
    if "warmup" in table.columns and all(test.column != "warmup" for test in resolved.tests):
        table = table.filter(~pl.col("warmup"))
    for test in resolved.tests:
        table = table.filter(_meets(test))
    return Outcome(bound, resolved, table.height, _value(bound, resolved, table, virtual_ns))


def _meets(test: Test) -> pl.Expr:
    """Whether a row has what a condition asks for; a missing value has nothing."""
    value: Any = test.value
    column = pl.col(test.column)
    if isinstance(value, Fraction):
        value = value / test.scale
        if value.denominator != 1:
            return column.map_elements(
                lambda each: bool(COMPARISONS[test.comparison](Fraction(each), value)), return_dtype=pl.Boolean
            ).fill_null(False)
        value = value.numerator
    met: Any = COMPARISONS[test.comparison](column, value)
    return pl.Expr.fill_null(met, False)


def _value(bound: Bound, resolved: Resolved, table: pl.DataFrame, virtual_ns: int | None) -> Fraction | None:
    column = resolved.column
    values = table[column].drop_nulls() if column is not None else pl.Series([1] * table.height, dtype=pl.Int64)
    if bound.function == "count":
        return Fraction(values.len())
    if values.is_empty():
        return None
    if values.dtype == pl.Boolean:
        values = values.cast(pl.Int64)
    if bound.function == "rate":
        duration_ns = _duration_ns(resolved.table, table, virtual_ns)
        return None if not duration_ns else _sum(values) * resolved.scale * NS_PER_S / duration_ns
    return _of(bound, values) * resolved.scale


def _of(bound: Bound, values: pl.Series) -> Fraction:
    match bound.function:
        case "sum":
            return _sum(values)
        case "mean":
            return _sum(values) / values.len()
        case "min":
            return Fraction(values.min())  # type: ignore[arg-type]
        case "max":
            return Fraction(values.max())  # type: ignore[arg-type]
    share = bound.percentile
    assert share is not None
    return percentile(values.sort(), share)


def _sum(values: pl.Series) -> Fraction:
    """Exact, of floats too."""
    if values.dtype.is_float() or values.dtype.is_decimal():
        return sum((Fraction(each) for each in values.to_list()), Fraction(0))
    return Fraction(values.cast(pl.Int128).sum())


def percentile(ordered: Sequence[Any] | pl.Series, share: Fraction) -> Fraction:
    """Between two neighbours by linear interpolation, as in summary.csv; `ordered` is not empty."""
    place = share * (len(ordered) - 1)
    low = place.numerator // place.denominator
    first = Fraction(ordered[low])
    rest = place - low
    return first if not rest else first + (Fraction(ordered[low + 1]) - first) * rest


def _duration_ns(name: str, table: pl.DataFrame, virtual_ns: int | None) -> int | None:
    """From the begin of the first of these calls to the end of the last; of ports, the length of the run."""
    if name == "counters":
        return virtual_ns
    begin, end = table["start_ns"].min(), table["end_ns"].max()
    return None if begin is None or end is None else int(end) - int(begin)  # type: ignore[arg-type]


def check(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """A finding for each bound that is not met."""
    return as_table(
        Finding(None, f"{FIELD} {each.bound.of}{each.bound.conditions}", each.limit_text, each.seen_text)
        for each in outcomes
        if not each.met
    )


def measured(run_dir: Path, measure: Bound) -> Outcome | None:
    """A measure of a run that was verified; None where a table is missing."""
    return measured_all(run_dir, [measure])[0]


def measured_all(run_dir: Path, measures: Sequence[Bound]) -> Sequence[Outcome | None]:
    """The same of several."""
    try:
        samples = pl.read_parquet(run_dir / "samples.parquet")
        files = {name: run_dir / f"{name}.parquet" for name in PROGRAM_TABLES}
        of_programs = {name: pl.read_parquet(file) for name, file in files.items() if file.is_file()}
        observed = pl.read_parquet(run_dir / "observed.parquet")
        counters = json.loads((run_dir / "wire" / "counters.json").read_bytes())
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return [None] * len(measures)
    tables = tables_of(samples, observed, counters, of_programs)
    return [evaluate(measure, tables, counters.get("virtual_ns")) for measure in measures]

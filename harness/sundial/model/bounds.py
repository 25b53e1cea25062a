# SPDX-License-Identifier: Apache-2.0
"""Bounds on what a run measured: `p99(rtt_us) < 900 where size = 1024 and transport = udp`.

    bound      = FUNCTION "(" [COLUMN] ")" [where] COMPARISON value [where]
    where      = "where" condition {"and" condition}
    condition  = COLUMN COMPARISON (value | WORD | QUOTED | "true" | "false")
    value      = NUMBER [UNIT]
    COLUMN     = [TABLE "."] NAME

One line of text each, since it is one line of the verdict, of the report and of a log as well, and reads there as it
was written. A number without a unit is in the column's own. `parse` checks everything that needs no run.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

from sundial.errors import BadInput
from sundial.model.fields import Marker
from sundial.model.tables import TABLES, TIME_UNITS, Column, find

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
PLAIN_FUNCTIONS = ("count", "sum", "mean", "min", "max", "rate")
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
FUNCTIONS_ALLOWED = f"{', '.join(PLAIN_FUNCTIONS)}, or a percentile from p0 to p99.999, such as p99"
TEXT_MOST = 500
ALLOWED = "text such as 'p99(rtt_us) < 900 where size = 1024 and transport = udp'"
WITHOUT_RATE = ("summary", "figures")
"""Tables that have no time of their own."""

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
UNITS: Mapping[str, Mapping[str, Fraction]] = {
    "time": {unit: Fraction(ns) for unit, ns in {**TIME_UNITS, "min": 60 * 10**9, "h": 3600 * 10**9}.items()},
    "bytes": {unit: Fraction(each) for unit, each in _BYTES.items()},
    "number": {"%": Fraction(1, 100)},
    "bytes a second": {
        **{f"{unit}/s": Fraction(each) for unit, each in _BYTES.items()},
        **{"bit/s": Fraction(1, 8), "kbit/s": Fraction(10**3, 8), "Mbit/s": Fraction(10**6, 8)},
    },
    "number a second": {"/s": Fraction(1)},
}
"""By what a quantity is: its units, in ns, bytes, ones, bytes a second, ones a second."""
BARE = {"bytes": "B", "number": "", "bytes a second": "B/s", "number a second": "/s"}
"""The unit of a number without one; that of a time is in the column's name."""


@dataclass(frozen=True)
class Name:
    """A column as written."""

    name: str
    table: str | None = None

    def __str__(self) -> str:
        return self.name if self.table is None else f"{self.table}.{self.name}"


@dataclass(frozen=True)
class Amount:
    """A number as written, with its unit."""

    number: Decimal
    unit: str | None = None

    def __str__(self) -> str:
        text = f"{self.number:f}"
        return text if self.unit is None else f"{text} {self.unit}" if self.unit != "/s" else f"{text}/s"


@dataclass(frozen=True)
class Condition:
    """Which rows count. A text is a `str`, a truth value a `bool`."""

    column: Name
    comparison: str
    value: Amount | str | bool

    def __str__(self) -> str:
        sign = {"==": "="}.get(self.comparison, self.comparison)
        return f"{self.column} {sign} {_written(self.value)}"


@dataclass(frozen=True)
class Bound:
    """One bound, as parsed. Its text is what `parse` reads as the same."""

    function: str
    column: Name | None
    comparison: str
    value: Amount
    where: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        return f"{self.of} {self.comparison} {self.value}{self.conditions}"

    @property
    def of(self) -> str:
        """What is bounded, without conditions."""
        return f"{self.function}({self.column or ''})"

    @property
    def conditions(self) -> str:
        """` where ...`, or nothing."""
        return f" where {' and '.join(map(str, self.where))}" if self.where else ""

    @property
    def names(self) -> list[Name]:
        """All columns that it names."""
        return [*([self.column] if self.column else []), *(each.column for each in self.where)]

    @property
    def percentile(self) -> Fraction | None:
        """From 0 to 1."""
        match = _PERCENTILE.fullmatch(self.function)
        return None if match is None else Fraction(match[1]) / 100


@dataclass(frozen=True)
class Test:
    """A condition on values of a table: numbers in ns, bytes or ones."""

    column: str
    scale: Fraction
    """What the column's unit is in these."""
    comparison: str
    value: Fraction | str | bool


@dataclass(frozen=True)
class Resolved:
    """A bound whose columns, units and types are known."""

    table: str
    column: str | None
    scale: Fraction
    limit: Fraction
    unit: str
    """In which results are shown."""
    factor: Fraction
    tests: tuple[Test, ...]


class BoundField(Marker):
    """The type of a field with a bound."""

    def parse(self, value: object) -> Bound:
        return value if isinstance(value, Bound) else parse(value)

    def show(self, value: Bound) -> str:
        return str(value)

    def schema(self) -> dict[str, Any]:
        functions = "|".join((*PLAIN_FUNCTIONS, r"p[0-9]{1,2}(\.[0-9]{1,3})?"))
        return {"type": "string", "pattern": rf"^\s*({functions})\s*\(", "maxLength": TEXT_MOST, "x-allowed": ALLOWED}


def parse(text: object) -> Bound:
    """A bound from its text. Raises BadInput with the position of what is wrong."""
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_MOST:
        raise BadInput(f"{text!r} is not a bound", allowed=ALLOWED)
    bound = _Parser(text).bound()
    resolve(bound)
    return bound


def parse_measure(text: object) -> Bound:
    """What a bound is about, without comparison: `p50(rtt_us) where size = 64`. Raises BadInput as `parse`."""
    if not isinstance(text, str) or not text.strip() or len(text) > TEXT_MOST:
        raise BadInput(f"{text!r} is not a measure", allowed="text such as 'p50(rtt_us) where size = 64'")
    measure = _Parser(text).measure()
    resolve(measure)
    return measure


# ---- text to bound ----

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>'[^']*'|"[^"]*")|(?P<sign><=|>=|==|!=|<|>|=)|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<unit>%|/s(?![\w/]))|(?P<mark>[()])|(?P<word>[A-Za-z_][\w.:/-]*))"""
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """One token after the other; `_refuse` names the character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def _split(self) -> Iterator[_Token]:
        at, end = 0, len(self._text.rstrip())
        while at < end:
            match = _TOKEN.match(self._text, at)
            if match is None:
                at += len(self._text[at:]) - len(self._text[at:].lstrip())
                self._refuse(at, f"{self._text[at]!r} is not part of a bound", ALLOWED)
            kind = str(match.lastgroup)
            yield _Token(kind, match[kind], match.start(kind))
            at = match.end()
        yield _Token("end", "", end)

    def _refuse(self, at: int, what: str, allowed: str) -> NoReturn:
        raise BadInput(f"{self._text!r}: at character {at + 1}: {what}", allowed=allowed)

    def _is(self, kind: str, text: str | None = None) -> bool:
        token = self._tokens[self._next]
        return token.kind == kind and text in (None, token.text)

    def _take(self, kind: str, allowed: str, text: str | None = None) -> _Token:
        token = self._tokens[self._next]
        if not self._is(kind, text):
            self._refuse(token.at, f"{token.text!r} is unexpected" if token.text else "the bound ends here", allowed)
        self._next += 1
        return token

    def bound(self) -> Bound:
        function, column = self._of()
        where = self._where()
        comparison = self._comparison()
        value = self._amount()
        where = where or self._where()
        self._take("end", "where CONDITION, or nothing more")
        return Bound(function, column, comparison, value, where)

    def measure(self) -> Bound:
        """As a bound that any value meets."""
        function, column = self._of()
        where = self._where()
        self._take("end", "where CONDITION, or nothing more")
        return Bound(function, column, ">=", Amount(Decimal(0)), where)

    def _of(self) -> tuple[str, Name | None]:
        function = self._take("word", FUNCTIONS_ALLOWED)
        if function.text not in PLAIN_FUNCTIONS and not _PERCENTILE.fullmatch(function.text):
            close = difflib.get_close_matches(function.text, [*PLAIN_FUNCTIONS, "p50", "p95", "p99"], n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            self._refuse(function.at, f"{function.text!r} is not a function{hint}", FUNCTIONS_ALLOWED)
        self._take("mark", "( after the function", "(")
        column = None if self._is("mark", ")") else self._name()
        self._take("mark", ") after the column", ")")
        return function.text, column

    def _where(self) -> tuple[Condition, ...]:
        if not self._is("word", "where"):
            return ()
        self._next += 1
        found = [self._condition()]
        while self._is("word", "and"):
            self._next += 1
            found.append(self._condition())
        return tuple(found)

    def _condition(self) -> Condition:
        column, comparison = self._name(), self._comparison()
        if self._is("quoted"):
            return Condition(column, comparison, self._take("quoted", "").text[1:-1])
        if self._is("word"):
            word = self._take("word", "").text
            return Condition(column, comparison, {"true": True, "false": False}.get(word, word))
        return Condition(column, comparison, self._amount("a number, a word, 'a text', true or false"))

    def _comparison(self) -> str:
        sign = self._take("sign", ", ".join(COMPARISONS)).text
        return "==" if sign == "=" else sign

    def _amount(self, allowed: str = "a number") -> Amount:
        number = Decimal(self._take("number", allowed).text)
        if self._is("unit") or (self._is("word") and self._tokens[self._next].text not in ("where", "and")):
            unit = self._tokens[self._next]
            if not any(unit.text in units for units in UNITS.values()):
                names = ", ".join(dict.fromkeys(name for units in UNITS.values() for name in units))
                self._refuse(unit.at, f"{unit.text!r} is not a unit", names)
            self._next += 1
            return Amount(number, unit.text)
        return Amount(number)

    def _name(self) -> Name:
        token = self._take("word", "a column, such as rtt_us")
        table, dot, name = token.text.partition(".")
        if dot and table not in TABLES:
            self._refuse(token.at, f"there is no table {table!r}", ", ".join(TABLES))
        found = Name(name, table) if dot else Name(token.text)
        tables = [table] if dot else list(TABLES)
        if not any(find(each, found.name) for each in tables):
            meant = _meant(found.name, tables)
            allowed = "the columns of docs/columns.md" if meant else _columns(tables)
            self._refuse(token.at, f"there is no column {token.text!r}{meant}", allowed)
        return found


def _meant(name: str, tables: Sequence[str]) -> str:
    known = {column for table in tables for column in TABLES[table]}
    known |= {f"{column[:-3]}_{unit}" for column in known if column.endswith(("_ns", "_us")) for unit in TIME_UNITS}
    close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _columns(tables: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(name for table in tables for name in TABLES[table]))


def _written(value: Amount | str | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Amount):
        return str(value)
    plain = re.fullmatch(r"[A-Za-z_][\w.:/-]*", value) and value not in ("true", "false")
    quote = '"' if "'" in value else "'"
    return value if plain else f"{quote}{value}{quote}"


# ---- bound to columns and units ----


def resolve(bound: Bound) -> Resolved:
    """The table, and all numbers in its units. Raises BadInput for what does not fit together."""
    table = _table(bound)
    tests = tuple(_test(bound, table, each) for each in bound.where)
    column, scale, quantity, bare = None, Fraction(1), "number", ""
    if bound.column is not None:
        known = find(table, bound.column.name)
        assert known is not None
        column, of, written = known
        _check_function(bound, of)
        if bound.function != "count":
            scale = Fraction(TIME_UNITS[of.unit]) if of.kind == "time" else Fraction(1)
            quantity = of.kind if of.kind in ("time", "bytes") else "number"
            bare = written if of.kind == "time" else BARE[quantity]
    elif bound.function not in ("count", "rate"):
        raise BadInput(f"'{bound}': {bound.function}() needs a column", allowed=f"{bound.function}(rtt_us)")
    if bound.function == "rate":
        if table in WITHOUT_RATE or quantity == "time":
            what = "times" if quantity == "time" else f"table {table}"
            raise BadInput(f"'{bound}': {what} have no rate", allowed="rate(), or rate of sizes, bytes or frames")
        quantity = f"{quantity} a second"
        bare = BARE[quantity]
    unit = bound.value.unit or bare
    factor = _factor(bound, quantity, bound.value.unit, bare)
    return Resolved(table, column, scale, Fraction(bound.value.number) * factor, unit, factor, tests)


def _table(bound: Bound) -> str:
    """The table that has all columns: the one that is named, or else the first."""
    named = list(dict.fromkeys(each.table for each in bound.names if each.table))
    if len(named) > 1:
        raise BadInput(f"'{bound}': columns of tables {' and '.join(named)}", allowed="columns of one table")
    for table in named or TABLES:
        if all(find(table, each.name) for each in bound.names):
            return table
    names = ", ".join(dict.fromkeys(str(each) for each in bound.names))
    raise BadInput(f"'{bound}': no table has all of {names}", allowed="columns of one table")


def _check_function(bound: Bound, of: Column) -> None:
    if of.kind == "text" and bound.function != "count":
        raise BadInput(f"'{bound}': {bound.column} is text, which has no {bound.function}", allowed="count")
    if of.kind == "flag" and bound.function not in ("count", "sum", "mean"):
        raise BadInput(f"'{bound}': {bound.column} is true or false", allowed="count, sum, mean")


def _factor(bound: Bound, quantity: str, unit: str | None, bare: str) -> Fraction:
    """What the unit of a number is in ns, bytes, ones or those a second."""
    units = UNITS[quantity]
    if unit is not None and unit not in units:
        allowed = f"a unit of it: {', '.join(units)}" + ("" if bare else ", or a number without a unit")
        raise BadInput(f"'{bound}': {unit} is not a unit of {bound.of}, which is {_a(quantity)}", allowed=allowed)
    return units.get(unit or bare, Fraction(1))


def _a(quantity: str) -> str:
    return {"time": "a time", "bytes": "a number of bytes", "number": "a plain number"}.get(quantity, quantity)


def _test(bound: Bound, table: str, condition: Condition) -> Test:
    known = find(table, condition.column.name)
    assert known is not None
    name, of, written = known
    value = condition.value
    if of.kind in ("text", "flag"):
        if condition.comparison not in ("==", "!="):
            raise BadInput(f"'{bound}': {name} is {'text' if of.kind == 'text' else 'true or false'}", allowed="=, !=")
        fits = isinstance(value, bool) if of.kind == "flag" else isinstance(value, str)
        if not fits:
            kinds = {"flag": "true or false", "text": "a word, or a text in quotes"}
            raise BadInput(f"'{bound}': {name} cannot be {_written(value)}", allowed=kinds[of.kind])
        return Test(name, Fraction(1), condition.comparison, value)  # type: ignore[arg-type]
    if not isinstance(value, Amount):
        raise BadInput(f"'{bound}': {name} cannot be {_written(value)}", allowed="a number")
    bare = written if of.kind == "time" else BARE[of.kind]
    as_if = Bound("max", condition.column, condition.comparison, value, bound.where)
    factor = _factor(as_if, of.kind, value.unit, bare)
    scale = Fraction(TIME_UNITS[of.unit]) if of.kind == "time" else Fraction(1)
    return Test(name, scale, condition.comparison, Fraction(value.number) * factor)

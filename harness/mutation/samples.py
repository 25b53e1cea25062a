# SPDX-License-Identifier: Apache-2.0
"""The guests' samples: every column and row of samples.parquet, every value of every kind of line of samples.jsonl."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import polars as pl

from mutation.damage import Copy, Damage, Damages
from sundial.run.collect import SAMPLES

Lines = list[bytes]


def damages(copy: Copy) -> Damages:
    """samples.parquet as it is read by reports, and the streams that it comes from."""
    table = pl.read_parquet(copy.path / SAMPLES)
    for column in table.columns if table.height else ():
        yield Damage(f"{SAMPLES}: {column} of a row", _parquet(partial(_cell, column)))
    for what, change in TABLE.items() if table.height else OF_SHAPE.items():
        yield Damage(f"{SAMPLES}: {what}", _parquet(change))
    for name in copy.names:
        if name.endswith("/samples.jsonl"):
            yield from _stream(name, copy.read(name).splitlines())


def _stream(name: str, lines: Lines) -> Damages:
    """`samples.parquet` follows, so that only what the lines say is wrong."""
    values = [json.loads(line) for line in lines]
    kinds: dict[str, dict[str, None]] = {}
    columns: list[str] = []
    for value in values:
        if isinstance(value, dict):
            kinds.setdefault(_kind(value), {}).update(dict.fromkeys(value))
            columns = value.get("columns", columns)
    for kind, fields in kinds.items():
        for field in fields:
            if field != "type":
                yield _damage(f"{name}: {field} of a line {kind!r}", name, _value_of(kind, field))
        yield _damage(f"{name}: a line {kind!r} missing", name, _line(kind, 0))
        yield _damage(f"{name}: a line {kind!r} twice", name, _line(kind, 2))
    for place, column in enumerate(columns):
        yield _damage(f"{name}: {column} of a row", name, _row_value(place))
        yield _damage(f"{name}: {column} of all rows", name, _all_rows(place))
    if columns:
        for what, change in ROWS.items():
            yield _damage(f"{name}: {what}", name, change)


def _kind(value: dict[str, Any]) -> str:
    return " ".join(str(value[key]) for key in ("type", "app", "transport") if key in value)


def _damage(words: str, name: str, change: Callable[[Lines, Random], Lines]) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        lines = change(copy.read(name).splitlines(), random)
        copy.write(name, b"".join(line + b"\n" for line in lines))

    return Damage(words, apply, samples=True)


def _of_kind(lines: Lines, kind: str, field: str | None = None) -> list[int]:
    found = []
    for place, line in enumerate(lines):
        value = json.loads(line)
        if isinstance(value, dict) and _kind(value) == kind and (field is None or field in value):
            found.append(place)
    return found


def _rows(lines: Lines) -> list[int]:
    return [place for place, line in enumerate(lines) if line.startswith(b"[")]


def _value_of(kind: str, field: str) -> Callable[[Lines, Random], Lines]:
    def change(lines: Lines, random: Random) -> Lines:
        place = random.choice(_of_kind(lines, kind, field))
        value = json.loads(lines[place])
        value[field] = _other(value[field], random)
        return [*lines[:place], _text(value), *lines[place + 1 :]]

    return change


def _line(kind: str, times: int) -> Callable[[Lines, Random], Lines]:
    def change(lines: Lines, random: Random) -> Lines:
        place = random.choice(_of_kind(lines, kind))
        return [*lines[:place], *([lines[place]] * times), *lines[place + 1 :]]

    return change


def _row_value(column: int) -> Callable[[Lines, Random], Lines]:
    def change(lines: Lines, random: Random) -> Lines:
        place = random.choice(_rows(lines))
        value = json.loads(lines[place])
        if column < len(value):
            value[column] = _other(value[column], random)
        return [*lines[:place], _text(value), *lines[place + 1 :]]

    return change


def _all_rows(column: int) -> Callable[[Lines, Random], Lines]:
    def change(lines: Lines, random: Random) -> Lines:
        rows = [(place, json.loads(lines[place])) for place in _rows(lines)]
        new = list(lines)
        for place, value in rows:
            if column < len(value):
                value[column] = _other(value[column], random)
            new[place] = _text(value)
        return new

    return change


def _other(value: Any, random: Random) -> Any:
    """Another value of the same type: 1 more or much more, 0 for 1, another word."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 1 - value if value in (0, 1) else value + random.choice([1, 1_000, 1_000_000])
    if isinstance(value, str):
        return "another"
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, dict):
        key = random.choice(list(value)) if value else "another"
        return {**value, key: _other(value.get(key, 0), random)}
    return "timed out"


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _row_missing(lines: Lines, random: Random) -> Lines:
    place = random.choice(_rows(lines))
    return lines[:place] + lines[place + 1 :]


def _row_twice(lines: Lines, random: Random) -> Lines:
    place = random.choice(_rows(lines))
    return [*lines[:place], lines[place], *lines[place:]]


def _rows_exchanged(lines: Lines, random: Random) -> Lines:
    rows = _rows(lines)
    one = random.choice([place for place in rows if place + 1 in rows])
    return [*lines[:one], lines[one + 1], lines[one], *lines[one + 2 :]]


def _last_cut(lines: Lines, random: Random) -> Lines:
    return [*lines[:-1], lines[-1][:-3]]


def _ends_in_the_middle(lines: Lines, random: Random) -> Lines:
    return lines[: len(lines) // 2]


def _ends_at_a_batch(lines: Lines, random: Random) -> Lines:
    batches = [place for place, line in enumerate(lines) if line.startswith(b'{"type":"batch"')]
    return lines[: batches[-1]]


def _all_shifted(lines: Lines, random: Random) -> Lines:
    """Every call 100 us earlier, begin and end."""
    columns: list[str] = []
    new = []
    for line in lines:
        value = json.loads(line)
        if isinstance(value, dict):
            columns = value.get("columns", columns)
        else:
            for name in ("start", "end"):
                value[columns.index(name)] -= 100_000
        new.append(_text(value))
    return new


ROWS: dict[str, Callable[[Lines, Random], Lines]] = {
    "a row missing": _row_missing,
    "a row twice": _row_twice,
    "two rows exchanged": _rows_exchanged,
    "last line cut": _last_cut,
    "second half missing": _ends_in_the_middle,
    "last batch missing": _ends_at_a_batch,
    "all calls 100 us earlier": _all_shifted,
}


# ---- samples.parquet alone ----


def _parquet(change: Callable[[pl.DataFrame, Random], pl.DataFrame]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        out = io.BytesIO()
        change(pl.read_parquet(copy.path / SAMPLES), random).write_parquet(out)
        copy.write(SAMPLES, out.getvalue())

    return apply


def _cell(column: str, table: pl.DataFrame, random: Random) -> pl.DataFrame:
    values = table[column].to_list()
    place = random.randrange(len(values))
    values[place] = _other(values[place], random) if table[column].dtype != pl.String else "another"
    return table.with_columns(pl.Series(column, values, dtype=table[column].dtype))


OF_SHAPE: dict[str, Callable[[pl.DataFrame, Random], pl.DataFrame]] = {
    "a column missing": lambda table, _: table.drop("rtt_ns"),
    "a column more": lambda table, _: table.with_columns(foreign=1),
    "another type": lambda table, _: table.with_columns(pl.col("rtt_ns").cast(pl.Float64)),
}
TABLE: dict[str, Callable[[pl.DataFrame, Random], pl.DataFrame]] = {
    **OF_SHAPE,
    "every rtt halved": lambda table, _: table.with_columns(pl.col("rtt_ns") // 2),
    "a row missing": lambda table, random: table.filter(pl.int_range(table.height) != random.randrange(table.height)),
    "a row twice": lambda table, _: pl.concat([table, table[:1]]),
    "rows in another order": lambda table, _: table.reverse(),
    "empty": lambda table, _: table.clear(),
}

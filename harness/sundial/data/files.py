# SPDX-License-Identifier: Apache-2.0
"""A table as a file: CSV, Parquet or JSON (a list of objects)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import BinaryIO

import polars as pl

from sundial.errors import BadInput
from sundial.whole import whole

FORMATS = ("csv", "parquet", "json")


def format_of(asked: str | None, output: str) -> str:
    """The format that was asked for, or that a file's name says, otherwise CSV. Raises BadInput."""
    ending = Path(output).suffix.lstrip(".").lower()
    if asked is None:
        return ending if ending in FORMATS else FORMATS[0]
    if asked not in FORMATS:
        raise BadInput(f"{asked!r} is not a format", field="--format", allowed=", ".join(FORMATS))
    return asked


def write(table: pl.DataFrame, form: str, to: BinaryIO) -> None:
    """Raises OSError, as Python raises it: polars has no BrokenPipeError."""
    made = io.BytesIO()
    if form == "parquet":
        table.write_parquet(made)
    elif form == "json":
        made.write(table.write_json().encode())
    else:
        lists = [name for name, kind in table.schema.items() if isinstance(kind, pl.List)]
        table.with_columns(pl.col(lists).list.eval(pl.element().cast(pl.String)).list.join(" ")).write_csv(made)
    to.write(made.getbuffer())


def write_file(table: pl.DataFrame, form: str, path: Path) -> None:
    """The same to a file, which is whole or not there; to a pipe or a device as it is. Raises OSError."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            write(table, form, stream)
        return
    with whole(path) as beside, beside.open("wb") as stream:
        write(table, form, stream)

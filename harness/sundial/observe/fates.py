# SPDX-License-Identifier: Apache-2.0
"""What the fabric did to frames: the records in packet comments (`sundial/seams/fate.py`) as typed columns."""

from __future__ import annotations

from functools import lru_cache

import polars as pl

from sundial.seams.fate import Record, read_comment

FATE_COLUMNS: dict[str, type[pl.DataType]] = {
    "record": pl.String,
    "fate": pl.String,
    "fate_rule": pl.String,
    "fate_adapter": pl.String,
    "fate_from": pl.String,
    "fate_to": pl.String,
    "fate_bit": pl.UInt8,
    "fate_byte": pl.Int64,
    "fate_attempt": pl.Int64,
    "fate_attempts": pl.Int64,
    "fate_bits": pl.Int64,
    "fate_bytes": pl.Int64,
    "fate_longest": pl.Int64,
    "fate_node": pl.Int64,
    "fate_address": pl.String,
    "fate_lost_cells": pl.Int64,
    "fate_cells": pl.Int64,
}
"""`record`: the name of the record's model; null without a valid record. The others are the model's fields, null where
a record lacks one."""


def fate_columns(comments: pl.Series) -> pl.DataFrame:
    """FATE_COLUMNS of each comment; of a null or another text all are null."""
    if comments.null_count() == len(comments):
        return pl.DataFrame(schema=FATE_COLUMNS).clear(len(comments))
    known = comments.drop_nulls().unique()
    rows = [_row(each) for each in known]
    table = pl.DataFrame(rows, schema=FATE_COLUMNS, orient="row").with_columns(comment=known)
    asked = pl.DataFrame({"comment": comments})
    return asked.join(table, on="comment", how="left", maintain_order="left").drop("comment")


def _row(comment: str) -> tuple[object, ...]:
    record = record_of(comment)
    if record is None:
        return (None,) * len(FATE_COLUMNS)
    fields = record.record
    return type(record).__name__, *(fields.get(name.removeprefix("fate_")) for name in list(FATE_COLUMNS)[1:])


@lru_cache(maxsize=1 << 16)
def record_of(comment: str) -> Record | None:
    """The record of a comment, None without a valid one; most comments occur many times."""
    return read_comment(comment)

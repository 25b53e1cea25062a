# SPDX-License-Identifier: Apache-2.0
"""What all frames of one connection have in common: its name, the queue that it writes to, and addresses that go on
from part to part.

A tag stands for one connection from its definition to the next one (guest-apps/sss-core/mbcf/README.md, Tags). That a
connection has one FIFO and one signal handler is the way of the tasks that Sundial runs.
"""

from __future__ import annotations

import polars as pl

from sundial.verify.findings import Finding, as_table
from sundial.workloads.mbcf.wire import (
    DEFINES,
    FETCH_ADD,
    FIFO,
    MORE,
    OP_ID_CONNECTION,
    PART,
    PART_HEAD,
    READ,
    SIGNAL,
    TASKQUE,
    WRITE,
)

_CHANNEL = ("mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_target_epoch")
_TAG = (*_CHANNEL, "mbcf_tag", "definition")
_OP, _FLAGS, _OP_ID = pl.col("mbcf_op"), pl.col("mbcf_flags"), pl.col("mbcf_op_id")
_UNAWAITED = (_OP_ID & OP_ID_CONNECTION) != 0


def check_connections(first: pl.DataFrame) -> pl.DataFrame:
    """Findings about frames as they were sent for the first time, with what their tags stand for, in order of time."""
    keyed = first.filter(_OP.is_between(WRITE, FETCH_ADD)).with_columns(
        definition=((_FLAGS & DEFINES) != 0).cast(pl.UInt32).cum_sum().over(_CHANNEL, "mbcf_tag")
    )
    return pl.concat(
        [
            _made(first.filter((_OP == TASKQUE) & _UNAWAITED)),
            _alike("mbcf.op_id", "the name of its connection", keyed.filter(_UNAWAITED), "mbcf_op_id"),
            _alike("mbcf.address", "the FIFO of its connection", keyed.filter(_OP == FIFO), "mbcf_address"),
            _alike("mbcf.address", "the handler of its connection", keyed.filter(_OP == SIGNAL), "mbcf_address"),
            _parts(keyed.filter(_OP.is_in([WRITE, READ]))),
            _segments(keyed.filter((_OP == FIFO) & ((_FLAGS & PART) != 0))),
        ]
    )


def _made(sent: pl.DataFrame) -> pl.DataFrame:
    """A TASKQUE write without an answer has the name of the connection that it makes."""
    name = (pl.col("mbcf_connection") & (OP_ID_CONNECTION - 1)) | OP_ID_CONNECTION
    bad = sent.filter(name != _OP_ID)
    return _findings("mbcf.op_id", bad, name.cast(pl.String), _OP_ID.cast(pl.String))


def _alike(field: str, expected: str, sent: pl.DataFrame, column: str) -> pl.DataFrame:
    """Frames of one connection have the same in a column."""
    known = pl.col(column).first().over(_TAG)
    bad = sent.with_columns(known=known).filter(pl.col("known") != pl.col(column))
    return _findings(field, bad, pl.format(f"{expected}, {{}}", "known"), pl.col(column).cast(pl.String))


def _parts(sent: pl.DataFrame) -> pl.DataFrame:
    """A part of an operation begins where the one before it ended."""
    length = pl.when(_OP == READ).then("mbcf_read_length").otherwise("mbcf_length")
    end = (pl.col("mbcf_last").cast(pl.Int64) + length) % (1 << 32)
    operation = (*_CHANNEL, "mbcf_source_task", "mbcf_op", "mbcf_op_id")
    before = sent.with_columns(due=pl.when((_FLAGS & MORE) != 0).then(end).shift(1).over(operation))
    bad = before.filter(pl.col("due") != pl.col("mbcf_last"))
    lower = [pl.format("{} as its lower half", name) for name in ("due", "mbcf_last")]
    return _findings("mbcf.address", bad, *lower)


def _segments(sent: pl.DataFrame) -> pl.DataFrame:
    """The head of a part says how long the segment is, and where the part begins in it; the last ends it. A total of 0
    gives it up."""
    parts = sent.filter(pl.col("mbcf_part_total").is_not_null())
    operation = [*_CHANNEL, "mbcf_source_task", "mbcf_op_id"]
    goes_on = ((_FLAGS & MORE) != 0).shift(1).over(operation).fill_null(False)
    data = pl.col("mbcf_length").cast(pl.Int64) - PART_HEAD
    segment = [*operation, "segment"]
    numbered = parts.with_columns(segment=(~goes_on).cast(pl.UInt32).cum_sum().over(operation))
    table = numbered.filter(pl.col("mbcf_part_total") != 0).with_columns(
        due=(data.cum_sum() - data).over(segment),
        whole=pl.when(((_FLAGS & MORE) == 0).any().over(segment)).then(data.sum().over(segment)),
    )
    seen, total = pl.col("mbcf_part_offset"), pl.col("mbcf_part_total")
    total_due = pl.coalesce("whole", total.first().over(segment))
    table = table.with_columns(total_due=total_due)
    wrong, short = table.filter(seen != pl.col("due")), table.filter(total != pl.col("total_due"))
    return pl.concat(
        [
            _findings("mbcf.part", wrong, pl.format("offset {}", "due"), _text(seen)),
            _findings("mbcf.part", short, pl.format("{} in all", "total_due"), _text(total)),
        ]
    )


def _text(column: pl.Expr) -> pl.Expr:
    return column.cast(pl.String)


def _findings(field: str, bad: pl.DataFrame, expected: pl.Expr, seen: pl.Expr) -> pl.DataFrame:
    table = bad.sort("row").select("row", expected=expected, seen=seen)
    return as_table(Finding(None, field, due, found, [row]) for row, due, found in table.iter_rows())

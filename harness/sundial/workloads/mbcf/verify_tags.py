# SPDX-License-Identifier: Apache-2.0
"""Nodes, tasks, keys and addresses of MBCF frames, which most of them only name: by Ethernet addresses, by a tag that
an earlier frame has defined, by the sequence number of the frame that they answer.

Definitions hold in the order of the sequence, so in the order in which frames were sent for the first time. What a
frame stands for is found there, and is the same wherever it is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from sundial.observe import RunDirectory
from sundial.workloads.mbcf.wire import CLOSE, DEFINES, FETCH_ADD, RESULT, TASKQUE, WRITE

RESOLVED: Mapping[str, type[pl.DataType]] = {
    "mbcf_source_task": pl.UInt32,
    "mbcf_target_task": pl.UInt32,
    "mbcf_key": pl.UInt64,
    "mbcf_address": pl.String,
    "mbcf_answers": pl.UInt32,
}
"""Columns that `resolved` adds. `mbcf_answers`: the row at which the frame that a RESULT answers was sent first."""

_COLUMNS = (
    "row", "view", "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_target_epoch", "mbcf_seq", "mbcf_op",
    "mbcf_flags", "mbcf_tag", "mbcf_last", "mbcf_defined_source", "mbcf_defined_target", "mbcf_defined_high",
    "mbcf_defined_key",
)  # fmt: skip


class _Row(NamedTuple):
    row: int
    view: str
    source: int
    target: int
    epoch: int
    target_epoch: int
    seq: int
    op: int
    flags: int
    tag: int
    last: int
    defined_source: int
    defined_target: int
    defined_high: int
    defined_key: int


class _Meant(NamedTuple):
    row: int
    source_task: int | None
    target_task: int | None
    key: int | None = None
    address: str | None = None
    answers: int | None = None


_UNKNOWN = _Meant(-1, None, None)
Sequence = tuple[int, int, int, int]
"""Source and target, and the epochs of both."""


def is_keyed(op: int) -> bool:
    """Whether an operation is on the memory of a task, so has a tag."""
    return WRITE <= op <= FETCH_ADD


def node_numbers(run: RunDirectory) -> dict[int, int]:
    """Numbers of nodes by the address of their first interface."""
    found: dict[int, int] = {}
    for name, number in run.node_ids.items():
        interfaces = run.nodes[name].interfaces
        mac = interfaces[0].mac if interfaces else ""
        if mac:
            found[int(mac.replace(":", ""), 16)] = number
    return found


def with_nodes(frames: pl.DataFrame, numbers: Mapping[int, int]) -> pl.DataFrame:
    """Sets `mbcf_source` and `mbcf_target`: 0 for an address that is not a node's."""
    return frames.with_columns(
        pl.col(f"mbcf_{end}_mac").replace_strict(dict(numbers), default=0, return_dtype=pl.UInt32).alias(f"mbcf_{end}")
        for end in ("source", "target")
    )


def resolved(frames: pl.DataFrame) -> pl.DataFrame:
    """`frames` (with row, view, time_ns) with RESOLVED."""
    meaning: dict[tuple[Sequence, int], _Meant] = {}
    tags: dict[tuple[Sequence, int], tuple[int, int, int, int]] = {}
    rows = list(map(_Row._make, frames.select(pl.col(_COLUMNS).fill_null(0)).iter_rows()))
    order = frames.select(place=pl.int_range(pl.len()), time=pl.col("time_ns"), row=pl.col("row")).sort("time", "row")
    for place in order["place"]:
        row = rows[place]
        key = (_sequence(row), row.seq)
        if row.view == "sent" and row.op >= TASKQUE and key not in meaning:
            meaning[key] = _meant(row, meaning, tags)
    found = [meaning.get((_sequence(row), row.seq), _UNKNOWN) if row.op >= TASKQUE else _UNKNOWN for row in rows]
    columns: dict[str, list[Any]] = {
        name: [getattr(one, name.removeprefix("mbcf_")) for one in found] for name in RESOLVED
    }
    return frames.with_columns(pl.Series(name, columns[name], dtype) for name, dtype in RESOLVED.items())


def _sequence(row: _Row) -> Sequence:
    return row.source, row.target, row.epoch, row.target_epoch


def _meant(
    row: _Row,
    meaning: Mapping[tuple[Sequence, int], _Meant],
    tags: dict[tuple[Sequence, int], tuple[int, int, int, int]],
) -> _Meant:
    """What the first sending of a frame stands for."""
    if row.op in (TASKQUE, CLOSE):
        return _Meant(row.row, row.last >> 16, row.last & 0xFFFF)
    if row.op == RESULT:
        back = (row.target, row.source, row.target_epoch, row.epoch)
        asked = meaning.get((back, row.last))
        if asked is None or asked is _UNKNOWN:
            return _UNKNOWN
        return _Meant(row.row, asked.target_task, asked.source_task, answers=asked.row)
    if not is_keyed(row.op):
        return _UNKNOWN
    if row.flags & DEFINES:
        tags[_sequence(row), row.tag] = (row.defined_source, row.defined_target, row.defined_high, row.defined_key)
    known = tags.get((_sequence(row), row.tag))
    if known is None:
        return _UNKNOWN
    source, target, high, key = known
    return _Meant(row.row, source, target, key, f"0x{high << 32 | row.last:016x}")

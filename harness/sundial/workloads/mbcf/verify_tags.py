# SPDX-License-Identifier: Apache-2.0
"""Nodes, tasks, keys and addresses of MBCF frames, which most of them only name: by Ethernet addresses, by a tag that
an earlier frame has defined, by the sequence number of the frame that they answer.

Definitions hold in the order of the sequence: that in which frames were sent for the first time, unless no port has
shown that (`verify_kernels`). What a frame stands for is found there, and is the same wherever it is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from sundial.observe import RunDirectory
from sundial.workloads.mbcf.expect_acks import after
from sundial.workloads.mbcf.wire import CLOSE, DEFINES, FETCH_ADD, RESULT, TASKQUE, WRITE

RESOLVED: Mapping[str, type[pl.DataType]] = {
    "mbcf_source_task": pl.UInt32,
    "mbcf_target_task": pl.UInt32,
    "mbcf_key": pl.UInt64,
    "mbcf_address": pl.String,
    "mbcf_answers": pl.UInt32,
    "mbcf_turn_ns": pl.Int64,
}
"""Columns that `resolved` adds. `mbcf_answers`: the row at which the frame that a RESULT answers was sent first;
`mbcf_turn_ns`: before which instant a frame had its place in the sequence, where it was seen first when it was sent."""

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
    turn_ns: int | None = None


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
    for turn_ns, row in _in_sequence(
        [(at_ns, rows[place]) for place, at_ns in order.select("place", "time").iter_rows()]
    ):
        meaning[_sequence(row), row.seq] = _meant(row, meaning, tags)._replace(turn_ns=turn_ns)
    found = [meaning.get((_sequence(row), row.seq), _UNKNOWN) if row.op >= TASKQUE else _UNKNOWN for row in rows]
    # A sequence number may be used again for another frame, behind one that was given up.
    found = [
        one if one.row == row.row or one.turn_ns is None else one._replace(turn_ns=None)
        for one, row in zip(found, rows, strict=True)
    ]
    columns: dict[str, list[Any]] = {
        name: [getattr(one, name.removeprefix("mbcf_")) for one in found] for name in RESOLVED
    }
    return frames.with_columns(pl.Series(name, columns[name], dtype) for name, dtype in RESOLVED.items())


def _in_sequence(sighted: list[tuple[int, _Row]]) -> list[tuple[int, _Row]]:
    """Frames as they were seen first when they were sent, with `turn_ns`, in the order of the sequence and of time."""
    channels: dict[Sequence, list[tuple[int, _Row]]] = {}
    known: set[tuple[Sequence, int]] = set()
    for at_ns, row in sighted:
        channel = _sequence(row)
        if row.view != "sent" or row.op < TASKQUE or (channel, row.seq) in known:
            continue
        known.add((channel, row.seq))
        frames = channels.setdefault(channel, [])
        place = len(frames)
        while place and after(frames[place - 1][1].seq, row.seq):
            place -= 1
        frames.insert(place, (at_ns, row))
    turned = []
    for frames in channels.values():
        latest = frames[-1][0] + 1
        for at_ns, row in reversed(frames):
            latest = min(at_ns, latest - 1)
            turned.append((latest, row))
    return sorted(turned, key=lambda one: (one[0], one[1].row))


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
        if asked is None or asked.row < 0:
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

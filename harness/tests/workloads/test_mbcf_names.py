# SPDX-License-Identifier: Apache-2.0
"""Which names a node may give to its connections when many peers have made places at it."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.workloads.mbcf.verify_names import _names
from sundial.workloads.mbcf.wire import CLOSE, MORE, SIGNAL, TASKQUE, WRITE

NAMED = 1 << 31
FIRST = 1 << 10
"""Of a place that is taken for the first time."""


def frame(op: int, source: int, target: int, name: int) -> dict[str, int | None]:
    own, ended = (name, None) if op == TASKQUE else (None, name)
    return {
        "time_ns": 0,
        "mbcf_op": op,
        "mbcf_source": source,
        "mbcf_target": target,
        "mbcf_epoch": source,
        "mbcf_flags": 0,
        "mbcf_source_task": 17,
        "mbcf_op_id": FIRST + 1,
        "mbcf_connection": own,
        "mbcf_close_connection": ended,
    }


def misnamed(peers: int, place: int) -> list[str]:
    """So many peers write into the server's queue; then it ends the connection that has this place."""
    frames = [frame(TASKQUE, peer, 1, NAMED | FIRST | 1) for peer in range(2, 2 + peers)]
    frames.append(frame(CLOSE, 1, 2, NAMED | FIRST | place))
    return [each.seen for each in _names(pl.DataFrame(frames, infer_schema_length=None).with_row_index("row"), {})]


def test_each_peer_that_writes_takes_a_place() -> None:
    assert misnamed(peers=200, place=200) == []
    assert misnamed(peers=100, place=200) == ["0x800004c8"]
    assert misnamed(peers=0, place=40) == []


@pytest.mark.parametrize(("place", "wrong"), [(75, []), (76, ["0x8000044c"])])
def test_calls_that_find_no_place_in_the_window_take_names(place: int, wrong: list[str]) -> None:
    frames = [
        frame(TASKQUE, 1, 2, NAMED | FIRST | 1),
        {**frame(TASKQUE, 1, 2, NAMED | FIRST | place), "time_ns": 2_700_000_000},
    ]
    made = pl.DataFrame(frames, infer_schema_length=None).with_row_index("row")
    found = _names(made, {1: 300_000_000})
    assert [each.seen for each in found if each.field == "mbcf.connection"] == wrong


def test_writes_to_another_node_take_none() -> None:
    frames = [frame(TASKQUE, peer, 99, NAMED | FIRST | 1) for peer in range(2, 98)]
    frames.append(frame(CLOSE, 1, 2, NAMED | FIRST | 90))
    found = list(_names(pl.DataFrame(frames, infer_schema_length=None).with_row_index("row"), {}))
    assert [each.rows for each in found] == [[96]]


def operation(name: int, op: int = SIGNAL, flags: int = 0, task: int = 17) -> dict[str, int | None]:
    return {**frame(op, 1, 2, 0), "mbcf_op_id": name, "mbcf_flags": flags, "mbcf_source_task": task}


@pytest.mark.parametrize(
    ("places", "wrong"),
    [([1, 2, 3], []), ([1, 2, 5], []), ([1, 3, 2], [2]), ([1, 2, 2], [2]), ([4, 1], [1]), ([3, 1 + FIRST], [])],
)
def test_operations_take_one_place_after_another(places: list[int], wrong: list[int]) -> None:
    frames = pl.DataFrame([operation(FIRST + place) for place in places]).with_row_index("row")
    assert [each.rows for each in _names(frames, {})] == [[row] for row in wrong]


def test_parts_of_an_operation_and_those_of_other_tasks_have_names_of_their_own() -> None:
    parts = [operation(FIRST + 2, WRITE, MORE), operation(FIRST + 2, WRITE), operation(FIRST + 1, task=18)]
    assert list(_names(pl.DataFrame(parts).with_row_index("row"), {})) == []
    parts.append(operation(FIRST + 2, task=18))
    assert [each.rows for each in _names(pl.DataFrame(parts).with_row_index("row"), {})] == [[3]]

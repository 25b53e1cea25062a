# SPDX-License-Identifier: Apache-2.0
"""What servers counted, against answers made by hand: of Linux, of SSS-CORE, with calls over MBCF besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
import pytest

from sundial.verify.sockets.protocol import Counts
from sundial.verify.sockets.served import PAUSE_NS, _executed, _Served
from sundial.verify.workload import Counted
from sundial.workloads.sunrpc.verify import SOCKETS
from sundial.workloads.sunrpc.verify_content import COUNTED

SIZE = 64
MS = 1_000_000
ONCE: dict[str, Any] = {"semantics": "at_most_once"}


def answers(*calls: int, every_ns: int = MS, options: Mapping[str, Any] | None = None) -> pl.DataFrame:
    """One over UDP to each of the calls, in this order, from a server with these options."""
    table = pl.DataFrame(
        {
            "call": calls, "answered_ns": [every_ns * place for place in range(len(calls))], "transport": "udp",
            "procedure": "echo", "size": SIZE, "conn": pl.Series([None] * len(calls), dtype=pl.UInt32),
            "connections": 0,
        }
    ).with_columns(asked_ns="answered_ns")  # fmt: skip
    return table.with_columns(executed=_executed(table, options or {}))


def line(calls: int, **more: Any) -> dict[str, Any]:
    """What a server of Linux writes that has echoed so many calls."""
    sums = {"bytes_in": SIZE * calls, "bytes_out": SIZE * calls, "bad_payload": 0, "undecodable": 0}
    by_procedure = {**dict.fromkeys(COUNTED, 0), "echo": calls}
    return {"calls": calls, "by_procedure": by_procedure, "duplicates": 0, "connections": 0, **sums, **more}


def task_line(calls: int, **more: Any) -> dict[str, Any]:
    """The same of SSS-CORE's."""
    linux = {name: value for name, value in line(calls).items() if name != "connections"}
    return {**linux, "task": 273, "executed": calls, "replayed": 0, "clients": 0, "clients_gone": 0, **more}


def found(
    given: pl.DataFrame, *lines: dict[str, Any], besides: Counted | None = None, quiet: bool = False, exact: bool = True
) -> list[str]:
    served = _Served("server", lines, given, SOCKETS, besides, exact=exact, quiet=quiet)
    return [field for _, field, *_ in served.check()]


def test_counts_of_all_answers_are_right() -> None:
    assert found(answers(0, 1, 2), line(3)) == found(answers(0, 1, 2), task_line(3)) == []


@pytest.mark.parametrize(
    "field", ["calls", "executed", "bytes_in", "bytes_out", "bad_payload", "undecodable", "duplicates", "replayed"]
)
@pytest.mark.parametrize("by", [-1, 1])
def test_a_count_that_is_off_by_one_is_found(field: str, by: int) -> None:
    wrong = task_line(3)
    wrong[field] += by
    assert f"server {field}" in found(answers(0, 1, 2), wrong)


def test_at_least_once_a_duplicate_is_executed_again() -> None:
    given = answers(0, 0, 1)
    assert found(given, task_line(3, duplicates=1)) == []
    assert found(given, task_line(3)) == ["server duplicates"]


def test_at_most_once_a_duplicate_is_replayed() -> None:
    given = answers(0, 0, 1, options=ONCE)
    assert found(given, task_line(2, replayed=1)) == []
    assert found(given, task_line(2)) == ["server replayed"]
    assert found(given, task_line(3, duplicates=1)) == ["server calls"]


def test_a_reply_that_is_no_longer_kept_is_made_again() -> None:
    given = answers(0, 1, 0, options=ONCE | {"reply_cache": 1})
    assert found(given, task_line(3, duplicates=1)) == []
    assert found(given, task_line(2, replayed=1)) != []


@pytest.mark.parametrize("counted", [0, 1])
def test_a_reply_that_is_replayed_after_the_pause_may_be_in_no_line(counted: int) -> None:
    given = answers(0, 0, every_ns=PAUSE_NS, options=ONCE)
    assert found(given, task_line(1, replayed=counted)) == []
    assert found(given, task_line(1, replayed=2)) == ["server replayed"]


def test_a_line_before_the_end_is_written_in_a_pause() -> None:
    assert found(answers(0, 1, every_ns=PAUSE_NS), line(1), line(2)) == []
    assert found(answers(0, 1), line(1), line(2)) == ["server calls"]
    assert found(answers(0, 1), line(1), line(2), exact=False) == []


@pytest.mark.parametrize(("asked", "fields"), [(2 - PAUSE_NS, ["server calls"]), (1 - PAUSE_NS, [])])
def test_an_answer_may_have_waited_for_its_line_during_the_pause(asked: int, fields: list[str]) -> None:
    """It was given when its request had come, or later; the next one when it left, or before."""
    given = answers(0, 1, every_ns=1).with_columns(asked_ns=pl.Series([asked, 0]))
    assert found(given, line(1), line(2)) == fields


def test_a_machine_that_is_quiet_at_the_end_has_written_all_counts() -> None:
    given = answers(0, 1, every_ns=PAUSE_NS)
    assert found(given, line(1)) == found(given) == []
    assert found(given, line(1), quiet=True) == found(given, quiet=True) == ["server"]
    assert found(given, line(1), line(2), quiet=True) == []


TAKEN_NS = [PAUSE_NS * 2, PAUSE_NS * 2 + MS]


def until(at_ns: int | None) -> Counts:
    """Of two calls over MBCF of 4 bytes each, 400 ms after the run's beginning."""
    done = sum(1 for taken_ns in TAKEN_NS if at_ns is None or taken_ns < at_ns)
    by_procedure = {**dict.fromkeys(COUNTED, 0), "echo": done}
    sums = {"bytes_in": 4 * done, "bytes_out": 4 * done, "duplicates": 0, "replayed": 0, "bad_payload": 0}
    clients = {"clients": 1 if at_ns is None else (0, 1), "clients_gone": (0, 1)}
    return {"executed": done, "by_procedure": by_procedure, "undecodable": 0, **sums, **clients}


MBCF = Counted(until, TAKEN_NS)


def both(**more: Any) -> dict[str, Any]:
    sums = {"bytes_in": 2 * SIZE + 8, "bytes_out": 2 * SIZE + 8, "clients": 1, "clients_gone": 1}
    return task_line(4, **sums, **more)


def test_calls_over_mbcf_are_in_the_same_counts() -> None:
    assert found(answers(0, 1), both(), besides=MBCF) == []


def test_a_line_in_a_pause_is_of_the_calls_before_it() -> None:
    assert found(answers(0, 1), task_line(2), both(), besides=MBCF) == []
    assert found(answers(0, 1), task_line(2, executed=3), both(), besides=MBCF) == ["server executed"]
    assert found(answers(0, 1), task_line(2, task=1), both(), besides=MBCF) == ["server task"]


def _wrong() -> Iterator[Any]:
    for field in ("calls", "executed", "bytes_in", "bytes_out", "duplicates", "replayed", "clients", "bad_payload"):
        for by in (-1, 1):
            wrong = both()
            wrong[field] += by
            yield pytest.param(wrong, field, id=f"{field}{by:+}")
    yield pytest.param(both() | {"clients_gone": 2}, "clients_gone", id="clients_gone")


@pytest.mark.parametrize(("wrong", "field"), list(_wrong()))
def test_a_sum_that_is_off_by_one_is_found(wrong: dict[str, Any], field: str) -> None:
    assert f"server {field}" in found(answers(0, 1), wrong, besides=MBCF)

# SPDX-License-Identifier: Apache-2.0
"""RPyC in reports: a row for each function and each way to call it."""

from __future__ import annotations

from typing import Any

import polars as pl

from sundial.report.tables import THIN
from sundial.report.workload import Setting
from sundial.workloads.rpyc.report import KIND

MS = 1_000_000


def batch(step: int, procedure: str, function: int, nodelay: bool = False, **more: Any) -> dict[str, Any]:
    return {
        "type": "batch", "app": "rpyc-client", "machine": "client", "step": step, "series": 0, "procedure": procedure,
        "function": function, "tcp_nodelay": nodelay, "exchanges": 12, **more,
    }  # fmt: skip


def call(step: int, procedure: str, number: int, ms: float, ok: bool = True) -> dict[str, Any]:
    return {
        "app": "rpyc-client", "client": "client", "node_step": step, "series": 0, "procedure": procedure,
        "warmup": number == 0, "ok": ok, "rtt_ns": int(ms * MS),
    }  # fmt: skip


def test_rows_are_functions_in_the_papers_order() -> None:
    records = {
        "batch": [
            batch(0, "void", 1),
            batch(0, "distance", 12, container="list", variant="zip"),
            batch(1, "distance", 12, True, container="list", variant="zip"),
            {"app": "grpc-client", "machine": "client"},
        ]
    }
    samples = pl.DataFrame(
        [
            *(call(0, "void", number, ms) for number, ms in enumerate((9, 1, 2, 3))),
            *(call(0, "distance", number, ms, ok=number != 3) for number, ms in enumerate((9, 80, 80, 500))),
            *(call(1, "distance", number, 40) for number in range(4)),
        ]
    )
    (table,) = KIND.tables(records, samples)
    assert [row[:5] for row in table.rows] == [
        ("client", "void", "", "", "no"),
        ("client", "distance", "list", "zip", "no"),
        ("client", "distance", "list", "zip", "yes"),
    ]
    # Calls and failures without the warm-up; requests over all calls; the failed one is in no time.
    assert [row[5:8] for row in table.rows] == [("3", "0", "3.00"), ("3", "1", "3.00"), ("3", "0", "3.00")]
    times = [[time.replace(THIN, " ") for time in row[8:]] for row in table.rows]
    assert times[0] == ["1 000.0", "1 500.0", "2 000.0", "2 500.0", "2 000.0", "3 000.0"]
    assert times[1][2] == "80 000.0"
    assert table.alarms == {1}


def test_runs_without_rpyc_have_no_table() -> None:
    assert list(KIND.tables({"batch": [{"app": "raw-client"}]}, pl.DataFrame())) == []


def test_what_a_call_moves() -> None:
    assert [KIND.moves(name) for name in ("void", "int_array", "distance")] == [0, 2, 1]
    assert KIND.legs(Setting(("rpyc-client", "rpyc", "void")), 0) is None

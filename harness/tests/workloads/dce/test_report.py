# SPDX-License-Identifier: Apache-2.0
"""DCE RPC in reports: first calls are never measured, rates of several threads, what clients counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.report import load, registry, stats
from sundial.report.tables import Table
from sundial.report.workload import Setting

MS = 1_000_000
RTT_NS = 2 * MS


def batch(step: int, size: int, thread: int = 0, **fields: Any) -> dict[str, Any]:
    options = {"policy": "window", "semantics": "at_most_once", "fragment_bytes": 4096, "window_bytes": 32768}
    counters = {
        "fragments": 4,
        "fragments_resent": 0,
        "facks_received": 1,
        "who_are_you": 1,
        **fields.pop("counters", {}),
    }
    return {
        "type": "batch", "app": "dce-client", "machine": "client", "step": step, "series": 0, "procedure": "put",
        "size": size, "thread": thread, "counters": counters, **options, **fields,
    }  # fmt: skip


def calls(step: int, size: int, thread: int = 0, *, count: int = 4, rtt_ns: int = RTT_NS) -> pl.DataFrame:
    """One after the other from zero; the first is a warm-up and takes a second."""
    starts = [0, *(1000 * MS + number * rtt_ns for number in range(count))]
    rows = [
        {
            "client": "client", "server": "server", "transport": "udp", "app": "dce-client", "procedure": "put",
            "series": 0, "size": size, "thread": thread, "node_step": step, "call": number, "warmup": number == 0,
            "start_ns": start, "end_ns": start + (rtt_ns if number else 1000 * MS), "ok": True, "retransmits": 0,
            "rtt_ns": rtt_ns if number else 1000 * MS, "batch": step, "xid": number,
        }
        for number, start in enumerate(starts)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=load.SAMPLES)


def tables(batches: list[dict[str, Any]], *samples: pl.DataFrame) -> dict[str, Table]:
    return {
        table.title.split(" (")[0]: table for table in registry.tables({"batch": batches}, pl.concat(samples))["dce"]
    }


def cells(table: Table, *titles: str) -> list[tuple[str, ...]]:
    heads = [column.title for column in table.columns]
    return [tuple(row[heads.index(title)] for title in titles) for row in table.rows]


def test_threads_are_one_rate(tmp_path: Path) -> None:
    batches = [batch(0, 4016), batch(1, 4016, 0), batch(1, 4016, 1)]
    made = tables(batches, calls(0, 4016), calls(1, 4016, 0), calls(1, 4016, 1))
    # 4 calls in 8 ms are 500 a second; two threads make twice as many. 500 * 4016 * 8 bits are 16.064 Mb/s.
    assert cells(made["Threads"], "threads", "calls", "time (ms)", "calls/s", "times one thread", "Mb/s") == [
        ("1", "4", "8.000", "500.0", "1.00", "16.064"),
        ("2", "8", "8.000", "1\u202f000.0", "2.00", "32.128"),
    ]


def test_functions_have_a_row_each_with_the_bytes_of_their_messages() -> None:
    lines = [batch(step, size, procedure=name) for step, (name, size) in enumerate((("person", 17), ("int", 4)))]
    made, other = (
        each.with_columns(procedure=pl.lit(name).cast(load.SAMPLES["procedure"]))
        for each, name in ((calls(0, 17), "person"), (calls(1, 4, rtt_ns=3 * MS), "int"))
    )
    table = tables(lines, made, other)["Round trip by function"]
    assert cells(table, "function", "request (B)", "reply (B)", "calls", "median") == [
        ("int", "4", "4", "4", "3\u202f000.0"),
        ("person", "34", "34", "4", "2\u202f000.0"),
    ]


def test_one_thread_has_no_table_of_its_own() -> None:
    assert list(tables([batch(0, 0)], calls(0, 0))) == ["Fragments and acknowledgements that clients counted, by size"]


def test_policies_stand_side_by_side() -> None:
    made = tables(
        [batch(0, 64), batch(1, 64, policy="halves"), batch(1, 128, policy="halves")],
        calls(0, 64), calls(1, 64, rtt_ns=3 * MS), calls(1, 128, rtt_ns=4 * MS),
    )  # fmt: skip
    assert cells(made["Round trip by policy"], "size (B)", "halves", "window") == [
        ("64", "3\u202f000.0 / 3\u202f000.0", "2\u202f000.0 / 2\u202f000.0"),
        ("128", "4\u202f000.0 / 4\u202f000.0", ""),
    ]


def test_sizes_that_count_alike_are_one_row_and_what_was_sent_again_an_alarm() -> None:
    sizes = {0: {}, 64: {}, 8032: {"fragments": 9, "fragments_resent": 1}}
    made = tables(
        [batch(0, size, counters=counted) for size, counted in sizes.items()], *(calls(0, size) for size in sizes)
    )
    (table,) = made.values()
    assert cells(table, "sizes (B)", "sizes", "fragments sent", "sent again", "facks received") == [
        ("0 to 64", "2", "4", "0", "1"),
        ("8\u202f032", "1", "9", "1", "1"),
    ]
    assert table.alarms == {1}


def test_the_first_call_of_an_activity_is_never_measured(tmp_path: Path) -> None:
    """Though the scenario asked for no warm-up. Sun RPC's xid 0 is a call like others."""
    (tmp_path / "run.json").write_text(json.dumps({"scenario": {}}))
    table = calls(0, 64).with_columns(warmup=pl.lit(value=False))
    other = table.with_columns(app=pl.lit("echo-client"), batch=pl.lit(1, dtype=pl.Int64))
    pl.concat([table, other]).write_parquet(tmp_path / "samples.parquet")
    samples = load.load(tmp_path).samples
    found = stats.round_trips(samples, ("app",))
    assert dict(found.select("app", "rtt_max_us").iter_rows()) == {"dce-client": 2000.0, "echo-client": 1_000_000.0}
    assert dict(stats.counts(stats.batches(samples), ("app",)).select("app", "calls").iter_rows()) == {
        "dce-client": 4,
        "echo-client": 5,
    }


@pytest.mark.parametrize(("procedure", "out", "back"), [("put", 4, 1), ("get", 1, 4), ("echo", 4, 4), ("null", 1, 1)])
def test_packets_of_a_call(procedure: str, out: int, back: int) -> None:
    """4017 bytes are two fragments: three packets and one."""
    legs = registry.legs(Setting(("dce-client", "udp", procedure)), 4017)
    assert legs is not None
    assert tuple(len(leg.packets) for leg in legs) == (out, back)

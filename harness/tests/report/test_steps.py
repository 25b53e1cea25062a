# SPDX-License-Identifier: Apache-2.0
"""Steps in the report: tables of what is on the path, a picture of one call, and nothing where nothing was traced."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sundial.report import plotting, steps
from sundial.report.workload import Look

CURVE = ("echo-client", "udp", "echo")
LOOKS = {CURVE: Look("Sun RPC / UDP", "#123456", "o", "-")}
SIZES = [0, 64, 1024]
LENGTHS = {0: 60_000, 1: 40_000, 2: 50_000, 3: 50_000, 4: 90_000}
"""Round trip of each call in ns: call 0 is a warm-up, 3 failed, 4 is of another size."""
STEPS = [
    ("client", "call → send", 0, 10_000, True),
    ("", "wire", 10_000, 30_000, True),
    ("server", "send", 30_000, 32_000, True),
    ("client", "receive → return", 32_000, None, True),
    ("client", "handed in → idle", 10_000, 15_000, False),
]


def samples() -> pl.DataFrame:
    rows = [
        {
            "app": CURVE[0], "transport": CURVE[1], "procedure": CURVE[2], "client": "client", "server": "server",
            "size": 1024 if call == 4 else 0, "ok": call != 3, "warmup": call == 0,
            "start_ns": 1_000_000 * call, "rtt_ns": length,
        }
        for call, length in LENGTHS.items()
    ]  # fmt: skip
    return pl.DataFrame(rows)


@pytest.fixture
def traced(tmp_path: Path) -> pl.DataFrame:
    rows = [
        (call, node, step, 1_000_000 * call + start, 1_000_000 * call + (length if end is None else end), on_path)
        for call, length in LENGTHS.items()
        for node, step, start, end, on_path in STEPS
    ]
    names = ("call", "node", "step", "start_ns", "end_ns", "on_path")
    table = pl.DataFrame(rows, schema=names, orient="row").cast({"call": pl.UInt32})
    table.write_parquet(tmp_path / "steps.parquet")
    return steps.read(tmp_path, samples())


def test_calls_that_do_not_count_are_left_out(traced: pl.DataFrame) -> None:
    assert traced["call"].unique().sort().to_list() == [1, 2, 4]
    assert traced.filter(pl.col("step") == "call → send")["start_ns"].to_list() == [0, 0, 0]


def test_the_table_has_what_is_on_the_path(traced: pl.DataFrame) -> None:
    least, greatest = steps.tables(traced, LOOKS, SIZES)
    assert least.title == "Sun RPC / UDP, 0 bytes: the steps of 2 calls, in order"
    assert least.rows == (
        ("client", "call → send", "1", "10.00", "22.2"),
        ("wire", "wire", "1", "20.00", "44.4"),
        ("server", "send", "1", "2.00", "4.4"),
        ("client", "receive → return", "1", "13.00", "28.9"),
    )
    assert greatest.title.startswith("Sun RPC / UDP, 1\u202f024 bytes: the steps of 1 calls")


def test_the_picture_is_of_a_call_of_median_length(traced: pl.DataFrame, tmp_path: Path) -> None:
    with plotting.pictures(plotting.Pictures(png=False)):
        (drawing,) = steps.pictures(traced, LOOKS, SIZES, tmp_path)
    assert drawing.stem == "call-steps-1"
    assert drawing.title == "Sun RPC / UDP, 0 bytes"
    assert drawing.seen == "Of 40.0 µs: wire 50 %, client 45 %, server 5 %"
    for words in ("client", "wire", "server", "receive", "since the call began (µs)"):
        assert f">{words}" in drawing.svg, words
    assert "stroke-dasharray" in drawing.svg


def test_a_run_without_a_trace_has_none_of_it(tmp_path: Path) -> None:
    nothing = steps.read(tmp_path, samples())
    assert steps.tables(nothing, LOOKS, SIZES) == steps.pictures(nothing, LOOKS, SIZES, tmp_path) == []

# SPDX-License-Identifier: Apache-2.0
"""Statistics against numbers computed by hand."""

from __future__ import annotations

import math

import polars as pl
import pytest

from sundial.report import stats, tables

US = 1_000


def call(
    rtt_us: float,
    *,
    start_us: float = 0,
    series: int = 0,
    size: int = 1000,
    ok: bool = True,
    warmup: bool = False,
    retransmits: int = 0,
    client: str = "client",
    procedure: str = "echo",
    thread: int = 0,
    batch: int | None = None,
) -> dict[str, object]:
    start = round(start_us * US)
    return {
        "series": series,
        "client": client,
        "server": "server",
        "transport": "udp",
        "app": "echo-client",
        "procedure": procedure,
        "size": size,
        "thread": thread,
        "call": 0,
        "warmup": warmup,
        "node_step": 0,
        "start_ns": start,
        "end_ns": start + round(rtt_us * US),
        "rtt_ns": round(rtt_us * US),
        "ok": ok,
        "retransmits": retransmits,
        "batch": series * 100 + thread if batch is None else batch,
    }


def rates(*calls: dict[str, object]) -> pl.DataFrame:
    return stats.series_throughput(stats.batches(pl.DataFrame(calls)))


def test_round_trips_by_hand() -> None:
    calls = [call(us) for us in (10, 20, 30, 40)]
    calls += [call(9999, warmup=True, retransmits=7), call(5000, ok=False, retransmits=2)]
    table = pl.DataFrame(calls)
    row = stats.round_trips(table).row(0, named=True)
    assert row["rtt_min_us"] == 10
    assert row["rtt_median_us"] == 25
    assert row["rtt_mean_us"] == 25
    assert row["rtt_max_us"] == 40
    assert row["rtt_p95_us"] == pytest.approx(38.5)  # rank 0.95 * 3 = 2.85: 30 + 0.85 * 10
    assert row["rtt_p99_us"] == pytest.approx(39.7)
    assert row["rtt_stddev_us"] == pytest.approx(math.sqrt(500 / 3))
    counts = stats.counts(stats.batches(table)).row(0, named=True)
    assert (counts["calls"], counts["ok"], counts["errors"], counts["retransmissions"]) == (5, 4, 1, 2)


def test_one_call_has_no_deviation() -> None:
    row = stats.round_trips(pl.DataFrame([call(10)])).row(0, named=True)
    assert row["rtt_stddev_us"] is None
    assert row["rtt_p99_us"] == 10


def test_a_size_where_every_call_failed_keeps_its_row() -> None:
    samples = pl.DataFrame([call(10, ok=False)])
    row = stats.summary(samples, stats.batches(samples), "mean").row(0, named=True)
    assert (row["calls"], row["ok"], row["errors"]) == (1, 0, 1)
    assert row["rtt_median_us"] is None
    assert row["throughput_kBps"] == 0


def test_throughput_counts_both_directions_and_the_pauses() -> None:
    # Two calls of 1000 B, 4000 B moved, from 0 to 2500 us with a pause between them: 1600 kB/s.
    found = rates(call(1000), call(1000, start_us=1500))
    assert found["throughput_kBps"].to_list() == [pytest.approx(1600)]


def test_throughput_leaves_warm_up_out_of_time_and_bytes() -> None:
    found = rates(call(5000, warmup=True), call(1000, start_us=9000))
    assert found["throughput_kBps"].to_list() == [pytest.approx(2000)]


def test_failed_calls_move_nothing_but_take_time() -> None:
    found = rates(call(1000), call(3000, start_us=1000, ok=False))
    assert found["throughput_kBps"].to_list() == [pytest.approx(500)]


@pytest.mark.parametrize(
    ("procedure", "kbps"), [("echo", 2000), ("echo_string", 2000), ("sink", 1000), ("source", 1000)]
)
def test_what_one_call_moves(procedure: str, kbps: float) -> None:
    assert rates(call(1000, procedure=procedure))["throughput_kBps"].to_list() == [pytest.approx(kbps)]


def test_null_moves_nothing() -> None:
    assert rates(call(1000, procedure="null"))["throughput_kBps"].to_list() == [0]


def test_threads_add_up_and_repeats_are_averaged() -> None:
    threads = rates(call(1000, thread=0), call(500, thread=1))
    assert threads["throughput_kBps"].to_list() == [pytest.approx(6000)]
    repeats = rates(call(1000, batch=1), call(500, batch=2))
    assert repeats["throughput_kBps"].to_list() == [pytest.approx(3000)]


def test_kedziera98_drops_the_slowest_series() -> None:
    # 2000, 4000 and 1000 kB/s: the last one goes, the mean of the others is 3000, their deviation sqrt(2) * 1000.
    series = rates(call(1000, series=0), call(500, series=1), call(2000, series=2))
    row = stats.over_series(series, "kedziera98").row(0, named=True)
    assert row["throughput_kBps"] == pytest.approx(3000)
    assert row["throughput_stddev_pct"] == pytest.approx(100 * math.sqrt(2) / 3)
    assert (row["series"], row["series_dropped"]) == (3, 1)
    assert (row["series_min_kBps"], row["series_max_kBps"]) == (pytest.approx(1000), pytest.approx(4000))
    plain = stats.over_series(series, "mean").row(0, named=True)
    assert plain["throughput_kBps"] == pytest.approx(7000 / 3)
    assert plain["series_dropped"] == 0


def test_kedziera98_keeps_the_only_series() -> None:
    row = stats.over_series(rates(call(1000)), "kedziera98").row(0, named=True)
    assert row["throughput_kBps"] == pytest.approx(2000)
    assert row["throughput_stddev_pct"] is None


def test_kedziera98_drops_one_of_two_equal_slowest() -> None:
    series = rates(call(1000, series=0), call(1000, series=1), call(500, series=2))
    row = stats.over_series(series, "kedziera98").row(0, named=True)
    assert row["throughput_kBps"] == pytest.approx(3000)


def test_curves_average_the_clients() -> None:
    samples = pl.DataFrame([call(1000, client="a"), call(500, client="b")])
    of = stats.batches(samples)
    summary = stats.summary(samples, of, None)
    assert summary["client"].to_list() == ["a", "b"]
    curve = stats.curves(samples, of, summary, None).row(0, named=True)
    assert curve["throughput_kBps"] == pytest.approx(3000)
    assert curve["calls"] == 2


def test_ecdf_steps() -> None:
    assert stats.ecdf([3.0, 1.0, 3.0, 2.0]) == ([1.0, 2.0, 3.0], [0.25, 0.5, 1.0])
    assert stats.ecdf([]) == ([], [])


def test_ecdf_thins_and_keeps_the_extremes() -> None:
    values, shares = stats.ecdf([float(k) for k in range(10_000)], points=50)
    assert len(values) == 50
    assert (values[0], values[-1], shares[-1]) == (0.0, 9999.0, 1.0)


def test_chosen_sizes() -> None:
    assert stats.chosen_sizes([16, 16, 8]) == [8, 16]
    assert stats.chosen_sizes(list(range(16, 8193, 16))) == [16, 2736, 5472, 8192]
    assert stats.chosen_sizes([]) == []


def test_size_ranges() -> None:
    rows = [(2, "a"), (1, "a"), (3, "b"), (9, "a")]
    assert tables.size_ranges(rows) == [(1, 2, 2, "a"), (3, 3, 1, "b"), (9, 9, 1, "a")]

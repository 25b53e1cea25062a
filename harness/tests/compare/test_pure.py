# SPDX-License-Identifier: Apache-2.0
"""Inputs, bounds, figures and their intervals: no files."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sundial.compare import bounds, figures, inputs
from sundial.compare.fields import Field, choose, read_pdml
from sundial.compare.frames import first_octet
from sundial.errors import BadInput
from sundial.report.load import SAMPLES
from sundial.seams.compare import Figures, Interval


def record(**changes: Any) -> dict[str, Any]:
    scenario = {"name": "s", "description": "d", "seed": 1, "workloads": [{"app": "raw", "sizes": [1, 2]}]}
    return {
        "scenario": scenario,
        "topology": {"clock": "virtual", "mtu": 1500},
        "seed": 1,
        "clock": "virtual",
    } | changes


def test_equal_inputs_have_no_difference() -> None:
    assert inputs.differing([record(), record(command=["x"], host={"cpu": "y"})]) == []


def test_inputs_are_named_by_their_paths() -> None:
    scenario = record()["scenario"] | {"workloads": [{"app": "raw", "sizes": [1, 3]}]}
    found = inputs.differing([record(), record(seed=2, scenario=scenario)])
    assert [(each.key, each.values, each.wire) for each in found] == [
        ("scenario.workloads.0.sizes", ([1, 2], [1, 3]), True),
        ("seed", (1, 2), True),
    ]


def test_an_input_that_only_one_run_has_is_null_in_the_other() -> None:
    (found,) = inputs.differing([record(), record(topology={"clock": "virtual", "mtu": 1500, "x": {"y": True}})])
    assert (found.key, found.values) == ("topology.x.y", (None, True))
    (found,) = inputs.differing([record(topology={"x": 1}), record(topology={"x": True})])
    assert found.values == (1, True)


@pytest.mark.parametrize(
    ("key", "wire"),
    [
        ("topology.description", False),
        ("scenario.expect.failures", False),
        ("scenario.workloads.0.trace", False),
        ("versions.tshark", False),
        ("versions.qemu", True),
        ("scenario.workloads.0.calls", True),
        ("seed", True),
    ],
)
def test_inputs_that_reach_the_wire(key: str, wire: bool) -> None:
    assert inputs.reaches_wire(key) is wire


def test_the_first_octet_that_differs() -> None:
    assert first_octet(b"abc", b"abc") is None
    assert first_octet(b"abc", b"axc") == 1
    assert first_octet(b"abc", b"ab") == 2
    assert first_octet(b"", b"a") == 0


def test_the_smallest_field_that_differs_is_named() -> None:
    ours = [Field("ip.flags", 20, 1, "0x40"), Field("ip.flags.df", 20, 1, "1"), Field("eth", 0, 34, "a")]
    theirs = [Field("ip.flags", 20, 1, "0x00"), Field("ip.flags.df", 20, 1, "1"), Field("eth", 0, 34, "b")]
    assert choose(ours, theirs, 20) == (ours[0], "0x00")
    assert choose(ours, theirs, 5) == (ours[2], "b")
    assert choose(ours, theirs, 50) is None


def test_pdml_is_read_without_protocols_of_the_frame_itself() -> None:
    text = b"""<pdml><packet><proto name="frame"><field name="frame.len" pos="0" size="9" show="9"/></proto>
    <proto name="ip" pos="14" size="20"><field name="ip.id" pos="18" size="2" show="0x0001"/></proto></packet></pdml>"""
    assert read_pdml(text) == [Field("ip.id", 18, 2, "0x0001")]
    assert read_pdml(b"") == []
    assert read_pdml(b"<pdml></pdml>") == []


def made(us: list[float], **changes: Any) -> pl.DataFrame:
    """Calls with these round trips."""
    count = len(us)
    columns: dict[str, Any] = dict.fromkeys(SAMPLES)
    columns |= {"series": 0, "client": "c", "server": "s", "transport": "udp", "app": "raw", "procedure": "echo",
                "size": 16, "thread": 0, "warmup": False, "ok": True, "retransmits": 0} | changes  # fmt: skip
    table = pl.DataFrame({name: [value] * count for name, value in columns.items()}, schema=SAMPLES)
    return table.with_columns(call=pl.int_range(count, dtype=pl.Int64), rtt_ns=(pl.Series(us) * 1000).cast(pl.Int64))


def test_figures_leave_warm_up_and_failed_calls_out() -> None:
    table = pl.concat([made([1, 2, 3]), made([900], warmup=True), made([800], ok=False, retransmits=3)])
    (group,) = figures.compare([table, made([2, 4, 6])], figures.BY, intervals=False)
    first, other = group.runs
    assert first is not None
    assert other is not None
    assert group.key == {"app": "raw", "transport": "udp", "procedure": "echo", "size": 16}
    assert (first.calls, first.errors, first.retransmissions, first.p50_us) == (4, 1, 3, 2.0)
    assert (other.p50_us, other.p50_ratio, other.interval) == (4.0, 2.0, None)


def test_groups_that_one_run_lacks_are_there_and_sorted_by_size() -> None:
    first = pl.concat([made([1], size=1000), made([1], size=2)])
    found = figures.compare([first, made([1], size=1000)], ["transport", "size"], intervals=False)
    assert [(group.key["size"], [run is not None for run in group.runs]) for group in found] == [
        (2, [True, False]),
        (1000, [True, True]),
    ]


def test_calls_of_both_runs_are_paired() -> None:
    noise = np.random.default_rng(3).normal(1000, 200, 200).tolist()
    shifted = [value + 5 for value in noise]
    (group,) = figures.compare([made(noise), made(shifted)], figures.BY, intervals=True)
    assert group.runs[1] is not None
    interval = group.runs[1].interval
    assert interval is not None
    assert interval.method == "paired"
    assert interval.p50_us == pytest.approx((5.0, 5.0), abs=0.01)
    (group,) = figures.compare([made(noise), made(shifted[:-1])], figures.BY, intervals=True)
    assert group.runs[1] is not None
    assert group.runs[1].interval is not None
    assert group.runs[1].interval.method == "unpaired"
    low, high = group.runs[1].interval.p50_us
    assert low < 5 < high


def test_an_interval_repeats_and_needs_two_calls() -> None:
    values = np.arange(50.0)
    assert figures.unpaired(values, values + 1, 0.5, (1, 2)) == figures.unpaired(values, values + 1, 0.5, (1, 2))
    (group,) = figures.compare([made([1]), made([2])], figures.BY, intervals=True)
    assert group.runs[1] is not None
    assert group.runs[1].interval is None


def test_an_interval_covers_the_true_difference_as_often_as_it_says() -> None:
    """Of 400 pairs of samples whose medians differ by 10, within four standard deviations of 95 %."""
    random = np.random.default_rng(11)
    covered = 0
    for number in range(400):
        first, other = random.exponential(100, 150), random.exponential(100, 150) + 10
        low, high = figures.unpaired(first, other, 0.5, (number,))
        covered += low <= 10 <= high
    assert covered >= 0.95 * 400 - 4 * (0.95 * 0.05 * 400) ** 0.5


def test_resampled_order_statistics_are_those_of_resamples() -> None:
    """The short way against drawing resamples."""
    random = np.random.default_rng(5)
    values = np.sort(random.exponential(1, 41))
    drawn = np.sort(random.choice(values, (10_000, 41)), axis=1)[:, 20]
    short = figures._resampled(values, 0.5, np.random.default_rng(6))
    for share in (0.05, 0.5, 0.95):
        assert np.quantile(short, share) == pytest.approx(np.quantile(drawn, share), abs=0.08)


def some(p50: float, *, retransmissions: int = 0, low: float | None = None) -> Figures:
    interval = None if low is None else Interval(method="paired", p50_us=(low, low + 9), p99_us=(0.0, 0.0))
    return Figures(calls=1, errors=0, retransmissions=retransmissions, p50_us=p50, p99_us=p50, p50_ratio=None,
                   p99_ratio=None, interval=interval)  # fmt: skip


def test_a_bound_is_exceeded_only_above_it() -> None:
    bound = bounds.parse("p50 5 %")
    assert bound.exceeded(some(100), some(105)) is None
    assert bound.exceeded(some(100), some(105.1)) == "p50 is 105.1 µs, was 100.0 µs (p50 5 %)"
    assert bound.exceeded(some(100), some(50)) is None
    assert bounds.parse("p99 2ms").exceeded(some(100), some(2101)) is not None
    assert bounds.parse("p99 2ms").exceeded(some(100), some(2100)) is None
    assert bounds.parse("retransmissions 0").exceeded(some(1), some(1, retransmissions=1)) is not None


def test_under_the_real_clock_chance_alone_exceeds_nothing() -> None:
    bound = bounds.parse("p50 5 %")
    assert bound.exceeded(some(100), some(110, low=-1)) is None
    assert bound.exceeded(some(100), some(110, low=1)) is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p50", "is not a figure and a bound"),
        ("p50 -5 %", "is not a figure and a bound"),
        ("p75 5 %", "'p75' is not a figure; allowed: p50, p99, retransmissions, errors"),
        ("p50 5", "has no unit of p50"),
        ("retransmissions 5 us", "has the wrong unit 'us'"),
    ],
)
def test_a_bad_bound_is_one_line(text: str, words: str) -> None:
    with pytest.raises(BadInput, match="--fail-above") as caught:
        bounds.parse(text)
    assert words in caught.value.message

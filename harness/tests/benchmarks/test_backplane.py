# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of a backplane runs is what the model takes, and what its figures say."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import backplane
from benchmarks.context import Context
from benchmarks.experiments import over_backplane
from benchmarks.figure import Figure
from benchmarks.guests import Times
from sundial.segments.vmmc.model import Backplane


def test_the_backplane_is_as_written(tmp_path: Path) -> None:
    workload = {"app": "vmmc", "operations": ["du"], "modes": ["stream"], "sizes": [65536], "calls": 3, "warmup": 0}
    network = over_backplane(tmp_path, backplane.UNHURRIED, **workload).network
    segment = network.segments["backplane"]
    assert isinstance(segment, Backplane)
    assert (segment.word_latency, segment.combine_bytes) == (1_000_000, 4096)


def test_figures_are_of_the_long_run_less_the_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transfer by stores takes 5 ms of processor time, another 1 ms; a call is 10 us of virtual and 30 of wall time.
    Each run has 1 s beside."""

    def run(context: Context, calls: int, fields: object, workload: dict[str, object]) -> Times:
        each_s = 0.005 if workload.get("operations") == ["au-combined"] else 0.001
        return Times(virtual_s=1 + calls * 1e-5, run_s=1 + calls * 3e-5, cpu_s=1 + calls * each_s)

    monkeypatch.setattr(backplane, "_run", run)
    figures = {each.name: each for each in backplane.measure(Context(True, tmp_path)) if isinstance(each, Figure)}
    store = figures["a store into bound memory, above the same bytes without"]
    assert store.median == pytest.approx(4000 / 8192)
    assert store.verdict == "pass"
    assert figures["two guests of 62.5 mips that poll"].median == pytest.approx(3)
    assert figures["a null call"].median == pytest.approx(30)

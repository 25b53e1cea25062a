# SPDX-License-Identifier: Apache-2.0
"""DCE RPC between booted guests, traced: nothing changes, steps are the round trip, and they are the paper's."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sundial.papers.khandker.counts import facks, pdus
from sundial.papers.khandker.experiments import SAME_FILES
from sundial.papers.khandker.steps import KEPT, kernel_threads, named, pieces_of
from tests.run.live import require_guests, sundial

pytestmark = [pytest.mark.vm, pytest.mark.timeout(400)]

SCENARIO = """\
description: calls of one PDU and of several
topology: two-hosts-10base-t
seed: 5
linger: 50 ms
workloads:
  - app: dce
    procedures: [null, put]
    sizes: [0, 4016, 4017, 24096]
    calls: 4
    warmup: 1
"""
ONCE = ("C1", "C6", "C19", "S5", "S7")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_guests()
    made = tmp_path_factory.mktemp("trace")
    scenario = made / "calls.yaml"
    scenario.write_text(SCENARIO)
    for name, more in (("plain", ()), ("traced", ("--trace", "steps"))):
        done = sundial("run", str(scenario), *more, "--out", str(made / name))
        assert (made / name / "verify.json").is_file(), done.stderr
    return made


def test_a_trace_changes_nothing(folder: Path) -> None:
    plain = folder / "plain"
    files = [path.relative_to(plain) for words in SAME_FILES for path in plain.glob(words)]
    assert len(files) >= 5
    assert [file for file in files if (plain / file).read_bytes() != (folder / "traced" / file).read_bytes()] == []


def test_the_steps_of_each_call_are_its_round_trip(folder: Path) -> None:
    samples = pl.read_parquet(folder / "traced" / "samples.parquet")
    steps = json.loads((folder / "traced" / "verify.json").read_text())["steps"]
    # null, and four sizes; what warms up is divided, too.
    assert (steps["exact"], steps["calls"]) == (25, 25)
    assert samples.height == 25
    assert samples["ok"].all()


def test_each_step_is_done_as_often_as_the_policy_says(folder: Path) -> None:
    table = pl.read_parquet(folder / "traced" / "steps.parquet")
    samples = pl.read_parquet(folder / "traced" / "samples.parquet").with_row_index("place")
    kernel = kernel_threads(table)
    for row in samples.filter(~pl.col("warmup")).iter_rows(named=True):
        found = named(pieces_of(table.filter(pl.col("call") == row["place"])), "client", kernel)
        assert sum(each.path_ns for each in found) == row["rtt_ns"]
        order = [each.step for each in found]
        of = 1 if row["procedure"] == "null" else pdus(row["size"])
        assert [order.count(step) for step in ONCE] == [1] * len(ONCE), row["size"]
        assert (order.count("C7"), order.count("C8'")) == (of, of)
        assert (order.count("C22"), order.count("S15")) == (facks(of, "window"),) * 2
        assert (order.count("S8"), order.count(KEPT)) == (1 + facks(of, "window"), of - 1 - facks(of, "window"))

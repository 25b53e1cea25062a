# SPDX-License-Identifier: Apache-2.0
"""Adapters with a latency and booted guests: what it moves, to the ns, and that a run repeats to the byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from sundial.observe import open_run, read_frames
from sundial.verify import verify_run
from tests.run import served
from tests.run.live import require_guests
from tests.verify.seal import seal

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]

CALLS = 40
SCENARIO = f"""\
description: calls, one after another
topology: two-hosts-10base-t
seed: 1
linger: 200 ms
workloads:
  - {{app: sunrpc, transports: [udp], procedures: [echo], sizes: [2000], calls: {CALLS}, warmup: 0}}
"""
LATENCY_NS = 20_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with the latency."""
    require_guests()
    return passed(tmp_path_factory.mktemp("latency"), "run", "20 us")


def passed(folder: Path, name: str, latency: str) -> Path:
    """The directory of a run that verified."""
    scenario = folder / "calls.yaml"
    scenario.write_text(SCENARIO)
    output = served.passed(scenario, folder / name, "--set", f"defaults.adapter.latency={latency}")
    assert "0 mismatches" in output
    return folder / name


def passages(directory: Path) -> pl.DataFrame:
    """What passed the ports of the machines, in time: ``time_ns``, ``interface``, and ``out``, whether it left."""
    run = open_run(directory)
    frames = read_frames([(directory / name, name) for name in run.captures], run.epoch_ns)
    ports = frames.filter(pl.col("interface").is_in(["client:eth0", "server:eth0"])).sort("time_ns")
    return ports.select("time_ns", "interface", (pl.col("direction") == 2).alias("out"))


def answers_ns(ports: pl.DataFrame, interface: str) -> Counter[int]:
    """How often it was how long from a frame's arrival to when the machine's next one left."""
    own = ports.filter(pl.col("interface") == interface).with_columns(
        (pl.col("time_ns") - pl.col("time_ns").shift(1)).alias("after_ns"), pl.col("out").shift(1).alias("out_before")
    )
    return Counter(own.filter(pl.col("out") & ~pl.col("out_before"))["after_ns"].to_list())


def alike(before: Counter[int], after: Counter[int], shift_ns: int) -> int:
    """How many answers took exactly so much longer."""
    return sum(min(times, after[time_ns + shift_ns]) for time_ns, times in before.items())


def digest(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (*directory.glob("wire/*"), *directory.glob("nodes/*/samples.jsonl"))
    }


def test_frames_leave_a_latency_later(tmp_path: Path, run: Path) -> None:
    without = passed(tmp_path, "without", "0 ns")
    here, there = passages(without), passages(run)
    assert there["time_ns"][0] - here["time_ns"][0] == LATENCY_NS
    for interface in ("client:eth0", "server:eth0"):
        # Not each answer: a machine may be at work with something else (a tick) when a frame arrives.
        before, after = answers_ns(here, interface), answers_ns(there, interface)
        later = {shift: alike(before, after, shift) for shift in range(LATENCY_NS - 1000, LATENCY_NS + 1001)}
        assert later[LATENCY_NS] >= CALLS // 5
        assert max(later, key=later.__getitem__) == LATENCY_NS

    # Verification with a longer latency finds frames that begin before its end.
    other = shutil.copytree(run, tmp_path / "other")
    document = json.loads((other / "run.json").read_text())
    document["topology"]["defaults"]["adapter"]["latency"] = "2 ms"
    (other / "run.json").write_text(json.dumps(document))
    fields = {problem["field"] for problem in verify_run(seal(other)).problems}
    assert {"arp.opcode", "reply.sent"} <= fields


@pytest.mark.night
def test_a_run_repeats_to_the_byte(tmp_path: Path, run: Path) -> None:
    assert digest(run) == digest(passed(tmp_path, "again", "20 us"))

# SPDX-License-Identifier: Apache-2.0
"""Adapters with a latency and booted guests: what it moves, to the ns, and that a run repeats to the byte."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from sundial.observe import open_run, read_frames
from sundial.verify import verify_run
from tests.run.live import LiveRun, require_guests
from tests.verify.seal import seal

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]

SCENARIO = """\
description: the port mapper, and two calls
topology: two-hosts-10base-t
seed: 1
linger: 200 ms
workloads:
  - {app: sunrpc, transports: [udp], procedures: [echo], sizes: [2000], calls: 2, warmup: 0}
"""
LATENCY_NS = 20_000
REQUESTS = 4
"""Frames before the first call: who has the server's address, its answer, the port mapper asked, its answer."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


def passed(folder: Path, name: str, latency: str) -> Path:
    """The directory of a run that verified."""
    scenario = folder / "calls.yaml"
    scenario.write_text(SCENARIO)
    status, output = LiveRun(scenario, folder / name, "--set", f"defaults.adapter.latency={latency}").end(200)
    assert status == 0, output
    assert "0 mismatches" in output
    return folder / name


def sent(directory: Path) -> list[int]:
    """When frames left the ports of their machines."""
    run = open_run(directory)
    frames = read_frames([(directory / name, name) for name in run.captures], run.epoch_ns, {})
    out = frames.filter((pl.col("direction") == 2) & pl.col("interface").is_in(["client:eth0", "server:eth0"]))
    return out.sort("time_ns")["time_ns"].to_list()


def digest(directory: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (*directory.glob("wire/*"), *directory.glob("nodes/*/samples.jsonl"))
    }


def test_frames_leave_a_latency_later_and_a_run_repeats(tmp_path: Path) -> None:
    without, run = sent(passed(tmp_path, "without", "0 ns")), passed(tmp_path, "run", "20 us")
    late = sent(run)
    # Each of the first frames follows from the one before it alone: so each is one latency later than that is.
    moved = [there - here for here, there in zip(without[:REQUESTS], late[:REQUESTS], strict=True)]
    assert moved == [LATENCY_NS * number for number in range(1, REQUESTS + 1)]
    assert digest(run) == digest(passed(tmp_path, "again", "20 us"))

    # Verification that is told of a longer latency finds frames that begin before it is over.
    other = shutil.copytree(run, tmp_path / "other")
    document = json.loads((other / "run.json").read_text())
    document["topology"]["defaults"]["adapter"]["latency"] = "2 ms"
    (other / "run.json").write_text(json.dumps(document))
    fields = {problem["field"] for problem in verify_run(seal(other)).problems}
    assert {"arp.opcode", "reply.sent"} <= fields

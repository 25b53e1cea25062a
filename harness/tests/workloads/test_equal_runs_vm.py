# SPDX-License-Identifier: Apache-2.0
"""gRPC and RPyC again and again beside others' work: not one byte differs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.run.live import LiveRun, evidence, hog, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.alone, pytest.mark.timeout(3600)]

RUNS = int(os.environ.get("SUNDIAL_EQUAL_RUNS", "4"))
"""A few each time; twenty if asked for."""
SCENARIO = """\
description: the twelve functions over both systems
topology: {topology}
seed: 7
linger: 300 ms
workloads:
  - {{app: grpc, functions: all, calls: 2, {more}}}
  - {{app: rpyc, functions: all, calls: 2, containers: [list, tuple], {more}}}
"""


@pytest.mark.parametrize("image", ["linux-python", "linux-python-current"])
@pytest.mark.parametrize(
    ("topology", "more", "capture"),
    [("two-hosts-wifi", "clients: client", "air"), ("one-host", "clients: server", "loopback-server")],
)
def test_runs_are_equal(tmp_path: Path, image: str, topology: str, more: str, capture: str) -> None:
    require_guests(image)
    scenario = tmp_path / "calls.yaml"
    scenario.write_text(SCENARIO.format(topology=topology, more=more))
    first: dict[str, bytes] = {}
    for number in range(RUNS):
        run = tmp_path / f"run-{number}"
        with hog():
            status, output = LiveRun(scenario, run, "--set", f"defaults.image={image}").end()
        assert status == 0, output
        seen = evidence(run)
        assert len(seen[f"wire/{capture}.pcapng"]) > 10_000
        first = first or seen
        assert first.keys() == seen.keys()
        assert [name for name in first if first[name] != seen[name]] == [], f"run {number}"
        shutil.rmtree(run)

# SPDX-License-Identifier: Apache-2.0
"""LAN emulation with booted guests: every message and its time, and the same bytes however often machines and wires
meet in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.live import END_S, LiveRun, evidence, require_guests, stirred
from tests.segments.lane_golden import check_golden

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]

SCENARIO = """\
description: the port mapper, and two calls
topology: {topology}
seed: 1
linger: 200 ms
workloads:
  - {{app: sunrpc, transports: [udp], procedures: [echo], sizes: [2000], calls: 2, warmup: 0}}
"""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()


def scenario(folder: Path, topology: str) -> Path:
    path = folder / "calls.yaml"
    path.write_text(SCENARIO.format(topology=topology))
    return path


def passed(run: LiveRun, seconds: float = END_S) -> Path:
    """The directory of a run that verified."""
    status, output = run.end(seconds)
    assert status == 0, output
    assert run.out is not None
    return run.out


def test_join_first_and_second_call(tmp_path: Path) -> None:
    check_golden(passed(LiveRun(scenario(tmp_path, "two-hosts-lane"), tmp_path / "run")))


@pytest.mark.night
def test_the_mixed_path_is_the_same_to_the_byte_with_other_gates(tmp_path: Path) -> None:
    calls = scenario(tmp_path, "pc-hub-lane")
    plain = passed(LiveRun(calls, tmp_path / "plain"))
    stirred(20_000, calls, tmp_path / "jitter")
    assert "jitter=20000" in (tmp_path / "jitter" / "nodes" / "client" / "domain.xml").read_text()
    first, second = evidence(plain), evidence(tmp_path / "jitter")
    assert {"wire/hub.pcapng", "wire/elan.pcapng", "wire/atm/elan.pdus.pcapng", "wire/atm/elan.cells.pcapng"} <= {
        *first
    }
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []

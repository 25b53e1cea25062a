# SPDX-License-Identifier: Apache-2.0
"""Random cases are equal to the byte where QEMU and fabric are stopped now and then, as a busy host stops them."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sundial.model.load import load_experiments
from tests.random.campaign import first_valid
from tests.random.cases import SCENARIO
from tests.run.live import LiveRun, evidence, require_guests

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(900), pytest.mark.spread]

SEED = 5151

STOPS_S = (0.0003, 0.001, 0.003, 0.01)
"""Lengths of stops: below and above what a wait stays awake for."""


def processes(parent: int) -> Iterator[int]:
    """QEMUs and the fabric among the descendants of a process."""
    for listed in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, listed.read_text().split()):
                name = Path(f"/proc/{child}/comm").read_text()
                if name.startswith(("qemu", "sundial-fabric")):
                    yield child
                yield from processes(child)


def end_with_stops(run: LiveRun, seed: int) -> int:
    """The exit status of a run whose processes were stopped at random."""
    drawn = random.Random(seed)
    while run.process.poll() is None:
        found = sorted(processes(run.process.pid))
        if found:
            pid = drawn.choice(found)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(drawn.choice(STOPS_S))
                os.kill(pid, signal.SIGCONT)
        time.sleep(drawn.uniform(0, 0.004))
    return run.end()[0]


@pytest.mark.parametrize("number", range(20))
def test_stops_change_no_byte(tmp_path: Path, number: int) -> None:
    images = ("linux", "ssscore")
    require_guests(*images)
    first_valid(SEED, number, images, tmp_path, Counter())
    scenario = tmp_path / SCENARIO
    if any(each.clock == "real" for each in load_experiments(str(scenario))):
        pytest.skip("under the real clock no two runs are equal")
    run = LiveRun(scenario, tmp_path / "plain")
    status, said = run.end()
    assert end_with_stops(LiveRun(scenario, tmp_path / "stopped"), number) == status, said
    if status == 4 and "end_ns" not in run.record()["error"]:
        pytest.skip("a run that is cut short ends at an instant of the host's")
    plain, stopped = evidence(tmp_path / "plain"), evidence(tmp_path / "stopped")
    assert plain.keys() == stopped.keys()
    assert [name for name in plain if plain[name] != stopped[name]] == []

# SPDX-License-Identifier: Apache-2.0
"""A sweep with booted guests: a worker is killed in the middle of a run, the command too, and the rest is made."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.machines.waiting import wait_until
from tests.run.live import END_S, HARNESS, START_S, VARIABLES, end_what_was_started, require_guests, start, sundial

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def _ended() -> Any:
    require_guests()
    yield
    end_what_was_started()


def workers_of(pid: int) -> dict[int, str]:
    """Processes that make runs for this one, with their command lines."""
    found = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                words = (place / "cmdline").read_bytes().decode(errors="replace")
            except (OSError, ValueError):
                continue
            if parent == pid and "sundial.reproduce.worker" in words:
                found[int(place.name)] = words
    return found


def test_four_points_survive_kills_and_equal_single_runs(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "swept"
    words = shlex.split(
        "sweep quickstart --topology two-hosts-wan --set calls=5 --set sizes=[64] --seeds 1..2 --on local:1"
    )
    places = ["--set", "loss=0,5 %", "--store", str(store), "--out", str(out)]
    argv = [sys.executable, "-m", "sundial.cli", *words, *places]
    command = start(argv, cwd=HARNESS, env=VARIABLES, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def captured() -> bool:
        assert command.poll() is None
        return any(path.stat().st_size > 4096 for path in store.glob("making/*/.made.partial/wire/*.pcapng"))

    wait_until(captured, seconds=START_S, what="frames of the first run")
    (worker,) = workers_of(command.pid)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: bool(list(store.glob("results/*/*/result.json"))), seconds=START_S, what="the first result")
    wait_until(captured, seconds=START_S, what="frames of another run")
    left = workers_of(command.pid)
    command.kill()
    command.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").is_dir() for pid in left), seconds=END_S, what="workers to end")

    done = sundial("sweep", "resume", str(out), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["pass"], found["wanted"], found["checked"], found["to_check"]) == (4, 4, 1, 1)
    assert found["had"] >= 1
    assert list((store / "making").iterdir()) == []
    runs = pl.read_parquet(out / "runs.parquet")
    assert runs["bytes"].n_unique() == 4

    shown = json.loads(sundial("sweep", "show", str(out), "3", "--json").stdout)
    single = tmp_path / "single"
    ran = sundial(*shlex.split(shown["command"])[1:], "--no-report", "--out", str(single))
    assert ran.returncode == 0, ran.stderr
    result = json.loads((Path(shown["path"]).parent / "result.json").read_text())
    run = json.loads((single / "run.json").read_text())
    digests = {**run["captures"], **run["files"]}
    assert {name: digests[name] for name in result["files"]} == result["files"]

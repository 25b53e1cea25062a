# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: the same files as one by one, in the order of the plan, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import HostLacks, Interrupted, RunFailed
from sundial.model.load import load_experiments
from sundial.plan.request import Silence
from sundial.report.plotting import Pictures, pictures
from sundial.reproduce.perform import Request, perform
from sundial.reproduce.runs import _calls
from sundial.reproduce.worker import Ended
from sundial.reproduce.workers import Workers
from tests.reproduce.house import House
from tests.reproduce.side import MAKING, staying, tasks, wait_for

HARNESS = Path(__file__).resolve().parents[2]


def gone(workers: Workers) -> bool:
    return all(worker.process.returncode is not None for worker in workers._workers)


@pytest.mark.timeout(600)  # two reproductions
@pytest.mark.parametrize("name", ["kamesawa98", pytest.param("kedziera98", marks=pytest.mark.night)])
def test_side_by_side_gives_the_same_files(tmp_path: Path, name: str) -> None:
    scale = {"kamesawa98": "quick", "kedziera98": "smoke"}[name]
    broken = frozenset({"sss-rpc-10base-t"})
    found = []
    for jobs in (1, 2):
        captures = tmp_path / str(jobs)
        captures.mkdir()
        request = Request(name, scale, 7, captures, captures / "made", "embedded", ("sundial",), jobs)
        with pictures(Pictures(png=False)):
            made = perform(request, House(broken=broken).doors(), Silence())
        files = sorted(path for path in made.folder.rglob("*") if path.is_file())
        found.append({str(path.relative_to(made.folder)): path.read_bytes() for path in files})
    assert found[0].keys() == found[1].keys()
    assert [path for path in found[0] if found[0][path] != found[1][path]] == []


def test_results_come_by_plan_and_not_by_completion(tmp_path: Path) -> None:
    last = tmp_path / "r2"
    with Workers(MAKING, 2) as workers:
        asked = tasks(tmp_path, (f"until {last}",), ("fail",), (), (f"until {last}",))
        answers = list(workers.make(asked))
        assert len(workers._workers) == 2
    # The first waits for the third, which the second worker makes after a run that fails.
    assert answers == [Ended("pass", 2), Ended("failed", error="server: its kernel panicked"), *[Ended("pass", 2)] * 2]
    assert gone(workers)


def test_the_longest_run_is_begun_first(tmp_path: Path) -> None:
    short, long = tasks(tmp_path, (f"until {tmp_path / 'r1'}",), ())
    with Workers(MAKING, 1) as workers:
        # It would wait for ever, were they begun in the order of the plan.
        answers = list(workers.make([short, (replace(long[0], calls=5), long[1])]))
    assert answers == [Ended("pass", 2), Ended("pass", 2)]


def test_calls_of_a_workload_are_counted_as_it_is_written() -> None:
    workload = {"clients": ["a", "b"], "transports": ["udp", "tcp"], "sizes": [1, 2, 3], "calls": 50, "series": 2}
    assert _calls(workload, None) == 1200
    assert _calls({"clients": "server", "transports": ["udp"], "duration": "3 s"}, None) == 1


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        ({"app": "rpyc", "functions": ["void", "person"], "calls": 50}, 100),
        ({"app": "grpc", "functions": "all", "calls": 50}, 600),
        ({"app": "grpc", "calls": 50}, 600),
        ({"app": "raw", "transports": ["tcp"], "functions": "all", "calls": 50}, 600),
        ({"app": "raw", "transports": ["tcp"], "sizes": [16, 32], "calls": 50}, 100),
    ],
)
def test_functions_are_counted_by_their_names(tmp_path: Path, written: dict[str, Any], calls: int) -> None:
    path = tmp_path / "calls.yaml"
    path.write_text(json.dumps({"description": "d", "topology": "two-hosts-python", "workloads": [written]}))
    (experiment,) = load_experiments(str(path))
    assert _calls(written, *experiment.workloads) == calls


def test_what_the_host_lacks_ends_the_others(tmp_path: Path) -> None:
    with pytest.raises(HostLacks, match="no memory left") as caught, Workers(MAKING, 2) as workers:
        list(workers.make(tasks(tmp_path, ("stay",), (f"until {tmp_path / 'r0.began'}", "lack"), ())))
    assert caught.value.hint == "close other programs"
    assert "side.py" in caught.value.__notes__[0]
    assert (tmp_path / "r0.ended").exists()
    assert not (tmp_path / "r2").exists()
    assert gone(workers)


def test_workers_that_die_each_time_end_the_others(tmp_path: Path) -> None:
    what = "processes that made r1 have ended 4 times, the last with status 9"
    with pytest.raises(RunFailed, match=what), Workers(MAKING, 2) as workers:
        list(workers.make(tasks(tmp_path, ("stay",), (f"until {tmp_path / 'r0.began'}", "die"))))
    assert (tmp_path / "r0.ended").exists()
    assert gone(workers)


def test_a_run_whose_worker_died_is_made_again(tmp_path: Path) -> None:
    with Workers(MAKING, 2) as workers:
        answers = list(workers.make(tasks(tmp_path, ("die once",), ())))
    assert answers == [Ended("pass", 2)] * 2
    assert not (tmp_path / ".r0.partial").exists()


def test_interrupted_by_the_user_all_runs_end(tmp_path: Path) -> None:
    def interrupt() -> None:
        wait_for(tmp_path / "r0.began", tmp_path / "r1.began")
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Interrupted, match="by SIGINT"):
        list(staying(tmp_path))
    assert (tmp_path / "r0.ended").exists()
    assert (tmp_path / "r1.ended").exists()


def test_runs_end_when_whoever_asked_is_dead(tmp_path: Path) -> None:
    program = "import sys, pathlib, tests.reproduce.side as side; list(side.staying(pathlib.Path(sys.argv[1])))"
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], cwd=HARNESS)
    try:
        wait_for(tmp_path / "r0.began", tmp_path / "r1.began")
    finally:
        process.kill()
        process.wait()
    wait_for(tmp_path / "r0.ended", tmp_path / "r1.ended")

# SPDX-License-Identifier: Apache-2.0
"""Runs side by side: the same files as one by one, in the order of the plan, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import HostLacks, Interrupted
from sundial.model.load import load_experiments
from sundial.plan.request import Silence
from sundial.report.plotting import Pictures, pictures
from sundial.reproduce.perform import Request, perform
from sundial.reproduce.runs import _calls
from sundial.reproduce.worker import Ended
from sundial.reproduce.workers import Lost, Workers
from sundial.sweep.engines import Placing
from sundial.sweep.place import Place
from sundial.sweep.store import Store
from sundial.sweep.tasks import Tasks
from tests.reproduce.house import House
from tests.reproduce.side import MAKING, ends, staying, tasks, wait_for
from tests.sweep.side import Known

HARNESS = Path(__file__).resolve().parents[2]


def gone(workers: Workers) -> bool:
    return all(worker.process.returncode is not None for worker in workers._workers)


@pytest.mark.timeout(600)  # two reproductions
@pytest.mark.parametrize("name", ["kamesawa98", pytest.param("kedziera98", marks=pytest.mark.night)])
def test_side_by_side_gives_the_same_files(tmp_path: Path, name: str) -> None:
    scale = {"kamesawa98": "quick", "kedziera98": "smoke"}[name]
    broken = frozenset({"sss-rpc-10base-t"})
    found = []
    house = House(broken=broken)
    placing = Placing(house.making, Place(), 2, Store(tmp_path / "store"), Known(), Silence())
    for number, makers in enumerate((None, lambda progress: Tasks(placing).placed())):
        captures = tmp_path / str(number)
        captures.mkdir()
        request = Request(name, scale, 7, captures, captures / "made", "embedded", ("sundial",))
        with pictures(Pictures(png=False)):
            made = perform(request, house.doors(makers), Silence())
        files = sorted(path for path in made.folder.rglob("*") if path.is_file())
        found.append({str(path.relative_to(made.folder)): path.read_bytes() for path in files})
    assert found[0].keys() == found[1].keys()
    assert [path for path in found[0] if found[0][path] != found[1][path]] == []


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
        list(ends(workers, tasks(tmp_path, ("stay",), (f"until {tmp_path / 'r0.began'}", "lack"), ()), 2))
    assert caught.value.hint == "close other programs"
    assert "side.py" in caught.value.__notes__[0]
    assert (tmp_path / "r0.ended").exists()
    assert not (tmp_path / "r2").exists()
    assert gone(workers)


def test_another_worker_takes_the_place_of_one_that_died(tmp_path: Path) -> None:
    with Workers(MAKING, 2) as workers:
        # The second run waits for the third, which only another worker in place of the first can make.
        asked = tasks(tmp_path, ("die",), (f"until {tmp_path / 'r2'}",), (), ("fail",))
        answers = dict(ends(workers, asked, 2))
        assert len(workers._workers) == 2
    failed = Ended("failed", error="server: its kernel panicked")
    assert answers == {0: Lost(9), 1: Ended("pass", 2), 2: Ended("pass", 2), 3: failed}
    assert gone(workers)


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

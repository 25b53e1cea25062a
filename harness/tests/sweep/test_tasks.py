# SPDX-License-Identifier: Apache-2.0
"""Runs that another room has planned: what it gets is what it would have made by itself; no machine is booted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import HostLacks
from sundial.model.load import load_experiments
from sundial.plan.request import EMBEDDED, Progress, RunRequest, Silence
from sundial.reproduce.worker import Ended, OneByOne, Task
from sundial.reproduce.workers import Workers
from sundial.sweep import tasks as tasks_module
from sundial.sweep.cluster import engine
from sundial.sweep.cluster.engine import Cluster, Needs
from sundial.sweep.engines import Placing
from sundial.sweep.place import Place
from sundial.sweep.store import Store
from sundial.sweep.tasks import Tasks
from tests.sweep.bench import InProcess
from tests.sweep.fake_dask import Client, Fake
from tests.sweep.side import CALLS, FOLDER, MAKING, Known

PASS = Ended("pass", 2 * CALLS)
Asked = list[tuple[Task, Progress]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    asked = tmp_path / "asked"
    asked.mkdir()
    monkeypatch.setenv(FOLDER, str(asked))
    return lambda *words: [(asked / word).touch() for word in words] and None


def tasks(folder: Path, *seeds: int, clock: str = "virtual") -> Asked:
    """A run of each seed, in folders `0`, `1` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    made: Asked = []
    for number, seed in enumerate(seeds):
        (experiment,) = load_experiments(
            "loss",
            topology="two-hosts-wan",
            overrides=["segments.wan.impairments.both.loss=5 %", f"clock={clock}"],
            seed=seed,
        )
        out = folder / str(number)
        request = RunRequest(experiment, folder, out, EMBEDDED, False, ("sundial", "run"))
        made.append((Task("about", request, out, seed), Silence()))
    return made


def make(folder: Path, asked: Asked, pool: Any = InProcess, **changes: Any) -> list[Ended]:
    placing = Placing(MAKING, Place(), 2, Store(folder / "store"), Known(), Silence())
    with Tasks(replace(placing, **changes)).placed(pool) as placed:
        return list(placed.make(asked))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("pool", [InProcess, Workers])
def test_results_come_in_order_and_files_are_those_of_runs_one_by_one(tmp_path: Path, ask: Any, pool: Any) -> None:
    ask("panic-2", "bad-3")
    seeds = (1, 2, 3, 4, 1)
    alone = list(OneByOne(MAKING).make(tasks(tmp_path / "alone", *seeds)))
    placed = make(tmp_path, tasks(tmp_path / "placed", *seeds), pool)
    assert placed == alone
    assert [end.verdict for end in placed] == ["pass", "failed", "fail", "pass", "pass"]
    assert files(tmp_path / "placed") == files(tmp_path / "alone")
    assert "0/report.html" in files(tmp_path / "placed")
    assert len(list((tmp_path / "store").glob("results/*/*"))) == 4, "equal runs are one"


def test_runs_of_most_calls_are_begun_first(tmp_path: Path, ask: Any) -> None:
    begun: list[int] = []

    class Listed(InProcess):
        def begin(self, number: int, task: Task) -> None:
            begun.append(task.calls)
            super().begin(number, task)

    make(tmp_path, tasks(tmp_path / "a", 2, 5, 3, 9), Listed)
    assert begun == [9, 5, 3, 2]


def test_a_run_whose_worker_died_is_made_again_and_one_that_dies_each_time_has_failed(
    tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("die-1", "stop-2")
    assert make(tmp_path, tasks(tmp_path / "a", 1, 2, 3)) == [PASS] * 3
    assert list((tmp_path / "store" / "making").iterdir()) == []
    ask("stop-4")
    monkeypatch.setattr(tasks_module, "RETRIES", 0)
    failed = Ended("failed", error="server: libvirt could not start it")
    assert make(tmp_path, tasks(tmp_path / "b", 4, 5)) == [failed, PASS]
    assert not (tmp_path / "b" / "0").exists()


def test_what_was_made_before_the_end_is_not_made_again(tmp_path: Path, ask: Any) -> None:
    ask("lack-1")
    with pytest.raises(HostLacks, match="no memory left"):
        make(tmp_path, tasks(tmp_path / "a", 1, 2, 3))
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("results/*/*/result.json")}
    assert len(made) == 1
    assert make(tmp_path, tasks(tmp_path / "b", 1, 2, 3)) == [PASS] * 3
    assert all(path.stat().st_mtime_ns == before for path, before in made.items())
    assert files(tmp_path / "b").keys() == {
        f"{number}/{name}" for number in range(3) for name in files(tmp_path / "b" / "0")
    }


def test_the_store_drops_captures_that_it_made_for_others(tmp_path: Path, ask: Any) -> None:
    ask("bad-2")
    make(tmp_path, tasks(tmp_path / "a", 1, 2))
    store = Store(tmp_path / "store")
    kept = [store.find(path.name) for path in (tmp_path / "store").glob("results/*/*")]
    assert {each.result.verdict: each.has_captures for each in kept if each} == {"pass": False, "fail": True}
    captures = [path.parts[-3] for path in (tmp_path / "a").rglob("*.pcapng")]
    assert sorted(captures) == ["0", "1"]


def test_a_run_made_again_with_other_bytes_has_failed(tmp_path: Path, ask: Any) -> None:
    make(tmp_path, tasks(tmp_path / "a", 1))
    ask("differ-1")
    (end,) = make(tmp_path, tasks(tmp_path / "b", 1))
    assert end.verdict == "failed"
    assert end.error.endswith("wire/wan.pcapng")


def test_runs_under_the_real_clock_are_made_one_by_one(tmp_path: Path, ask: Any) -> None:
    def refuse(making: Any, slots: int) -> Any:
        return InProcess(making, 0)

    assert make(tmp_path, tasks(tmp_path / "a", 1, 2, clock="real"), refuse) == [PASS] * 2
    assert list((tmp_path / "store").glob("results/*/*")) == []


def test_runs_are_made_on_the_workers_of_a_cluster(tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOOK_S", 0.001)
    client = Client({name: Fake(tmp_path / name, name, host=f"host of {name}") for name in "ab"})

    @contextlib.contextmanager
    def connected(place: Place, needs: Needs[str]) -> Iterator[Cluster[str]]:
        yield Cluster(client, "tcp://fake", needs, wait_s=0.05)

    monkeypatch.setattr(engine, "connected", connected)
    asked = tasks(tmp_path / "placed", 1, 2, 3)
    assert make(tmp_path, asked, place=Place(None, "tcp://fake")) == [PASS] * 3
    list(OneByOne(MAKING).make(tasks(tmp_path / "alone", 1, 2, 3)))
    assert files(tmp_path / "placed") == files(tmp_path / "alone")
    assert {address for _, address in client.begun} == {"a", "b"}

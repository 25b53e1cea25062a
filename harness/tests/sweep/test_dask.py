# SPDX-License-Identifier: Apache-2.0
"""A Dask scheduler and its workers in processes, killed at random moments; no machine is booted."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from sundial.errors import HostLacks
from sundial.machines.waiting import wait_until
from sundial.plan.request import Silence
from sundial.sweep.cluster.dask import distributed
from sundial.sweep.cluster.serve import make_certs
from sundial.sweep.place import Place
from tests.sweep.bench import sweeping
from tests.sweep.fake_cluster import GRID
from tests.sweep.side import FOLDER, MAKING

pytestmark = [pytest.mark.night, pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]
HARNESS = Path(__file__).resolve().parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    try:
        distributed()
    except HostLacks as lacks:
        pytest.skip(f"{lacks.message}: {lacks.hint}")
    (tmp_path / "asked").mkdir()
    monkeypatch.setenv(FOLDER, str(tmp_path / "asked"))
    started: list[subprocess.Popen[bytes]] = []

    def begin(*words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.sweep.fake_cluster", *map(str, words)]
        path = tmp_path / f"log-{len(started)}"
        with path.open("wb") as log:
            started.append(subprocess.Popen(command, cwd=HARNESS, stdout=log, stderr=log))
        if words[0] == "scheduler":
            wait_until(lambda: b"the scheduler is at" in path.read_bytes(), seconds=120, what="the scheduler")
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()
    for process in started:
        process.wait(60)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def killed(process: subprocess.Popen[bytes]) -> None:
    """kill -9; what it had started ends by itself."""
    left = [] if process.poll() is not None else children(process.pid)
    process.kill()
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in left), seconds=60, what="its processes")


def test_kills_of_workers_scheduler_and_client_lose_nothing(tmp_path: Path, start: Start) -> None:
    address, random = f"tcp://127.0.0.1:{free_port()}", Random(os.environ.get("KILLS", "1"))
    for seed in range(1, 11):
        (tmp_path / "asked" / f"doze-{seed}").touch()
    processes = {name: start("worker", address, tmp_path / name, name) for name in "ab"}
    processes["scheduler"] = start("scheduler", address)
    client = None
    for _ in range(8):
        if client is None or client.poll() is not None:
            client = start("client", address, tmp_path)
        time.sleep(random.uniform(1, 8))
        name = random.choice(["a", "b", "scheduler", "client"])
        if name == "client":
            killed(client)
        else:
            killed(processes[name])
            words = ("scheduler", address) if name == "scheduler" else ("worker", address, tmp_path / name, name)
            processes[name] = start(*words)
    killed(client) if client else None
    swept = sweeping(tmp_path, GRID, place=Place(None, address)).perform(MAKING, Silence())
    assert (swept.status, len(swept.rows), swept.checked) == (0, 20, swept.to_check)
    assert swept.checked >= 1
    assert list((tmp_path / "store" / "making").iterdir()) == []
    made = {row.kept.result.host["making"] for row in swept.rows}
    assert len(made) == 20


def test_a_scheduler_with_tls_takes_those_who_have_its_key(tmp_path: Path, start: Start) -> None:
    address = f"tls://127.0.0.1:{free_port()}"
    own, other = tmp_path / "certs", tmp_path / "other"
    make_certs(own)
    make_certs(other)
    assert (own / "key.pem").stat().st_mode & 0o77 == 0
    start("scheduler", address, own)
    start("worker", address, tmp_path / "a", "a", own)
    stranger = start("worker", address, tmp_path / "b", "b", other)
    swept = sweeping(tmp_path, GRID, place=Place(None, address, own)).perform(MAKING, Silence())
    assert swept.status == 0
    assert {row.kept.result.host["worker"] for row in swept.rows} == {"a"}
    assert stranger.poll() is None, "it waits"
    with pytest.raises(HostLacks, match="no scheduler answers at"):
        sweeping(tmp_path, GRID, place=Place(None, address, other)).perform(MAKING, Silence())


def test_an_interrupted_client_ends_its_runs(tmp_path: Path, start: Start) -> None:
    address = f"tcp://127.0.0.1:{free_port()}"
    (tmp_path / "asked" / "stay-1").touch()
    (tmp_path / "asked" / "stay-2").touch()
    start("scheduler", address)
    start("worker", address, tmp_path / "a", "a")
    client = start("client", address, tmp_path)
    wait_until(lambda: not (tmp_path / "asked" / "stay-1").exists(), seconds=120, what="the run that stays")
    client.send_signal(signal.SIGINT)
    assert client.wait(60) == 130
    wait_until(lambda: not list((tmp_path / "a/store/making").iterdir()), seconds=60, what="the run to end")

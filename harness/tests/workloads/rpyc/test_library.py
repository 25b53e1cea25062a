# SPDX-License-Identifier: Apache-2.0
"""The guests' programs with the library that tests have, over the host's loopback: every byte against the machines."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sundial.workloads.functions import BY_NAME, NAMES
from sundial.workloads.rpyc.expect import version
from sundial.workloads.rpyc.expect_brine import int_size
from sundial.workloads.rpyc.expect_sides import Calls
from sundial.workloads.rpyc.verify_replay import Replay, left

ROOT = Path(__file__).parents[4]
PROGRAM = """
import importlib.util, json, os, sys
side, options, log, stream = sys.argv[1:]
os.dup2(int(stream), 3)
from rpyc.core.stream import SocketStream
log, write = open(log, "ab", buffering=0), SocketStream.write
def recorded(self, data):
    if not self.closed:
        log.write(data)
    write(self, data)
SocketStream.write = recorded
spec = importlib.util.spec_from_file_location(side, f"{ROOT}/guest-apps/rpyc/{side}.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.exit(module.main(json.loads(options)))
""".replace("{ROOT}", str(ROOT))


def start(side: str, options: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    """A program whose records go to side.jsonl and whose stream to side.log."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "guest-apps/python"), "PYTHONHASHSEED": "0"}
    with (folder / f"{side}.jsonl").open("wb") as records:
        number = records.fileno()
        given = [side, json.dumps(options), str(folder / f"{side}.log"), str(number)]
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, *given],
            env=environment, pass_fds=[number], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def served(folder: Path, *, nodelay: bool = False) -> Iterator[int]:
    """A server's port."""
    port = free_port()
    server = start("server", {"port": port, "tcp_nodelay": nodelay}, folder)
    assert server.stdout is not None
    try:
        assert select.select([server.stdout], [], [], 60)[0]
        assert server.stdout.readline() == b"ready\n"
        yield port
    finally:
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
    assert (server.returncode, errors) == (0, b"")


def call(folder: Path, **options: Any) -> list[Any]:
    """A client's records."""
    client = start("client", {"server": "127.0.0.1", "total_timeout_ms": 60_000, **options}, folder)
    _, errors = client.communicate(timeout=100)
    assert (client.returncode, errors) == (0, b"")
    return records(folder / "client.jsonl")


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def spoken(folder: Path, planned: list[Calls]) -> Replay:
    data = {reply: (folder / f"{side}.log").read_bytes() for reply, side in ((False, "client"), (True, "server"))}
    found = Replay(version("6.0.2"), planned, data, {False: True, True: True})
    found.run()
    assert found.difference is None
    assert list(left(found)) == []
    return found


@pytest.mark.parametrize("nodelay", [False, True])
@pytest.mark.parametrize(("container", "variant"), [("list", "zip"), ("tuple", "numpy")])
def test_every_byte_is_expected(tmp_path: Path, container: str, variant: str, nodelay: bool) -> None:
    with served(tmp_path, nodelay=nodelay) as port:
        lines = call(
            tmp_path, port=port, functions=list(NAMES), container=container, distance=variant, calls=3, warmup=1,
            tcp_nodelay=nodelay,
        )  # fmt: skip
    planned = [Calls(BY_NAME[name], range(4), container, variant) for name in NAMES]
    found = spoken(tmp_path, planned)
    batches = [line for line in lines if isinstance(line, dict)]
    rows = [line for line in lines if isinstance(line, list)]
    assert [(line["procedure"], line["size"], line["function"]) for line in batches] == [
        (each.name, each.size, each.number) for each in BY_NAME.values()
    ]
    assert [line["exchanges"] for line in batches] == [
        batch.end_number - batch.first_number for batch in found.client.batches
    ]
    called = [each for batch in found.client.batches for each in batch.calls]
    for row, each in zip(rows, called, strict=True):
        assert row[3:] == [1, 0, row[5], None]
        assert each.first_number <= row[5] <= each.number
    (counters, *_), last = records(tmp_path / "server.jsonl"), records(tmp_path / "server.jsonl")[-1]
    assert counters["type"] == "counters"
    assert last["by_function"] == found.server.executed == dict.fromkeys(NAMES, 4)
    assert {line.get("container") for line in batches} == {None, container}
    assert {line.get("variant") for line in batches} == {None, variant}


def test_numbers_of_requests_grow_as_their_size(tmp_path: Path) -> None:
    """Three requests a call: 3,340 calls cross 160, 1,000 and 10,000."""
    count = 3340
    with served(tmp_path) as port:
        call(tmp_path, port=port, functions=["void"], calls=count)
    found = spoken(tmp_path, [Calls(BY_NAME["void"], range(count))])
    # GETROOT, the methods of the root's class, the calls, CLOSE.
    requests = found.tracks[False].lines[2:-1]
    assert len(requests) == 3 * count
    sizes = [line.end - line.begin - int_size(number) for number, line in enumerate(requests, start=2)]
    assert [len(set(sizes[turn::3])) for turn in range(3)] == [1, 1, 1]
    assert {number for number in (159, 160, 999, 1000, 9999, 10_000) if number - 2 < len(requests)} == {
        159, 160, 999, 1000, 9999, 10_000,
    }  # fmt: skip


def test_a_server_that_dies_ends_calls_with_an_error_and_nothing_hangs(tmp_path: Path) -> None:
    port = free_port()
    server = start("server", {"port": port}, tmp_path)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    client = start("client", {"server": "127.0.0.1", "port": port, "functions": ["distance"], "distance": "zip",
                              "calls": 3000}, tmp_path)  # fmt: skip
    log = tmp_path / "client.log"
    while not log.exists() or log.stat().st_size < 4000:
        assert client.poll() is None
    server.kill()
    server.communicate(timeout=60)
    client.communicate(timeout=100)
    rows = [line for line in records(tmp_path / "client.jsonl") if isinstance(line, list)]
    errors = [row[6] for row in rows]
    assert len(rows) == 3000
    assert set(errors) == {None, "EOFError"}
    assert errors.index("EOFError") == errors.count(None)


@pytest.mark.parametrize(
    ("side", "options", "words"),
    [
        ("server", {"port": 0}, "option port: must be an integer from 1 to 65535"),
        ("server", {"tcp_nodelay": 1}, "option tcp_nodelay: must be true or false"),
        ("client", {"functions": ["void"]}, "option server: must be a text"),
        ("client", {"server": "1", "functions": []}, "option functions: must be an array of words, each one of"),
        ("client", {"server": "1", "functions": ["void"], "container": "set"}, 'option container: must be one of "li'),
        ("client", {"server": "1", "functions": ["void"], "threads": 2}, "option threads: unknown"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, side: str, options: dict[str, Any], words: str) -> None:
    program = start(side, options, tmp_path)
    program.communicate(timeout=60)
    assert program.returncode == 2
    (line,) = records(tmp_path / f"{side}.jsonl")
    assert line["type"] == "error"
    assert line["message"].startswith(words)


@pytest.mark.parametrize("side", ["client", "server"])
def test_options_of_jobs_are_taken(tmp_path: Path, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUNDIAL_CHECK_OPTIONS", "1")
    job = json.loads((Path(__file__).parents[2] / f"seams/golden/jobs/linux-python/rpyc-{side}.json").read_text())
    given = [each["options"] for each in (*job["services"], *job["steps"]) if each["app"] == f"rpyc-{side}"]
    assert given
    for options in given:
        program = start(side, options, tmp_path)
        program.communicate(timeout=60)
        assert (program.returncode, records(tmp_path / f"{side}.jsonl")) == (0, [])

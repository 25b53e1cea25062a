# SPDX-License-Identifier: Apache-2.0
"""The guest's programs take the options of jobs and refuse others, without gRPC: they check them before they use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sundial.workloads import functions
from sundial.workloads.grpc import expect
from sundial.workloads.grpc.expect_languages import PYTHON

ROOT = Path(__file__).parents[4]
PROGRAMS, SHARED = ROOT / "guest-apps" / "grpc", ROOT / "guest-apps" / "python"
GOLDEN = ROOT / "harness" / "tests" / "seams" / "golden" / "jobs" / "linux-python"
HERE = {"server": "10.0.0.2"}
STUB = "def __getattr__(name):\n    return object\n"
"""In place of gRPC and of what protoc makes: anything is there, and nothing works."""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    package = tmp_path / "sundial_grpc"
    package.mkdir()
    for path in PROGRAMS.glob("*.py"):
        shutil.copy(path, package)
    for name in ("sundial_grpc/functions_pb2.py", "sundial_grpc/functions_pb2_grpc.py", "grpc.py"):
        (tmp_path / name).write_text(STUB)
    return tmp_path


def refusal(modules: Path, program: str, options: dict[str, Any]) -> str | None:
    """What a program has against its options."""
    records = modules / "records"
    with records.open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-P", "-c", "from sundial_guest.start import main; main()", program, json.dumps(options)],
            env={
                **os.environ, "PYTHONPATH": f"{SHARED}:{modules}", "PYTHONHASHSEED": "0", "SUNDIAL_APP": program,
                "SUNDIAL_MACHINE": "m", "SUNDIAL_SEED": "1", "SUNDIAL_CLOCK": "monotonic", "SUNDIAL_CHECK_OPTIONS": "1",
            },
            preexec_fn=lambda: os.dup2(stream.fileno(), 3),
            close_fds=False,
            timeout=60,
            check=False,
        )  # fmt: skip
    said = [json.loads(line) for line in records.read_text().splitlines()]
    return None if done.returncode == 0 else str(said[-1]["message"])


def tasks() -> list[dict[str, Any]]:
    jobs = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("grpc-*.json"))]
    found = [task for job in jobs for task in [*job["services"], *job["steps"]]]
    return [task for task in found if task["app"] in (PYTHON.server, PYTHON.client)]


def test_what_jobs_say_is_taken(modules: Path) -> None:
    assert {task["app"] for task in tasks()} == {"grpc-client", "grpc-server"}
    for task in tasks():
        assert refusal(modules, task["app"], task["options"]) is None


@pytest.mark.parametrize(
    ("program", "options", "message"),
    [
        ("grpc-client", {}, "option server: must be a text"),
        ("grpc-client", {**HERE, "functions": ["13"]}, 'option functions: must be an array of words, each one of'),
        ("grpc-client", {**HERE, "container": "list"}, "option container: unknown; there are server, port"),
        ("grpc-client", {**HERE, "calls": 0}, "option calls: must be an integer from 1 to 1000000"),
        ("grpc-server", {"max_workers": 65}, "option max_workers: must be an integer from 1 to 64"),
        ("grpc-server", {"bdp_probe": 1}, "option bdp_probe: must be true or false"),
    ],
)  # fmt: skip
def test_what_is_refused(modules: Path, program: str, options: dict[str, Any], message: str) -> None:
    assert (refusal(modules, program, options) or "").startswith(message)


def test_both_sides_know_the_same_methods() -> None:
    """The service in the .proto, the programs' names and the expectations, each written down by itself."""
    listed = [line.split()[1] for line in (PROGRAMS / "functions.proto").read_text().splitlines() if "rpc " in line]
    assert [each.split("(")[0] for each in listed] == [expect.METHODS[name] for name in functions.NAMES]
    text = (PROGRAMS / "vocabulary.py").read_text()
    assert all(f'"{name}": "{method}"' in text for name, method in expect.METHODS.items())


CALLS_THAT_ARE_LATE = """\
import sys, time
from sundial_grpc import client

class Code:
    name = "INTERNAL"

class Failure(Exception):
    def code(self):
        return Code()

client.grpc.RpcError = Failure
client._TO_START_S = 0.0
LIMIT_S = 0.0004
caller = client.Caller(LIMIT_S)
turn = 0

def method(request, wait_for_ready):
    # As gRPC does it: what is raised within its own code is a failure of another name.
    end = time.perf_counter() + LIMIT_S * (0.5 + turn % 101 / 100)
    try:
        while time.perf_counter() < end:
            pass
    except client.Late:
        if turn % 2:
            raise
        raise Failure from None
    return "reply"

seen = {}
for turn in range(4000):
    start, end, stream, error = caller.call(method, "request", "reply")
    assert start <= end
    assert stream == (None if caller.failed else 2 * turn + 1), (turn, stream)
    seen[error] = seen.get(error, 0) + 1
assert set(seen) == {None, client.LATE}, seen
print(seen)
"""


def test_a_call_that_has_had_its_time_fails_so_wherever_the_signal_comes(modules: Path) -> None:
    """Limits about as long as the calls: each ends by itself or is late, and none ends the client."""
    (modules / "grpc.py").write_text("RpcError = Exception\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", CALLS_THAT_ARE_LATE],
        env={**os.environ, "PYTHONPATH": f"{SHARED}:{modules}", "SUNDIAL_CLOCK": "monotonic"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr

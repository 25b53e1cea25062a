# SPDX-License-Identifier: Apache-2.0
"""The command line with rooms that only remember what they were asked."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sundial.cli import checks, rooms, run
from sundial.cli.main import sundial
from sundial.plan.request import RunRequest, RunResult
from tests.verify.bed import OUT, Record, capture

Call = Callable[..., Result]
PORTS = ["server:eth0", "client:eth0", "lan:fate"]


@pytest.fixture(autouse=True)
def captures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "captures"
    folder.mkdir()
    monkeypatch.setattr(rooms, "CAPTURES", folder)
    return folder


@pytest.fixture(scope="session")
def viewer_words() -> tuple[str, ...]:
    """What tshark must be started by on this host."""
    return checks.started_by(checks.Host())


@pytest.fixture
def viewer_asked_once(viewer_words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "viewer_user", lambda: viewer_words)


@pytest.fixture
def call() -> Call:
    runner = CliRunner()

    def invoke(*arguments: str) -> Result:
        return runner.invoke(sundial, list(arguments), catch_exceptions=False)

    return invoke


@pytest.fixture
def make_run(captures: Path) -> Callable[..., Path]:
    def make(name: str, **run: Any) -> Path:
        folder = captures / name
        (folder / "wire").mkdir(parents=True)
        document = {
            "version": 1,
            "status": "complete",
            "clock": "virtual",
            "time": {"virtual_ns": 1_500_000_000},
            **run,
        }
        (folder / "run.json").write_text(json.dumps(document))
        (folder / "wire" / "lan.pcapng").write_bytes(capture(PORTS, [Record(0, 0, OUT, bytes(60))]))
        return folder

    return make


class FakeRooms:
    """What the rooms were asked, and what they answer."""

    def __init__(self, captures: Path) -> None:
        self.captures = captures
        self.requests: list[RunRequest] = []
        self.verdict: str | Exception = "pass"
        self.failure: BaseException | None = None
        self.evaluated: list[Path] = []
        self.drawn: bool | None = None
        """Whether the figures of the last report were."""

    def run(self, request: RunRequest, progress: Any) -> RunResult:
        self.requests.append(request)
        progress.say("booting")
        progress.share(0.5, "half way")
        if self.failure is not None:
            raise self.failure
        path = request.out or self.captures / f"{request.experiment.scenario.name}-{len(self.requests)}"
        (path / "wire").mkdir(parents=True)
        (path / "wire" / "lan.pcapng").touch()
        return RunResult(path, 2_500_000_000, 1.25)

    def verify_run(self, path: Path) -> dict[str, Any]:
        problem = {"capture": "wire/lan.pcapng", "frames": [7, 8], "field": "request.packets", "expected": 2, "seen": 1,
                   "filter": "rpc.xid == 5"}  # fmt: skip
        if isinstance(self.verdict, Exception):
            raise self.verdict
        self.evaluated.append(path)
        bad = self.verdict == "fail"
        return {"verdict": self.verdict, "calls": 12, "mismatches": int(bad), "unproven": ["push flags", "padding"],
                "problems": [problem] if bad else []}  # fmt: skip

    def build_report(self, path: Path, *, png: bool = False, drawn: bool = True) -> Path:
        self.evaluated.append(path)
        self.drawn = drawn
        return path / "report.html"


@pytest.fixture
def fake(captures: Path, monkeypatch: pytest.MonkeyPatch) -> FakeRooms:
    made = FakeRooms(captures)
    for name in ("run", "verify_run", "build_report"):
        monkeypatch.setattr(rooms, name, getattr(made, name))
    seconds = itertools.count(0.0, 4.0)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    return made

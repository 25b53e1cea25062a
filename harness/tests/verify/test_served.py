# SPDX-License-Identifier: Apache-2.0
"""What servers say that they counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mutation.runs import recorded
from sundial.verify import verify_run
from tests.verify.seal import seal


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("served")
    return {name: recorded(name, folder) for name in ("jitter-virtual", "raw-real")}


def fields(run: Path, place: int, changes: dict[str, Any]) -> list[str]:
    file = run / "nodes" / "server" / "samples.jsonl"
    before = file.read_text()
    lines = [json.loads(line) for line in before.splitlines()]
    counters = [line for line in lines if line["type"] == "counters"]
    counters[place].update(changes)
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = [problem["field"] for problem in verify_run(seal(run)).problems]
    file.write_text(before)
    return found


@pytest.mark.parametrize(
    ("name", "place", "changes"),
    [
        ("jitter-virtual", 0, {"calls": 5}),
        ("jitter-virtual", 0, {"calls": 3}),
        ("jitter-virtual", 1, {"calls": 25}),
        ("jitter-virtual", 1, {"bytes_in": 28641}),
        ("jitter-virtual", 1, {"bytes_out": 0}),
        ("jitter-virtual", 1, {"duplicates": 5}),
        ("jitter-virtual", 1, {"connections": 1}),
        ("jitter-virtual", 0, {"undecodable": 1}),
        ("jitter-virtual", 0, {"app": "another"}),
        ("raw-real", -1, {"retransmits": 1}),
        ("raw-real", -1, {"datagrams": 7}),
        ("raw-real", -1, {"messages": 7}),
        ("raw-real", -1, {"bytes": 8965}),
        ("raw-real", -1, {"bad_payload": 1}),
    ],
)
def test_a_count_that_the_capture_contradicts_is_named(
    runs: dict[str, Path], name: str, place: int, changes: dict[str, Any]
) -> None:
    (field,) = changes
    assert f"nodes/server counters {field}" in fields(runs[name], place, changes)


def test_counts_that_the_capture_shows_have_no_findings(runs: dict[str, Path]) -> None:
    for run in runs.values():
        assert fields(run, 0, {}) == []

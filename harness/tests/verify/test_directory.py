# SPDX-License-Identifier: Apache-2.0
"""The directory as a whole: digests, files that are missing or beside, samples.parquet, and runs that did not end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mutation.runs import recorded
from sundial.errors import BadInput
from sundial.verify import verify_run
from tests.verify.bed import RPC_PORT, Bed
from tests.verify.seal import seal


@pytest.fixture
def run(tmp_path: Path) -> Path:
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 16, RPC_PORT, 700)
    for xid in (1, 2):
        bed.udp_call(16, xid)
    return bed.write()


def fields(run: Path) -> list[str]:
    return [problem["field"] for problem in verify_run(run).problems]


def change(run: Path, **changes: object) -> None:
    file = run / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_a_sealed_run_passes(run: Path) -> None:
    assert fields(run) == []


def test_what_verification_and_report_write_is_not_beside(run: Path) -> None:
    verify_run(run)
    (run / "figures").mkdir()
    for name in ("figures/a.svg", "report.html", "summary.csv"):
        (run / name).write_text("")
    assert fields(run) == []


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
def test_a_pipe_or_a_link_is_no_file_of_a_run(run: Path, make: Callable[[Path], None]) -> None:
    for name in ("nodes/server/console.log", "samples.parquet"):
        (run / name).unlink()
        make(run / name)
        assert f"file {name}" in fields(run)
    (run / "wire" / "lan.pcapng").unlink()
    make(run / "wire" / "lan.pcapng")
    with pytest.raises(BadInput, match="not a regular file"):
        verify_run(run)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "wire/../run.json", "wire/a/b.pcapng", "notes"])
def test_a_capture_must_be_one_of_the_run(run: Path, name: str) -> None:
    change(run, captures={name: "0" * 64})
    with pytest.raises(BadInput, match="not a capture of a run"):
        verify_run(run)


@pytest.mark.parametrize("status", ["failed", "interrupted"])
def test_a_run_that_did_not_end_well_does_not_pass(run: Path, status: str) -> None:
    change(run, status=status, error={"message": "client: its job failed"})
    (problem,) = verify_run(run).problems
    assert (problem["field"], problem["seen"]) == ("run", f"the run is {status}: client: its job failed")


def test_a_topology_that_was_brought_up_by_hand_is_checked(run: Path) -> None:
    (run / "nodes" / "client" / "samples.jsonl").write_text("")
    (run / "nodes" / "client" / "job.json").write_text("{}")
    change(run, scenario=None)
    seal(run)
    (run / "samples.parquet").unlink()
    document = json.loads((run / "run.json").read_text())
    change(run, files={name: value for name, value in document["files"].items() if name != "samples.parquet"})
    result = verify_run(run)
    assert (result.verdict, result.problems) == ("checked", [])
    assert result.unproven
    (run / "nodes" / "client" / "domain.xml").write_text("another")
    assert verify_run(run).verdict == "fail"


def test_a_topology_and_a_scenario_are_written_with_every_default(tmp_path: Path) -> None:
    run = recorded("sunrpc-virtual", tmp_path)
    document = json.loads((run / "run.json").read_text())
    for part, changed in (
        ("scenario", {name: value for name, value in document["scenario"].items() if name != "expect"}),
        ("topology", {**document["topology"], "clock": "never"}),
        ("topology", {name: value for name, value in document["topology"].items() if name != "defaults"}),
    ):
        change(run, **{part: changed})
        assert any(field.startswith("run.json") for field in fields(run))
        change(run, **{part: document[part]})
    assert fields(run) == []


def test_calls_by_size_are_a_scenario(tmp_path: Path) -> None:
    """JSON has no numbers for names."""
    run = recorded("sunrpc-virtual", tmp_path)
    scenario = json.loads((run / "run.json").read_text())["scenario"]
    first, *others = scenario["workloads"]
    change(run, scenario={**scenario, "workloads": [{**first, "calls": {"0": 5, "64": 3}}, *others]})
    assert not [field for field in fields(run) if field.startswith("run.json")]

# SPDX-License-Identifier: Apache-2.0
"""Stamps come into the run directory whole, or the run has failed; own programs are not traced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.machines.functions import SYMBOLS
from sundial.machines.images import Image
from sundial.model.load import load_experiments
from sundial.plan.build import Plan, plan_run
from sundial.plan.paths import RunPaths
from sundial.run.traces import TRACE, Traces
from tests.model.kernels import elf

STAMPS = b"SUNTRACE" + bytes(8) + bytes(3 * 40)


def planned(*overrides: str, scenario: str = "quickstart") -> Plan:
    (experiment,) = load_experiments(scenario, overrides=["trace=steps", *overrides])
    return plan_run(experiment, RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/x")))


def images(folder: Path) -> dict[str, Image]:
    table = {"text_sha256": "a", "functions": [["401000", "20", "ab", "f"]]}
    written: dict[str, Any] = {
        "version": 2,
        "applications": {"echo-client": "apps"},
        "kernel": None,
        "programs": {"apps": table, "core": table},
    }
    manifest = {"programs": {"apps": "a", "core": "a"}}
    found = {}
    for name, kernel in (("linux", None), ("ssscore", "core")):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / SYMBOLS).write_text(json.dumps({**written, "kernel": kernel}))
        found[name] = Image(name, folder / name / "kernel", folder / name / "initrd", "1", "2", manifest)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("client", "server"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
        (tmp_path / f"trace-{name}").write_bytes(STAMPS)
    return tmp_path


def collected(folder: Path, report: dict[str, Any]) -> Any:
    traces = Traces(planned(), images(folder), folder)
    return traces.collect(lambda machine: report, lambda machine: folder / "nodes" / machine)


def test_stamps_are_copied_to_the_run(folder: Path) -> None:
    assert collected(folder, {"stamps": 3}) is None
    for name in ("client", "server"):
        assert (folder / "nodes" / name / TRACE).read_bytes() == STAMPS


@pytest.mark.parametrize("report", [{"stamps": 4}, {"stamps": 2}, {}])
def test_a_trace_that_is_not_as_long_as_was_counted_fails_the_run(folder: Path, report: dict[str, int]) -> None:
    error = collected(folder, report)
    assert error is not None
    assert error.machine == "server"
    counted = report.get("stamps")
    assert error.message == f"server: its trace has 136 bytes, and it counted {counted} stamps of 40"
    assert (folder / "nodes" / "client" / TRACE).is_file()  # what there is, is kept


def test_a_machine_that_is_not_traced_gets_no_files(folder: Path) -> None:
    traces = Traces(planned("trace=none"), images(folder), folder)
    assert traces.files("client") is None
    assert Traces(planned(), images(folder), folder).files("client") is not None


@pytest.mark.parametrize(
    ("scenario", "own"),
    [
        ("quickstart", "files={/usr/lib/sundial/apps: {content: x}}"),
        ("mbcf-operations", "files={/apps: {content: x}}"),
        ("mbcf-operations", "kernel=KERNEL"),
    ],
)
def test_own_programs_are_not_traced(folder: Path, scenario: str, own: str) -> None:
    (folder / "own").write_bytes(elf())
    plan = planned(f"machines.server.{own.replace('KERNEL', str(folder / 'own'))}", scenario=scenario)
    with pytest.raises(BadInput, match="machine 'server' boots its own programs"):
        Traces(plan, images(folder), folder)


def test_other_files_do_no_harm(folder: Path) -> None:
    for scenario in ("quickstart", "mbcf-operations"):
        assert Traces(
            planned("machines.server.files={/notes: {content: x}}", scenario=scenario), images(folder), folder
        )

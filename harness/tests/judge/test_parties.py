# SPDX-License-Identifier: Apache-2.0
"""Parties of a run, from its jobs and samples."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from sundial.judge.parties import Service, check_reporters, options_of
from sundial.verify.samples import RunSamples


class Echo(Service):
    PORT = 7


def samples(**records: list[dict[str, Any]]) -> RunSamples:
    return RunSamples(pl.DataFrame(), {}, {name: tuple(lines) for name, lines in records.items()})


def line(app: str = "echo", port: int = 7, **others: object) -> dict[str, Any]:
    return {"type": "counters", "app": app, "port": port, **others}


SERVICE = Echo("server", ("10.0.0.2", "10.1.0.2"), "echo", {})


def test_absent_port_is_the_default_of_the_program() -> None:
    assert SERVICE.ends == {("10.0.0.2", 7), ("10.1.0.2", 7)}
    assert Echo("server", (), "echo", {"port": 9}).port == 9


def test_lines_of_a_service_are_those_of_its_machine_program_and_port() -> None:
    mine = [line(calls=1), line(calls=2)]
    others = [line("other"), line(port=8), {"type": "step", "app": "echo", "port": 7}]
    assert SERVICE.lines(samples(server=[mine[0], *others, mine[1]], client=[line()])) == mine


@pytest.mark.parametrize(
    ("machine", "report", "seen"),
    [
        ("server", line(), []),
        ("server", line(port=8), ["echo, port 8"]),
        ("client", line(), ["echo, port 7"]),
        ("server", line("other", port=8), []),
        ("server", {**line(port=8), "type": "step"}, []),
    ],
)
def test_report_of_a_server_without_a_job_is_a_finding(machine: str, report: dict[str, Any], seen: list[str]) -> None:
    found = list(check_reporters(samples(**{machine: [report]}), [SERVICE], lambda each: each.get("app") == "echo"))
    assert [each.seen for each in found] == seen
    assert all(each[:3] == (None, f"nodes/{machine} counters", "of a server of its job") for each in found)


@pytest.mark.parametrize(("step", "options"), [(0, {"size": 1}), (1, {}), (-1, {})])
def test_step_that_a_job_does_not_have_has_no_options(step: int, options: dict[str, int]) -> None:
    run = SimpleNamespace(jobs={"client": {"steps": [{"app": "echo-client", "options": {"size": 1}}]}})
    assert options_of(run, "client", step) == options  # type: ignore[arg-type]

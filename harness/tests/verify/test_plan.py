# SPDX-License-Identifier: Apache-2.0
"""Jobs against run.json, and samples against jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.observe import open_run
from sundial.plan.jobs import build_jobs
from sundial.verify.jobs import check_jobs
from sundial.verify.plan import check_plan
from sundial.verify.samples import load_samples

ZERO_NS = 3_000_000_000
COLUMNS = ["call", "start", "end", "ok", "retransmits", "xid", "error"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a run of quickstart with two sizes would leave, but for its captures."""
    settings = ["sizes=64,1024", "calls=2"]
    (experiment,) = load_experiments("quickstart", overrides=settings)
    nodes = {}
    for node in experiment.network.nodes:
        interfaces = [
            {
                "device": nic.device, "mac": nic.mac, "address": str(nic.address), "segment": nic.segment,
                "mtu": nic.mtu,
            }
            for nic in node.nics
        ]  # fmt: skip
        nodes[node.name] = {"zero_ns": ZERO_NS, "interfaces": interfaces}
    document = {
        "version": 1, "status": "complete", "scenario": experiment.scenario_json(),
        "topology": experiment.topology_json(), "seed": experiment.seed, "clock": "virtual", "captures": {},
        "mtu": {"lan": 1500}, "nodes": nodes, "versions": {"kernel": "6.1, sss-core 1.0"},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(document))
    for name, job in build_jobs(experiment).items():
        folder = tmp_path / "nodes" / name
        folder.mkdir(parents=True)
        written = job.model_copy(update={"zero_ns": ZERO_NS}).document()
        (folder / "job.json").write_text(json.dumps(written, indent=1) + "\n")
        (folder / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in samples(name, written)))
    return tmp_path


def samples(name: str, job: dict[str, object]) -> list[object]:
    lines: list[object] = [{"type": "hello", "machine": name, "clock": "tsc", "kernel": "6.1", "clock_hz": 10**9}]
    now = ZERO_NS + 1000
    for number, step in enumerate(job["steps"]):  # type: ignore[arg-type, var-annotated]
        options = step["options"]
        for size in options["sizes"]:
            lines.append(
                {
                    "type": "batch", "step": number, "app": step["app"], "series": options["series"],
                    "transport": options["transport"], "procedure": "echo", "size": size, "thread": 0,
                    "server": options["server"], "server_port": 1025, "client_port": 40_000, "warmup": 1,
                    "columns": COLUMNS,
                }
            )  # fmt: skip
            for call in range(options["calls"] + 1):
                lines.append([call, now, now + 500, 1, 0, call, None])
                now += 1000
        lines.append({"type": "step", "step": number, "app": step["app"], "status": 0})
    return [*lines, {"type": "done", "status": 0}]


def fields(run: Path) -> list[str]:
    opened = open_run(run)
    return [
        *check_jobs(opened)["field"].to_list(),
        *check_plan(opened, load_samples(opened), {})["field"].to_list(),
    ]


def test_what_was_planned_and_done_has_no_findings(run: Path) -> None:
    assert fields(run) == []


@pytest.mark.parametrize(
    ("file", "pattern", "other", "field"),
    [
        ("run.json", '"seed": 1,', '"seed": 2,', "run.json scenario"),
        ("run.json", '"mac": "02:53:44:00:00:01"', '"mac": "02:53:44:00:00:07"', "run.json nodes"),
        ("nodes/client/job.json", "64,", "64,\n     99,", "nodes/client batch 1 size"),
        ("nodes/client/samples.jsonl", r"\[1, \d+", "[1, 1", "sample.start"),
        ("nodes/client/samples.jsonl", r"(\[1, \d+), \d+", r"\1, 1", "sample.end"),
        ("nodes/client/samples.jsonl", ", 1, 0, 1, null", ", 0, 0, 1, null", "sample.error"),
        ("nodes/client/samples.jsonl", r'(\{"type": "hello".*\n)', r'{"type": "x"}\n\1', "nodes/client hello"),
        (
            "nodes/client/samples.jsonl",
            r'(\{"type": "step")',
            r'{"type": "found", "step": 1, "app": "echo-client"}\n\1',
            "nodes/client found",
        ),
        (
            "nodes/client/samples.jsonl",
            r'(\{"type": "step")',
            r'{"type": "found", "step": 0, "app": "another"}\n\1',
            "nodes/client found",
        ),
    ],
)
def test_another_plan_or_another_deed_is_found(run: Path, file: str, pattern: str, other: str, field: str) -> None:
    path = run / file
    before = path.read_text()
    path.write_text(re.sub(pattern, other, before, count=1))
    assert path.read_text() != before
    assert field in fields(run)


@pytest.mark.parametrize(("name", "end_ns", "found"), [
    ("server", 299_999_999, []),
    ("server", 300_000_000, ["nodes/server done"]),
    ("client", 299_999_999, ["nodes/client done"]),
])  # fmt: skip
def test_a_machine_may_still_start_its_services_when_the_run_ends(
    run: Path, name: str, end_ns: int, found: list[str]
) -> None:
    """Before the time that is planned for their start: where a scenario begins earlier, and its clients give up."""
    document = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(document | {"time": {"virtual_ns": end_ns, "wall_s": 1}}))
    records = run / "nodes" / name / "samples.jsonl"
    records.write_text("".join(line for line in records.read_text().splitlines(True) if '"done"' not in line))
    assert fields(run) == found


@pytest.mark.parametrize(
    "damage",
    [lambda d: d.pop("topology"), lambda d: d["scenario"].pop("workloads"), lambda d: d.update(clock="sidereal")],
)
def test_a_record_that_cannot_be_read_is_bad_input(run: Path, damage: Callable[[dict[str, object]], object]) -> None:
    document = json.loads((run / "run.json").read_text())
    damage(document)
    (run / "run.json").write_text(json.dumps(document))
    with pytest.raises(BadInput):
        check_jobs(open_run(run))

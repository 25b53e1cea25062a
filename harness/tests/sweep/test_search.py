# SPDX-License-Identifier: Apache-2.0
"""A search from its file to one command, with runs that fail where the test says; no machine is booted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from sundial.model.load import load_experiments
from sundial.plan.request import Silence
from sundial.sweep.perform import Swept
from sundial.sweep.search import Searching
from tests.sweep import side
from tests.sweep.bench import InProcess, sweeping
from tests.sweep.side import FOLDER, MAKING

FILE: dict[str, Any] = {
    "topology": "two-hosts-wan",
    "set": {
        "timeline": [
            {"at": "1 s", "cut": "client:eth0", "for": "1 ms"},
            {"at": "2 s", "impair": "wan", "delay": "5 ms"},
        ]
    },
    "axes": {
        "loss": {"key": "loss", "from": "0 %", "to": "20 %"},
        "calls": {"key": "calls", "values": [1, 10, 100]},
        "duplicate": {"key": "duplicate", "values": ["0 %", "5 %"]},
    },
}


@pytest.fixture(autouse=True)
def _asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asked").mkdir()
    monkeypatch.setenv(FOLDER, str(tmp_path / "asked"))


def fails_above(monkeypatch: pytest.MonkeyPatch, percent: float) -> None:
    """Runs with more loss have a mismatch, unless nothing is cut."""

    def verify(out: Path) -> dict[str, Any]:
        document = json.loads((out / "run.json").read_text())
        loss = document["topology"]["segments"]["wan"]["impairments"]["both"]["loss"]
        cut = any("cut" in event for event in document["scenario"].get("timeline", []))
        bad = cut and float(loss.removesuffix(" %")) > percent
        problem = {"field": f"call {out.stat().st_ino}", "expected": 1, "seen": 2}
        return {"verdict": "fail" if bad else "pass", "calls": 1, "mismatches": int(bad), "problems": [problem] * bad}

    monkeypatch.setattr(side, "verify", verify)


def search(folder: Path, data: dict[str, Any] = FILE) -> Swept:
    making = type(MAKING)(side.run, side.verify, side.report)
    return sweeping(folder, data, kind=Searching).perform(making, Silence(), InProcess)


def test_a_failing_run_is_found_and_its_smallest_form_is_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails_above(monkeypatch, 5)
    swept = search(tmp_path)
    found = swept.found
    assert found is not None
    assert found["fault"] == "fail: call N"
    assert swept.status == 1
    assert len(swept.rows) == found["draws"]
    words = shlex.split(found["command"])
    assert words[:3] == ["./sundial", "run", "loss"]
    settings = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
    seed = int(words[words.index("--seed") + 1])
    (experiment,) = load_experiments("loss", topology="two-hosts-wan", overrides=settings, seed=seed)
    segment = experiment.topology_json()["segments"]["wan"]["impairments"]["both"]
    assert 5 < float(segment["loss"].removesuffix(" %")) < 5.5
    assert segment["duplicate"] == "0 %"
    assert [event["cut"] for event in experiment.scenario_json()["timeline"]] == ["client:eth0"]
    assert experiment.scenario_json()["workloads"][0]["calls"] == 1
    assert found["command"] in (swept.folder / "index.html").read_text().replace("&#39;", "'").replace("&#34;", '"')
    assert search(tmp_path).found == found, "the same command finds the same, from the store"


def test_bounds_are_a_part_of_the_command(tmp_path: Path) -> None:
    data = {**FILE, "set": {}, "expect": ["max(rtt_ms) < 100 where transport = udp"]}
    found = search(tmp_path, data).found
    assert found is not None
    assert "expect.metrics=" in found["command"]
    assert found["fault"] == "fail: max(rtt_ms) < N where transport = udp"


def test_a_search_that_finds_nothing_ends_with_its_budget(tmp_path: Path) -> None:
    swept = search(tmp_path, {**FILE, "search": {"runs": 9}})
    assert (swept.found, swept.status, len(swept.rows)) == (None, 0, 9)
    few = search(tmp_path, {**FILE, "axes": {}, "set": {"calls": 1, "loss": "0 %"}, "seeds": "1..3"})
    assert len(few.rows) == 3, "each run once"


def test_machines_and_clients_that_a_fault_does_not_need_are_left_out(tmp_path: Path) -> None:
    names = ("a", "b", "c", "server")
    topology = {
        "machines": {name: {"interfaces": {"eth0": {"address": f"10.0.0.{number}/24"}}} for number, name in
                     enumerate(names, 1)},
        "segments": {"lan": {"kind": "hub", "rate": "10 Mbit/s", "ports": [f"{name}:eth0" for name in names]}},
    }  # fmt: skip
    work: dict[str, Any] = {"app": "sunrpc", "transports": ["udp"], "procedures": ["echo"], "sizes": [64], "calls": 2}
    (tmp_path / "four.yaml").write_text(json.dumps({"topology": topology, "workloads": [work, {**work, "calls": 3}]}))
    data = {"scenario": str(tmp_path / "four.yaml"), "expect": ["count() < 1"]}
    found = search(tmp_path, data).found
    assert found is not None
    settings = [word for word in shlex.split(found["command"]) if "=" in word]
    (experiment,) = load_experiments(data["scenario"], overrides=settings)  # type: ignore[arg-type]
    assert [node.name for node in experiment.network.nodes] in (["a", "server"], ["b", "server"], ["c", "server"])
    assert len(experiment.workloads) == 1

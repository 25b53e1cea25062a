# SPDX-License-Identifier: Apache-2.0
"""Own tasks on two SSS-CORE nodes with a backplane, in virtual time; nothing is verified."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.run.live import END_S, HARNESS, VARIABLES

SSS_CORE = HARNESS.parent / "guest-apps" / "sss-core"
PEERS = {"client": 2, "server": 1}
Program = str | Mapping[str, Any]
"""A case of the program under test, or an entry of the job."""

RUN = """
import json, sys
from pathlib import Path
from sundial.model.load import load_experiments
from sundial.plan import build
from sundial.plan.request import RunRequest
from sundial.run import runner
from sundial.run.supervisor import GuestFailed, Supervisor, Tick
from sundial.seams.job import Service, Task
scenario, out, cold, given = sys.argv[1], Path(sys.argv[2]), sys.argv[3] == "cold", json.loads(sys.argv[4])
original = build.build_jobs
def build_jobs(experiment):
    def job(name, made):
        services, steps = given[name]
        services, steps = map(Service.model_validate, services), map(Task.model_validate, steps)
        return made.model_copy(update={"services": tuple(services), "steps": tuple(steps)})
    return {name: job(name, made) for name, made in original(experiment).items()}
class Calm(Supervisor):
    def handle(self, event, now):
        return super().handle(Tick() if isinstance(event, GuestFailed) else event, now)
class Progress:
    def say(self, text): print(text)
    def share(self, done, text): pass
build.build_jobs, runner.Supervisor = build_jobs, Calm
(experiment,) = load_experiments(scenario)
runner.run(RunRequest(experiment, out.parent, out, "embedded", cold, ("test",)), Progress())
"""
"""The jobs are replaced, and a task that faults fails no run: some are meant to."""

SCENARIO = {
    "description": "tasks of a test",
    "deadline": "10 s",
    "linger": "20 ms",
    "workloads": [{"app": "mbcf", "clients": "client", "server": "server", "operations": ["write"], "sizes": [4]}],
}


def build_task(out: Path, name: str) -> Path:
    """A program of guest-apps/sss-core/tests/tasks."""
    program = out / "check" / "bin" / name
    argv = ["make", "-s", "-C", str(SSS_CORE), f"OUT={out}", str(program)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=END_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return program


class Pair:
    """Two nodes and what their tasks have recorded: (case, what) and the numbers in order."""

    def __init__(
        self, program: Path, folder: Path, backplane: Mapping[str, str] | None = None, *, cold: bool = False
    ) -> None:
        self._folder = folder
        self._cold = cold
        self._name = program.name
        addresses = {name: f"10.0.0.{3 - peer}/24" for name, peer in PEERS.items()}
        machines = {name: {"interfaces": {"eth0": {"address": addresses[name]}, "vmmc0": {}}} for name in PEERS}
        lan = {"kind": "switch", "rate": "100 Mbit/s", "ports": [f"{name}:eth0" for name in PEERS]}
        ports = [f"{name}:vmmc0" for name in PEERS]
        topology = {
            "description": "two nodes on a backplane",
            "defaults": {"image": "ssscore", "mips": 62.5, "files": {f"/{self._name}": {"from": str(program)}}},
            "machines": machines,
            "segments": {"backplane": {"kind": "vmmc", "ports": ports, **(backplane or {})}, "lan": lan},
        }
        (folder / "pair.yaml").write_text(json.dumps(topology))
        (folder / "tasks.yaml").write_text(json.dumps({**SCENARIO, "topology": "pair.yaml"}))

    @property
    def out(self) -> Path:
        return self._folder / "run"

    def run(self, **jobs: tuple[Sequence[Program], Sequence[Program]]) -> None:
        """By machine its services and its steps."""
        given = {name: [[self._entry(name, each) for each in programs] for programs in jobs[name]] for name in PEERS}
        argv = [sys.executable, "-c", RUN, str(self._folder / "tasks.yaml"), str(self.out)]
        argv += ["cold" if self._cold else "restored", json.dumps(given)]
        done = subprocess.run(
            argv, cwd=HARNESS, env=VARIABLES, capture_output=True, text=True, check=False, timeout=END_S
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _entry(self, machine: str, program: Program) -> Mapping[str, Any]:
        if not isinstance(program, str):
            return program
        return {"app": self._name, "options": {"case": program, "peer": PEERS[machine]}}

    def lines(self, machine: str) -> list[dict[str, Any]]:
        text = (self.out / "nodes" / machine / "samples.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def results(self, machine: str, case: str) -> dict[str, list[int]]:
        """What the task of this case said, in order."""
        found: dict[str, list[int]] = {}
        for line in self.lines(machine):
            if line["type"] == "lab" and line["case"] == case:
                found.setdefault(line["what"], []).append(line["value"])
        return found

    def faults(self, machine: str) -> list[str]:
        return [line["message"].partition(": ")[2] for line in self.lines(machine) if line["type"] == "error"]

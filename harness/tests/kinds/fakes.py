# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kinds.fakes WORDS`: the command line on machines and a fabric that are fakes.

The run of fakes has frames all the same: toys are packed by hand here, from the words of its jobs.
"""

from __future__ import annotations

import importlib
import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

from sundial.cli import rooms
from sundial.cli.main import main
from sundial.machines.fake import FakeHypervisor
from sundial.machines.guard import Guard
from sundial.machines.hypervisor import Happening, LifecycleEvent
from sundial.machines.runtime import RuntimeFolder
from sundial.model.load import load_experiments
from sundial.plan.request import Progress, RunRequest, RunResult
from sundial.reproduce import runs
from sundial.run import runner
from sundial.run.fabric import FakeFabric, OnHeard
from sundial.run.places import Places
from sundial.run.session import Session
from tests.verify.bed import CLIENT, SERVER, Bed, capture, counters

PORTS = ["client:eth0", "server:eth0"]
TOY_PORT, CLIENT_PORT = 4242, 40_000
END_NS = 1_000_000_000


def make_toys(bed: Bed, options: dict[str, Any]) -> None:
    """What one step of toy-client does."""
    for size in options["sizes"]:
        bed.batch("toy-client", "udp", size, TOY_PORT, CLIENT_PORT)
        fields = {name: options[name] for name in ("series", "warmup")}
        bed.lines[-1] = json.dumps(json.loads(bed.lines[-1]) | fields)
        for call in range(options["warmup"] + options["calls"]):
            number, start = len(bed.records) + call, bed.now
            toy = (struct.pack(">4sI", b"TOY1", number) + bytes(size))[:size]
            bed.send(CLIENT, bed.datagram(CLIENT, (CLIENT_PORT, TOY_PORT), toy))
            bed.send(SERVER, bed.datagram(SERVER, (TOY_PORT, CLIENT_PORT), toy))
            bed.sample(start, number)


def act(fabric: FakeFabric) -> None:
    """All machines run: everything that a run writes, and its end."""
    wire = Path(fabric.config["capture_dir"])
    nodes = wire.parent / "nodes"
    bed = Bed(wire.parent)
    for number, step in enumerate(json.loads((nodes / "client" / "job.json").read_text())["steps"]):
        assert step["app"] == "toy-client"
        first = len(bed.lines)
        make_toys(bed, step["options"])
        bed.lines[first:] = [line.replace('"step": 0', f'"step": {number}') for line in bed.lines[first:]]
        bed.lines.append(json.dumps({"type": "step", "step": number, "app": step["app"], "status": 0}))
    (wire / "lan.pcapng").write_bytes(capture([*PORTS, "lan:fate"], bed.records))
    document = json.loads(counters({"lan": (PORTS, bed.records)}))
    document["virtual_ns"], document["segments"]["lan"]["kind"] = END_NS, "tube"
    (wire / "counters.json").write_text(json.dumps(document))
    for name, written in (("client", bed.lines), ("server", [])):
        hello = {
            "type": "hello", "version": 1, "machine": name, "kernel": "6.1-toy", "clock": "monotonic",
            "clock_hz": 1_000_000_000,
        }  # fmt: skip
        (nodes / name / "console.log").touch()
        lines = [json.dumps(hello), *written, '{"type":"done","status":0}']
        (nodes / name / "samples.jsonl").write_text("".join(f"{line}\n" for line in lines))
    fabric.finish(END_NS)


def run(request: RunRequest, progress: Progress) -> RunResult:
    """One run of fakes."""
    places = Places()
    runtime = RuntimeFolder()
    guard = Guard(runtime.token)
    guard.remove_on_death(runtime.path)
    hypervisor = FakeHypervisor()
    fabrics: list[FakeFabric] = []
    running: list[str] = []

    def start_fabric(program: Path, config: Path, on_heard: OnHeard) -> FakeFabric:
        fabrics.append(FakeFabric(program, config, on_heard))
        return fabrics[-1]

    def watch(event: LifecycleEvent) -> None:
        if event.happening is Happening.RESUMED:
            running.append(event.machine)
            if len(running) == len(hypervisor.machines):
                act(fabrics[-1])

    hypervisor.listen(watch)
    session = Session(places, runtime, guard, hypervisor, start_fabric=start_fabric, shm_folder=runtime.path)
    try:
        return runner.run(request, progress, session=session)
    finally:
        session.close()


if __name__ == "__main__":
    # By the name under which a process of its own finds it.
    rooms.run = importlib.import_module("tests.kinds.fakes").run
    # Under virtual time a run begins with a snapshot, and fakes have no state to keep.
    runs.load_experiments = partial(load_experiments, clock="real")
    main()

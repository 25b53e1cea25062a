# SPDX-License-Identifier: Apache-2.0
"""The jobs of the machines against the scenario and the topology that run.json names: they are planned again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.model.network import Network
from sundial.model.recorded import recorded_experiment, recorded_network
from sundial.model.topology import Clock
from sundial.observe import RunDirectory
from sundial.plan.jobs import build_idle_jobs, build_jobs
from sundial.verify.findings import Finding, as_table


def check_jobs(run: RunDirectory) -> pl.DataFrame:
    """A finding for each machine whose job.json is not, byte for byte, what the plan makes of run.json, and for each
    part of run.json that its own topology contradicts.

    Raises BadInput for a topology or scenario that cannot be read.
    """
    try:
        rows = list(_rows(run))
    except BadInput as error:
        raise error.within(file=str(run.path / "run.json")) from None
    return as_table(rows)


def _rows(run: RunDirectory) -> Iterator[Finding]:
    if run.document.get("scenario") is None:
        network = recorded_network(run.document)
        clock: Clock = "real" if run.clock == "real" else "virtual"
        jobs = build_idle_jobs(network, clock=clock, seed=int(run.document.get("seed") or 0))
    else:
        experiment = recorded_experiment(run.document)
        network, jobs = experiment.network, build_jobs(experiment)
        for name, read in (("scenario", experiment.scenario_json()), ("topology", experiment.topology_json())):
            planned = json.loads(json.dumps(read))
            if planned != run.document[name]:
                yield Finding(None, f"run.json {name}", *_difference(planned, run.document[name]))
    yield from _machines(run, network)
    for name, job in jobs.items():
        zero_ns = (run.document["nodes"].get(name) or {}).get("zero_ns")
        at_zero = job if zero_ns is None else job.model_copy(update={"zero_ns": zero_ns})
        path = run.path / "nodes" / name / "job.json"
        seen = path.read_bytes() if path.is_file() else b""
        if seen != (json.dumps(at_zero.document(), indent=1) + "\n").encode():
            yield Finding(None, f"nodes/{name}/job.json", *_difference(at_zero.document(), run.jobs.get(name)))


def _machines(run: RunDirectory, network: Network) -> Iterator[Finding]:
    """What run.json says of the machines a second time."""
    planned = {
        node.name: [
            [nic.device, nic.mac, None if nic.address is None else str(nic.address), nic.segment, nic.mtu]
            for nic in node.interfaces
        ]
        for node in network.nodes
    }
    names = ("device", "mac", "address", "segment", "mtu")
    seen = {
        name: [[each.get(field) for field in names] for each in node.get("interfaces", ())]
        for name, node in run.document["nodes"].items()
    }
    if seen != planned:
        yield Finding(None, "run.json nodes", *_difference(planned, seen))
    end_ns = (run.document.get("time") or {}).get("virtual_ns")
    for name, node in run.document["nodes"].items():
        due = None if run.by_hand else network.offs_ns.get(name)
        if node.get("off_ns") != due:
            said = f"{_instant(node.get('off_ns'))}; the run ended at {_instant(end_ns)}"
            yield Finding(None, f"run.json nodes.{name}.off_ns", _instant(due), said)
    mtu = {name: segment.mtu for name, segment in network.captured.items()}
    if run.document.get("mtu") != mtu:
        yield Finding(None, "run.json mtu", str(mtu), str(run.document.get("mtu")))


def _instant(at_ns: object) -> str:
    return "none" if at_ns is None else f"{at_ns} ns"


def _difference(planned: Any, seen: Any, place: str = "") -> tuple[str, str]:
    """Where two documents differ first: what is planned there, and what is there."""
    if isinstance(planned, dict) and isinstance(seen, dict):
        for name in [*planned, *(set(seen) - set(planned))]:
            if planned.get(name) != seen.get(name):
                return _difference(planned.get(name), seen.get(name), f"{place}.{name}".lstrip("."))
    elif isinstance(planned, list) and isinstance(seen, list) and len(planned) == len(seen):
        for number, (mine, theirs) in enumerate(zip(planned, seen, strict=True)):
            if mine != theirs:
                return _difference(mine, theirs, f"{place}[{number}]")
    if planned == seen:
        return "what the plan writes", "the same values in another form"
    return f"{place or 'it'} {_short(planned)}", f"{_short(seen)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:76]} ..."

# SPDX-License-Identifier: Apache-2.0
"""Runs without machines, for workers: round trips by a formula of loss, transport and seed. Importable in processes."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from sundial.errors import GuestFault, HostLacks, RunFailed
from sundial.model.experiment import Experiment
from sundial.model.tables import TABLES
from sundial.observe import SAMPLE_COLUMNS
from sundial.reproduce.worker import Making
from sundial.sweep.cluster.offer import Offer, Part
from sundial.sweep.identity import Identity, stated
from sundial.sweep.store import Store

FOLDER = "SWEEP_TEST"
"""Variable with the folder of what runs are to do: a file `WORD-SEED`, which is taken away once it was done."""
CALLS = 20
PARTS = {"QEMU": Part("a" * 64, "7.2")}


def die() -> None:
    os._exit(9)


class Known:
    """Keys over what scenario and topology state."""

    def __init__(self, verifier: str = "v1") -> None:
        self._verifier = verifier

    def of(self, experiment: Experiment) -> Identity:
        return Identity({**stated(experiment), "machines": {}, "programs": {"plugin": "1", "fabric": "2"}})

    def verifier(self) -> str:
        return self._verifier

    def sources(self) -> str:
        return "sources"

    def offer(self, store: Store, slots: int, name: str) -> Offer:
        return Offer(name, "here", slots, store.id, PARTS)

    def files(self, experiment: Experiment) -> dict[str, dict[str, tuple[str, Path]]]:
        return {}


def run(request: Any, progress: Any) -> None:
    """A run directory."""
    seed, out = request.experiment.seed, request.out
    if _is_asked("die", seed):
        (out.parent / ".made.partial").mkdir()
        die()
    if _is_asked("stop", seed):
        raise RunFailed("libvirt could not start it", machine="server")
    if _is_asked("lack", seed):
        raise HostLacks("the host has no memory left")
    if _is_asked("stay", seed):
        time.sleep(300)
    if _is_asked("doze", seed, keep=True):
        time.sleep(1)
    out.mkdir()
    if _is_asked("panic", seed, keep=True):
        (out / "run.json").write_text(json.dumps(_document(request, {})))
        raise RunFailed("its kernel panicked", machine="server", whose="run")
    (out / "wire").mkdir()
    (out / "wire" / "wan.pcapng").write_bytes(b"capture" + bytes([_is_asked("differ", seed)]))
    (out / "wire" / "counters.json").write_text(json.dumps({"virtual_ns": 7, "segments": {}}))
    samples(request.experiment).write_parquet(out / "samples.parquet")
    pl.DataFrame(schema=dict.fromkeys(TABLES["observed"], pl.Int64)).write_parquet(out / "observed.parquet")
    names = ("wire/wan.pcapng", "wire/counters.json", "samples.parquet")
    files = {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in names}
    (out / "run.json").write_text(json.dumps(_document(request, files)))


def _document(request: Any, files: dict[str, str]) -> dict[str, Any]:
    topology, scenario = request.experiment.topology_json(), request.experiment.scenario_json()
    return {
        "status": "complete", "topology": topology, "scenario": scenario, "images": {}, "versions": {}, "files": files,
        "time": {"virtual_ns": 7},
    }  # fmt: skip


def samples(experiment: Experiment) -> pl.DataFrame:
    """Round trips: 20 ms, over UDP 1 s more where a call is lost; over TCP 0.3 s more, and 1 ms in any case."""
    segment = next(iter(experiment.topology.segments.values()))
    impaired = getattr(segment, "impairments", {}).get("both")
    loss = float(impaired.loss or 0) if impaired is not None else 0.0
    rows: list[dict[str, Any]] = []
    for transport, base, more in (("udp", 20, 1000), ("tcp", 21, 300)):
        random = Random(f"{experiment.seed} {transport}")
        for call in range(CALLS):
            lost = random.random() < loss
            rtt_ns = int(1e6 * (base + random.random() / 10 + more * lost))
            rows.append({"client": "client", "transport": transport, "app": "sunrpc", "procedure": "echo", "size": 64,
                         "call": call, "warmup": False, "start_ns": 0, "end_ns": rtt_ns, "rtt_ns": rtt_ns, "ok": True,
                         "retransmits": int(lost), "series": 0, "thread": 0, "batch": 0})  # fmt: skip
    return pl.DataFrame(rows, schema={name: SAMPLE_COLUMNS[name] for name in SAMPLE_COLUMNS})


def verify(out: Path) -> dict[str, Any]:
    """`bad-SEED` has a mismatch."""
    if _is_asked("lie", _seed(out)):
        raise GuestFault("samples.jsonl is malformed", machine="client")
    bad = _is_asked("bad", _seed(out), keep=True)
    problem = {"field": "request.packets", "expected": 2, "seen": 1}
    return {"verdict": "fail" if bad else "pass", "calls": 2 * CALLS, "mismatches": int(bad),
            "retransmissions": {"udp": 1}, "problems": [problem] * bad}  # fmt: skip


def _seed(out: Path) -> int:
    return int(json.loads((out / "run.json").read_text())["scenario"]["seed"])


def report(out: Path) -> None:
    (out / "report.html").write_text("report")


def _is_asked(word: str, seed: int, *, keep: bool = False) -> bool:
    path = Path(os.environ[FOLDER]) / f"{word}-{seed}"
    found = path.exists()
    if found and not keep:
        path.unlink()
    return found


MAKING = Making(run, verify, report)

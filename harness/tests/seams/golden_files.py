# SPDX-License-Identifier: Apache-2.0
"""The golden files: what this code writes at every seam; `python -m tests.seams.golden_files` writes them.

Jobs and fabric configurations come from real planning. The guests' C parses the same jobs in `make check`, and must
refuse each of `jobs/malformed.jsonl`: a golden job with one edit, and a word that the error must hold.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import product
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

from sundial.errors import RunFailed
from sundial.machines.images import Image
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.plan.build import Plan, plan_run, plan_topology
from sundial.plan.jobs import WAITING, encode_job
from sundial.plan.paths import RunPaths
from sundial.run.collect import Digests
from sundial.run.record import RunRecord
from sundial.seams.fate import Record
from sundial.verify import run
from sundial.verify.findings import none
from tests.verify.bed import RPC_PORT, Bed
from tests.verify.real import write_run

FOLDER = Path(__file__).parent / "golden"
PATHS = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/sundial-x"))
ZERO_NS = 3_494_200_000
SEED = 7


def files() -> Iterator[tuple[str, bytes]]:
    """Every golden file that is made here, by its path below FOLDER.

    `jobs/malformed.jsonl` is written by hand; `samples` and `counters` were recorded.
    """
    yield from ((f"jobs/{name}.json", text) for name, text in _jobs())
    yield from ((f"fabric/{name}.json", _document(plan.fabric)) for name, plan in _fabrics())
    yield from ((f"run/{name}.json", _document(document)) for name, document in _runs())
    yield from ((f"verify/{name}.json", text) for name, text in _verdicts())
    yield "fates/comments.txt", "".join(f"{fate.comment}\n" for fate in _fates()).encode()


def _fates() -> Iterator[Record]:
    """Every record: each rule, and each form of words."""
    fields: dict[str, Any] = {
        "adapter": "a:eth0", "from": "a:eth0", "to": "b:eth0", "bit": 7, "byte": 41, "attempt": 1, "bits": 96,
        "attempts": 16, "bytes": 13, "longest": 14, "node": 9, "lost_cells": 2, "cells": 32, "address": "10.0.0.9",
    }  # fmt: skip
    for model in get_args(Record):
        names = {field.alias or name: field for name, field in model.model_fields.items()}
        kind = "rule" if "rule" in names else "fate"
        for value, form in product(get_args(names[kind].annotation), model.words):
            needed = [name for name, field in names.items() if field.is_required() or f"{{{name}}}" in form]
            known = {"fate": get_args(names["fate"].annotation)[0]}
            yield model.model_validate({**{name: fields.get(name) for name in needed}, **known, kind: value})


def _document(document: Any) -> bytes:
    """As every document of a run directory is written."""
    return json.dumps(document, indent=1).encode() + b"\n"


def _plan(scenario: str, *overrides: str, **options: Any) -> Plan:
    options.setdefault("seed", SEED)
    return plan_run(load_experiments(scenario, overrides=overrides, **options)[0], PATHS)


def _written(topology: str, *workloads: str, **options: Any) -> Plan:
    """The plan of a scenario that is not shipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "golden.yaml"
        lines = "".join(f"  - {{{workload}}}\n" for workload in workloads)
        path.write_text(f"description: Golden\ntopology: {topology}\nworkloads:\n{lines}")
        return _plan(str(path), **options)


def _up(topology: str) -> Plan:
    loaded = load_topology(topology)
    return plan_topology(build_network(loaded), PATHS, clock="virtual", seed=SEED)


ROUTED = """\
description: Two networks with a router between
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}, routes: [{to: 10.1.0.0/24, via: 10.0.0.254}]}
  router: {interfaces: {eth0: {address: 10.0.0.254/24}, eth1: {address: 10.1.0.254/24}}}
  server: {interfaces: {eth0: {address: 10.1.0.1/24}}, routes: [{to: 10.0.0.0/24, via: 10.1.0.254}]}
segments:
  near: {kind: switch, rate: 10 Mbit/s, ports: ["client:eth0", "router:eth0"]}
  far: {kind: switch, rate: 10 Mbit/s, ports: ["router:eth1", "server:eth0"]}
"""


def _routed() -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "routed.yaml"
        path.write_text(ROUTED)
        return _up(str(path))


def _jobs() -> Iterator[tuple[str, bytes]]:
    """By `GUEST/NAME`, as fw_cfg serves them but for the padding."""
    rpc = "app: sunrpc, sizes: [0, 16], calls: 3"
    both = _written(
        "two-hosts-10base-t",
        f"{rpc}, transports: [udp, tcp]",
        f"{rpc}, transports: [udp], clients: [server], server: client",
    )
    raw = _plan("quickstart", "machines.client.interfaces.eth0.static_arp=true")
    mixed = _plan("sss-mixed")
    routed = _routed()
    deadly = f"{rpc}, transports: [mbcf3], die: {{when: during, call: 7, restart: true}}"
    restart = _written("sss-two-100base-tx", deadly, f"{rpc}, transports: [udp], clients: [server], server: client")
    dce = "app: dce, sizes: [0, 1392, 4016]"
    dces = _written(
        "two-hosts-10base-t",
        f"{dce}, procedures: [null, put, get, echo], binding: mapper, threads: 2, cancel: 5 s, byte_order: big",
        f"{dce}, procedures: [put], semantics: broadcast, policy: halves, clients: [server], server: client",
        "app: dce, functions: all, port: 1028",
    )
    twelve = "functions: all, calls: 3"
    functions = _written(
        "two-hosts-10base-t",
        f"app: sunrpc, transports: [tcp], {twelve}",
        f"app: raw, transports: [udp], {twelve}",
    )
    tasks = _written("sss-two-100base-tx", f"app: sunrpc, transports: [mbcf3b], {twelve}")
    shrimp = _plan("shrimp-rpc-sweep")
    grpc, rpyc, languages = _plan("grpc-lossy"), _plan("rpyc-nagle"), _plan("grpc-languages")
    jobs = {
        "linux-python/grpc-client": grpc.jobs["client"],
        "linux-python/grpc-server": grpc.jobs["server"],
        "linux-python/grpc-languages-client": languages.jobs["client"],
        "linux-python/grpc-languages-server": languages.jobs["server"],
        "linux-python/rpyc-client": rpyc.jobs["client"],
        "linux-python/rpyc-server": rpyc.jobs["server"],
        "linux/both": both.jobs["client"],
        "linux/host": raw.jobs["client"],
        "linux/server": raw.jobs["server"],
        "linux/real-clock": _plan("quickstart", clock="real").jobs["client"],
        "linux/bridge": _plan("quickstart", topology="two-hosts-netem").jobs["netem"],
        "linux/iperf3": _plan("iperf3").jobs["client"],
        "linux/dce-client": dces.jobs["client"],
        "linux/dce-server": dces.jobs["server"],
        "linux/functions-client": functions.jobs["client"],
        "linux/functions-server": functions.jobs["server"],
        "linux/endpoint": mixed.jobs["linux"],
        "linux/interactive": _up("sss-cluster").jobs["linux"],
        "linux/routes": routed.jobs["client"],
        "linux/router": routed.jobs["router"],
        "linux/waiting": WAITING,
        "sss-core/mixed": mixed.jobs["n2"],
        "sss-core/restart-server": restart.jobs["server"],
        "sss-core/restart-client": restart.jobs["client"],
        "sss-core/operations": _plan("mbcf-operations").jobs["client"],
        "sss-core/shrimprpc-client": shrimp.jobs["client"],
        "sss-core/shrimprpc-server": shrimp.jobs["server"],
        "sss-core/interactive": _up("sss-cluster").jobs["n1"],
        "sss-core/functions-client": tasks.jobs["client"],
        "sss-core/functions-server": tasks.jobs["server"],
        "sss-core/waiting": WAITING,
    }
    for name, job in jobs.items():
        yield name, encode_job(job, zero_ns=None if job is WAITING else ZERO_NS).rstrip(b"\n") + b"\n"


def _fabrics() -> Iterator[tuple[str, Plan]]:
    """One for each kind of segment, and what a plan has with the real clock and with nothing to run."""
    yield "hub", _plan("quickstart")
    yield "hub-adapter-latency", _plan("quickstart", "machines.client.adapter.latency=20 us")
    yield "hub-real-clock", _plan("quickstart", clock="real")
    yield "link", _plan("quickstart", topology="two-hosts-wan")
    yield "link-impaired", _plan("sss-faults")
    yield "link-timeline", _plan("partition")
    yield "switch", _plan("quickstart", topology="two-hosts-switched")
    yield "bridge-in-a-guest", _plan("quickstart", topology="two-hosts-netem")
    yield "atm-lane", _plan("quickstart", topology="two-hosts-lane")
    yield "atm-routed", _plan("quickstart", topology="two-hosts-clip")
    yield "devices", _plan("quickstart", topology="pc-hub-lane")
    yield "backplane", _up("sss-two-vmmc")
    yield "topology-only", _up("office")


def _runs() -> Iterator[tuple[str, dict[str, Any]]]:
    digest = "0123456789abcdef" * 4
    manifest = {
        "recipe": "tuned",
        "hz": 250,
        "python": {"python": "3.11.2", "rpyc": "5.3.0"},
        "cpp": {"grpc": "1.51.1"},
    }
    image = Image("linux", Path("/kernel"), Path("/initrd"), digest, digest, manifest)
    for status in ("complete", "failed"):
        (experiment,) = load_experiments("quickstart", seed=SEED)
        versions: Future[dict[str, str | None]] = Future()
        versions.set_result({"sundial": "0.1.0", "qemu": "7.2", "tshark": None})
        record = RunRecord(
            network=experiment.network,
            scenario=experiment.scenario.model_dump(mode="json"),
            topology=experiment.topology.model_dump(mode="json"),
            seed=SEED,
            clock=experiment.clock,
            accelerator="tcg",
            images={"linux": image},
            boots={},
            versions=versions,
            command=["sundial", "run", "quickstart"],
        )
        for node in experiment.network.nodes:
            record.zero(node.name, ZERO_NS)
        failed = status == "failed"
        record.over(
            "failed" if failed else "complete",
            error=RunFailed("echo-client failed", machine="client") if failed else None,
            virtual_ns=None if failed else 9_928_099_672,
            wall_s=14.676,
            digests=Digests({}, {}) if failed else Digests({"wire/lan.pcapng": digest}, {"samples.parquet": digest}),
            epoch_ns=None,
        )
        host = {
            "cpu": "A CPU",
            "cores": 2,
            "memory_bytes": 2**34,
            "load": [0.5, 0.5, 0.5],
            "kernel": "6.1",
            "system": None,
        }
        yield status, {**record.to_json(), "host": host}


def _verify(directory: Path) -> None:
    """Beds have frames and samples, but neither a scenario nor jobs: what was to be done is not asked of them."""
    with patch.object(run, "check_jobs", lambda *_: none()), patch.object(run, "check_plan", lambda *_: none()):
        run.verify_run(directory)


def _verdicts() -> Iterator[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        passed = write_run(Path(folder) / "pass")
        _verify(passed)
        yield "pass", (passed / "verify.json").read_bytes()
        bed = Bed(Path(folder) / "fail")
        bed.batch("echo-client", "udp", 2000, RPC_PORT, 700)
        for number in range(3):
            bed.udp_call(2000, 100 + number, 700)
        del bed.records[5]
        failed = bed.write()
        _verify(failed)
        yield "fail", (failed / "verify.json").read_bytes()


if __name__ == "__main__":
    for name, data in files():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_bytes(data)

# SPDX-License-Identifier: Apache-2.0
"""Topologies and scenarios that benchmarks run, written as a user would write them and read by the same model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments

MIPS = 125
CALL_BYTES = 64
"""Of the continuous echo: short calls are the most frequent, hence the dearest."""

BACKPLANE_MIPS = 62.5
"""What `sundial reproduce bilas97` takes."""

Clock = Literal["virtual", "real"]


def echo(
    folder: Path,
    *,
    pairs: int = 1,
    kind: str = "hub",
    rate: str = "10 Mbit/s",
    calls: int = 1,
    clock: Clock = "virtual",
    **workload: Any,
) -> Experiment:
    """Pairs of hosts on one segment, each client calling its own server; `workload` changes the Sun RPC echo."""
    clients, servers = [f"client{n}" for n in range(pairs)], [f"server{n}" for n in range(pairs)]
    hosts = [host for pair in zip(clients, servers, strict=True) for host in pair]
    topology = {
        "description": f"{2 * pairs} hosts, {kind}, {rate}",
        "clock": clock,
        "defaults": {"mips": MIPS},
        "machines": {
            host: {"interfaces": {"eth0": {"address": f"10.0.0.{number + 1}/24"}}} for number, host in enumerate(hosts)
        },
        "segments": {"lan": {"kind": kind, "rate": rate, "ports": [f"{host}:eth0" for host in hosts]}},
    }
    common: dict[str, Any] = {
        "app": "sunrpc",
        "transports": ["udp"],
        "procedures": ["echo"],
        "sizes": [CALL_BYTES],
        "calls": calls,
        **workload,
    }
    scenario = {
        "description": "A Sun RPC echo",
        "topology": "bench-hosts",
        "deadline": "1 h",
        "linger": "1 ms",
        "workloads": [
            {**common, "clients": [client], "server": server} for client, server in zip(clients, servers, strict=True)
        ],
        # In real time a busy host delays a reply beyond its timeout.
        "expect": {"retransmissions": "none" if clock == "virtual" else "allowed"},
    }
    return load_experiments(
        str(_write(folder / "bench-echo.yaml", scenario)), topology=str(_write(folder / "bench-hosts.yaml", topology))
    )[0]


def over_backplane(folder: Path, backplane: Mapping[str, Any], **workload: Any) -> Experiment:
    """Two nodes of SSS-CORE on a backplane with these fields, one calling the other by this workload."""
    machines = ["client", "server"]
    topology = {
        "description": "Two nodes on a backplane",
        "defaults": {"image": "ssscore", "mips": BACKPLANE_MIPS},
        "machines": {
            name: {"interfaces": {"eth0": {"address": f"10.0.0.{number + 1}/24"}, "vmmc0": {}}}
            for number, name in enumerate(machines)
        },
        "segments": {
            "backplane": {"kind": "vmmc", "ports": [f"{name}:vmmc0" for name in machines], **backplane},
            "lan": {"kind": "switch", "rate": "100 Mbit/s", "ports": [f"{name}:eth0" for name in machines]},
        },
    }
    scenario = {
        "description": "Calls over a backplane",
        "topology": "bench-nodes",
        "deadline": "1 h",
        "linger": "1 ms",
        "workloads": [{"clients": ["client"], "server": "server", **workload}],
    }
    return load_experiments(
        str(_write(folder / "bench-backplane.yaml", scenario)),
        topology=str(_write(folder / "bench-nodes.yaml", topology)),
    )[0]


def _write(path: Path, document: dict[str, Any]) -> Path:
    # JSON is YAML too.
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path

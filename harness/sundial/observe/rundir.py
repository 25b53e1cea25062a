# SPDX-License-Identifier: Apache-2.0
"""A run directory: what run.json says about nodes, time and captures, and the jobs of the nodes."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial import EPOCH_NS
from sundial.errors import BadInput

ALLOWED = "what 'sundial run' wrote"


@dataclass(frozen=True)
class NodeInterface:
    """One network interface of a machine; `network` is its address with the prefix length, or empty."""

    device: str
    mac: str
    network: str
    segment: str
    mtu: int

    @property
    def address(self) -> str:
        """The address alone."""
        return self.network.partition("/")[0]


@dataclass(frozen=True)
class Node:
    """One machine. `zero_ns` is its clock's reading at zero of the run's time axis."""

    name: str
    zero_ns: int
    interfaces: tuple[NodeInterface, ...]

    def towards(self, address: str | None) -> NodeInterface | None:
        """The interface whose network holds `address`; else the first with an address."""
        addressed = [interface for interface in self.interfaces if interface.address]
        if address is None:
            return addressed[0] if addressed else None
        for interface in addressed:
            network = ipaddress.ip_interface(interface.network).network
            if ipaddress.ip_address(address) in network:
                return interface
        return addressed[0] if addressed else None


@dataclass(frozen=True)
class RunDirectory:
    """What verification needs to know of a run. `captures` maps file names below the directory to their sha256."""

    path: Path
    document: dict[str, Any]
    scenario: str
    clock: str
    epoch_ns: int
    nodes: dict[str, Node]
    captures: dict[str, str]
    jobs: dict[str, dict[str, Any]]
    counters: dict[str, Any] | None
    """What the fabric counted; None where it wrote nothing."""

    @property
    def node_ids(self) -> dict[str, int]:
        """The number of each machine: its place in the topology, counted from 1."""
        return {
            name: int(self.jobs.get(name, {}).get("node") or place) for place, name in enumerate(self.nodes, start=1)
        }

    @property
    def names(self) -> dict[str, str]:
        """Machines by what samples call their servers: an address, or over MBCF a node's number."""
        addresses = {
            item.address: node.name for node in self.nodes.values() for item in node.interfaces if item.address
        }
        return addresses | {str(number): name for name, number in self.node_ids.items()}

    def owner(self, address: str) -> tuple[Node, NodeInterface] | None:
        """The node that has `address`, and where."""
        for node in self.nodes.values():
            for interface in node.interfaces:
                if interface.address == address:
                    return node, interface
        return None


def open_run(path: Path) -> RunDirectory:
    """Read run.json and the jobs. Raises BadInput where the directory is not that of a run."""
    document = _read(path / "run.json")
    try:
        nodes = {
            name: Node(
                name,
                int(node.get("zero_ns") or 0),
                tuple(
                    NodeInterface(
                        str(item["device"]),
                        str(item.get("mac") or ""),
                        str(item.get("address") or ""),
                        str(item["segment"]),
                        int(item["mtu"]),
                    )
                    for item in node["interfaces"]
                ),
            )
            for name, node in document["nodes"].items()
        }
        captures = {str(name): str(value) for name, value in document.get("captures", {}).items()}
        scenario = document.get("scenario") or {}
        return RunDirectory(
            path,
            document,
            str(scenario.get("name", "")),
            str(document.get("clock", "virtual")),
            int(document.get("epoch_ns") or EPOCH_NS),
            nodes,
            captures or {f"wire/{file.name}": "" for file in sorted((path / "wire").glob("*.pcapng"))},
            _jobs(path, nodes),
            _read(counters) if (counters := path / "wire" / "counters.json").is_file() else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is not as it should be: {error}"
        raise BadInput(what, file=str(path / "run.json"), allowed=ALLOWED) from None


def _jobs(path: Path, nodes: dict[str, Node]) -> dict[str, dict[str, Any]]:
    files = {name: path / "nodes" / name / "job.json" for name in nodes}
    return {name: _read(file) for name, file in files.items() if file.is_file()}


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput("is not there, so this is no run directory", file=str(path), allowed=ALLOWED) from None
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    except ValueError as error:
        raise BadInput(f"is not JSON: {error}", file=str(path), allowed=ALLOWED) from None
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", file=str(path), allowed=ALLOWED)
    return value

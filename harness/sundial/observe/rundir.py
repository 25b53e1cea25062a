# SPDX-License-Identifier: Apache-2.0
"""A run directory: what run.json says about nodes, time and captures, and the jobs of the nodes."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial import CHECK, EPOCH_NS, NOTES
from sundial.errors import BadInput

ALLOWED = "what 'sundial run' wrote"

PRODUCTS = (
    CHECK,
    "verify.json",
    "observed.parquet",
    "exchanges.parquet",
    "figures.parquet",
    "steps.parquet",
    "summary.csv",
    "report.html",
    "figures",
    "views",
    NOTES,
)
"""Files that are written into a run directory after the run."""


def kept_files(path: Path) -> list[str]:
    """Names of all files in a run directory except run.json and PRODUCTS; links are not followed."""
    found = []
    for folder, folders, names in os.walk(path):
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [Path(folder, name).relative_to(path).as_posix() for name in (*names, *links)]
    return sorted(name for name in found if name != "run.json" and name.partition("/")[0] not in PRODUCTS)


def is_capture(name: str) -> bool:
    """True if a file of a run directory is a capture of frames, by its name."""
    return name.startswith("wire/") and name.endswith(".pcapng") and "/" not in name.removeprefix("wire/")


def is_plain(path: Path) -> bool:
    """True if it is a regular file: not a link, pipe or device."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


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
        """The interface whose network has `address`, or else the first with an address."""
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
    """The facts about a run that verification needs. `captures` maps file names below the directory to sha256."""

    path: Path
    document: dict[str, Any]
    scenario: str
    clock: str
    epoch_ns: int
    nodes: dict[str, Node]
    captures: dict[str, str]
    files: dict[str, str]
    """The same for all other files; empty for runs that did not record it."""
    jobs: dict[str, dict[str, Any]]
    counters: dict[str, Any] | None
    """Counters of the fabric, or None."""

    @property
    def by_hand(self) -> bool:
        """True for an interactive session, which has no scenario to check it against."""
        return self.document.get("scenario") is None

    @property
    def capture_files(self) -> list[tuple[Path, str]]:
        """Captures of frames and their names, in the order of the table of frames."""
        return [(self.path / name, name) for name in sorted(self.captures)]

    @property
    def node_ids(self) -> dict[str, int]:
        """Number of each machine: its position in the topology, counted from 1."""
        return {
            name: int(self.jobs.get(name, {}).get("node") or place) for place, name in enumerate(self.nodes, start=1)
        }

    @property
    def names(self) -> dict[str, str]:
        """Machines by the server's name in samples: an address, or over MBCF a node's number."""
        addresses = {
            item.address: node.name for node in self.nodes.values() for item in node.interfaces if item.address
        }
        return addresses | {str(number): name for name, number in self.node_ids.items()}

    def owner(self, address: str) -> tuple[Node, NodeInterface] | None:
        """The node and interface that have `address`."""
        for node in self.nodes.values():
            for interface in node.interfaces:
                if interface.address == address:
                    return node, interface
        return None


def open_run(path: Path) -> RunDirectory:
    """Read run.json and the jobs. Raises BadInput if the directory is not a run directory."""
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
        files = {str(name): str(value) for name, value in document.get("files", {}).items()}
        scenario = document.get("scenario") or {}
        return RunDirectory(
            path,
            document,
            str(scenario.get("name", "")),
            str(document.get("clock", "virtual")),
            int(document.get("epoch_ns") or EPOCH_NS),
            nodes,
            _captures(path, captures),
            files,
            _jobs(path, nodes),
            _read(counters) if (counters := path / "wire" / "counters.json").is_file() else None,
        )
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else f"is malformed: {error}"
        raise BadInput(what, file=str(path / "run.json"), allowed=ALLOWED) from None


def _captures(path: Path, named: dict[str, str]) -> dict[str, str]:
    """Those that are named, or without any those that are there."""
    for name in named:
        if not is_capture(name):
            raise BadInput(
                f"captures: {name!r} is not a capture of a run", file=str(path / "run.json"), allowed=ALLOWED
            )
    captures = named or {name: "" for name in kept_files(path) if is_capture(name)}
    for name in captures:
        if (path / name).is_symlink() or ((path / name).exists() and not is_plain(path / name)):
            raise BadInput("is not a regular file", file=str(path / name), allowed=ALLOWED)
    return captures


def _jobs(path: Path, nodes: dict[str, Node]) -> dict[str, dict[str, Any]]:
    files = {name: path / "nodes" / name / "job.json" for name in nodes}
    jobs = {name: _read(file) for name, file in files.items() if file.is_file()}
    for name, job in jobs.items():
        for part in ("steps", "services"):
            tasks = job.get(part, [])
            if not isinstance(tasks, list) or not all(map(_is_task, tasks)):
                raise BadInput(
                    f"{part}: is not a list of programs with options", file=str(files[name]), allowed=ALLOWED
                )
    return jobs


def _is_task(task: Any) -> bool:
    return isinstance(task, dict) and isinstance(task.get("app"), str) and isinstance(task.get("options"), dict)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BadInput("is missing, so this is not a run directory", file=str(path), allowed=ALLOWED) from None
    except OSError as error:
        raise BadInput(str(error.strerror), file=str(path), allowed=ALLOWED) from None
    except ValueError as error:
        raise BadInput(f"is not JSON: {error}", file=str(path), allowed=ALLOWED) from None
    if not isinstance(value, dict):
        raise BadInput("is not a JSON object", file=str(path), allowed=ALLOWED)
    return value

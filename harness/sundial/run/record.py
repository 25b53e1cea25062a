# SPDX-License-Identifier: Apache-2.0
"""run.json: everything that is needed to repeat a run, and its result. See harness/schemas."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import sundial
from sundial.errors import SundialError
from sundial.machines.images import Image
from sundial.machines.seals import Book, sha256_of
from sundial.model.network import Network
from sundial.printable import printable
from sundial.run.collect import Digests
from sundial.run.places import Places, tool_version

Status = Literal["complete", "failed", "interrupted"]
VERSION = 1
DIED = "the harness ended before the run"


class RunRecord:
    """The document, filled in during the run."""

    def __init__(
        self,
        *,
        network: Network,
        scenario: Mapping[str, Any] | None,
        topology: Mapping[str, Any],
        seed: int,
        clock: str,
        accelerator: str,
        images: Mapping[str, Image],
        boots: Mapping[str, Mapping[str, Any]],
        versions: Future[dict[str, str | None]],
        command: Sequence[str],
    ) -> None:
        self._network = network
        self._versions = versions
        self._document: dict[str, Any] = {
            "version": VERSION,
            "status": "interrupted",
            "error": {"error": "Interrupted", "exit_code": 130, "message": DIED, "hint": None, "whose": "host"},
            "scenario": None if scenario is None else dict(scenario),
            "topology": dict(topology),
            "seed": seed,
            "clock": clock,
            "accelerator": accelerator,
            "versions": {},
            "images": {
                name: {
                    "sha256": {"kernel": image.kernel_sha256, "initrd": image.initrd_sha256},
                    "recipe": image.recipe,
                    "hz": image.hz,
                    **({"libraries": image.libraries} if image.libraries else {}),
                }
                for name, image in images.items()
            },
            **({"boots": dict(boots)} if boots else {}),
            "time": {"virtual_ns": None, "wall_s": None},
            "captures": {},
            "files": {},
            "command": list(command),
            "host": host(),
            "mtu": {name: segment.mtu for name, segment in network.captured.items()},
            "epoch_ns": sundial.EPOCH_NS if clock == "virtual" else None,
            "nodes": {
                node.name: {"zero_ns": None, "interfaces": _interfaces(network, node.name)} for node in network.nodes
            },
        }

    def hosts(self, hosts: Mapping[str, dict[str, Any]]) -> None:
        """Other hosts that run machines, by name; left out without any."""
        if hosts:
            self._document["hosts"] = {name: {**host, "frames": {}} for name, host in hosts.items()}

    def carried(self, frames: Mapping[str, Mapping[str, Mapping[str, int]]]) -> None:
        """Number of frames to and from each of them."""
        for name, by_interface in frames.items():
            self._document["hosts"][name]["frames"] = by_interface

    def zero(self, node: str, zero_ns: int) -> None:
        """Reading of a guest's clock at zero of the run's time axis."""
        self._document["nodes"][node]["zero_ns"] = zero_ns

    def off(self, node: str, at_ns: int) -> None:
        """When a machine's power was cut, by its own clock."""
        self._document["nodes"][node]["off_ns"] = at_ns

    def changed(self, events: Sequence[Mapping[str, Any]]) -> None:
        """All that was changed by hand so far."""
        self._document["timeline"] = list(events)

    def ended(self, machines: Mapping[str, str]) -> None:
        """Machines of a topology that is kept up which ended before it was taken down, and how."""
        for name, how in machines.items():
            self._document["nodes"][name]["ended"] = printable(how)

    def over(
        self,
        status: Status,
        *,
        error: SundialError | None,
        virtual_ns: int | None,
        wall_s: float,
        digests: Digests,
        epoch_ns: int | None,
    ) -> None:
        """The run's result."""
        self._document["versions"] = self._versions.result()
        self._document["status"] = status
        self._document["error"] = None if error is None else error.to_json()
        self._document["time"] = {"virtual_ns": virtual_ns, "wall_s": round(wall_s, 3)}
        self._document["captures"] = digests.captures
        self._document["files"] = digests.files
        if epoch_ns is not None:
            self._document["epoch_ns"] = epoch_ns

    def to_json(self) -> dict[str, Any]:
        return self._document


def _interfaces(network: Network, node: str) -> list[dict[str, Any]]:
    return [
        {
            "device": nic.device,
            "mac": nic.mac,
            "address": None if nic.address is None else str(nic.address),
            "segment": nic.segment,
            "mtu": nic.mtu,
        }
        for nic in network.node(node).interfaces
    ]


def read_counters(wire: Path) -> dict[str, Any]:
    """wire/counters.json; empty if the fabric did not write it."""
    try:
        counters = json.loads((wire / "counters.json").read_text())
    except (OSError, ValueError):
        return {}
    return counters if isinstance(counters, dict) else {}


def versions(
    places: Places, hypervisor: Mapping[str, str], images: Mapping[str, Image]
) -> Future[dict[str, str | None]]:
    """Versions of all programs of a run, collected while it starts."""
    pool = ThreadPoolExecutor(1, "versions")
    asked = pool.submit(_versions, places, hypervisor, images)
    pool.shutdown(wait=False)
    return asked


def _versions(places: Places, hypervisor: Mapping[str, str], images: Mapping[str, Image]) -> dict[str, str | None]:
    """Digests of programs that we build."""
    programs = Book(places.programs)
    kernels = sorted({str(image.manifest.get("kernel_release", "")) for image in images.values()} - {""})
    return {
        "sundial": sundial.__version__,
        **hypervisor,
        "tshark": tool_version("tshark", programs),
        "kernel": ", ".join(kernels) or None,
        "plugin": programs.value(places.plugin, sha256_of)[:16],
        "fabric": programs.value(places.fabric, sha256_of)[:16],
    }


def host() -> dict[str, Any]:
    """Description of this host."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB$", _text(Path("/proc/meminfo")), re.MULTILINE)
    return {
        "cpu": cpu[1].strip() if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory[1]) * 1024 if memory else None,
        "load": [round(value, 2) for value in os.getloadavg()],
        "kernel": platform.release(),
        "system": _system(),
    }


def _system() -> str | None:
    named = re.search(r'^PRETTY_NAME="?([^"\n]+)', _text(Path("/etc/os-release")), re.MULTILINE)
    return named[1] if named else None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""

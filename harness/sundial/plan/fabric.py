# SPDX-License-Identifier: Apache-2.0
"""fabric.json, the configuration of the fabric: integer base units, everything resolved. See harness/schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sundial.model.network import Network, Nic
from sundial.model.segment import SegmentBase
from sundial.model.topology import Clock
from sundial.plan.paths import RunPaths
from sundial.plan.segment import own_fields

VERSION = 1
ETHERNET_HEADER = 14


def fabric_config(
    network: Network, *, clock: Clock, seed: int, linger_ns: int, done_machines: Sequence[str], paths: RunPaths
) -> dict[str, Any]:
    """The fabric's configuration for one run; the run ends `linger_ns` after the last of `done_machines` is done."""
    config: dict[str, Any] = {
        "version": VERSION,
        "clock": clock,
        "seed": seed,
        "capture_dir": str(paths.capture),
        "control": str(paths.control),
        "linger_ns": linger_ns,
        "done_machines": list(done_machines),
        "machines": [{"name": node.name, "nics": len(node.nics)} for node in network.nodes],
        "segments": [_segment(name, segment, network, clock, paths) for name, segment in network.segments.items()],
    }
    if clock == "virtual":
        config["shm"] = str(paths.shm)
    return config


def _segment(name: str, segment: SegmentBase, network: Network, clock: Clock, paths: RunPaths) -> dict[str, Any]:
    common = {
        "name": name,
        "kind": segment.kind,
        "max_frame_bytes": segment.mtu + ETHERNET_HEADER,
        "adapter": segment.adapter.model_dump(),
        "ports": [_port(network.nic(end), clock, paths) for end in segment.ports],
    }
    return {**common, **own_fields(segment, name, network)}


def _port(nic: Nic, clock: Clock, paths: RunPaths) -> dict[str, Any]:
    port: dict[str, Any] = {"machine": nic.machine, "nic": nic.index, "interface": nic.device}
    if clock == "real":
        port.update(local=str(paths.fabric_end(nic)), remote=str(paths.machine_end(nic)))
    return port

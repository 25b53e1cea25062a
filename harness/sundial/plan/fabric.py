# SPDX-License-Identifier: Apache-2.0
"""fabric.json, the configuration of the fabric: integers in base units, all defaults applied. See harness/schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sundial.model.network import Device, DevicePort, Network, Nic, Node
from sundial.model.timeline import IMPAIR
from sundial.model.topology import Clock
from sundial.plan.paths import RunPaths
from sundial.plan.segment import own_fields

VERSION = 1
ETHERNET_HEADER = 14


def fabric_config(
    network: Network,
    *,
    clock: Clock,
    seed: int,
    linger_ns: int,
    deadline_ns: int | None = None,
    done_machines: Sequence[str],
    paths: RunPaths,
    by_hand: bool = False,
) -> dict[str, Any]:
    """The fabric's configuration for one run; the run ends `linger_ns` after the last of `done_machines` is done, or
    after the deadline. `by_hand`: segments may be changed while it runs."""
    config: dict[str, Any] = {
        "version": VERSION,
        "clock": clock,
        "seed": seed,
        "capture_dir": str(paths.capture),
        "control": str(paths.control),
        "linger_ns": linger_ns,
        **({} if deadline_ns is None else {"deadline_ns": deadline_ns}),
        "done_machines": list(done_machines),
        "machines": [_machine(node, network.offs_ns.get(node.name)) for node in network.nodes],
        **({"devices": [_device(device) for device in network.devices]} if network.devices else {}),
        "segments": [_segment(name, network, clock, paths, by_hand) for name in network.segments],
    }
    if clock == "virtual":
        config["shm"] = str(paths.shm)
    return config


def _machine(node: Node, off_ns: int | None) -> dict[str, Any]:
    latency = {"adapter_latency_ns": node.adapter_latency_ns} if node.adapter_latency_ns else {}
    power = {} if off_ns is None else {"off_ns": off_ns}
    return {"name": node.name, "nics": len(node.nics), **latency, **power}


def _segment(name: str, network: Network, clock: Clock, paths: RunPaths, by_hand: bool) -> dict[str, Any]:
    segment = network.segments[name]
    common = {
        "name": name,
        "kind": segment.kind,
        "max_frame_bytes": segment.mtu + ETHERNET_HEADER,
        "adapter": segment.adapter.model_dump(),
        "ports": [_port(network.plug(end), clock, paths) for end in segment.ports],
    }
    # What may impair frames promises less from the start.
    promises = {"by_hand": True} if by_hand and IMPAIR in segment.knobs else {}
    return {**common, **own_fields(segment, name, network), **promises}


def _port(plug: Nic | DevicePort, clock: Clock, paths: RunPaths) -> dict[str, Any]:
    if isinstance(plug, DevicePort):
        return {"device": plug.device, "nic": plug.index, "interface": plug.interface, "mac": plug.mac}
    port: dict[str, Any] = {"machine": plug.machine, "nic": plug.index, "interface": plug.device, "mac": plug.mac}
    if clock == "real":
        port.update(local=str(paths.fabric_end(plug)), remote=str(paths.machine_end(plug)))
    return port


def _device(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "kind": device.kind,
        "nics": len(device.ports),
        "forwarding_latency_ns": device.written.forwarding_latency,
        "queue_frames": device.written.queue_frames,
        "mac_table_entries": device.written.mac_table_entries,
        "ageing_ns": device.written.ageing,
    }

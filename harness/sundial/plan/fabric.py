# SPDX-License-Identifier: Apache-2.0
"""The fabric's configuration (`fabric.json`): integer base units, everything resolved. See ARCHITECTURE.md."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sundial.model.network import Network, Nic
from sundial.model.topology import Clock, GilbertElliott, Hub, Impairments, Link, Segment
from sundial.plan.paths import RunPaths

VERSION = 1
ETHERNET_HEADER = 14

_IMPAIRMENT_NAMES = {
    "delay": "delay_ns",
    "jitter": "jitter_ns",
    "rate": "rate_bps",
    "packet_overhead": "packet_overhead_bytes",
    "cell_size": "cell_size_bytes",
    "cell_overhead": "cell_overhead_bytes",
    "limit": "limit_frames",
}
"""Fields whose name in fabric.json carries a unit; the others keep theirs."""


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


def _segment(name: str, segment: Segment, network: Network, clock: Clock, paths: RunPaths) -> dict[str, Any]:
    common = {
        "name": name,
        "kind": segment.kind,
        "max_frame_bytes": segment.mtu + ETHERNET_HEADER,
        "adapter": segment.adapter.model_dump(),
        "ports": [_port(network.nic(end), clock, paths) for end in segment.ports],
    }
    if isinstance(segment, Link):
        sending = {str(index): impairments(segment.sending(end)) for index, end in enumerate(segment.ports)}
        return {
            **common,
            "rate_bps": segment.rate,
            "propagation_ns": segment.propagation,
            "impairments": {port: wanted for port, wanted in sending.items() if wanted},
        }
    if isinstance(segment, Hub):
        return {
            **common,
            "rate_bps": segment.rate,
            "cable_delay_ns": segment.by_port(segment.cable_delay),
            "repeater_delay_ns": segment.through,
        }
    return {
        **common,
        "rate_bps": segment.by_port(segment.rate),
        "full_duplex": segment.full_duplex,
        "propagation_ns": segment.propagation,
        "forwarding_latency_ns": segment.forwarding_latency,
        "queue_frames": segment.queue_frames,
        "mac_table_entries": segment.mac_table_entries,
        "ageing_ns": segment.ageing,
    }


def _port(nic: Nic, clock: Clock, paths: RunPaths) -> dict[str, Any]:
    port: dict[str, Any] = {"machine": nic.machine, "nic": nic.index, "interface": nic.device}
    if clock == "real":
        port.update(local=str(paths.fabric_end(nic)), remote=str(paths.machine_end(nic)))
    return port


def impairments(wanted: Impairments) -> dict[str, Any]:
    """Impairments as fabric.json has them; what was not written is left out."""
    values = {name: getattr(wanted, name) for name in Impairments.model_fields}
    return {_IMPAIRMENT_NAMES.get(name, name): _value(value) for name, value in values.items() if value is not None}


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, GilbertElliott):
        return {name: float(getattr(value, name)) for name in GilbertElliott.model_fields}
    return value

# SPDX-License-Identifier: Apache-2.0
"""From the resolved topology in run.json to what the drawing and the wire minimum need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sundial.errors import SundialError
from sundial.model import topology as model
from sundial.model.network import Network, build_network
from sundial.report.topology_view import Impairment, Machine, Nic, Segment, Topology, rate_text, time_text

REPEATER_BITS = {10_000_000: 8, 100_000_000: 46}
"""Bit times through a repeater where the topology leaves them out (`model.topology.Hub.repeater_delay`)."""


def read(run: Mapping[str, Any], clients: Sequence[str] = (), servers: Sequence[str] = ()) -> Topology:
    """The topology of a run; `clients` and `servers` are the machines that made and answered calls.

    A topology that this version cannot read is drawn from the run's list of interfaces alone.
    """
    written = run.get("topology")
    roles = {**dict.fromkeys(servers, "server"), **dict.fromkeys(clients, "client")}
    try:
        if isinstance(written, dict):
            return _from_network(build_network(model.Topology.model_validate(written)), roles)
    except (ValueError, KeyError, TypeError, SundialError):
        pass
    return _from_nodes(run, roles)


def _from_network(network: Network, roles: Mapping[str, str]) -> Topology:
    machines = tuple(
        Machine(
            name=node.name,
            role="bridge" if node.role == "bridge" else roles.get(node.name, ""),
            notes=(
                f"{node.image}, {float(node.mips):g} mips" if network.clock == "virtual" else node.image,
                *(f"netem on {nic.device}: {nic.netem}" for nic in node.nics if nic.netem),
            ),
            nics=tuple(
                Nic(nic.device, nic.segment, str(nic.address) if nic.address else "", nic.mac, nic.mtu)
                for nic in node.nics
            ),
        )
        for node in network.nodes
    )
    return Topology(network.name, machines, tuple(_segment(name, wire) for name, wire in network.segments.items()))


def _by_machine(value: int | Mapping[str, int]) -> dict[str, int]:
    return {end.partition(":")[0]: amount for end, amount in value.items()} if isinstance(value, Mapping) else {}


def _segment(name: str, wire: model.Link | model.Hub | model.Switch) -> Segment:
    if isinstance(wire, model.Link):
        effects = tuple(_impairment(end, wire.impairments) for end in wire.ports)
        return Segment(name, wire.kind, wire.rate, wire.propagation, impairments=effects)
    delay = wire.cable_delay if isinstance(wire, model.Hub) else wire.propagation
    return Segment(
        name=name,
        kind=wire.kind,
        rate_bps=wire.rate if isinstance(wire.rate, int) else None,
        propagation_ns=delay if isinstance(delay, int) else 0,
        repeater_ns=_repeater_ns(wire) if isinstance(wire, model.Hub) else 0,
        forwarding_ns=wire.forwarding_latency if isinstance(wire, model.Switch) else 0,
        port_rates=_by_machine(wire.rate),
        port_delays=_by_machine(delay),
    )


def _repeater_ns(hub: model.Hub) -> int:
    if hub.repeater_delay is not None:
        return hub.repeater_delay
    return REPEATER_BITS.get(hub.rate, 0) * 10**9 // hub.rate


def _impairment(end: str, written: Mapping[str, model.Impairments]) -> Impairment:
    """What one sending port suffers: its own fields before those of `both`."""
    fields: dict[str, Any] = {}
    for key in ("both", end):
        if key in written:
            item = written[key]
            fields |= {name: getattr(item, name) for name in item.model_fields_set if getattr(item, name) is not None}
    lines = []
    if fields.get("delay") or fields.get("jitter"):
        jitter = f" ± {time_text(fields['jitter'])}" if fields.get("jitter") else ""
        shape = f" ({fields['distribution']})" if jitter and fields.get("distribution") else ""
        lines.append(f"delay {time_text(fields.get('delay', 0))}{jitter}{shape}")
    lines += [
        f"{key} {float(100 * fields[key]):.4g} %"
        for key in ("loss", "duplicate", "corrupt", "reorder")
        if fields.get(key)
    ]
    if fields.get("gemodel") is not None:
        lines.append("loss in bursts (Gilbert-Elliott)")
    if fields.get("rate"):
        lines.append(f"shaped to {rate_text(fields['rate'])}")
    if fields.get("limit"):
        lines.append(f"queue of {fields['limit']} frames")
    return Impairment(
        sender=end.partition(":")[0],
        lines=tuple(lines),
        delay_ns=fields.get("delay", 0),
        jitter_ns=fields.get("jitter", 0),
        rate_bps=fields.get("rate"),
        packet_overhead_bytes=fields.get("packet_overhead", 0),
    )


def _from_nodes(run: Mapping[str, Any], roles: Mapping[str, str]) -> Topology:
    """Machines, interfaces and nameless wires: all that run.json's `nodes` tell."""
    machines = []
    wires: dict[str, Segment] = {}
    nodes = run.get("nodes")
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        nics = []
        for nic in node.get("interfaces", []) if isinstance(node, dict) else ():
            segment = str(nic.get("segment", "wire"))
            wires.setdefault(segment, Segment(segment, "segment"))
            nics.append(
                Nic(str(nic.get("device", "")), segment, str(nic.get("address") or ""), str(nic.get("mac") or ""),
                    int(nic.get("mtu") or 1500))
            )  # fmt: skip
        machines.append(Machine(str(name), tuple(nics), roles.get(str(name), "")))
    return Topology("", tuple(machines), tuple(wires.values()))

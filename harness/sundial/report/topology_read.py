# SPDX-License-Identifier: Apache-2.0
"""From the resolved topology in run.json to what the drawing and the wire minimum need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sundial.errors import SundialError
from sundial.kinds import load
from sundial.model import topology as model
from sundial.model.network import Device, Network, Node
from sundial.model.recorded import recorded_network
from sundial.model.segment import SegmentBase
from sundial.report.segment import SegmentReport
from sundial.report.topology_view import Machine, Nic, Segment, Topology, mesh_text, time_text, titled

if TYPE_CHECKING:
    import polars as pl

    from sundial.report.load import RunData
    from sundial.report.plotting import Drawing
    from sundial.report.tables import Table


def read(run: Mapping[str, Any], clients: Sequence[str] = (), servers: Sequence[str] = ()) -> Topology:
    """The topology of a run; `clients` and `servers` are the machines that made and answered calls.

    A topology that this version cannot read is drawn from the run's list of interfaces alone.
    """
    written = run.get("topology")
    roles = {**dict.fromkeys(servers, "server"), **dict.fromkeys(clients, "client")}
    try:
        if isinstance(written, dict):
            return of_network(recorded_network(run), roles)
    except (ValueError, KeyError, TypeError, SundialError):
        pass
    return _from_nodes(run, roles)


def sent_packets(data: RunData, segment: str) -> pl.DataFrame | None:
    """IP packets that the ports of a segment sent in cells (`cells.SENT`); None: nothing is recorded of them."""
    written = _segments(data.run).get(segment)
    return None if written is None else _kinds()[written.kind].sent_packets(written, segment, data)


def own_drawings(data: RunData, folder: Path) -> dict[str, list[Drawing]]:
    """What the kinds draw of their segments, by the segment's name; those without are left out."""
    found = {
        name: list(_kinds()[written.kind].drawings(written, name, data, folder))
        for name, written in _segments(data.run).items()
    }
    return {name: drawn for name, drawn in found.items() if drawn}


def own_tables(data: RunData) -> dict[str, list[Table]]:
    """The tables that the kinds have of their segments, by the segment's name; those without are left out."""
    found = {
        name: list(_kinds()[written.kind].tables(written, name, data)) for name, written in _segments(data.run).items()
    }
    return {name: made for name, made in found.items() if made}


def _segments(run: Mapping[str, Any]) -> dict[str, SegmentBase]:
    """The segments of a run as written, of kinds that reports know; empty where the topology cannot be read."""
    written = run.get("topology")
    try:
        topology = model.Topology.model_validate(written) if isinstance(written, dict) else None
    except (ValueError, KeyError, TypeError, SundialError):
        return {}
    segments = topology.segments if topology else {}
    return {name: segment for name, segment in segments.items() if segment.kind in _kinds()}


def of_network(network: Network, roles: Mapping[str, str] | None = None) -> Topology:
    """A resolved topology as it is drawn; `roles`: what machines do in a run."""
    machines = [_machine(network, node, roles or {}) for node in network.nodes]
    devices = [_device(device) for device in network.devices]
    wires = tuple(_segment(name, wire) for name, wire in network.segments.items())
    return Topology(network.name, (*machines, *devices), wires)


def _machine(network: Network, node: Node, roles: Mapping[str, str]) -> Machine:
    return Machine(
        name=node.name,
        role="bridge" if node.role == "bridge" else roles.get(node.name, ""),
        notes=(
            f"{node.image}, {float(node.mips):g} mips" if network.clock == "virtual" else node.image,
            *titled("adapter latency", node.adapter_latency_ns),
            *(note for kind in _kinds().values() for note in kind.notes(node)),
        ),
        nics=tuple(
            Nic(nic.device, nic.segment, str(nic.address) if nic.address else "", nic.mac, nic.mtu) for nic in node.nics
        ),
    )


def _device(device: Device) -> Machine:
    return Machine(
        name=device.name,
        role=device.kind,
        notes=(
            f"no CPU; {time_text(device.written.forwarding_latency)} to forward",
            f"queues of {device.written.queue_frames} frames",
        ),
        nics=tuple(Nic(port.interface, port.segment, "", port.mac) for port in device.ports),
        forwarding_ns=float(device.written.forwarding_latency),
    )


def _segment(name: str, written: SegmentBase) -> Segment:
    kind = _kinds().get(written.kind)
    if kind is None:
        return Segment(name, (written.kind,))
    mesh = kind.mesh(written)
    return Segment(
        name=name,
        lines=(*kind.lines(written), *([mesh_text(mesh)] if mesh else [])),
        corner_px=kind.corner_px,
        delays_vary=kind.delays_vary(written),
        hops=partial(kind.hops, written),
        packet_cells=written.packet_cells,
        services=tuple(kind.services(written)),
        mesh=mesh,
    )


def _kinds() -> Mapping[str, SegmentReport[Any]]:
    return load("segments", "report", SegmentReport)


def _from_nodes(run: Mapping[str, Any], roles: Mapping[str, str]) -> Topology:
    """Machines, interfaces and nameless wires: all that run.json's `nodes` tell."""
    machines = []
    wires: dict[str, Segment] = {}
    nodes = run.get("nodes")
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        nics = []
        for nic in node.get("interfaces", []) if isinstance(node, dict) else ():
            segment = str(nic.get("segment", "wire"))
            wires.setdefault(segment, Segment(segment, ("segment",)))
            nics.append(
                Nic(str(nic.get("device", "")), segment, str(nic.get("address") or ""), str(nic.get("mac") or ""),
                    int(nic.get("mtu") or 1500))
            )  # fmt: skip
        machines.append(Machine(str(name), tuple(nics), roles.get(str(name), "")))
    return Topology("", tuple(machines), tuple(wires.values()))

# SPDX-License-Identifier: Apache-2.0
"""A topology with all derived values: defaults, MAC addresses, joined ports, and which machine reaches which.

Order matters here: machines, interfaces and ports keep the order of the file, and the fabric numbers them so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface
from typing import Literal

from sundial.model.daemon import DaemonUri
from sundial.model.devices import Bridge
from sundial.model.fields import MAPPED_DEVICE
from sundial.model.images import IMAGES
from sundial.model.machine_events import offs_ns
from sundial.model.own import LaidFile, files_of
from sundial.model.root import Root
from sundial.model.segment import Inside, SegmentBase
from sundial.model.timeline import Event, states_of
from sundial.model.topology import SEGMENT_KINDS, Clock, Machine, Route, Segment, Topology

MAC_PREFIX = "02:53:44"
"""Locally administered, unicast; `SD` in the middle."""

_Plugged = dict[str, tuple[str, int]]
"""Ends by their segment and index among its ports."""


@dataclass(frozen=True)
class Nic:
    """One interface: its position (`machine`, `index`), the guest's configuration of it, and its port."""

    machine: str
    device: str
    index: int
    mac: str
    address: IPv4Interface | None
    mtu: int
    offloads: bool
    static_arp: bool
    netem: str
    segment: str
    port: int

    @property
    def end(self) -> str:
        """The name in a segment's ports and in captures."""
        return f"{self.machine}:{self.device}"

    @property
    def mapped(self) -> bool:
        """True if it is an adapter whose memory the guest maps, not a network adapter."""
        return self.device == MAPPED_DEVICE


@dataclass(frozen=True)
class DevicePort:
    """One port of a device: its position (`device`, `index`), and the port of a segment that it is connected to."""

    device: str
    interface: str
    index: int
    mac: str
    segment: str
    port: int

    @property
    def end(self) -> str:
        """As written in a segment's ports and shown in captures."""
        return f"{self.device}:{self.interface}"


@dataclass(frozen=True)
class Device:
    """One device; `index` is its position in the topology."""

    name: str
    index: int
    kind: str
    written: Bridge
    ports: tuple[DevicePort, ...]


@dataclass(frozen=True)
class Node:
    """One machine with defaults applied; `index` is its position in the topology."""

    name: str
    index: int
    role: Literal["host", "bridge"]
    image: str
    mips: Decimal
    memory: int
    nics: tuple[Nic, ...]
    routes: tuple[Route, ...] = ()
    forwards: bool = False
    """True if a route of another machine leads to it, so that it forwards packets."""
    kernel: str | None = None
    """The machine's own file on the host, instead of the image's; `initrd` likewise."""
    initrd: str | None = None
    cmdline: str | None = None
    """Words after the image's kernel command line."""
    files: tuple[tuple[str, LaidFile], ...] = ()
    """Files copied into its root, by path, sorted."""
    root: Root | None = None
    """Programs of others in its root."""
    host: str | None = None
    """The host that runs it; None: this one."""
    adapter_latency_ns: int = 0
    """Time from handing a frame to one of its adapters until that may begin to send it."""
    inner: tuple[Nic, ...] = ()
    """Interfaces on segments within the machine; they have no adapter."""

    @property
    def network_adapters(self) -> tuple[Nic, ...]:
        """Interfaces for frames; they have the first numbers."""
        return tuple(nic for nic in self.nics if not nic.mapped)

    @property
    def mapped(self) -> Nic | None:
        """The adapter whose memory the guest maps."""
        return next((nic for nic in self.nics if nic.mapped), None)

    @property
    def interfaces(self) -> tuple[Nic, ...]:
        """All interfaces with a capture."""
        return (*self.nics, *self.inner)

    @property
    def boots_its_own(self) -> bool:
        """True if it boots more than its image, or something else."""
        return bool(self.kernel or self.initrd or self.cmdline or self.files or self.root)


@dataclass(frozen=True)
class Network:
    """The whole topology, resolved."""

    name: str
    clock: Clock
    nodes: tuple[Node, ...]
    segments: dict[str, Segment]
    domains: dict[str, int]
    """Broadcast domains by segment: bridges join segments into one domain."""
    devices: tuple[Device, ...] = ()
    hosts: Mapping[str, DaemonUri] = field(default_factory=dict)
    """Other computers that run machines, and how to reach them."""
    inner: Mapping[str, SegmentBase] = field(default_factory=dict)
    """Segments within machines, by name; the fabric does not run them."""
    events: Sequence[Event] = ()
    """All of the timeline, each at its place."""

    @property
    def offs_ns(self) -> Mapping[str, int]:
        """When the power of machines is cut, by machine."""
        return offs_ns(self.events)

    @property
    def captured(self) -> dict[str, SegmentBase]:
        """All segments; each has its own capture."""
        return {**self.segments, **self.inner}

    @property
    def mapped_captures(self) -> list[str]:
        """Captures of segments that carry no frames."""
        return [f"wire/{name}.pcapng" for name, segment in self.segments.items() if segment.mapped]

    def node(self, name: str) -> Node:
        """The machine with this name (KeyError if there is none)."""
        return {node.name: node for node in self.nodes}[name]

    def nics(self) -> list[Nic]:
        """Every interface, by machine, then by index."""
        return [nic for node in self.nodes for nic in node.nics]

    def nic(self, end: str) -> Nic:
        """The interface at `MACHINE:INTERFACE` (KeyError if there is none)."""
        return {nic.end: nic for nic in self.nics()}[end]

    def plug(self, end: str) -> Nic | DevicePort:
        """The interface or port at `MACHINE:INTERFACE` or `DEVICE:INTERFACE` (KeyError if there is none)."""
        ports: dict[str, Nic | DevicePort] = {port.end: port for device in self.devices for port in device.ports}
        ports |= {nic.end: nic for node in self.nodes for nic in node.interfaces}
        return ports[end]

    def neighbours(self, nic: Nic) -> list[Nic]:
        """The other addressed interfaces that frames from `nic` can reach."""
        domain = self.domains[nic.segment]
        return [
            other
            for other in self.nics()
            if other != nic and other.address is not None and self.domains[other.segment] == domain
        ]

    def way(self, near: Nic, far: Nic) -> list[str]:
        """The segments on the way of frames from one interface to another, in order; both are in one domain."""
        if near.segment == far.segment:
            return [near.segment]
        import networkx as nx  # takes a third of a second, and few topologies need it

        graph = nx.Graph()
        for node in self.nodes:
            if node.role == "bridge":
                graph.add_edges_from((f"bridge {node.name}", nic.segment) for nic in node.nics)
        for device in self.devices:
            graph.add_edges_from((f"bridge {device.name}", port.segment) for port in device.ports)
        return [name for name in nx.shortest_path(graph, near.segment, far.segment) if name in self.segments]

    def route(self, client: str, server: str) -> tuple[Nic, Nic] | None:
        """The first pair of interfaces in one broadcast domain, the server's first interface preferred; or else the
        first pair with static routes in both directions. A machine reaches itself on a segment within it."""
        if client == server:
            return next(((nic, nic) for nic in self.node(server).inner), None)
        for far in self.node(server).nics:
            for near in self.node(client).nics:
                if near.address and far.address and self.domains[near.segment] == self.domains[far.segment]:
                    return near, far
        for far in self.node(server).nics:
            hops = self.hops(client, far)
            if hops and self.hops(server, hops[0][0]):
                return hops[0][0], far
        return None

    def hops(self, machine: str, far: Nic) -> list[tuple[Nic, Nic]]:
        """The interfaces that send and receive a packet from `machine` to `far`, one pair for each broadcast domain on
        its way; empty: no way."""
        if far in self.node(machine).inner:
            return [(far, far)]
        found: list[tuple[Nic, Nic]] = []
        while far.address is not None and len(found) <= len(self.nodes):
            target = self._next_hop(machine, far.address.ip)
            if target is None:
                return []
            near, receiver = target
            found.append((near, receiver))
            if receiver.machine == far.machine:
                return found if receiver == far else []
            if not self.node(receiver.machine).forwards:
                return []
            machine = receiver.machine
        return []

    def _next_hop(self, machine: str, address: IPv4Address) -> tuple[Nic, Nic] | None:
        """The interface from which `machine` sends a packet for `address`, and the interface that receives it."""
        node = self.node(machine)
        on_link = [nic for nic in node.nics if nic.address is not None and address in nic.address.network]
        routes = sorted(node.routes, key=lambda route: -route.to.prefixlen)
        via = address if on_link else next((route.via for route in routes if address in route.to), None)
        for near in node.nics:
            if via is not None and near.address is not None and via in near.address.network:
                receivers = (other for other in self.neighbours(near) if other.address and other.address.ip == via)
                return next(((near, receiver) for receiver in receivers), None)
        return None

    def passed(self, client: str, server: str) -> list[tuple[Nic, Nic]]:
        """The same for a call from a client to a server; empty: they do not reach each other."""
        route = self.route(client, server)
        return self.hops(client, route[1]) if route else []


def build_network(topology: Topology, events: Sequence[Event] = ()) -> Network:
    """The network of a topology that `check.check_topology` found valid, with what happens to its segments."""
    changes = states_of(events, topology.segments) if events else {}
    plugged = {
        end: (name, index) for name, segment in topology.segments.items() for index, end in enumerate(segment.ports)
    }
    nodes = tuple(
        _node(topology, name, index, machine, plugged)
        for index, (name, machine) in enumerate(topology.machines.items())
    )
    devices = tuple(
        _device(name, index, written, plugged) for index, (name, written) in enumerate(topology.devices.items())
    )
    used = {node.host for node in nodes}
    return Network(
        topology.name,
        topology.clock,
        nodes,
        {
            name: segment.with_timeline(changes[name]) if name in changes else segment
            for name, segment in topology.segments.items()
        },
        broadcast_domains(topology),
        devices,
        {name: host.connect for name, host in topology.hosts.items() if name in used},
        {inside.name: inside.segment for name in topology.machines for inside in _inside(topology, name)},
        tuple(events),
    )


def _inside(topology: Topology, machine: str) -> list[Inside]:
    found = (kind.inside(topology, machine) for kind in SEGMENT_KINDS.values())
    return [inside for inside in found if inside is not None]


def bridges(topology: Topology) -> dict[str, Literal["machine", "device"]]:
    """Bridges between segments, by name: machines of that role, and devices."""
    machines = [name for name, machine in topology.machines.items() if machine.role == "bridge"]
    return {**dict.fromkeys(machines, "machine"), **dict.fromkeys(topology.devices, "device")}


def broadcast_domains(topology: Topology) -> dict[str, int]:
    """Number of the broadcast domain of each segment, counted in the order of the file."""
    joining = bridges(topology)
    if not joining:
        return {name: number for number, name in enumerate(topology.segments)}
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(topology.segments)
    for name, segment in topology.segments.items():
        for end in segment.ports:
            owner = end.partition(":")[0]
            if owner in joining:
                graph.add_edge(name, f"bridge {owner}")
    domains: dict[str, int] = {}
    for name in topology.segments:
        if name not in domains:
            number = len(set(domains.values()))
            reached = nx.node_connected_component(graph, name)
            domains.update({segment: number for segment in topology.segments if segment in reached})
    return domains


def derived_mac(machine: int, nic: int) -> str:
    """The MAC address of interface `nic` of machine number `machine`, both counted from 0."""
    return f"{MAC_PREFIX}:00:{nic:02x}:{machine + 1:02x}"


def device_mac(device: int, port: int) -> str:
    """The MAC address of port `port` of device number `device`, both counted from 0."""
    return f"{MAC_PREFIX}:01:{port:02x}:{device + 1:02x}"


def _device(name: str, index: int, written: Bridge, plugged: _Plugged) -> Device:
    ports = (
        DevicePort(name, interface, number, device_mac(index, number), *plugged[f"{name}:{interface}"])
        for number, interface in enumerate(written.interfaces)
    )
    return Device(name, index, written.kind, written, tuple(ports))


def _node(topology: Topology, name: str, index: int, machine: Machine, plugged: _Plugged) -> Node:
    defaults = topology.defaults
    gateways = {route.via for each in topology.machines.values() for route in each.routes}
    image = machine.image or defaults.image
    adapter = machine.adapter or defaults.adapter
    nics = []
    for number, device in enumerate(sorted(machine.interfaces)):
        interface = machine.interfaces[device]
        segment, port = plugged[f"{name}:{device}"]
        nics.append(
            Nic(
                machine=name,
                device=device,
                index=number,
                mac=interface.mac or derived_mac(index, number),
                address=interface.address,
                mtu=interface.mtu or defaults.mtu or topology.segments[segment].mtu,
                offloads=defaults.offloads if interface.offloads is None else interface.offloads,
                static_arp=defaults.static_arp if interface.static_arp is None else interface.static_arp,
                netem=interface.netem or "",
                segment=segment,
                port=port,
            )
        )
    return Node(
        name=name,
        index=index,
        role=machine.role,
        image=image,
        mips=machine.mips or defaults.mips,
        memory=machine.memory or defaults.memory or IMAGES[image].memory,
        nics=tuple(nics),
        routes=tuple(machine.routes),
        forwards=any(nic.address is not None and nic.address.ip in gateways for nic in nics),
        kernel=machine.kernel or defaults.kernel,
        initrd=machine.initrd or defaults.initrd,
        cmdline=machine.cmdline or defaults.cmdline,
        files=tuple(files_of(defaults, machine).items()),
        root=machine.root or defaults.root,
        host=machine.on,
        adapter_latency_ns=adapter.latency if adapter else 0,
        inner=tuple(
            Nic(
                machine=name,
                device=inside.device,
                index=len(nics) + number,
                mac=inside.mac,
                address=inside.address,
                mtu=inside.segment.mtu,
                offloads=False,
                static_arp=False,
                netem="",
                segment=inside.name,
                port=0,
            )
            for number, inside in enumerate(_inside(topology, name))
        ),
    )

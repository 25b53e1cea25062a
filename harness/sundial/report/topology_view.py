# SPDX-License-Identifier: Apache-2.0
"""What the drawing of a topology and the wire minimum need to know, and nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sundial.report.wire_time import AnyHop

SOME_PACKET_BYTES = 68
"""Every wire carries an IP packet of this length (RFC 791)."""


@dataclass(frozen=True)
class Nic:
    """One interface of one machine, on one segment."""

    device: str
    segment: str
    address: str = ""
    mac: str = ""
    mtu: int = 1500


@dataclass(frozen=True)
class Machine:
    """A guest, or a device without a CPU. `role` is what it does in the run (client, server, bridge)."""

    name: str
    nics: tuple[Nic, ...] = ()
    role: str = ""
    notes: tuple[str, ...] = ()
    """Small print for its card."""
    forwarding_ns: float | None = None
    """From a frame's arrival at a device to its leaving for the next segment; None: a guest, whose time is unknown."""

    @property
    def is_device(self) -> bool:
        """Whether it forwards without a CPU of its own."""
        return self.forwarding_ns is not None


@dataclass(frozen=True)
class Segment:
    """A wire: its lines in the drawing under its name, and the hops from one port to another (None: unknown)."""

    name: str
    lines: tuple[str, ...] = ()
    corner_px: int = 4
    delays_vary: bool = False
    hops: Callable[[str, str], Sequence[AnyHop]] | None = None
    packet_cells: Callable[[int], int | None] | None = None
    """Cells of an IP packet by its length; None: frames are carried whole."""
    services: tuple[str, ...] = ()
    """What stands inside it beside the machines, in words."""
    mesh: int = 0
    """So many ports are joined each with each by permanent channels (a line says so); 0: they are not."""


@dataclass(frozen=True)
class Topology:
    """Machines (devices among them) and segments; a NIC names its segment."""

    name: str = ""
    machines: tuple[Machine, ...] = ()
    segments: tuple[Segment, ...] = ()

    def machine(self, name: str) -> Machine | None:
        """The machine of that name."""
        return next((machine for machine in self.machines if machine.name == name), None)

    def segment(self, name: str) -> Segment | None:
        """The segment of that name."""
        return next((segment for segment in self.segments if segment.name == name), None)

    def on_segment(self, name: str) -> list[tuple[Machine, Nic]]:
        """Every port on a segment."""
        return [(machine, nic) for machine in self.machines for nic in machine.nics if nic.segment == name]

    def path(self, source: str, target: str) -> list[tuple[str, Segment, str]] | None:
        """The shortest way between two machines: (sending port, segment, receiving port) each. None: there is none."""
        came: dict[str, list[tuple[str, Segment, str]]] = {source: []}
        queue = [source]
        while queue:
            here = queue.pop(0)
            if here == target:
                return came[here]
            machine = self.machine(here)
            for nic in machine.nics if machine else ():
                segment = self.segment(nic.segment)
                if segment is None:
                    continue
                for other, far in self.on_segment(segment.name):
                    if other.name not in came:
                        step = (f"{here}:{nic.device}", segment, f"{other.name}:{far.device}")
                        came[other.name] = [*came[here], step]
                        queue.append(other.name)
        return None


def in_words(topology: Topology) -> str:
    """The topology for those who do not see it: its machines with their ports, then its segments."""
    machines = "; ".join(_machine_in_words(machine) for machine in topology.machines)
    segments = "; ".join(f"segment {each.name}: {', '.join(each.lines)}" for each in topology.segments)
    return f"Topology {topology.name}. {machines}. {segments}"


def _machine_in_words(machine: Machine) -> str:
    ports = [f"{nic.device} {nic.address} on {nic.segment}".replace("  ", " ") for nic in machine.nics]
    role = f", {machine.role}" if machine.role else ""
    return f"{machine.name}{role}: {', '.join(ports) or 'no port'}"


def cells_between(topology: Topology, source: str, target: str) -> tuple[str, Callable[[int], int | None]] | None:
    """The first segment on the way that carries cells, and how many an IP packet takes there; None: there is none."""
    for _, segment, _ in topology.path(source, target) or ():
        if segment.packet_cells is not None and segment.packet_cells(SOME_PACKET_BYTES) is not None:
            return segment.name, segment.packet_cells
    return None


def rate_text(bps: int | None) -> str:
    """A rate as a person writes it: 10 Mb/s, 155.52 Mb/s, 1 Gb/s."""
    if bps is None:
        return ""
    for unit, size in (("Gb/s", 10**9), ("Mb/s", 10**6), ("kb/s", 10**3)):
        if bps >= size:
            return f"{bps / size:.6g} {unit}"
    return f"{bps} b/s"


def time_text(ns: float) -> str:
    """A span as a person writes it: 25 ns, 9.6 µs, 10 ms, 1.5 s."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if abs(ns) >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.4g} ns"


def titled(title: str, ns: int) -> list[str]:
    """A line with a span in it; none where it is 0."""
    return [f"{title} {time_text(ns)}"] if ns else []


def mesh_text(ports: int) -> str:
    """Channels that join so many ports each with each, in words."""
    channels = ports * (ports - 1) // 2
    return f"mesh of {channels} {'channel' if channels == 1 else 'channels'}"

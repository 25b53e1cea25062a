# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a topology beyond single fields: ends, ports, addresses, MTUs, impairments.

Every check yields `Finding`s: the path of the field to point at, what is wrong there, and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import networkx as nx

from sundial.model.images import IMAGES
from sundial.model.network import broadcast_domains, derived_mac
from sundial.model.topology import HUB_RATES, MTU_LEAST, Clock, Hub, Impairments, Link, Segment, Switch, Topology
from sundial.units import SIZE, TIME

Path = tuple[str | int, ...]

_NEEDS = (
    ("jitter", "delay"),
    ("delay_correlation", "jitter"),
    ("distribution", "jitter"),
    ("loss_correlation", "loss"),
    ("duplicate_correlation", "duplicate"),
    ("corrupt_correlation", "corrupt"),
    ("reorder", "delay"),
    ("reorder_correlation", "reorder"),
    ("gap", "reorder"),
    ("packet_overhead", "rate"),
    ("cell_size", "rate"),
    ("cell_overhead", "cell_size"),
)
"""In tc-netem the first means nothing without the second."""

SLOT_BITS = 512
JAM_BITS = 32


@dataclass(frozen=True)
class Finding:
    """One thing wrong at `path`."""

    path: Path
    what: str
    allowed: str | None = None


def check_clock(topology: Topology, clock: Clock) -> list[Finding]:
    """What is wrong with `topology` under `clock`."""
    if clock == "virtual" and topology.accelerator == "kvm":
        return [Finding(("accelerator",), "KVM cannot keep virtual time", "auto or tcg, or the clock real")]
    return []


def check_topology(topology: Topology) -> list[Finding]:
    """Everything wrong with `topology`, in the order a reader mends it; empty when it is sound."""
    found = list(chain(_machines(topology), _ends(topology)))
    if not found:
        found = list(
            chain(_macs(topology), _addresses(topology), _mtus(topology), _loops(topology), _segments(topology))
        )
    first: dict[Path, Finding] = {}
    for finding in found:
        first.setdefault(finding.path, finding)
    return list(first.values())


def _machines(topology: Topology) -> Iterator[Finding]:
    for name, machine in topology.machines.items():
        path: Path = ("machines", name)
        image = machine.image or topology.defaults.image
        where = (*path, "image") if machine.image else ("defaults", "image")
        if image not in IMAGES:
            yield Finding(where, f"there is no image {image!r}", ", ".join(sorted(IMAGES)))
        elif machine.role not in IMAGES[image].roles:
            yield Finding(
                (*path, "role"), f"image {image!r} cannot be a {machine.role}", ", ".join(sorted(IMAGES[image].roles))
            )
        else:
            yield from _memory(topology, name, image)
        wanted = [f"eth{number}" for number in range(len(machine.interfaces))]
        if sorted(machine.interfaces) != wanted:
            yield Finding((*path, "interfaces"), "the interfaces have a gap in their numbers", ", ".join(wanted))
        if machine.role == "bridge" and len(machine.interfaces) < 2:
            yield Finding((*path, "interfaces"), "a bridge has two interfaces or more")
        for device, interface in machine.interfaces.items():
            at: Path = (*path, "interfaces", device)
            if machine.role == "bridge" and interface.address is not None:
                yield Finding((*at, "address"), "an interface of a bridge has no address", "leave it out")
            if machine.role == "host" and interface.address is None:
                yield Finding(at, "address is missing", "such as '10.0.0.1/24'")
            if machine.role == "host" and interface.netem is not None:
                yield Finding((*at, "netem"), "only a bridge runs tc-netem", "role: bridge")


def _memory(topology: Topology, name: str, image: str) -> Iterator[Finding]:
    own, sizes = topology.machines[name].memory, IMAGES[image].memory_sizes
    memory = topology.defaults.memory if own is None else own
    if memory is not None and not sizes.least <= memory <= sizes.most:
        where: Path = ("defaults", "memory") if own is None else ("machines", name, "memory")
        yield Finding(where, f"{SIZE.show(memory)} for {name!r}, which boots {image}", sizes.allowed)


def _ends(topology: Topology) -> Iterator[Finding]:
    used: dict[str, str] = {}
    for name, segment in topology.segments.items():
        for number, end in enumerate(segment.ports):
            path: Path = ("segments", name, "ports", number)
            machine, _, device = end.partition(":")
            if machine not in topology.machines:
                yield Finding(path, f"{end!r} names no machine", ", ".join(topology.machines))
            elif device not in topology.machines[machine].interfaces:
                has = ", ".join(f"{machine}:{device}" for device in topology.machines[machine].interfaces)
                yield Finding(path, f"machine {machine!r} has no interface {device!r}", has)
            elif end in used:
                yield Finding(path, f"port {end!r} is used twice (also in segment {used[end]!r})", "each port once")
            used.setdefault(end, name)
        if isinstance(segment, Link) and len(segment.ports) != 2:
            yield Finding(("segments", name, "ports"), f"a link with {len(segment.ports)} ports", "exactly 2")
    for name, machine_ in topology.machines.items():
        for device in machine_.interfaces:
            if f"{name}:{device}" not in used:
                yield Finding(
                    ("machines", name, "interfaces", device),
                    f"interface {name}:{device} is not connected",
                    "list it in the ports of one segment",
                )


def _macs(topology: Topology) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for index, (name, machine) in enumerate(topology.machines.items()):
        for number, device in enumerate(sorted(machine.interfaces)):
            mac = machine.interfaces[device].mac or derived_mac(index, number)
            end = f"{name}:{device}"
            if mac in seen:
                yield Finding(
                    ("machines", name, "interfaces", device, "mac"),
                    f"MAC address {mac} is used twice (also by {seen[mac]})",
                    "each address once",
                )
            seen.setdefault(mac, end)


def _addresses(topology: Topology) -> Iterator[Finding]:
    domains = broadcast_domains(topology)
    plugged = {end: name for name, segment in topology.segments.items() for end in segment.ports}
    first: dict[int, str] = {}
    seen: dict[tuple[int, str], str] = {}
    for name, machine in topology.machines.items():
        networks: dict[str, int] = {}
        for device in sorted(machine.interfaces):
            address = machine.interfaces[device].address
            if address is None:
                continue
            end = f"{name}:{device}"
            path: Path = ("machines", name, "interfaces", device, "address")
            domain = domains[plugged[end]]
            leader = first.setdefault(domain, end)
            known = topology.machines[leader.partition(":")[0]].interfaces[leader.partition(":")[2]].address
            if known is not None and known.network != address.network:
                yield Finding(
                    path,
                    f"{address} is in another subnet than {leader} on segment {plugged[end]!r}",
                    f"an address in {known.network}",
                )
            twin = seen.setdefault((domain, str(address.ip)), end)
            if twin != end:
                yield Finding(path, f"address {address.ip} is used twice (also by {twin})", "each address once")
            if networks.setdefault(str(address.network), domain) != domain:
                yield Finding(path, f"{name} has subnet {address.network} on two segments", "a subnet of its own")


def _mtus(topology: Topology) -> Iterator[Finding]:
    for name, segment in topology.segments.items():
        for end in segment.ports:
            machine, _, device = end.partition(":")
            own = topology.machines[machine].interfaces[device].mtu
            mtu = topology.defaults.mtu if own is None else own
            if mtu > segment.mtu:
                yield Finding(
                    ("defaults", "mtu") if own is None else ("machines", machine, "interfaces", device, "mtu"),
                    f"MTU {mtu} of {end} is above that of segment {name!r}",
                    f"{MTU_LEAST} to {segment.mtu}",
                )


def _loops(topology: Topology) -> Iterator[Finding]:
    graph = nx.MultiGraph()
    for name, segment in topology.segments.items():
        for number, end in enumerate(segment.ports):
            machine = end.partition(":")[0]
            if topology.machines[machine].role == "bridge":
                there = f"bridge {machine}"
                if there in graph and name in graph and nx.has_path(graph, there, name):
                    yield Finding(
                        ("segments", name, "ports", number),
                        f"{end!r} closes a loop of bridges: frames would circle for ever",
                        "segments and bridges that form a tree",
                    )
                graph.add_edge(there, name)


def _segments(topology: Topology) -> Iterator[Finding]:
    for name, segment in topology.segments.items():
        path: Path = ("segments", name)
        if isinstance(segment, Link):
            yield from _by_port((*path, "impairments"), segment, [key for key in segment.impairments if key != "both"])
            for key in segment.impairments:
                yield from _impairments((*path, "impairments", key), segment.sending(key))
        elif isinstance(segment, Hub):
            yield from _hub(path, segment)
        elif isinstance(segment, Switch) and isinstance(segment.rate, dict):
            yield from _by_port((*path, "rate"), segment, list(segment.rate), every=True)


def _by_port(path: Path, segment: Segment, given: list[str], *, every: bool = False) -> Iterator[Finding]:
    for key in given:
        if key not in segment.ports:
            yield Finding((*path, key), f"{key!r} is not a port of this segment", ", ".join(segment.ports))
    missing = [end for end in segment.ports if end not in given]
    if every and missing:
        yield Finding(path, f"port {missing[0]!r} is missing", "one value for all ports, or one for each")


def _impairments(path: Path, impairments: Impairments) -> Iterator[Finding]:
    for name, needed in _NEEDS:
        if getattr(impairments, name) is not None and getattr(impairments, needed) is None:
            yield Finding((*path, name), f"{name} means nothing without {needed}", f"write {needed} too")
    if impairments.loss is not None and impairments.gemodel is not None:
        yield Finding((*path, "gemodel"), "loss and gemodel exclude one another", "one of the two")


def _hub(path: Path, hub: Hub) -> Iterator[Finding]:
    if hub.rate not in HUB_RATES:
        yield Finding((*path, "rate"), "a hub has one of two rates", "10 Mbit/s, 100 Mbit/s")
    wrong = []
    if isinstance(hub.cable_delay, dict):
        wrong = list(_by_port((*path, "cable_delay"), hub, list(hub.cable_delay), every=True))
        yield from wrong
    if not wrong and hub.rate in HUB_RATES:
        yield from _slot(path, hub)


def _slot(path: Path, hub: Hub) -> Iterator[Finding]:
    longest = sorted(hub.by_port(hub.cable_delay))[-2:]
    most = (SLOT_BITS - JAM_BITS) * 10**9 // hub.rate
    if 2 * (sum(longest) + hub.through) > most:
        yield Finding(
            (*path, "cable_delay"),
            "a round trip over the two longest cables and the jam do not fit into the slot time: late collisions",
            f"a round trip of at most {TIME.show(most)}, the repeater included",
        )

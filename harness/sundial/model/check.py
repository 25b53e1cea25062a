# SPDX-License-Identifier: Apache-2.0
"""Errors of a topology beyond single fields: ends, ports, addresses, MTUs, and the checks of each kind.

Every check yields `Invalid`s: the path of the wrong field, what is wrong there, and what is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from sundial.model.check_own import check_own
from sundial.model.fields import MAPPED_DEVICE
from sundial.model.images import IMAGES
from sundial.model.invalid import Invalid, Path
from sundial.model.network import bridges, broadcast_domains, derived_mac, device_mac
from sundial.model.segment import MTU_LEAST
from sundial.model.topology import SEGMENT_KINDS, Clock, Topology
from sundial.units import SIZE


def check_clock(topology: Topology, clock: Clock) -> list[Invalid]:
    """Errors of `topology` under `clock`."""
    if clock != "virtual":
        return [
            Invalid(("segments", name, "kind"), f"kind {segment.kind} requires clock: virtual", "clock: virtual")
            for name, segment in topology.segments.items()
            if segment.mapped
        ]
    findings = [
        Invalid(("machines", name, "on"), f"a machine on host {machine.on!r} requires clock: real", "clock: real")
        for name, machine in topology.machines.items()
        if machine.on is not None
    ]
    if topology.accelerator == "kvm":
        findings.append(Invalid(("accelerator",), "kvm does not support clock: virtual", "auto or tcg, or clock: real"))
    return findings


def check_topology(topology: Topology) -> list[Invalid]:
    """Errors of `topology`, in the order in which to mend them; empty if it is valid."""
    findings = list(chain(_machines(topology), _devices(topology), _ends(topology), _segments(topology)))
    if not findings:
        rules = (_macs, _addresses, _routes, _mtus, _offloads, _bridged, _joined_mtus, _loops, _inside, check_own)
        findings = [finding for rule in rules for finding in rule(topology)]
    first: dict[Path, Invalid] = {}
    for finding in findings:
        first.setdefault(finding.path, finding)
    return list(first.values())


def _machines(topology: Topology) -> Iterator[Invalid]:
    for name, machine in topology.machines.items():
        path: Path = ("machines", name)
        image = machine.image or topology.defaults.image
        where = (*path, "image") if machine.image else ("defaults", "image")
        if image not in IMAGES:
            yield Invalid(where, f"there is no image {image!r}", ", ".join(sorted(IMAGES)))
        elif machine.role not in IMAGES[image].roles:
            yield Invalid(
                (*path, "role"), f"image {image!r} cannot be a {machine.role}", ", ".join(sorted(IMAGES[image].roles))
            )
        else:
            yield from _memory(topology, name, image)
            yield from _mips(topology, name, image)
        if machine.on is not None and machine.on not in topology.hosts:
            known = ", ".join(topology.hosts) or "none: the topology has no hosts"
            yield Invalid((*path, "on"), f"there is no host {machine.on!r}", known)
        frames = sorted(set(machine.interfaces) - {MAPPED_DEVICE})
        expected = [f"eth{number}" for number in range(len(frames))] or ["eth0"]
        if not frames and machine.interfaces:
            what = f"{MAPPED_DEVICE} needs eth0 for its notifications, and eth0 is missing"
            yield Invalid((*path, "interfaces"), what, "eth0 in addition")
        elif frames != expected:
            yield Invalid((*path, "interfaces"), "interface numbers have a gap", ", ".join(expected))
        for device, interface in machine.interfaces.items():
            if device == MAPPED_DEVICE:
                yield from _mapped(topology, name)
            elif machine.role == "host" and interface.address is None:
                yield Invalid((*path, "interfaces", device), "address is missing", "such as '10.0.0.1/24'")
        for kind in SEGMENT_KINDS.values():
            yield from kind.check_machine(machine, path)


def _mapped(topology: Topology, name: str) -> Iterator[Invalid]:
    """Errors of a machine's interface to a segment that carries stores."""
    machine = topology.machines[name]
    path: Path = ("machines", name, "interfaces", MAPPED_DEVICE)
    image = IMAGES.get(machine.image or topology.defaults.image)
    if image is not None and not image.maps_adapters:
        fitting = " or ".join(each for each, kind in IMAGES.items() if kind.maps_adapters)
        yield Invalid(path, f"image {image.name!r} has no driver for it", f"a machine that boots {fitting}")
    for field in machine.interfaces[MAPPED_DEVICE].model_dump(exclude_none=True):
        yield Invalid((*path, field), "it carries stores, not packets", "{}: nothing to set")
    latency = machine.adapter or topology.defaults.adapter
    if latency is not None and latency.latency:
        where: Path = ("machines", name, "adapter") if machine.adapter else ("defaults", "adapter")
        yield Invalid(where, f"{name}:{MAPPED_DEVICE} has no descriptors to fetch", "no latency")


def _devices(topology: Topology) -> Iterator[Invalid]:
    for name, device in topology.devices.items():
        if name in topology.machines:
            yield Invalid(("devices", name), f"{name!r} is a machine's name", "each name once")
        for number, interface in enumerate(device.interfaces):
            if interface in device.interfaces[:number]:
                at: Path = ("devices", name, "interfaces", number)
                yield Invalid(at, f"{interface!r} is written twice", "each interface once")


def _own_or_default(topology: Topology, name: str, field: str) -> tuple[Any, Path]:
    """What a machine has in a field that `defaults` has, too, and where that is written."""
    own = getattr(topology.machines[name], field)
    return (getattr(topology.defaults, field), ("defaults", field)) if own is None else (own, ("machines", name, field))


def _memory(topology: Topology, name: str, image: str) -> Iterator[Invalid]:
    sizes = IMAGES[image].memory_sizes
    memory, where = _own_or_default(topology, name, "memory")
    if memory is not None and not sizes.least <= memory <= sizes.most:
        yield Invalid(where, f"{SIZE.show(memory)} for {name!r}, which boots {image}", sizes.allowed)


def _mips(topology: Topology, name: str, image: str) -> Iterator[Invalid]:
    least = IMAGES[image].mips_least
    mips, where = _own_or_default(topology, name, "mips")
    if mips < least:
        yield Invalid(where, f"{mips} mips for {name!r}, which boots {image}", f"at least {least}")


def _ends(topology: Topology) -> Iterator[Invalid]:
    used: dict[str, str] = {}
    for name, segment in topology.segments.items():
        for number, end in enumerate(segment.ports):
            path: Path = ("segments", name, "ports", number)
            owner, _, interface = end.partition(":")
            if owner in topology.machines:
                what, names = "machine", list(topology.machines[owner].interfaces)
            elif owner in topology.devices:
                what, names = "device", topology.devices[owner].interfaces
            else:
                what, names = "", []
            if not what:
                none = (
                    "is not a machine or device of this topology"
                    if topology.devices
                    else "is not a machine of this topology"
                )
                yield Invalid(path, f"{end!r} {none}", ", ".join([*topology.machines, *topology.devices]))
            elif interface not in names:
                has = ", ".join(f"{owner}:{name}" for name in names)
                yield Invalid(path, f"{what} {owner!r} has no interface {interface!r}", has)
            elif end in used:
                yield Invalid(path, f"port {end!r} is used twice (also in segment {used[end]!r})", "each port once")
            elif segment.mapped != (interface == MAPPED_DEVICE):
                fitting = MAPPED_DEVICE if segment.mapped else "eth0 to eth7"
                yield Invalid(path, f"{end!r} cannot be a port of a segment of kind {segment.kind}", fitting)
            used.setdefault(end, name)
    for end, at in _interfaces(topology):
        if end not in used:
            yield Invalid(at, f"interface {end} is not connected", "list it in the ports of one segment")


def _interfaces(topology: Topology) -> Iterator[tuple[str, Path]]:
    """Every interface of machines and devices, with its path."""
    for name, machine in topology.machines.items():
        yield from ((f"{name}:{each}", ("machines", name, "interfaces", each)) for each in machine.interfaces)
    for name, device in topology.devices.items():
        for number, interface in enumerate(device.interfaces):
            yield f"{name}:{interface}", ("devices", name, "interfaces", number)


def _macs(topology: Topology) -> Iterator[Invalid]:
    owners = {
        device_mac(index, number): f"{name}:{interface}"
        for index, (name, device) in enumerate(topology.devices.items())
        for number, interface in enumerate(device.interfaces)
    }
    for index, (name, machine) in enumerate(topology.machines.items()):
        for number, device in enumerate(sorted(machine.interfaces)):
            mac = machine.interfaces[device].mac or derived_mac(index, number)
            end = f"{name}:{device}"
            if mac in owners:
                yield Invalid(
                    ("machines", name, "interfaces", device, "mac"),
                    f"MAC address {mac} is used twice (also by {owners[mac]})",
                    "each address once",
                )
            owners.setdefault(mac, end)


def _addresses(topology: Topology) -> Iterator[Invalid]:
    domains = broadcast_domains(topology)
    plugged = {end: name for name, segment in topology.segments.items() for end in segment.ports}
    first: dict[int, str] = {}
    owners: dict[tuple[int, str], str] = {}
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
            subnet = topology.machines[leader.partition(":")[0]].interfaces[leader.partition(":")[2]].address
            if subnet is not None and subnet.network != address.network:
                yield Invalid(
                    path,
                    f"{address} is not in the subnet of {leader} on segment {plugged[end]!r}",
                    f"an address in {subnet.network}",
                )
            owner = owners.setdefault((domain, str(address.ip)), end)
            if owner != end:
                yield Invalid(path, f"address {address.ip} is used twice (also by {owner})", "each address once")
            if networks.setdefault(str(address.network), domain) != domain:
                yield Invalid(
                    path, f"{name} has subnet {address.network} on two segments", "one segment for each subnet"
                )


def _routes(topology: Topology) -> Iterator[Invalid]:
    owners = {
        interface.address.ip: name
        for name, machine in topology.machines.items()
        for interface in machine.interfaces.values()
        if interface.address is not None
    }
    for name, machine in topology.machines.items():
        image = machine.image or topology.defaults.image
        own = [interface.address for interface in machine.interfaces.values() if interface.address is not None]
        for number, route in enumerate(machine.routes):
            path: Path = ("machines", name, "routes", number)
            owner = owners.get(route.via)
            on_link = [address for address in own if route.via in address.network]
            if not IMAGES[image].routes:
                yield Invalid(path, f"image {image!r} does not support routes", "leave them out")
            elif any(route.to == other.to for other in machine.routes[:number]):
                yield Invalid((*path, "to"), f"there are two routes to {route.to}", "one for each network")
            elif any(route.to == address.network for address in own):
                yield Invalid(
                    (*path, "to"), f"{name} itself has an address in {route.to}", "a network that the machine is not on"
                )
            elif not on_link or owner in (None, name):
                others = [at for at, who in owners.items() if who != name and any(at in each.network for each in own)]
                what = f"{route.via} is not a neighbour of {name}"
                yield Invalid((*path, "via"), what, ", ".join(map(str, others)))
            elif owner is not None and not IMAGES[topology.machines[owner].image or topology.defaults.image].routes:
                fitting = " or ".join(each for each, kind in IMAGES.items() if kind.routes)
                what = f"the image of {owner!r} does not forward packets"
                yield Invalid((*path, "via"), what, f"a machine that boots {fitting}")


def _mtus(topology: Topology) -> Iterator[Invalid]:
    for name, segment in topology.segments.items():
        for end in segment.ports:
            machine, _, device = end.partition(":")
            if machine not in topology.machines or segment.mapped:
                continue
            own = topology.machines[machine].interfaces[device].mtu
            mtu = topology.defaults.mtu if own is None else own
            image = IMAGES[topology.machines[machine].image or topology.defaults.image]
            effective = segment.mtu if mtu is None else mtu
            at: Path = ("machines", machine, "interfaces", device, "mtu")
            if effective > segment.mtu:
                yield Invalid(
                    ("defaults", "mtu") if own is None else at,
                    f"MTU {mtu} of {end} is above that of segment {name!r}",
                    f"{MTU_LEAST} to {segment.mtu}",
                )
            elif not image.mtu_least <= effective <= image.mtu_most:
                what = f"MTU {effective} of {end}, which boots {image.name}"
                yield Invalid(
                    ("defaults", "mtu") if own is None and mtu is not None else at,
                    what,
                    f"{image.mtu_least} to {image.mtu_most}",
                )


def _offloads(topology: Topology) -> Iterator[Invalid]:
    for name, machine in topology.machines.items():
        image = IMAGES[machine.image or topology.defaults.image]
        for device, interface in machine.interfaces.items():
            own = interface.offloads
            if device != MAPPED_DEVICE and not image.offloads and (topology.defaults.offloads if own is None else own):
                at: Path = ("machines", name, "interfaces", device, "offloads")
                what = f"{name}:{device} has no offloads: it boots {image.name}"
                yield Invalid(("defaults", "offloads") if own is None else at, what, "false")


def _bridged(topology: Topology) -> Iterator[Invalid]:
    joining = bridges(topology)
    for name, segment in topology.segments.items():
        for number, end in enumerate(segment.ports):
            of = joining.get(end.partition(":")[0])
            why = segment.refuses_bridge(of) if of else None
            if why:
                yield Invalid(("segments", name, "ports", number), f"{end!r} belongs to a bridge: {why}", "hosts")


def _joined_mtus(topology: Topology) -> Iterator[Invalid]:
    """A bridge does not fragment: packets that are too long for the other segment would be lost."""
    first: dict[str, str] = {}
    for name, segment in topology.segments.items():
        for end in segment.ports:
            device = end.partition(":")[0]
            if device not in topology.devices:
                continue
            other = first.setdefault(device, name)
            mtu = topology.segments[other].mtu
            if segment.mtu != mtu:
                yield Invalid(
                    ("segments", name, "mtu"),
                    f"MTU {segment.mtu} differs from MTU {mtu} of segment {other!r}, joined by device {device!r}",
                    f"{min(mtu, segment.mtu)} on both",
                )


def _loops(topology: Topology) -> Iterator[Invalid]:
    joining = bridges(topology)
    if not joining:
        return
    import networkx as nx

    graph = nx.MultiGraph()
    for name, segment in topology.segments.items():
        for number, end in enumerate(segment.ports):
            owner = end.partition(":")[0]
            if owner in joining:
                bridge = f"bridge {owner}"
                if bridge in graph and name in graph and nx.has_path(graph, bridge, name):
                    yield Invalid(
                        ("segments", name, "ports", number),
                        f"{end!r} closes a loop of bridges: frames would loop forever",
                        "segments and bridges that form a tree",
                    )
                graph.add_edge(bridge, name)


def _segments(topology: Topology) -> Iterator[Invalid]:
    for name, segment in topology.segments.items():
        yield from segment.check(("segments", name))


def _inside(topology: Topology) -> Iterator[Invalid]:
    for kind in SEGMENT_KINDS.values():
        yield from kind.check_inside(topology)

# SPDX-License-Identifier: Apache-2.0
"""The loopback of a machine that says `loopback: captured`. No segment is written so: it is inside its machine."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Interface
from typing import TYPE_CHECKING, Literal

from sundial.expect.ip import MAX_IP
from sundial.model.images import IMAGES
from sundial.model.invalid import Invalid
from sundial.model.segment import Inside, SegmentBase, SegmentKind

if TYPE_CHECKING:
    from sundial.model.topology import Topology

CAPTURED = "captured"
PLATFORM = "linux"
"""Whose runner captures it (guest-apps/runner/capture.c)."""
DEVICE = "lo"
ADDRESS = IPv4Interface("127.0.0.1/8")
MAC = "00:00:00:00:00:00"
"""What Linux writes as both addresses of a frame (drivers/net/loopback.c)."""


class Loopback(SegmentBase):
    """One port, which hears what it sends; no fabric runs it."""

    kind: Literal["loopback"] = "loopback"
    ports: list[str]
    mtu: int = MAX_IP
    """Linux says 65,536, and a packet is at most what IP's length field holds (net/ip.h, IP_MAX_MTU)."""


class LoopbackKind(SegmentKind):
    """Loopbacks of machines."""

    def inside(self, topology: Topology, machine: str) -> Inside | None:
        # Under the real clock a guest's stamps are not the run's.
        if topology.machines[machine].loopback != CAPTURED or topology.clock != "virtual":
            return None
        return Inside(f"loopback-{machine}", Loopback(ports=[f"{machine}:{DEVICE}"]), DEVICE, MAC, ADDRESS)

    def check_inside(self, topology: Topology) -> Iterator[Invalid]:
        first = None
        for name, machine in topology.machines.items():
            inside = self.inside(topology, name)
            if inside is None:
                continue
            path = ("machines", name, "loopback")
            image = machine.image or topology.defaults.image
            if IMAGES[image].platform != PLATFORM:
                yield Invalid(path, f"image {image!r} of {name!r} cannot capture its loopback", "not")
            elif inside.name in topology.segments:
                yield Invalid(("segments", inside.name), "is the name of a loopback's capture", "another name")
            elif first is not None:
                what = f"the loopback of {first!r} is also captured, with the same address {ADDRESS.ip}"
                yield Invalid(path, what, "one machine of a topology")
            first = first or name


KIND: SegmentKind = LoopbackKind()

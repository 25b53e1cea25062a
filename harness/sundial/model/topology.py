# SPDX-License-Identifier: Apache-2.0
"""A topology as written: machines, segments and devices that join them, and the clock they run on.

Kinds of segments are in `sundial/segments`, devices in `devices.py`. Values are in base units once parsed: ns, bit/s,
bytes, fractions. What needs more than one field to be judged is in `check.py`; what is derived (MAC addresses, defaults
applied, who reaches whom) is in `network.py`.
"""

from __future__ import annotations

import operator
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import Field

from sundial.kinds import load
from sundial.model.daemon import DaemonUri
from sundial.model.devices import DEVICES_MOST, Bridge
from sundial.model.fields import (
    DEVICE,
    NAMED,
    NETEM,
    PROSE,
    Address,
    Flag,
    HostAddress,
    HostUri,
    In,
    Mac,
    Mips,
    NetworkAddress,
    Strict,
    written,
)
from sundial.model.images import MEMORY, Role
from sundial.model.own import OwnBoot
from sundial.model.segment import Mtu, SegmentBase, SegmentKind
from sundial.units import TIME

MACHINES_MOST = 64
HOSTS_MOST = 8
ROUTES_MOST = 64
"""Of one machine."""

SEGMENT_KINDS = load("segments", "model", SegmentKind)
"""Every kind of segment by its name, sorted."""

Clock = Literal["virtual", "real"]
Accelerator = Literal["auto", "tcg", "kvm"]

_Name = Annotated[str, NAMED]
_Memory = Annotated[int, In(MEMORY)]
ADAPTER_LATENCY = TIME.between(most="10 ms", example="5 us")


class MachineAdapter(Strict):
    """How a machine's network adapters work; of their transmit rings, `adapter` of a segment says more."""

    latency: Annotated[int, In(ADAPTER_LATENCY)] = written("0 ns")
    """From the doorbell, when the guest hands in a frame, until the adapter has fetched its descriptor and may begin to
    send it."""


class Defaults(OwnBoot):
    """What holds for every machine and interface that does not say otherwise."""

    image: _Name = "linux"
    """What the machines boot."""
    mips: Annotated[Decimal, Mips()] = written("125")
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory of a machine, in the range of its image; left out: what the image asks for."""
    adapter: MachineAdapter | None = Field(default=None, exclude_if=operator.not_)
    """The network adapters of a machine; left out: they begin with a frame at once."""
    mtu: Mtu | None = None
    """Largest IP packet an interface sends, in bytes; left out: its segment's."""
    offloads: Annotated[bool, Flag()] = False
    """Segmentation and receive offloads (TSO, GSO, GRO) of the guest's interface."""
    static_arp: Annotated[bool, Flag()] = False
    """Give each interface the MAC addresses of its neighbours, so that no ARP is sent."""


class Interface(Strict):
    """One network interface of a machine."""

    address: Annotated[IPv4Interface, Address()] | None = None
    """IPv4 address and prefix length; a bridge's interfaces have none."""
    mac: Annotated[str, Mac()] | None = None
    """MAC address; made from the machine's and interface's position when left out."""
    mtu: Mtu | None = None
    """Largest IP packet sent, in bytes; left out: that of `defaults`, or of the segment."""
    offloads: Annotated[bool, Flag()] | None = None
    """Segmentation and receive offloads."""
    static_arp: Annotated[bool, Flag()] | None = None
    """Give the neighbours' MAC addresses, so that no ARP is sent."""
    netem: Annotated[str, NETEM] | None = None
    """What the kernel's tc-netem does to frames a bridge sends here."""


class Route(Strict):
    """The way to a network that no interface of the machine is on."""

    to: Annotated[IPv4Network, NetworkAddress()]
    """The network."""
    via: Annotated[IPv4Address, HostAddress()]
    """Another machine's address, on a network that one of its interfaces is on; that machine forwards packets."""


class Host(Strict):
    """Another computer that runs machines."""

    connect: Annotated[DaemonUri, HostUri()]
    """Its libvirt daemon, reached by ssh, by which the machines' files and frames travel too."""


class Machine(OwnBoot):
    """One guest."""

    role: Role = "host"
    """A host has addresses; a bridge joins its interfaces in the guest's kernel."""
    image: _Name | None = None
    """What it boots."""
    mips: Annotated[Decimal, Mips()] | None = None
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory."""
    adapter: MachineAdapter | None = Field(default=None, exclude_if=operator.not_)
    """Its network adapters."""
    interfaces: dict[Annotated[str, DEVICE], Interface] = Field(min_length=1)
    """Its interfaces: eth0, eth1 and so on without a gap."""
    routes: list[Route] = Field(default_factory=list, max_length=ROUTES_MOST, exclude_if=operator.not_)
    """Static routes."""
    loopback: Literal["captured", "not"] = Field(default="not", exclude_if=lambda value: value == "not")
    """Whether what passes its loopback interface is captured, inside the guest. Only where it is may workloads have
    their client and their server on it. Under the real clock it is not."""
    on: _Name | None = Field(default=None, exclude_if=operator.not_)
    """The host that runs it, one of `hosts`; left out: this computer. Real clock only."""


if TYPE_CHECKING:
    Segment = SegmentBase
else:
    Segment = Annotated[
        Union[tuple(kind.model for kind in SEGMENT_KINDS.values() if kind.model is not None)],  # noqa: UP007
        Field(discriminator="kind"),
    ]


class Topology(Strict):
    """Machines and the wires between them."""

    name: _Name
    """The file's name without its ending."""
    description: Annotated[str, PROSE]
    """One sentence: what it is for."""
    clock: Clock = "virtual"
    """Virtual time (the same bytes every time) or the host's monotonic clock."""
    accelerator: Accelerator = "auto"
    """What runs the machines under the real clock; auto: KVM where a guest boots under it. Virtual time needs TCG."""
    defaults: Defaults = Defaults()
    """What holds for every machine that does not say otherwise."""
    hosts: dict[_Name, Host] = Field(default_factory=dict, max_length=HOSTS_MOST, exclude_if=operator.not_)
    """Other computers that run machines, by name."""
    machines: dict[_Name, Machine] = Field(min_length=1, max_length=MACHINES_MOST)
    """The guests, by name."""
    devices: dict[_Name, Bridge] = Field(default_factory=dict, max_length=DEVICES_MOST, exclude_if=operator.not_)
    """What joins segments without being a guest, by name."""
    segments: dict[_Name, Segment] = Field(min_length=1)
    """The wires, by name."""

    @property
    def virtual_only(self) -> bool:
        """Whether a segment keeps no other time than the virtual."""
        return any(segment.mapped for segment in self.segments.values())

# SPDX-License-Identifier: Apache-2.0
"""A topology as written: machines, segments and devices that join them, and the clock they run on.

Kinds of segments are in `sundial/segments`, devices in `devices.py`. Parsed values are in base units: ns, bit/s, bytes,
fractions. Checks of several fields are in `check.py`; derived values (MAC addresses, defaults, which machine reaches
which) are in `network.py`.
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
"""Most interfaces of one machine."""

SEGMENT_KINDS = load("segments", "model", SegmentKind)
"""Every kind of segment by its name, sorted."""

Clock = Literal["virtual", "real"]
Accelerator = Literal["auto", "tcg", "kvm"]

_Name = Annotated[str, NAMED]
_Memory = Annotated[int, In(MEMORY)]
ADAPTER_LATENCY = TIME.between(most="10 ms", example="5 us")


class MachineAdapter(Strict):
    """A machine's network adapters; their transmit rings are in `adapter` of a segment."""

    latency: Annotated[int, In(ADAPTER_LATENCY)] = written("0 ns")
    """Time from the doorbell, when the guest hands in a frame, until the adapter has fetched its descriptor and may
    begin to send it."""


class Defaults(OwnBoot):
    """Defaults for all machines and interfaces."""

    image: _Name = "linux"
    """Image that machines boot."""
    mips: Annotated[Decimal, Mips()] = written("125")
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory of a machine, in the range of its image. Default: the image's."""
    adapter: MachineAdapter | None = Field(default=None, exclude_if=operator.not_)
    """Network adapters of a machine. Default: they begin with a frame at once."""
    mtu: Mtu | None = None
    """Largest IP packet that an interface sends, in bytes. Default: its segment's MTU."""
    offloads: Annotated[bool, Flag()] = False
    """Segmentation and receive offloads (TSO, GSO, GRO) of the guest's interface."""
    static_arp: Annotated[bool, Flag()] = False
    """Give each interface the MAC addresses of its neighbours, so that no ARP is sent."""


class Interface(Strict):
    """One network interface of a machine."""

    address: Annotated[IPv4Interface, Address()] | None = None
    """IPv4 address and prefix length; a bridge's interfaces have none."""
    mac: Annotated[str, Mac()] | None = None
    """MAC address. Default: made from the positions of machine and interface."""
    mtu: Mtu | None = None
    """Largest IP packet that it sends, in bytes. Default: that of `defaults`, or else of the segment."""
    offloads: Annotated[bool, Flag()] | None = None
    """Segmentation and receive offloads."""
    static_arp: Annotated[bool, Flag()] | None = None
    """Give the neighbours' MAC addresses, so that no ARP is sent."""
    netem: Annotated[str, NETEM] | None = None
    """tc-netem arguments for frames that a bridge sends here."""


class Route(Strict):
    """Route to a network that the machine has no interface on."""

    to: Annotated[IPv4Network, NetworkAddress()]
    """The network."""
    via: Annotated[IPv4Address, HostAddress()]
    """Address of the next machine, which forwards packets, on a network of one of this machine's interfaces."""


class Host(Strict):
    """Another host that runs machines."""

    connect: Annotated[DaemonUri, HostUri()]
    """URI of its libvirt daemon over ssh; the machines' files and frames use ssh too."""


class Machine(OwnBoot):
    """One guest."""

    role: Role = "host"
    """host: its interfaces have addresses. bridge: the guest's kernel joins its interfaces."""
    image: _Name | None = None
    """Image that it boots."""
    mips: Annotated[Decimal, Mips()] | None = None
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory."""
    adapter: MachineAdapter | None = Field(default=None, exclude_if=operator.not_)
    """Network adapters."""
    interfaces: dict[Annotated[str, DEVICE], Interface] = Field(min_length=1)
    """Interfaces: eth0, eth1 and so on without a gap."""
    routes: list[Route] = Field(default_factory=list, max_length=ROUTES_MOST, exclude_if=operator.not_)
    """Static routes."""
    loopback: Literal["captured", "not"] = Field(default="not", exclude_if=lambda value: value == "not")
    """captured: frames on its loopback interface are captured, inside the guest. Only then can a workload have client
    and server on it. Not under the real clock."""
    on: _Name | None = Field(default=None, exclude_if=operator.not_)
    """The host that runs it, one of `hosts`. Default: this host. Real clock only."""


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
    """Name of the file without its ending."""
    description: Annotated[str, PROSE] | None = None
    """Purpose in one sentence."""
    clock: Clock = "virtual"
    """virtual: virtual time, with equal captures in every run; real: the host's monotonic clock."""
    accelerator: Accelerator = "auto"
    """Accelerator under the real clock; auto: KVM if a guest boots under it. Virtual time needs TCG."""
    defaults: Defaults = Defaults()
    """Defaults for all machines."""
    hosts: dict[_Name, Host] = Field(default_factory=dict, max_length=HOSTS_MOST, exclude_if=operator.not_)
    """Other hosts that run machines, by name."""
    machines: dict[_Name, Machine] = Field(min_length=1, max_length=MACHINES_MOST)
    """Machines, by name."""
    devices: dict[_Name, Bridge] = Field(default_factory=dict, max_length=DEVICES_MOST, exclude_if=operator.not_)
    """Devices that join segments, by name."""
    segments: dict[_Name, Segment] = Field(min_length=1)
    """Segments, by name."""

    @property
    def virtual_only(self) -> bool:
        """True if a segment requires virtual time."""
        return any(segment.mapped for segment in self.segments.values())

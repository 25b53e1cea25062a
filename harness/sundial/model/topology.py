# SPDX-License-Identifier: Apache-2.0
"""A topology as written: machines, the segments that join them, and the clock they run on.

Values are in base units once parsed: ns, bit/s, bytes, fractions. What needs more than one field to be judged is in
`check.py`; what is derived (MAC addresses, defaults applied, who reaches whom) is in `network.py`.
"""

from __future__ import annotations

from decimal import Decimal
from ipaddress import IPv4Interface
from typing import Annotated, Literal

from pydantic import Field

from sundial.model.fields import (
    DEVICE,
    NAMED,
    NETEM,
    PORT,
    PORT_OR_BOTH,
    PROSE,
    Address,
    Flag,
    In,
    Mac,
    Mips,
    OneOrByPort,
    Percent,
    Strict,
    Whole,
    written,
)
from sundial.units import RATE, SIZE, TIME

MTU_LEAST = 68
"""RFC 791: every module must forward 68 octets without further fragmentation."""
MTU_MOST = 9202
"""A frame of 9216 bytes less the 14-byte Ethernet header."""
MACHINES_MOST = 16
HUB_RATES = {10_000_000: 800, 100_000_000: 460}
"""Rates of a hub with its repeater's delay in ns where none is written: 8 bit times (IEEE 802.3 clause 9), and half of
class II's round trip of 92 bit times (clause 27)."""

Clock = Literal["virtual", "real"]
Accelerator = Literal["auto", "tcg", "kvm"]

_Name = Annotated[str, NAMED]
_Port = Annotated[str, PORT]
_Ageing = Annotated[int, In(TIME.between("1 ms", example="300 s"))]
_LinkTime = Annotated[int, In(TIME.between(most="1 min"))]
_CABLE = TIME.between(most="100 us", example="25 ns")
_CableTime = Annotated[int, In(_CABLE)]
_Rate = Annotated[int, In(RATE)]
_Mtu = Annotated[int, Whole(MTU_LEAST, MTU_MOST)]
_Memory = Annotated[int, In(SIZE.between("16 MiB", "4 GiB", example="128 MiB"))]
_Percent = Annotated[Decimal, Percent()]
_Frames = Annotated[int, Whole(1, 1_000_000)]


class Defaults(Strict):
    """What holds for every machine and interface that does not say otherwise."""

    image: _Name = "linux"
    """What the machines boot."""
    mips: Annotated[Decimal, Mips()] = written("125")
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory of a machine; left out: what its image asks for."""
    mtu: _Mtu = 1500
    """Largest IP packet an interface sends, in bytes."""
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
    mtu: _Mtu | None = None
    """Largest IP packet sent, in bytes."""
    offloads: Annotated[bool, Flag()] | None = None
    """Segmentation and receive offloads."""
    static_arp: Annotated[bool, Flag()] | None = None
    """Give the neighbours' MAC addresses, so that no ARP is sent."""
    netem: Annotated[str, NETEM] | None = None
    """What the kernel's tc-netem does to frames a bridge sends here."""


class Machine(Strict):
    """One guest."""

    role: Literal["host", "bridge"] = "host"
    """A host has addresses; a bridge joins its interfaces in the guest's kernel."""
    image: _Name | None = None
    """What it boots."""
    mips: Annotated[Decimal, Mips()] | None = None
    """Million instructions a second in virtual time."""
    memory: _Memory | None = None
    """Main memory."""
    interfaces: dict[Annotated[str, DEVICE], Interface] = Field(min_length=1)
    """Its interfaces: eth0, eth1 and so on without a gap."""


class Adapter(Strict):
    """The sending side of every port's network adapter."""

    ring_frames: Annotated[int, Whole(1, 4096)] = 64
    """Frames the transmit ring holds."""
    when_full: Literal["stop", "drop"] = "stop"
    """A full ring stops the guest's queue, as a real adapter does, or drops the frame."""


class GilbertElliott(Strict):
    """The four-parameter loss model of tc-netem (`loss gemodel`)."""

    p: _Percent
    """Probability of going from the good state to the bad one."""
    r: _Percent
    """Probability of going back."""
    one_minus_h: _Percent = written("100 %")
    """Loss probability in the bad state."""
    one_minus_k: _Percent = written("0 %")
    """Loss probability in the good state."""


class Impairments(Strict):
    """What a link does to frames of one direction; names and meaning are those of tc-netem."""

    delay: _LinkTime | None = None
    """Added to every frame."""
    jitter: _LinkTime | None = None
    """Half width (or deviation) of the delay's variation."""
    delay_correlation: _Percent | None = None
    """How much a delay depends on the one before."""
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | None = None
    """Of the jitter."""
    loss: _Percent | None = None
    """Frames lost at random."""
    loss_correlation: _Percent | None = None
    """How much a loss depends on the one before."""
    gemodel: GilbertElliott | None = None
    """Losses in bursts instead of `loss`."""
    duplicate: _Percent | None = None
    """Frames sent twice."""
    duplicate_correlation: _Percent | None = None
    """How much a duplication depends on the one before."""
    corrupt: _Percent | None = None
    """Frames with one bit flipped."""
    corrupt_correlation: _Percent | None = None
    """How much a corruption depends on the one before."""
    reorder: _Percent | None = None
    """Frames sent at once, past those being delayed; needs `delay`."""
    reorder_correlation: _Percent | None = None
    """How much a reordering depends on the one before."""
    gap: Annotated[int, Whole(1, 1_000_000)] | None = None
    """Only every gap-th frame is reordered; needs `reorder`."""
    rate: _Rate | None = None
    """A shaper before the wire."""
    packet_overhead: Annotated[int, Whole(-64, 1500)] | None = None
    """Bytes the shaper adds to every frame."""
    cell_size: Annotated[int, Whole(1, 65535)] | None = None
    """The shaper counts cells of so many bytes."""
    cell_overhead: Annotated[int, Whole(-64, 1500)] | None = None
    """Bytes the shaper adds to every cell."""
    limit: _Frames | None = None
    """Frames that may wait inside."""


class SegmentBase(Strict):
    """What every kind of segment has."""

    ports: list[_Port] = Field(min_length=2)
    """The interfaces joined, `MACHINE:INTERFACE`, in port order."""
    mtu: _Mtu = 1500
    """Largest IP packet the segment carries; longer frames are refused and counted."""
    adapter: Adapter = Adapter()
    """The adapters at its ports."""

    def by_port(self, value: int | dict[str, int]) -> list[int]:
        """A value given once or by port, as a list in port order."""
        return [value[end] if isinstance(value, dict) else value for end in self.ports]


class Link(SegmentBase):
    """Two ports, full duplex, with the impairments of tc-netem in each direction."""

    kind: Literal["link"]
    """A point-to-point link."""
    rate: _Rate
    """Bits a second in each direction."""
    propagation: _LinkTime = written("25 ns")
    """Time a bit takes from end to end."""
    impairments: dict[Annotated[str, PORT_OR_BOTH], Impairments] = Field(default_factory=dict)
    """By sending port, or `both`; a port's own fields go before those of `both`."""

    def sending(self, port: str) -> Impairments:
        """What happens to frames sent by `port`."""
        both = self.impairments.get("both", Impairments())
        own = self.impairments.get(port, Impairments())
        return both.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})


class Hub(SegmentBase):
    """A repeater with half-duplex stations: CSMA/CD."""

    kind: Literal["hub"]
    """A repeater hub."""
    rate: Annotated[int, In(RATE.between("10 Mbit/s", "100 Mbit/s"))]
    """10 Mbit/s (10Base-T) or 100 Mbit/s (100Base-TX)."""
    cable_delay: Annotated[int | dict[str, int], OneOrByPort(_CABLE)] = written("25 ns")
    """Propagation from a station to the hub: one for all, or by port (5 ns a metre)."""
    repeater_delay: _CableTime | None = None
    """Time through the repeater; left out: 8 bit times at 10 Mbit/s, 46 (class II) at 100 Mbit/s."""

    @property
    def through(self) -> int:
        """The repeater's delay in ns, written or by rate."""
        return HUB_RATES[self.rate] if self.repeater_delay is None else self.repeater_delay


class Switch(SegmentBase):
    """A learning store-and-forward switch with an output queue at every port."""

    kind: Literal["switch"]
    """A switch."""
    rate: Annotated[int | dict[str, int], OneOrByPort(RATE)]
    """Bits a second: one for all ports, or by port."""
    full_duplex: Literal[True] = True
    """Half duplex is what `hub` is for."""
    propagation: _CableTime = written("25 ns")
    """Of every cable."""
    forwarding_latency: _LinkTime = written("5 us")
    """From a frame's last bit in to the earliest first bit out."""
    queue_frames: _Frames = 128
    """Frames an output queue holds."""
    mac_table_entries: Annotated[int, Whole(1, 65536)] = 1024
    """Addresses the switch can learn."""
    ageing: _Ageing = written("300 s")
    """A learned address is forgotten after this."""


Segment = Annotated[Link | Hub | Switch, Field(discriminator="kind")]


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
    machines: dict[_Name, Machine] = Field(min_length=1, max_length=MACHINES_MOST)
    """The guests, by name."""
    segments: dict[_Name, Segment] = Field(min_length=1)
    """The wires, by name."""

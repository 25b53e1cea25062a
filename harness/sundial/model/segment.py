# SPDX-License-Identifier: Apache-2.0
"""The interface of a kind of segment to the model, and the fields that all segments under `segments:` share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Interface
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, Self, TypeVar, runtime_checkable

from pydantic import Field, PrivateAttr

from sundial.expect.ip import PerPacket
from sundial.model.fields import PORT, In, Percent, Strict, Whole, written
from sundial.model.invalid import Invalid, Path
from sundial.units import TIME

if TYPE_CHECKING:
    from sundial.model.impairments import Impairments
    from sundial.model.timeline import State
    from sundial.model.topology import Machine, Topology

ValueT = TypeVar("ValueT")

MTU_LEAST = 68
"""RFC 791: every module must forward 68 octets without further fragmentation."""
MTU_MOST = 18174
"""The largest frame of LAN emulation, 18190 octets (af-lane-0021), less LE header and Ethernet header."""

Port = Annotated[str, PORT]
Mtu = Annotated[int, Whole(MTU_LEAST, MTU_MOST)]
LINK = TIME.between(most="1 min")
LinkTime = Annotated[int, In(LINK)]
CABLE = TIME.between(most="100 us", example="25 ns")
CableTime = Annotated[int, In(CABLE)]
Frames = Annotated[int, Whole(1, 1_000_000)]
_Percent = Annotated[Decimal, Percent()]


class GilbertElliott(Strict):
    """The four-parameter loss model of tc-netem (`loss gemodel`)."""

    p: _Percent
    """Probability of a change from the good state to the bad one."""
    r: _Percent
    """Probability of a change from the bad state to the good one."""
    one_minus_h: _Percent = written("100 %")
    """Loss probability in the bad state."""
    one_minus_k: _Percent = written("0 %")
    """Loss probability in the good state."""


class Adapter(Strict):
    """Sending side of every port's network adapter."""

    ring_frames: Annotated[int, Whole(1, 4096)] = 64
    """Places in the transmit ring, in frames."""
    when_full: Literal["stop", "drop"] = "stop"
    """Effect of a full ring: it stops the guest's queue, as a real adapter does, or it drops the frame."""


class SegmentBase(Strict):
    """Fields of every kind of segment; a kind narrows `kind` to its name."""

    ports: list[Port] = Field(min_length=2)
    """Interfaces on this segment, `MACHINE:INTERFACE` or `DEVICE:INTERFACE`, in the order of its ports."""
    mtu: Mtu = 1500
    """Largest IP packet that the segment carries; longer frames are dropped and counted."""
    adapter: Adapter = Adapter()
    """Adapters at its ports."""
    kind: str
    """The folder of its kind."""
    _timeline: tuple[State, ...] = PrivateAttr(default=())

    def rate_bps(self, port: str) -> int:
        """Rate of the line at `port`, in bit/s."""
        raise NotImplementedError

    @property
    def knobs(self) -> frozenset[str]:
        """What events of a timeline may do to it: impair, cut, partition."""
        return frozenset()

    @property
    def timeline(self) -> tuple[State, ...]:
        """What it does from instants on, in order; before the first of them it does as the topology says."""
        return self._timeline

    def own_impairments(self, port: str) -> Impairments:
        """What happens to frames sent by `port` as the topology says. Of segments that can be impaired."""
        raise NotImplementedError

    def with_timeline(self, states: tuple[State, ...]) -> Self:
        """The same segment, which changes like this."""
        copy = self.model_copy()
        copy._timeline = states
        return copy

    @property
    def mapped(self) -> bool:
        """True if its ports are adapters whose memory the guest maps, not network adapters."""
        return False

    @property
    def ip_only(self) -> bool:
        """True if it carries IP packets without their Ethernet headers."""
        return False

    def tx_latency_ns(self, port: str) -> int:
        """Time in the adapter at `port` from a frame's hand-over to the line."""
        return 0

    @property
    def corrupts(self) -> bool:
        """True if it delivers frames with flipped bits, which no check of its own drops."""
        return False

    @property
    def packet_cells(self) -> PerPacket | None:
        """Number of cells of an IP packet by its length in bytes; None: the wire carries frames whole."""
        return None

    def refuses_bridge(self, of: Literal["machine", "device"]) -> str | None:
        """The reason why a bridge (device or machine) cannot be connected; None: it can."""
        return None

    def check(self, path: Path) -> Iterator[Invalid]:
        """Errors of this segment beyond single fields; it is at `path` of the topology."""
        yield from ()

    def by_port(self, value: ValueT | dict[str, ValueT]) -> list[ValueT]:
        """A value that is given once or by port, as a list in the order of ports."""
        return [value[end] if isinstance(value, dict) else value for end in self.ports]

    def check_ports(self, path: Path, given: Iterable[str], *, every: bool = False) -> Iterator[Invalid]:
        """Invalid fields for keys at `path` that are not ports of this segment, and with `every` for a missing port."""
        keys = list(given)
        for key in keys:
            if key not in self.ports:
                yield Invalid((*path, key), f"{key!r} is not a port of this segment", ", ".join(self.ports))
        missing = [end for end in self.ports if end not in keys]
        if every and missing:
            yield Invalid(path, f"port {missing[0]!r} is missing", "one value for all ports, or one for each")


@dataclass(frozen=True)
class Inside:
    """A segment within one machine, which the fabric does not run, and the machine's interface on it."""

    name: str
    segment: SegmentBase
    device: str
    mac: str
    address: IPv4Interface


@runtime_checkable
class SegmentKind(Protocol):
    """A kind of segment for the model: written under `segments:`, made of a machine that joins segments, or within a
    machine."""

    model: type[SegmentBase] | None = None
    """The model of a segment of this kind, its `kind` the folder's name; None: topologies cannot have one."""

    def check_machine(self, machine: Machine, path: Path) -> Iterator[Invalid]:
        """Errors of a machine that this kind checks; it is at `path` of the topology."""
        yield from ()

    def inside(self, topology: Topology, machine: str) -> Inside | None:
        """The segment of this kind within a machine; None: it has none."""
        return None

    def check_inside(self, topology: Topology) -> Iterator[Invalid]:
        """Errors across all machines of a topology whose machines and segments are valid."""
        yield from ()

# SPDX-License-Identifier: Apache-2.0
"""An ATM segment as written: a switch, the lines to its ports, and how frames become cells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sundial.expect.atm import LANE, ROUTED, UNITS_PER_S, cell_time_units, packet_cells
from sundial.expect.ip import PerPacket
from sundial.model.fields import PORT, OneOrByPort, written
from sundial.model.invalid import Invalid, Path
from sundial.model.segment import MTU_LEAST, MTU_MOST, SegmentBase, SegmentKind
from sundial.segments.atm.model_line import RATES, Line, LineField
from sundial.segments.atm.model_parts import LATENCY, WAY, Capture, Contract, Faults, Lane, Latency, Queue
from sundial.units import NS_PER_S, RATE, TIME

LANE_HEADERS = 16
"""Octets of LEC ID and Ethernet header."""
FRAME_SIZE = 1516
"""Default frame size of LAN emulation."""
BRIDGED_MTU = 1500
ROUTED_MTU = 9180
"""RFC 2225, section 7.1."""

_Port = Annotated[str, PORT]
_Times = Annotated[int | dict[str, int], OneOrByPort(LATENCY)]


class Atm(SegmentBase):
    """Adapters and a switch of ATM: AAL5, virtual channels, output queues in cells."""

    kind: Literal["atm"]
    """An ATM switch."""
    line: Annotated[Line | dict[str, Line], LineField(by_port=True)] = written("oc-3c")
    """Physical interface, one for all ports or by port: a name, or a rate in cells of 53 octets."""
    encapsulation: Literal["lane", "bridged", "bridged-fcs", "routed"] = "lane"
    """Encapsulation: LAN emulation 1.0; Ethernet over LLC (RFC 2684), without and with FCS; classical IP (RFC 2225)."""
    frame_size: Literal[1516, 4544, 9234, 18190] | None = None
    """Frame size of LAN emulation, in octets. Default: 1516."""
    propagation: _Times = written("25 ns")
    """Propagation delay of the line at each port: one for all, or by port."""
    tx_latency: _Times = written("0 ns")
    """Time in the adapter from a frame's hand-over to its first cell: one for all, or by port."""
    rx_latency: _Times = written("0 ns")
    """Time in the adapter from a PDU's last bit to the machine: one for all, or by port."""
    cell_latency: Latency = written("10 us")
    """Time from a cell's last bit at the switch to the output queue."""
    cdv: Latency = written("0 ns")
    """Cell delay variation: most additional time of a cell in the switch, distributed uniformly; order is kept."""
    interleave: Literal["pdu", "cells"] = "pdu"
    """Order of cells: an adapter sends whole PDUs, or cells of its virtual channels in turn."""
    queue: Queue = Queue()
    """Output queues of the switch."""
    lane: Lane | None = None
    """LAN emulation; only with `encapsulation: lane`."""
    contracts: dict[_Port, Contract] = Field(default_factory=dict)
    """Policing of each virtual channel from a port, by port."""
    shaping: Annotated[int | dict[str, int], OneOrByPort(RATES)] = Field(default_factory=dict)
    """Peak rate of a virtual channel from an adapter, in cells of 53 octets: one for all ports, or by port."""
    impairments: dict[Annotated[str, WAY], Faults] = Field(default_factory=dict)
    """Impairments by direction of a line, `from PORT` or `to PORT`, or `both` for all. Fields of a direction override
    those of `both`, and a loss overrides one of the other kind."""
    capture: Capture = Capture()
    """Captures to write."""

    @model_validator(mode="before")
    @classmethod
    def _mtu_follows(cls, data: Any) -> Any:
        """The MTU of the encapsulation, where none is written."""
        if not isinstance(data, dict) or "mtu" in data:
            return data
        return {**data, "mtu": _default_mtu(data.get("encapsulation", LANE), data.get("frame_size"))}

    @property
    def lan_emulation(self) -> Lane:
        """LAN emulation as written, or its defaults."""
        return self.lane or Lane()

    @property
    def lane_frame_size(self) -> int:
        """Of LAN emulation, in octets."""
        return self.frame_size or FRAME_SIZE

    def line_of(self, port: str) -> Line:
        """The line at `port`."""
        return self.line[port] if isinstance(self.line, dict) else self.line

    def cell_time_units(self, port: str) -> int:
        """Time of a cell on the line at `port`, in units of 1/117 ps."""
        return self.line_of(port).cell_time_units

    def faults(self, way: str) -> Faults:
        """What happens to cells in one direction, `from PORT` or `to PORT`."""
        both = self.impairments.get("both", Faults())
        own = self.impairments.get(way, Faults())
        if own.loses:
            both = both.model_copy(update={"cell_loss": None, "gemodel": None})
        return both.model_copy(update={name: getattr(own, name) for name in own.model_fields_set})

    def shaping_bps(self, port: str) -> int | None:
        """To what each virtual channel from `port` is shaped; None: to nothing."""
        return self.shaping.get(port) if isinstance(self.shaping, dict) else self.shaping

    def spacing_units(self, port: str) -> int:
        """From cell to cell of a PDU from `port`, in units of 1/117 ps: by the line, or by the channel's shaping."""
        own, shaped = self.cell_time_units(port), self.shaping_bps(port)
        return own if shaped is None else max(own, cell_time_units(shaped))

    def rate_bps(self, port: str) -> int:
        return self.line_of(port).rate_bps

    def tx_latency_ns(self, port: str) -> int:
        return self.by_port(self.tx_latency)[self.ports.index(port)]

    @property
    def ip_only(self) -> bool:
        return self.encapsulation == ROUTED

    @property
    def packet_cells(self) -> PerPacket:
        return partial(packet_cells, self.encapsulation)

    def refuses_bridge(self, of: Literal["machine", "device"]) -> str | None:
        if self.ip_only:
            return "classical IP does not carry Ethernet headers"
        if self.encapsulation == LANE and of == "machine":
            return "LAN emulation supports bridges only as devices"
        return None

    def check(self, path: Path) -> Iterator[Invalid]:
        for name in ("line", "propagation", "tx_latency", "rx_latency"):
            value = getattr(self, name)
            if isinstance(value, dict):
                yield from self.check_ports((*path, name), value, every=True)
        yield from self._check_encapsulation(path)
        yield from self._check_setup((*path, "lane", "vc_setup"))
        yield from self.queue.check((*path, "queue"))
        yield from self.check_ports((*path, "contracts"), self.contracts)
        yield from self._check_contracts((*path, "contracts"))
        yield from self._check_shaping((*path, "shaping"))
        for way in self.impairments:
            if way != "both" and way.partition(" ")[2] not in self.ports:
                what = f"{way.partition(' ')[2]!r} is not a port of this segment"
                yield Invalid((*path, "impairments", way), what, ", ".join(self.ports))
            yield from self.faults(way).check((*path, "impairments", way))

    def _check_encapsulation(self, path: Path) -> Iterator[Invalid]:
        for name in ("frame_size", "lane"):
            if getattr(self, name) is not None and self.encapsulation != LANE:
                yield Invalid(
                    (*path, name), f"{name} has an effect only with encapsulation: lane", "encapsulation: lane"
                )
        most = _largest_mtu(self.encapsulation, self.frame_size)
        if self.mtu > most:
            what = f"MTU {self.mtu} does not fit frames of {self.lane_frame_size} octets"
            if self.encapsulation == ROUTED:
                what = f"MTU {self.mtu} exceeds that of classical IP"
            yield Invalid((*path, "mtu"), what, f"{MTU_LEAST} to {most}")

    def _check_setup(self, path: Path) -> Iterator[Invalid]:
        """What one port causes at another by a VC must not be there before a frame could: the fabric tells machines how
        far they may go by the way of the least frame, two cells and one more on the second line."""
        if self.encapsulation != LANE or self.lan_emulation.resolution == "static":
            return
        lines = self.line.values() if isinstance(self.line, dict) else [self.line]
        cells_ns = -(-3 * max(line.cell_time_units for line in lines) * NS_PER_S // UNITS_PER_S)
        times = (self.tx_latency, self.propagation, self.propagation, self.rx_latency)
        on_the_way = sum(max(time.values(), default=0) if isinstance(time, dict) else time for time in times)
        least = cells_ns + on_the_way + self.cell_latency
        if self.lan_emulation.vc_setup < least:
            what = f"{TIME.show(self.lan_emulation.vc_setup)} is less than the time of the smallest frame"
            yield Invalid(path, what, f"at least {TIME.show(least)}")

    def _check_contracts(self, path: Path) -> Iterator[Invalid]:
        """A contract that drops all but the first of the cells of any packet lets nothing pass. The smallest packets
        have two cells, control frames of LAN emulation three (af-lane-0021, 4.4: 108 octets)."""
        least = 3 if self.encapsulation == LANE else 2
        for port, contract in self.contracts.items():
            if port not in self.ports or contract.action != "drop" or self._known_line(port) is None:
                continue
            early = cell_time_units(contract.rate) - self.spacing_units(port)
            needed_ns = -(-(least - 1) * early * NS_PER_S // UNITS_PER_S)
            if needed_ns > contract.tolerance:
                what = (
                    f"{RATE.show(contract.rate)} with a tolerance of {TIME.show(contract.tolerance)} drops every packet"
                )
                allowed = f"a tolerance of at least {TIME.show(needed_ns)}, or shaping to the rate of the contract"
                yield Invalid((*path, port), what, allowed)

    def _check_shaping(self, path: Path) -> Iterator[Invalid]:
        if isinstance(self.shaping, dict):
            yield from self.check_ports(path, self.shaping)
        for port in self.ports:
            rate, line = self.shaping_bps(port), self._known_line(port)
            if rate is not None and line is not None and rate > line.rate_bps:
                at = (*path, port) if isinstance(self.shaping, dict) else path
                what = f"{RATE.show(rate)} exceeds the rate of the line at {port}"
                yield Invalid(at, what, f"up to {RATE.show(line.rate_bps)}")

    def _known_line(self, port: str) -> Line | None:
        return self.line.get(port) if isinstance(self.line, dict) else self.line


def _largest_mtu(encapsulation: object, frame_size: object) -> int:
    if encapsulation == LANE:
        return (frame_size if isinstance(frame_size, int) else FRAME_SIZE) - LANE_HEADERS
    return ROUTED_MTU if encapsulation == ROUTED else MTU_MOST


def _default_mtu(encapsulation: object, frame_size: object) -> int:
    """What is written may still be wrong; its own field says so."""
    if encapsulation not in (LANE, ROUTED):
        return BRIDGED_MTU
    return min(max(_largest_mtu(encapsulation, frame_size), MTU_LEAST), MTU_MOST)


class AtmKind(SegmentKind):
    model = Atm


KIND: SegmentKind = AtmKind()

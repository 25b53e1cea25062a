# SPDX-License-Identifier: Apache-2.0
"""Runs over an ATM switch, made from arithmetic: PDUs, cells and counters beside what `synthetic` makes."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sundial.expect import atm
from sundial.expect.ip import Packet
from sundial.report.registry import legs
from sundial.report.workload import Setting
from tests.report import synthetic
from tests.verify.bed import EPOCH_NS, block, option

CELL_NS = 331_250_000 / 117_000
THROUGH_NS = 10_000 + 25
"""Of each cell: the line to the switch, and the switch."""
CABLE_NS = 25
INBOUND, OUTBOUND = 1, 2
DATA_DIRECT = 64
ADDRESSES = {"client": "0a000001", "server": "0a000002"}


def two_hosts_lane(**changes: Any) -> synthetic.Plan:
    """two-hosts-lane, as the model writes it."""
    topology = {
        "name": "two-hosts-lane",
        "description": "Two hosts on an ATM switch.",
        "machines": {
            name: {"mips": 62.5, "interfaces": {"eth0": {"address": f"10.0.0.{k}/24"}}}
            for k, name in enumerate(ADDRESSES, 1)
        },
        "segments": {"elan": {"kind": "atm", "ports": [f"{name}:eth0" for name in ADDRESSES]}},
    }
    return synthetic.Plan(**{"topology": topology, "scenario": "lane-sweep", **changes})


@dataclass
class Record:
    """One ERF record; `at_ns` since zero of the run."""

    at_ns: int
    interface: int
    direction: int
    vci: int
    payload: bytes
    type: int = 4
    last: bool = False
    lctr: int = 0
    comment: str = ""

    def block(self) -> bytes:
        header = struct.pack(">I", self.vci << 4 | (2 if self.last else 0))
        size = 53 if self.type == 3 else 4 + len(self.payload)
        flags = 4 | (0x10 if self.lctr else 0) | (1 if self.direction == INBOUND else 0)
        ticks = EPOCH_NS + self.at_ns
        seconds, rest = divmod(ticks, 10**9)
        stamp = struct.pack("<Q", seconds << 32 | (rest << 32) // 10**9)
        data = stamp + struct.pack(">BBHHH", self.type, flags, 20 + len(self.payload), self.lctr, size)
        data += header + self.payload
        options = option(1, self.comment.encode()) if self.comment else b""
        if self.direction:
            options += option(2, struct.pack("<I", self.direction))
        head = struct.pack("<IIIII", self.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
        return block(6, head + data + bytes(-len(data) % 4) + options + option(0, b""))


def capture(names: Iterable[str], records: Iterable[Record]) -> bytes:
    """A capture of ERF records."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in names:
        interface = option(2, name.encode()) + option(9, b"\x09") + option(0, b"")
        parts.append(block(1, struct.pack("<HHI", 197, 0, 0) + interface))
    return b"".join([*parts, *(record.block() for record in sorted(records, key=lambda record: record.at_ns))])


@dataclass
class Wire:
    """What the captures of a segment get, with the lines' state."""

    pdus: list[Record] = field(default_factory=list)
    cells: list[Record] = field(default_factory=list)

    def send(self, at_ns: float, sender: int, receiver: int, pdu: bytes) -> float:
        """A PDU on the data direct channel whose first bit leaves at `at_ns`; the time of its last bit's arrival."""
        count = len(pdu) // 48
        for k in range(count):
            payload, last = pdu[48 * k : 48 * k + 48], k == count - 1
            out, into = at_ns + k * CELL_NS, at_ns + (k + 2) * CELL_NS + THROUGH_NS + CABLE_NS
            self.cells.append(Record(int(out), sender, OUTBOUND, DATA_DIRECT + receiver, payload, 3, last))
            self.cells.append(Record(int(into), receiver, INBOUND, DATA_DIRECT + sender, payload, 3, last))
        arrived = at_ns + (count + 1) * CELL_NS + THROUGH_NS + CABLE_NS
        self.pdus.append(Record(int(at_ns), sender, OUTBOUND, DATA_DIRECT + receiver, pdu))
        self.pdus.append(Record(int(arrived), receiver, INBOUND, DATA_DIRECT + sender, pdu))
        return arrived


def control(opcode: int) -> bytes:
    """A control frame of LAN emulation, as far as reports look at it."""
    return atm.cpcs((bytes.fromhex("ff000101") + struct.pack(">H", opcode)).ljust(108, b"\0"))


READY = atm.cpcs(bytes.fromhex("ff0001010103"))


def arp(lec: int) -> bytes:
    """An ARP frame."""
    return atm.cpcs(struct.pack(">H", lec) + bytes(12) + bytes.fromhex("0806") + bytes(46))


def first_exchange(ip_pdu: bytes) -> list[Record]:
    """Joining, then ARP by the BUS, then the way to a data direct channel, as af-lane-0021 has it."""
    steps = (
        # us, port, direction, VCI, PDU
        (0, 0, OUTBOUND, 17, control(1)), (80, 0, INBOUND, 17, control(0x101)),
        (90, 0, OUTBOUND, 33, control(2)), (170, 0, INBOUND, 33, control(0x102)),
        (1, 1, OUTBOUND, 17, control(1)), (81, 1, INBOUND, 17, control(0x101)),
        (300, 0, OUTBOUND, 35, arp(1)), (376, 1, INBOUND, 36, arp(1)), (376, 0, INBOUND, 36, arp(1)),
        (420, 1, OUTBOUND, 33, control(6)), (429, 1, OUTBOUND, 35, arp(2)),
        (500, 1, INBOUND, 33, control(0x106)), (505, 0, INBOUND, 36, arp(2)),
        (2500, 1, OUTBOUND, 64, READY), (2503, 1, OUTBOUND, 35, control(7)),
        (2516, 0, INBOUND, 65, READY), (2580, 0, INBOUND, 36, control(7)), (2590, 0, OUTBOUND, 33, control(0x107)),
        (2670, 1, INBOUND, 34, control(0x107)),
        (2700, 0, OUTBOUND, 65, ip_pdu), (2800, 1, INBOUND, 64, ip_pdu),
        (2900, 1, OUTBOUND, 64, ip_pdu), (3000, 0, INBOUND, 65, ip_pdu),
    )  # fmt: skip
    return [Record(us * 1000, port, way, vci, pdu) for us, port, way, vci, pdu in steps]


def ethernet(packet: Packet, transport: str, sender: int, receiver: int) -> bytes:
    """The Ethernet frame of a packet, as far as reports look at it."""
    protocol = 17 if transport == "udp" else 6
    ends = [bytes.fromhex(ADDRESSES[("client", "server")[end]]) for end in (sender, receiver)]
    header = struct.pack(">BBHHHBBH", 0x45, 0, packet.ip_length, 0, 0, 64, protocol, 0) + b"".join(ends)
    above = bytes(12) + b"\x80" if transport == "tcp" else b""
    frame = bytes(12) + b"\x08\x00" + header + above
    return frame.ljust(packet.frame, b"A")


def wire(observed: pl.DataFrame) -> Wire:
    """PDUs and cells of all calls, and an acknowledgement after each reply over TCP."""
    made = Wire()
    columns = ("app", "transport", "procedure", "size", "call_first_tx_ns", "reply_first_tx_ns")
    for app, transport, procedure, size, *starts in observed.select(columns).iter_rows():
        pair = legs(Setting((app, transport, procedure)), size)
        assert pair is not None, "synthetic calls can be made"
        for direction, (leg, start) in enumerate(zip(pair, starts, strict=True)):
            at, ends = float(start), (direction, 1 - direction)
            for packet in leg.packets:
                pdu = atm.pdu(atm.LANE, ethernet(packet, transport, *ends), 1 + ends[0])
                made.send(at, *ends, pdu)
                at += len(pdu) // 48 * CELL_NS
            if transport == "tcp" and direction:
                acknowledgement = ethernet(Packet(52, 0), transport, 0, 1)
                made.send(at + 30_000, 0, 1, atm.pdu(atm.LANE, acknowledgement, 1))
    return made


def make(directory: Path, plan: synthetic.Plan, *, with_cells: bool = True) -> Path:
    """A whole run directory over `two_hosts_lane`."""
    synthetic.make(directory, plan)
    names = [*plan.topology["segments"]["elan"]["ports"], "elan:fate"]
    made = wire(pl.read_parquet(directory / "observed.parquet"))
    made.pdus += first_exchange(made.pdus[0].payload)
    (directory / "wire" / "atm").mkdir()
    (directory / "wire" / "atm" / "elan.pdus.pcapng").write_bytes(capture(names, made.pdus))
    if with_cells:
        (directory / "wire" / "atm" / "elan.cells.pcapng").write_bytes(capture(names, made.cells))
    count(directory, names[:-1], made.pdus)
    return directory


def count(directory: Path, ports: Sequence[str], pdus: Sequence[Record]) -> None:
    """Counters of cells and channels, from the PDUs."""
    path = directory / "wire" / "counters.json"
    counters = json.loads(path.read_text())
    segment = counters["segments"]["elan"]
    channels: dict[str, dict[str, Any]] = {}
    for index, port in enumerate(ports):
        own = segment["ports"][port]
        for way, direction in (("tx", OUTBOUND), ("rx", INBOUND)):
            mine = [pdu for pdu in pdus if pdu.interface == index and pdu.direction == direction]
            own |= {f"{way}_pdus": len(mine), f"{way}_cells": sum(len(pdu.payload) // 48 for pdu in mine)}
            for pdu in mine if way == "tx" else ():
                key = f"{port} 0.{pdu.vci}"
                channel = channels.setdefault(key, {"cells_in": 0, "cells_out": 0, "dropped": {}})
                channel["cells_in"] += len(pdu.payload) // 48
                channel["cells_out"] += len(pdu.payload) // 48
        own |= {"bad_pdus": 0, "cells_corrected": 0, "cells_tagged": 0}
    segment["channels"] = channels
    path.write_text(json.dumps(counters))

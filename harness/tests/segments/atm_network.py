# SPDX-License-Identifier: Apache-2.0
"""An ATM network cell by cell, and the three captures that it leaves: for tests of its law, which it does not use.

One event a cell, a heap, whole units of 1/117 ps; LAN emulation with static channels and a BUS, or a mesh of permanent
channels.
"""

from __future__ import annotations

import heapq
import struct
from collections import defaultdict, deque
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

from sundial.observe.octets import Octets
from sundial.verify.wire import Wire
from tests.fates import cells, spoiled
from tests.segments.pdus import cpcs
from tests.verify.bed import EPOCH_NS, block, option

OUT, IN = 2, 1
NS = 117_000
BUS, COPIES = 35, 36
BROADCAST = b"\xff" * 6


def address(port: int) -> bytes:
    return bytes.fromhex("0253440000") + bytes([port + 1])


@dataclass
class Pdu:
    """One on its way to some ports; `lost` and so on are kept for each of them."""

    sender: int
    vci: int
    data: bytes
    frame: bytes | None
    targets: list[tuple[int, int]]
    copy: int = 0
    """Of a flooded frame, which of its PDUs."""
    lost: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    first: dict[int, tuple[int, tuple[str, str, str]]] = field(default_factory=dict)
    damaged: dict[int, bytearray] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        return len(self.data) // 48

    def lose(self, to: int, at: int, rule: str, way: str, port: str) -> None:
        self.lost[to] += 1
        self.first.setdefault(to, (at, (rule, way, port)))


@dataclass
class Record:
    at: int
    interface: int
    direction: int
    vci: int
    data: bytes
    comment: str | None = None
    lctr: int = 0
    pt: int = 0
    clp: int = 0
    kind: int = 4

    def block(self) -> bytes:
        ticks = EPOCH_NS + self.at
        stamp = (ticks // 10**9 << 32) + (ticks % 10**9 << 32) // 10**9
        flags = 0x04 | (self.direction == IN) | (0x10 if self.comment and self.direction == 0 else 0)
        wire = 53 if self.kind == 3 else len(self.data) + 4
        head = struct.pack("<Q", stamp) + struct.pack(">BBHHH", self.kind, flags, len(self.data) + 20, self.lctr, wire)
        packet = head + struct.pack(">I", self.vci << 4 | self.pt << 1 | self.clp) + self.data
        options = option(2, struct.pack("<I", self.direction)) if self.direction else b""
        options += option(1, self.comment.encode()) if self.comment else b""
        fixed = struct.pack("<IIIII", self.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
        return block(6, fixed + packet + bytes(-len(packet) % 4) + options + option(0, b""))


class Network:
    """`written`: the segment. Frames are handed in with `hand`; `run` does the rest."""

    def __init__(self, written: Any, name: str = "elan", seed: int = 1, relays: tuple[str, ...] = ()) -> None:
        self.written, self.name, self.random, self.relays = written, name, Random(seed), relays
        self.ports: list[str] = list(written.ports)
        self.service = len(self.ports)
        self.events: list[tuple[int, int, int, int, Any]] = []
        self.serial = count()
        self.free = [0] * (self.service + 1)
        self.queues: list[deque[Any]] = [deque() for _ in range(self.service + 1)]
        self.paced: dict[tuple[int, int], int] = {}
        self.busy = [False] * (self.service + 1)
        self.dropping: dict[tuple[int, int, int], str] = {}
        self.expects: dict[tuple[int, int, int], bool] = {}
        self.tat: dict[tuple[int, int], int] = {}
        self.completions: list[tuple[int, int]] = []
        self.joined = [0] * (self.service + 1)
        self.parts: dict[tuple[int, int, int], list[Any]] = defaultdict(list)
        self.frames: list[tuple[int, str, int, bytes, str | None]] = []
        self.pdus: list[Record] = []
        self.cells: list[Record] = []
        self.sent: list[Pdu] = []

    # ---- The topology ----

    def cell_time(self, port: int) -> int:
        if port == self.service:
            return int(self.written.lan_emulation.service_line.cell_time_units)
        return int(self.written.cell_time_units(self.ports[port]))

    def propagation(self, port: int) -> int:
        return 0 if port == self.service else self.written.by_port(self.written.propagation)[port] * NS

    def faults(self, way: str, port: int) -> Any:
        return None if port == self.service else self.written.faults(f"{way} {self.ports[port]}")

    # ---- Handing in ----

    def hand(self, at_ns: int, port: int, frame: bytes) -> None:
        """A frame from the machine at a port; its destination is an address of `address`, or BROADCAST."""
        lane = self.written.encapsulation == "lane"
        others = [each for each in range(self.service) if each != port]
        known = [each for each in others if frame[:6] == address(each)]
        sdu = self.sdu(port, frame)
        if lane:
            to = [(64 + known[0], [(known[0], 64 + port)])] if known else [(BUS, [(self.service, BUS)])]
        else:
            to = [(100 + each, [(each, 100 + port)]) for each in known or others]
        for copy, (vci, targets) in enumerate(to):
            pdu = Pdu(port, vci, cpcs(sdu), frame, targets, copy)
            heapq.heappush(self.events, (at_ns * NS, 0, port, next(self.serial), ("on", pdu)))

    def sdu(self, port: int, frame: bytes) -> bytes:
        kind = self.written.encapsulation
        if kind == "lane":
            return struct.pack(">H", port + 1) + frame.ljust(60, b"\0")
        if kind == "bridged":
            return bytes.fromhex("aaaa030080c200070000") + frame.ljust(60, b"\0")
        return bytes.fromhex("aaaa03000000") + frame[12:]

    # ---- Events ----

    def push(self, at: int, rank: int, port: int, what: Any) -> None:
        heapq.heappush(self.events, (at, rank, port, next(self.serial), what))

    def run(self) -> Network:
        while self.events:
            at, _, port, _, what = heapq.heappop(self.events)
            getattr(self, what[0])(at, port, *what[1:])
        for pdu in self.sent:
            self.fates(pdu)
        return self

    def on(self, at: int, port: int, pdu: Pdu) -> None:
        """A PDU leaves on a line, cell behind cell."""
        start, cell = max(at, self.free[port], self.paced.get((port, pdu.vci), 0)), self.cell_time(port)
        shaped = None if port == self.service else self.written.shaping_bps(self.ports[port])
        spacing = max(cell, -(-424 * 117 * 10**12 // shaped)) if shaped else cell
        self.free[port] = start + (pdu.cells - 1) * spacing + cell
        self.paced[port, pdu.vci] = start + pdu.cells * spacing
        self.sent.append(pdu)
        if port != self.service:
            if pdu.frame is not None and pdu.copy == 0:
                self.frames.append((up(start), self.ports[port], OUT, pdu.frame, None))
            self.pdus.append(Record(up(start), port, OUT, pdu.vci, pdu.data))
        for number in range(pdu.cells):
            left = start + number * spacing
            if port != self.service:
                data = pdu.data[48 * number : 48 * number + 48]
                self.cells.append(Record(up(left), port, OUT, pdu.vci, data, pt=int(number == pdu.cells - 1), kind=3))
            self.push(left + cell + self.propagation(port), 2, port, ("into", pdu, number))

    def into(self, at: int, port: int, pdu: Pdu, number: int) -> None:
        """A cell is in the switch."""
        clp, faults = 0, self.faults("from", port)
        flip = False
        if faults is not None:
            if self.random.random() < float(faults.cell_loss or 0):
                for to, _ in pdu.targets:
                    pdu.lose(to, at, "cell loss", "from", self.ports[port])
                return
            flip = self.random.random() < float(faults.payload_bit or 0)
        contract = None if port == self.service else self.written.contracts.get(self.ports[port])
        if contract is not None:
            due = self.tat.get((port, pdu.vci), at)
            if at < due - contract.tolerance * NS:
                if contract.action == "drop":
                    for to, _ in pdu.targets:
                        pdu.lose(to, at, "policed", "from", self.ports[port])
                    return
                clp = 1
            else:
                self.tat[port, pdu.vci] = max(at, due) - (-424 * 117 * 10**12 // contract.rate)
        joins = at + self.written.cell_latency * NS
        if self.written.cdv:
            # No cell overtakes another of its input.
            joins = max(joins + self.random.randrange(self.written.cdv * NS + 1), self.joined[port] + 1)
            self.joined[port] = joins
        for to, vci in pdu.targets:
            self.push(joins, 2, port, ("join", to, vci, pdu, number, clp, flip))

    def join(self, at: int, port: int, to: int, vci: int, pdu: Pdu, number: int, clp: int, flip: bool) -> None:
        written, queue = self.written.queue, self.queues[to]
        channel, last = (to, port, vci), number == pdu.cells - 1
        state, first = self.dropping.get(channel), self.expects.get(channel, True)
        self.expects[channel] = last
        if last:
            self.dropping.pop(channel, None)
        why = None
        if state == "early" or (state == "partial" and not last):
            pdu.lose(to, at, f"{state} packet discard", "towards", self.towards(to))
            return
        own = sum(each[0] == channel for each in queue)
        if written.discard == "epd" and first and len(queue) >= written.early_cells:
            why, state = "early packet discard", "early"
        elif written.clp1_above is not None and clp and len(queue) >= written.clp1_above:
            why, state = "CLP 1", "partial"
        elif written.vc_cells is not None and own >= written.vc_cells:
            why, state = "VC full", "partial"
        elif len(queue) >= written.cells and self.busy[to]:
            why, state = "queue full", "partial"
        if why is None:
            queue.append((channel, vci, pdu, number, clp, flip))
            if not self.busy[to]:
                self.serve(at, to)
            return
        pdu.lose(to, at, why, "towards", self.towards(to))
        if not last and written.discard != "tail":
            self.dropping[channel] = state or ""

    def towards(self, to: int) -> str:
        return "service" if to == self.service else self.ports[to]

    def serve(self, at: int, to: int) -> None:
        """The line of an output is free."""
        self.busy[to] = bool(self.queues[to])
        if self.queues[to]:
            cell = self.queues[to].popleft()
            self.push(at + self.cell_time(to), 1, to, ("serve_next",))
            self.push(at + self.cell_time(to) + self.propagation(to), 3, to, ("arrive", *cell[1:]))

    def serve_next(self, at: int, to: int) -> None:
        self.serve(at, to)

    def arrive(self, at: int, to: int, vci: int, pdu: Pdu, number: int, clp: int, flip: bool) -> None:
        faults, last = self.faults("to", to), number == pdu.cells - 1
        if faults is not None:
            if self.random.random() < float(faults.cell_loss or 0):
                left = at - self.cell_time(to) - self.propagation(to)
                pdu.lose(to, left, "cell loss", "towards", self.ports[to])
                return
            flip |= self.random.random() < float(faults.payload_bit or 0)
        data = bytearray(pdu.data[48 * number : 48 * number + 48])
        if flip:
            place = self.random.randrange(384)
            data[place // 8] ^= 1 << place % 8
            pdu.damaged.setdefault(to, bytearray(pdu.data))[48 * number : 48 * number + 48] = data
        if to != self.service:
            self.cells.append(Record(up(at), to, IN, vci, bytes(data), pt=int(last), clp=clp, kind=3))
        parts = self.parts[to, vci, pdu.sender]
        parts.append((pdu, number, clp))
        if last:
            self.whole(at, to, vci, pdu, parts[:])
            parts.clear()

    def whole(self, at: int, to: int, vci: int, pdu: Pdu, parts: list[Any]) -> None:
        if pdu.lost[to]:
            damaged = any(to in each.damaged for each, _, _ in parts)
            if damaged or b"".join(each.data[48 * place : 48 * place + 48] for each, place, _ in parts) != pdu.data:
                return
            # Cells of one before, which lost its last, stand in for those that this one lost.
            del pdu.lost[to], pdu.first[to]
            self.completions.append((up(at), to))
        if len(parts) != pdu.cells:
            self.fate(up(at), pdu, to, spoiled("joined to the PDU before", self.towards(to)), 0)
        elif to in pdu.damaged:
            self.fate(up(at), pdu, to, spoiled("wrong CRC", self.towards(to)), 0)
        elif to == self.service:
            latency = self.written.lan_emulation.service_latency * NS
            every = [(each, COPIES) for each in range(self.service)]
            copy = Pdu(self.service, COPIES, pdu.data, pdu.frame, every)
            # Whole picoseconds from here on.
            self.push(-(-at // 117) * 117 + latency, 0, self.service, ("on", copy))
        else:
            self.pdus.append(Record(up(at), to, IN, vci, pdu.data, clp=parts[0][2]))
            if self.wants(to, pdu):
                latency = self.written.by_port(self.written.rx_latency)[to]
                self.frames.append((up(at) + latency, self.ports[to], IN, pdu.frame or b"", None))

    def wants(self, to: int, pdu: Pdu) -> bool:
        if pdu.frame is None or self.written.encapsulation != "lane":
            return pdu.frame is not None
        own = pdu.frame[:6] in (address(to), BROADCAST) or self.ports[to] in self.relays
        return own and pdu.data[:2] != struct.pack(">H", to + 1)

    def fates(self, pdu: Pdu) -> None:
        for to, (at, why) in pdu.first.items():
            self.fate(up(at), pdu, to, cells(pdu.lost[to], pdu.cells, *why), pdu.lost[to])

    def fate(self, at_ns: int, pdu: Pdu, to: int, comment: str, missing: int) -> None:
        data = bytes(pdu.damaged[to]) if "wrong CRC" in comment else pdu.data
        self.pdus.append(Record(at_ns, self.service, 0, pdu.vci, data, comment, missing))
        if pdu.frame is not None and (pdu.vci != COPIES or self.wants(to, pdu)):
            self.frames.append((at_ns, f"{self.name}:fate", 0, pdu.frame, comment))

    # ---- Captures ----

    def write(self, folder: Path) -> Wire:
        """wire/atm/*.pcapng below `folder`, and the capture of frames as a law sees it."""
        for name, records in (("pdus", self.pdus), ("cells", self.cells)):
            write(folder / "atm" / f"{self.name}.{name}.pcapng", [*self.ports, f"{self.name}:fate"], records)
        return self.wire(folder)

    def wire(self, folder: Path) -> Wire:
        rows = sorted(self.frames, key=lambda row: row[0])
        table = pl.DataFrame(
            {
                "time_ns": [row[0] for row in rows],
                "interface": [row[1] for row in rows],
                "direction": pl.Series([row[2] for row in rows], dtype=pl.UInt8),
                "frame_length": [len(row[3]) for row in rows],
                "octets_hash": [hash(row[3]) for row in rows],
                "eth_source": [int.from_bytes(row[3][6:12]) for row in rows],
                "eth_target": [int.from_bytes(row[3][:6]) for row in rows],
                "eth_type": [int.from_bytes(row[3][12:14]) for row in rows],
                "comment": pl.Series([row[4] for row in rows], dtype=pl.String),
            }
        ).with_row_index("row")
        fate = pl.when(pl.col("comment").is_not_null()).then(pl.lit("dropped"))
        frames = [row[3] for row in rows]

        def octets(some: pl.DataFrame) -> Octets:
            chosen = [frames[row] for row in some["row"].to_list()]
            size = np.array([len(each) for each in chosen], np.int64)
            return Octets(np.frombuffer(b"".join(chosen), np.uint8), np.cumsum(size) - size, size)

        rings = dict.fromkeys(self.relays, 128)
        macs = {port: int.from_bytes(address(number)) for number, port in enumerate(self.ports)}
        table = table.with_columns(fate=fate)
        return Wire(
            self.name, self.ports, table, None, octets, rings=rings, folder=folder, epoch_ns=EPOCH_NS, macs=macs
        )


def up(units: int) -> int:
    """In whole ns, rounded up."""
    return -(-units // NS)


def write(path: Path, interfaces: list[str], records: list[Record]) -> None:
    """A capture of ERF records, in order of time."""
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in interfaces:
        named = option(2, name.encode()) + option(9, b"\x09") + option(0, b"")
        parts.append(block(1, struct.pack("<HHI", 197, 0, 0) + named))
    parts += [record.block() for record in sorted(records, key=lambda each: each.at)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(parts))

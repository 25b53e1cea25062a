# SPDX-License-Identifier: Apache-2.0
"""What clients and services of LAN emulation say to each other, written down by hand after af-lane-0021: for tests of
its rules. Everything takes the same time on its way; the octets are put together here."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from sundial.verify.wire import Wire
from tests.fates import by_adapter, for_address
from tests.segments.pdus import IN, OUT, PduTape
from tests.verify.bed import EPOCH_NS

WAY_NS = 100_000
"""From one end to the other, or to the services."""
SERVICE_NS = 50_000
SETUP_NS = 2_000_000
CELL_NS = 2832
"""Of OC-3c, rounded up: what is handed over together leaves one behind the other."""
READY_IND, READY_QUERY = bytes.fromhex("ff0001010103"), bytes.fromhex("ff0001010003")
ASKED_NS = 8494
"""Three cells: a frame by the BUS leaves behind the LE_ARP_REQUEST for it."""
BROADCAST = bytes.fromhex("ffffffffffff")
SERVER, BUS = (bytes.fromhex("470005 80ffe1 00000000000000 025344020000") + bytes([last]) for last in (1, 2))


def mac(port: int) -> bytes:
    return bytes.fromhex("0253440000") + bytes([port + 1])


def atm(address: bytes) -> bytes:
    return bytes.fromhex("47000580ffe1") + bytes(7) + address + b"\0"


def control(opcode: int, transaction: int, requester: int, source: bytes, **more: Any) -> bytes:
    """108 octets; `source`: the MAC address of who asks."""
    given = {
        "status": 0, "flags": 0, "lan": b"\0\1" + source, "target": bytes(8), "at": atm(source), "type": 0, "size": 0,
        "name": b"", "to": bytes(20), **more,
    }  # fmt: skip
    return (
        b"\xff\0\1\1"
        + struct.pack(">HHIHH", opcode, given["status"], transaction, requester, given["flags"])
        + given["lan"]
        + given["target"]
        + given["at"]
        + bytes([given["type"], given["size"], 0, len(given["name"])])
        + given["to"]
        + given["name"].ljust(32, b"\0")
    )


@dataclass
class Lan:
    """`ports`, those of devices among them in `relays`."""

    ports: list[str]
    relays: tuple[str, ...] = ()
    now: int = 0
    tape: PduTape = field(init=False)
    fates: list[dict[str, Any]] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tape = PduTape(self.ports)
        self.last = dict.fromkeys(range(len(self.ports)), 0)

    def transaction(self, port: int) -> int:
        self.last[port] += 1
        return self.last[port]

    def out(self, at: int, port: int, vci: int, sdu: bytes) -> None:
        self.tape.pdu(at, port, OUT, vci, sdu)

    def came(self, at: int, port: int, vci: int, sdu: bytes) -> None:
        self.tape.pdu(at, port, IN, vci, sdu)

    def asked(self, at: int, port: int, vci: int, request: bytes, response: bytes) -> int:
        """Of a server, which answers; when the answer is there."""
        self.out(at, port, vci, request)
        back = at + 2 * WAY_NS + SERVICE_NS
        self.came(back, port, vci, response)
        return back

    def every(self, at: int, port: int, ways: tuple[int, int], sdu: bytes) -> int:
        """By a server to all; when it is there."""
        self.out(at, port, ways[0], sdu)
        there = at + 2 * WAY_NS + SERVICE_NS
        for other in range(len(self.ports)):
            self.came(there, other, ways[1], sdu)
        return there

    # ---- Joining ----

    def join(self, port: int, at: int | None = None) -> int:
        """Configuration, join, the BUS; when the client is a member."""
        own, lan = mac(port), {"type": 1, "size": 1}
        at = 1000 * port if at is None else at
        first, second, third = (self.transaction(port) for _ in range(3))
        flags = 0x80 if self.ports[port] in self.relays else 0
        named = {**lan, "name": b"elan"}
        at = self.asked(
            at, port, 17, control(1, first, 0, own, **lan), control(0x101, first, 0, own, to=SERVER, **named)
        )
        at = self.asked(
            at, port, 33, control(2, second, 0, own, flags=flags, **named),
            control(0x102, second, port + 1, own, flags=flags, **named),
        )  # fmt: skip
        every = {"target": b"\0\1" + BROADCAST}
        return self.asked(
            at,
            port,
            33,
            control(6, third, port + 1, own, **every),
            control(0x106, third, port + 1, own, to=BUS, **every),
        )

    def join_all(self) -> None:
        self.now = max(self.join(port) for port in range(len(self.ports)))

    # ---- Data ----

    def data(self, at: int, port: int, target: bytes, direct: int | None = None, name: int = 0, lec: int = 0) -> int:
        """A frame by the BUS, or on the data direct channel to a port; when it is there."""
        sdu = struct.pack(">H", lec or port + 1) + target + mac(port) + b"\x08\0" + name.to_bytes(46, "big")
        if direct is None:
            return self.every(at, port, (35, 36), sdu)
        self.out(at, port, 64 + direct, sdu)
        self.came(at + WAY_NS, direct, 64 + port, sdu)
        return at + WAY_NS

    def ask(self, at: int, port: int, target: bytes, answer: bytes | None = None) -> int:
        """LE_ARP for a member; when the answer is there."""
        number, lan = self.transaction(port), {"target": b"\0\1" + target}
        return self.asked(
            at, port, 33, control(6, number, port + 1, mac(port), **lan),
            control(0x106, number, port + 1, mac(port), to=answer or atm(target), **lan),
        )  # fmt: skip

    def ask_proxies(self, at: int, port: int, target: bytes, proxy: int | None) -> int:
        """LE_ARP for what only a proxy knows; when its answer is there."""
        number, lan = self.transaction(port), {"target": b"\0\1" + target}
        request = control(6, number, port + 1, mac(port), **lan)
        there = self.every(at, port, (33, 34), request)
        if proxy is None:
            return there
        answer = control(0x106, number, port + 1, mac(port), flags=1, to=atm(mac(proxy)), **lan)
        self.out(there, proxy, 33, answer)
        self.came(there + 2 * WAY_NS + SERVICE_NS, port, 33, answer)
        return there + 2 * WAY_NS + SERVICE_NS

    def call(self, named_at: int, port: int, peer: int) -> int:
        """The channel after an answer; when it is there."""
        at = named_at + SETUP_NS
        self.out(at, port, 64 + peer, READY_IND)
        self.came(at + WAY_NS, peer, 64 + port, READY_IND)
        return at

    def flush(self, at: int, port: int, peer: int, *, answered: bool = True, vci: int = 35) -> int:
        """The old path is empty; when the answer is there."""
        number = self.transaction(port)
        request = control(7, number, port + 1, mac(port), lan=bytes(8), to=atm(mac(peer)))
        if vci == 35:
            there = self.every(at, port, (35, 36), request)
        else:
            self.out(at, port, vci, request)
            there = at + WAY_NS
            self.came(there, peer, 64 + port, request)
        if not answered:
            return there
        answer = request[:4] + b"\1\7" + request[6:]
        self.out(there, peer, 33, answer)
        back = there + 2 * WAY_NS + SERVICE_NS
        self.came(back, port, 33, answer)
        return back

    def first_frame(self, at: int, port: int, peer: int) -> int:
        """By the BUS, and all that leads to the channel; when frames may go by that."""
        answered = self.ask(at, port, mac(peer))
        self.data(at + ASKED_NS, port, mac(peer))
        return self.flush(self.call(answered, port, peer) + CELL_NS, port, peer)

    # ---- Captures ----

    def dropped(self, at: int, port: int, target: bytes, rule: str, address: str = "") -> None:
        """A frame on the fate interface of the capture of frames."""
        name = self.ports[port]
        comment = for_address(name, rule, address) if address else by_adapter(name, rule)
        self.fates.append(
            {
                "time_ns": at, "interface": "elan:fate", "direction": 0, "frame_length": 60, "octets_hash": at,
                "eth_source": int.from_bytes(mac(port)), "eth_target": int.from_bytes(target), "fate": "dropped",
                "comment": comment,
            }
        )  # fmt: skip

    def wire(self, folder: Path, end_ns: int | None = None) -> Wire:
        self.tape.write(folder)
        schema = {
            "time_ns": pl.Int64, "interface": pl.String, "direction": pl.UInt8, "frame_length": pl.UInt32,
            "octets_hash": pl.Int64, "eth_source": pl.Int64, "eth_target": pl.Int64, "fate": pl.String,
            "comment": pl.String,
        }  # fmt: skip
        frames = pl.DataFrame(self.fates, schema=schema).with_row_index("row")
        macs = {port: int.from_bytes(mac(place)) for place, port in enumerate(self.ports)}
        rings = dict.fromkeys(self.relays, 128)
        return Wire("elan", self.ports, frames, end_ns, None, rings, folder, EPOCH_NS, macs)

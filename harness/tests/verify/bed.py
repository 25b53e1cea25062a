# SPDX-License-Identifier: Apache-2.0
"""A run directory made by hand: frames packed with struct, files laid out as harness/schemas/README.md says.

Its arithmetic is its own: nothing here imports `sundial`.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.fates import duplicated, lost
from tests.verify.seal import seal

EPOCH_NS = 946_684_800 * 10**9
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
RPC_PORT, RAW_PORT = 20049, 7007
PROGRAM = 0x20001998
OUT, IN = 2, 1
GAP_NS, FLIGHT_NS = 10_000, 2_000

MAC = {CLIENT: bytes.fromhex("025344000001"), SERVER: bytes.fromhex("025344000002")}


def address(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


def checksum(data: bytes) -> int:
    whole = data + bytes(len(data) % 2)
    total = sum(struct.unpack(f">{len(whole) // 2}H", whole))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def summed(source: str, target: str, protocol: int, packet: bytes) -> bytes:
    """A UDP or TCP packet with its checksum."""
    at = {17: 6, 6: 16}[protocol]
    bare = packet[:at] + b"\0\0" + packet[at + 2 :]
    value = checksum(address(source) + address(target) + struct.pack(">HH", protocol, len(bare)) + bare)
    return bare[:at] + struct.pack(">H", value or 0xFFFF) + bare[at + 2 :]


def ip_packet(source: str, target: str, protocol: int, payload: bytes, ident: int, offset: int, more: bool) -> bytes:
    flags = (0x2000 if more else 0) | offset // 8 or 0x4000
    begin = struct.pack(">BBHHHBB", 0x45, 0, 20 + len(payload), ident, flags, 64, protocol)
    ends = address(source) + address(target)
    head = begin + struct.pack(">H", checksum(begin + ends)) + ends
    return MAC[target] + MAC[source] + b"\x08\x00" + head + payload


def udp_packets(source: str, target: str, ports: tuple[int, int], data: bytes, ident: int, mtu: int) -> list[bytes]:
    whole = summed(source, target, 17, struct.pack(">HHHH", ports[0], ports[1], 8 + len(data), 0) + data)
    room, unit = mtu - 20, (mtu - 20) // 8 * 8
    frames, offset = [], 0
    while len(whole) - offset > room:
        frames.append(ip_packet(source, target, 17, whole[offset : offset + unit], ident, offset, True))
        offset += unit
    frames.append(ip_packet(source, target, 17, whole[offset:], ident, offset, False))
    return frames


def payload(number: int, size: int) -> bytes:
    """The pattern of harness/schemas/README.md."""
    return bytes((131 * number + place // 256 + 7 * (place % 256)) % 256 for place in range(size))


def rpc_call(xid: int, size: int, procedure: int = 1, number: int = 0) -> bytes:
    head = struct.pack(">10I", xid, 0, 2, PROGRAM, 1, procedure, 0, 0, 0, 0)
    return head + struct.pack(">I", size) + payload(number, size) + bytes(-size % 4)


def rpc_reply(xid: int, size: int, number: int = 0) -> bytes:
    head = struct.pack(">6I", xid, 1, 0, 0, 0, 0)
    return head + struct.pack(">I", size) + payload(number, size) + bytes(-size % 4)


def raw_payload(sequence: int, size: int, attempt: int = 0) -> bytes:
    return (struct.pack(">4sIII", b"SDL1", sequence, size, attempt) + payload(sequence, size)[16:])[:size]


def option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


@dataclass
class Record:
    at: int
    interface: int
    direction: int
    frame: bytes
    comment: str = ""

    def block(self) -> bytes:
        ticks = EPOCH_NS + self.at
        options = option(2, struct.pack("<I", self.direction))
        if self.comment:
            options += option(1, self.comment.encode())
        head = struct.pack("<IIIII", self.interface, ticks >> 32, ticks & 0xFFFFFFFF, len(self.frame), len(self.frame))
        return block(6, head + self.frame + bytes(-len(self.frame) % 4) + options + option(0, b""))


def capture(names: list[str], records: list[Record]) -> bytes:
    parts = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in names:
        parts.append(
            block(1, struct.pack("<HHI", 1, 0, 0) + option(2, name.encode()) + option(9, b"\x09") + option(0, b""))
        )
    ordered = sorted(range(len(records)), key=lambda place: (records[place].at, place))
    return b"".join(parts + [records[place].block() for place in ordered])


EVENTS = (
    "adapter_full", "undelivered", "deferred", "collisions", "excessive_collisions", "fragments_seen", "filtered",
    "flooded", "corrupted", "duplicated", "reordered",
)  # fmt: skip


def counters(segments: dict[str, tuple[list[str], list[Record]]]) -> str:
    """What the fabric would have counted: of each segment its ports' names, and the records as they are."""
    return json.dumps(
        {"version": 1, "epoch_ns": EPOCH_NS, "segments": {name: _segment(*given) for name, given in segments.items()}}
    )


def _segment(names: list[str], records: list[Record]) -> dict[str, object]:
    fates = [record.comment.partition(":")[0] for record in records if record.comment]
    ports: dict[str, dict[str, object]] = {}
    for number, name in enumerate(names):
        own: dict[str, object] = {"dropped": {}, **dict.fromkeys(EVENTS, 0)}
        for way, direction in (("tx", OUT), ("rx", IN)):
            frames = [r.frame for r in records if (r.interface, r.direction) == (number, direction)]
            own |= {f"{way}_frames": len(frames), f"{way}_bytes": sum(map(len, frames))}
        own["offered_frames"] = own["tx_frames"]
        ports[name] = own
    # Their sums over a segment count, so that it does not matter at which port.
    ports[names[0]] |= {
        "dropped": {word: fates.count(word) for word in ("lost", "dropped")},
        **{word: fates.count(word) for word in ("corrupted", "duplicated")},
    }
    return {"kind": "link", "ports": ports}


@dataclass
class Bed:
    """Two hosts on one segment. Methods move the clock on and write frames and samples."""

    directory: Path
    mtu: int = 1500
    now: int = 1_000_000
    ident: dict[str, int] = field(default_factory=lambda: {CLIENT: 1, SERVER: 30_000})
    records: list[Record] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    clock: str = "virtual"

    def send(self, source: str, frames: list[bytes], lose: tuple[int, ...] = (), twice: tuple[int, ...] = ()) -> None:
        """Frames leave one after the other; those at places `lose` are lost, those at `twice` arrive twice."""
        here, there = (0, 1) if source == CLIENT else (1, 0)
        way = ("client:eth0", "server:eth0") if source == CLIENT else ("server:eth0", "client:eth0")
        for place, frame in enumerate(frames):
            self.records.append(Record(self.now, here, OUT, frame))
            if place in lose:
                self.records.append(Record(self.now + 500, 2, 0, frame, lost(*way)))
            else:
                self.records.append(Record(self.now + FLIGHT_NS, there, IN, frame))
            if place in twice:
                self.records.append(Record(self.now + 500, 2, 0, frame, duplicated(*way)))
                self.records.append(Record(self.now + FLIGHT_NS + 300, there, IN, frame))
            self.now += 1_000
        self.now += GAP_NS

    def datagram(self, source: str, ports: tuple[int, int], data: bytes) -> list[bytes]:
        target = SERVER if source == CLIENT else CLIENT
        self.ident[source] = (self.ident[source] + 1) % 65536
        return udp_packets(source, target, ports, data, self.ident[source], self.mtu)

    def batch(self, app: str, transport: str, size: int, port: int, client_port: int, procedure: str = "echo") -> None:
        head = {
            "type": "batch", "step": 0, "app": app, "series": 0, "transport": transport, "procedure": procedure,
            "size": size, "thread": 0, "server": SERVER, "server_port": port, "client_port": client_port, "warmup": 0,
            "columns": ["call", "start", "end", "ok", "retransmits", "xid", "error"],
        }  # fmt: skip
        self.lines.append(json.dumps(head))
        self.calls = 0

    def sample(
        self, start: int, xid: int | None, ok: bool = True, retransmits: int = 0, error: str | None = None
    ) -> None:
        self.lines.append(json.dumps([self.calls, start, self.now, int(ok), retransmits, xid, error]))
        self.calls += 1

    def udp_call(self, size: int, xid: int, client_port: int = 700) -> None:
        """One Sun RPC echo over UDP with nothing in its way, and its sample."""
        start = self.now - 1
        self.send(CLIENT, self.datagram(CLIENT, (client_port, RPC_PORT), rpc_call(xid, size, number=self.calls)))
        self.send(SERVER, self.datagram(SERVER, (RPC_PORT, client_port), rpc_reply(xid, size, self.calls)))
        self.sample(start, xid)

    def raw_call(self, size: int, sequence: int, client_port: int = 40_000) -> None:
        """One raw UDP echo and its sample."""
        start = self.now - 1
        self.send(CLIENT, self.datagram(CLIENT, (client_port, RAW_PORT), raw_payload(sequence, size)))
        self.send(SERVER, self.datagram(SERVER, (RAW_PORT, client_port), raw_payload(sequence, size)))
        self.sample(start, sequence)

    def write(self) -> Path:
        """Write the run directory."""
        wire, node = self.directory / "wire", self.directory / "nodes" / "client"
        wire.mkdir(parents=True)
        node.mkdir(parents=True)
        (wire / "lan.pcapng").write_bytes(capture(["client:eth0", "server:eth0", "lan:fate"], self.records))
        (wire / "counters.json").write_text(counters({"lan": (["client:eth0", "server:eth0"], self.records)}))
        (node / "samples.jsonl").write_text(
            "\n".join(['{"type":"hello"}', *self.lines, '{"type":"done","status":0}', ""])
        )
        (node / "job.json").write_text(json.dumps({"steps": [{"app": "echo-client", "options": self.options}]}))
        nodes = {
            name: {
                "zero_ns": 0,
                "interfaces": [
                    {
                        "device": "eth0",
                        "mac": MAC[here].hex(":"),
                        "address": f"{here}/24",
                        "segment": "lan",
                        "mtu": self.mtu,
                    }
                ],
            }
            for name, here in (("client", CLIENT), ("server", SERVER))
        }
        document = {
            "version": 1, "status": "complete", "scenario": {"name": "test"}, "clock": self.clock, "epoch_ns": EPOCH_NS,
            "captures": {"wire/lan.pcapng": ""}, "mtu": {"lan": self.mtu}, "nodes": nodes,
        }  # fmt: skip
        (self.directory / "run.json").write_text(json.dumps(document))
        return seal(self.directory)


SYN, ACK, FIN, PUSH, RST = 0x02, 0x10, 0x01, 0x08, 0x04


@dataclass
class Stream:
    """One TCP connection of a bed: every segment is a frame of its own, cut where the caller says."""

    bed: Bed
    client_port: int
    port: int
    isn: dict[str, int]
    mss: int = 1460
    timestamps: bool = True
    sacked: tuple[int, int] | None = None
    """First and end of what the server says it had twice, in each segment with data."""
    sacks: float = math.inf
    """In so many segments."""
    sent: dict[str, int] = field(default_factory=lambda: {CLIENT: 0, SERVER: 0})
    lost: tuple[int, ...] = ()
    ident: dict[str, int] = field(default_factory=lambda: {CLIENT: 500, SERVER: 900})

    def frame(self, source: str, flags: int, pos: int, data: bytes = b"", syn: bool = False) -> bytes:
        target = SERVER if source == CLIENT else CLIENT
        ports = (self.client_port, self.port) if source == CLIENT else (self.port, self.client_port)
        options = struct.pack(">BBH", 2, 4, self.mss) if syn else b""
        if self.timestamps:
            options += struct.pack(">BBBBII", 1, 1, 8, 10, 1, 1 if flags & ACK else 0)
        if self.sacked and syn:
            options += struct.pack(">BBBB", 1, 1, 4, 2)
        elif self.sacked and data and source == SERVER and self.sacks > 0:
            self.sacks -= 1
            options += struct.pack(">BBBBII", 1, 1, 5, 10, *(self.isn[target] + 1 + edge for edge in self.sacked))
        seq = (self.isn[source] + 1 + pos) % 2**32
        ack = (self.isn[target] + 1 + self.sent[target]) % 2**32 if flags & ACK else 0
        head = struct.pack(">HHIIBBHHH", *ports, seq, ack, (20 + len(options)) // 4 << 4, flags, 65535, 0, 0)
        self.ident[source] += 1
        # What Linux answers to a SYN comes from no connection's socket yet.
        ident = 0 if syn and flags & ACK else self.ident[source]
        return ip_packet(source, target, 6, summed(source, target, 6, head + options + data), ident, 0, False)

    def open(self) -> None:
        self.bed.send(CLIENT, [self.frame(CLIENT, SYN, -1, syn=True)])
        self.bed.send(SERVER, [self.frame(SERVER, SYN | ACK, -1, syn=True)])
        self.bed.send(CLIENT, [self.frame(CLIENT, ACK, 0)])

    def refuse(self) -> None:
        """No program listens: the SYN is answered with RST, which has no options."""
        self.bed.send(CLIENT, [self.frame(CLIENT, SYN, -1, syn=True)])
        self.isn[SERVER], self.timestamps = -1, False
        self.bed.send(SERVER, [self.frame(SERVER, RST | ACK, 0)])

    def close(self, first: str = CLIENT) -> None:
        for end in (first, SERVER if first == CLIENT else CLIENT):
            self.bed.send(end, [self.frame(end, FIN | ACK, self.sent[end])])

    def write(self, source: str, data: bytes, cuts: list[int], lose: tuple[int, ...] = ()) -> None:
        """Send `data` in segments of the sizes `cuts`; lost ones are sent again afterwards."""
        begin, frames = 0, []
        for size in cuts:
            frames.append(self.frame(source, ACK | PUSH, self.sent[source] + begin, data[begin : begin + size]))
            begin += size
        assert begin == len(data)
        self.bed.send(source, frames, lose=lose)
        ends = [sum(cuts[: place + 1]) for place in range(len(cuts))]
        again = [(ends[place] - cuts[place], ends[place]) for place in lose]
        self.bed.send(source, [self.frame(source, ACK | PUSH, self.sent[source] + at, data[at:to]) for at, to in again])
        self.sent[source] += len(data)

    def call(self, size: int, xid: int, cuts: list[int], back: list[int], **loss: tuple[int, ...]) -> None:
        """One Sun RPC echo in one record each way, and its sample."""
        start = self.bed.now - 1
        number = self.bed.calls
        call, reply = rpc_call(xid, size, number=number), rpc_reply(xid, size, number)
        for source, message, pieces in ((CLIENT, call, cuts), (SERVER, reply, back)):
            mark = struct.pack(">I", 0x80000000 | len(message))
            self.write(source, mark + message, pieces, loss.get("request" if source == CLIENT else "reply", ()))
        self.bed.sample(start, xid)

# SPDX-License-Identifier: Apache-2.0
"""Runs over MBCF made by hand: two nodes on one segment, whose acknowledgements are written by the test."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

from tests.fates import duplicated, lost
from tests.observe.mbcf_wire import (
    ACK,
    CAS,
    CLOSE,
    EPOCH,
    FETCH_ADD,
    FIFO,
    MORE,
    OPENED,
    PART,
    READ,
    RESULT,
    SIGNAL,
    SWAP,
    SYN,
    SYNACK,
    TASKQUE,
    WRITE,
    frame,
    mac,
    nonces,
)
from tests.verify.bed import EPOCH_NS, IN, OUT, Record, capture, counters, rpc_call, rpc_reply
from tests.verify.seal import seal

CLIENT, SERVER = (1, 272), (2, 288)
FLIGHT_NS, STEP_NS = 5_000, 20_000
REPLIES, CALLS = 0x400000, 0x500000
CONNECTION = 0x8401
"""The op_id of an operation without a waiter, named by its connection."""
CLIENT_KEY = 0x1234
"""What the client gives away, for replies."""
KEY = 0x5151
MEMORY, RING, HANDLER, WORD = 0x1_0000_2000, 0x1_0004_2000, 2, 0x1_0000_1008
"""What mbcf-server tells of itself (guest-apps/sss-core/tasks/common/mbcf_target.h)."""
PLACES = {WRITE: MEMORY, READ: MEMORY, FIFO: RING, SIGNAL: HANDLER, SWAP: WORD, CAS: WORD, FETCH_ADD: WORD}
TAGS = 128
COLUMNS = ["call", "start", "end", "ok", "retransmits", "xid", "error"]


def connection(op_id: int) -> int:
    """The name of a connection of which op_id has the end."""
    return 1 << 31 | op_id & 0x7FFF


@dataclass
class MbcfBed:
    """Methods send frames, one after the other; `seq` and `ack` of both nodes follow what was sent."""

    directory: Path
    clock: str = "virtual"
    now: int = 1_000_000
    records: list[Record] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    seq: dict[int, int] = field(default_factory=lambda: {1: 0, 2: 0})
    got: dict[int, int] = field(default_factory=lambda: {1: 0, 2: 0})
    """Sequence number up to which each node has accepted."""
    executed: int = 0
    calls: int = 0
    asking: int = 0
    """How often the client has asked where the server's memory is."""
    define_always: bool = False
    """Whether each request defines its tag, and not the first of a connection alone."""
    tags: dict[tuple[object, ...], int] = field(default_factory=dict)
    """By what they stand for."""
    defined: dict[int, int] = field(default_factory=lambda: {1: 0, 2: 0})
    """How many each node has defined."""
    reply_key: int = 0
    """The key of the client that replies over a connection which stays have."""
    asked: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By node and op_id: numbers of its frames that have not been answered."""
    services: list[dict[str, object]] = field(default_factory=list)
    """Of the server's job."""
    linger: str = "1 s"

    def put(self, whole: bytes, lose: bool = False, twice: bool = False) -> None:
        """A frame on the wire, seen at both ports."""
        here, there = (0, 1) if whole[11] == 1 else (1, 0)
        ports = ("client:eth0", "server:eth0")
        way = ports[here], ports[there]
        self.records.append(Record(self.now, here, OUT, whole))
        if lose:
            self.records.append(Record(self.now + 500, 2, 0, whole, lost(*way)))
        else:
            self.records.append(Record(self.now + FLIGHT_NS, there, IN, whole))
        if twice:
            self.records.append(Record(self.now + 500, 2, 0, whole, duplicated(*way)))
            self.records.append(Record(self.now + FLIGHT_NS + 300, there, IN, whole))
        self.now += STEP_NS

    def open(self) -> None:
        self.put(frame(SYN, (1, 0), (2, 0), payload=nonces(1)))
        self.put(frame(SYNACK, (2, 0), (1, 0), ack=0, payload=nonces(1, 1)))
        self.put(frame(OPENED, (1, 0), (2, 0), ack=0, payload=nonces(0, 1)))

    def send(
        self, op: int, source: tuple[int, int], target: tuple[int, int], payload: bytes = b"", **more: object
    ) -> bytes:
        """A sequenced frame that arrives, with the acknowledgement of everything so far."""
        lose, twice = bool(more.pop("lose", False)), bool(more.pop("twice", False))
        self.seq[source[0]] = self.seq[source[0]] % (2**32 - 1) + 1
        op_id = int(more.get("op_id", 0))  # type: ignore[call-overload]
        if op == RESULT:
            waiting = self.asked.get((target[0], op_id)) or [0]
            more.setdefault("answers", waiting.pop(0))
        elif op != CLOSE:
            self.asked.setdefault((source[0], op_id), []).append(self.seq[source[0]])
        if WRITE <= op <= FETCH_ADD:
            high = int(more.get("address", 0)) >> 32  # type: ignore[call-overload]
            stands_for = (source, target, high, *(more.get(name) for name in ("key", "epoch", "target_epoch")))
            if not more.setdefault("short", stands_for in self.tags and not self.define_always):
                self.tags[stands_for] = self.defined[source[0]] % TAGS
                self.defined[source[0]] += 1
            more.setdefault("tag", self.tags[stands_for])
        whole = frame(op, source, target, seq=self.seq[source[0]], ack=self.got[source[0]], payload=payload, **more)  # type: ignore[arg-type]
        self.put(whole, lose, twice)
        if not lose:
            self.got[target[0]] = self.seq[source[0]]
        return whole

    def fifo(
        self,
        source: tuple[int, int],
        target: tuple[int, int],
        data: bytes,
        op_id: int,
        alone: int = CONNECTION,
        **more: object,
    ) -> None:
        """A FIFO write; in parts, of the name `op_id`, where it does not fit, else over the connection `alone`."""
        address = CALLS if source == CLIENT else REPLIES
        if source == SERVER:
            more.setdefault("key", self.reply_key)
        if len(data) <= 1408:
            self.send(FIFO, source, target, data, op_id=alone, address=address, **more)
            return
        for at in range(0, len(data), 1400):
            last = at + 1400 >= len(data)
            flags = PART | (0 if last else MORE)
            part = struct.pack(">II", len(data), at) + data[at : at + 1400]
            self.send(FIFO, source, target, part, **{"op_id": op_id, "address": address, "flags": flags, **more})
            more.pop("short", None)

    def ask_target(self) -> None:
        """mbcf-client asks mbcf-server where its memory is, over a connection that it closes then."""
        self.asking += 1
        own, answer_to = CONNECTION + self.asking, 0x9000
        query = struct.pack(">QII", CLIENT_KEY, 2, connection(own)) + struct.pack("<IIQ", 0x54424D53, 1, answer_to)
        place = struct.pack("<5QII", KEY, MEMORY, RING, HANDLER, WORD, 1, 0)
        self.send(TASKQUE, CLIENT, SERVER, query, op_id=own)
        # Each answer goes over a connection of its own, so its tag is defined again.
        answer = {"op_id": CONNECTION + self.asking, "address": answer_to, "key": CLIENT_KEY}
        self.send(WRITE, SERVER, CLIENT, place, short=False, **answer)
        self.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(own), 0))
        self.ack(2)

    def operate(self, op: int, data: bytes, *, at: int = 0, **more: object) -> None:
        """An operation of mbcf-client, `at` bytes behind the place that its server has named."""
        self.send(op, CLIENT, SERVER, data, address=PLACES[op] + at, key=KEY, **more)

    def data(self, size: int) -> bytes:
        """What the next call of the batch carries (harness/schemas/README.md, pattern of payloads)."""
        return bytes((131 * self.calls + i // 256 + 7 * (i % 256)) % 256 for i in range(size))

    def ack(self, node: int) -> None:
        """An ACK alone, when it is due."""
        self.now += 2_000_000
        peer = 3 - node
        self.put(frame(ACK, (node, 0), (peer, 0), ack=self.got[node]))

    def batch(
        self, transport: str, size: int, *, procedure: str = "echo", app: str = "echo-client", **more: object
    ) -> None:
        if app == "mbcf-client":
            self.ask_target()
        head = {
            "type": "batch", "step": 0, "app": app, "series": 0, "transport": transport, "procedure": procedure,
            "size": size, "thread": 0, "server": "2", "warmup": 0, "server_node": 2, "server_task": SERVER[1],
            "client_task": CLIENT[1], "ack": False, "depth": 1, "semantics": "exactly_once", "columns": COLUMNS, **more,
        }  # fmt: skip
        self.lines.append(json.dumps(head))
        self.calls = 0

    def sample(self, start: int, xid: int | None, ok: bool = True, error: str | None = None, again: int = 0) -> None:
        self.lines.append(json.dumps([self.calls, start, self.now, int(ok), again, xid, error]))
        self.calls += 1

    def request(self, transport: str, xid: int, size: int) -> None:
        """The frames of a request, and of what the server does to get it."""
        call = rpc_call(xid, size, number=self.calls)
        at = transport == "mbcf2"
        head = struct.pack("<QII", REPLIES, 66048, 2 if at else 1)
        owner = struct.pack(">QII", CLIENT_KEY, 3 if at else 2, connection(CONNECTION + xid))
        if transport == "mbcf1":
            self.send(TASKQUE, CLIENT, SERVER, owner + head + call, op_id=CONNECTION + xid)
        elif at:
            source = struct.pack("<QII", 0x700000, len(call), xid)
            self.send(TASKQUE, CLIENT, SERVER, owner + head + source, op_id=CONNECTION + xid)
            parts = [call[at : at + 1408] for at in range(0, len(call), 1408)]
            for place, part in enumerate(parts):
                flags = MORE if place < len(parts) - 1 else 0
                asked = struct.pack(">II", len(part), 0)
                read = {"op_id": 2049 + xid, "flags": flags, "address": 0x700000 + 1408 * place, "key": CLIENT_KEY}
                self.send(READ, SERVER, CLIENT, asked, **read, **({} if place else {"short": False}))
            for part in parts:
                self.send(RESULT, CLIENT, SERVER, part, op_id=2049 + xid)
        elif transport == "mbcf3b" and len(call) > 1376:
            parts = [call[at : at + 1408] for at in range(0, len(call), 1408)]
            several = len(parts) > 1
            for place, part in enumerate(parts):
                flags = MORE if place < len(parts) - 1 else 0
                name = 3073 + xid if several else CONNECTION
                self.send(WRITE, CLIENT, SERVER, part, op_id=name, flags=flags, address=0x600000 + 1408 * place)
            self.send(SIGNAL, CLIENT, SERVER, struct.pack(">2Q", 0, len(call)), op_id=CONNECTION, status=2)
        elif transport == "mbcf3b":
            self.send(SIGNAL, CLIENT, SERVER, call, op_id=CONNECTION)
        else:
            self.fifo(CLIENT, SERVER, call, 1025 + xid)

    def reply(self, transport: str, xid: int, size: int) -> None:
        """The frames of a reply, over the connection that the request has made, where it makes one."""
        data, own = rpc_reply(xid, size, number=self.calls), CONNECTION + 0x400 + xid
        if transport in ("mbcf1", "mbcf2"):
            begins = {"short": False} if transport == "mbcf1" else {}
            self.fifo(SERVER, CLIENT, data, 2177 + xid, own, key=CLIENT_KEY, **begins)
        else:
            self.fifo(SERVER, CLIENT, data, 2177 + xid)

    def call(self, transport: str, xid: int, size: int) -> None:
        """One echo with nothing in its way, the end of its connection, the ACK of its reply, and its sample."""
        start = self.now - 1
        self.request(transport, xid, size)
        self.reply(transport, xid, size)
        self.sample(start, xid)
        self.executed += 1
        if transport in ("mbcf1", "mbcf2", "mbcf12"):
            self.close(xid)
        self.ack(1)

    def close(self, xid: int) -> None:
        """The server discards the connection that a call has made."""
        names = connection(CONNECTION + 0x400 + xid), connection(CONNECTION + xid)
        self.send(CLOSE, SERVER, CLIENT, struct.pack(">II", *names))

    def write(self, expect: dict[str, str] | None = None) -> Path:
        """Write the run directory; the server counts what it has executed."""
        wire = self.directory / "wire"
        wire.mkdir(parents=True)
        names = ["client:eth0", "server:eth0"]
        (wire / "lan.pcapng").write_bytes(capture([*names, "lan:fate"], self.records))
        (wire / "counters.json").write_text(counters({"lan": (names, self.records)}))
        words = (
            [json.dumps({"type": "counters", "app": "echo-server", "executed": self.executed})] if self.executed else []
        )
        for name, lines, job in (
            ("client", self.lines, {"node": 1, "steps": [{"app": "echo-client", "options": {}}]}),
            ("server", words, {"node": 2, **({"services": self.services} if self.services else {})}),
        ):
            node = self.directory / "nodes" / name
            node.mkdir(parents=True)
            (node / "samples.jsonl").write_text(
                "\n".join(['{"type":"hello"}', *lines, '{"type":"done","status":0}', ""])
            )
            (node / "job.json").write_text(json.dumps(job))
        nodes = {
            name: {
                "zero_ns": 0,
                "interfaces": [
                    {
                        "device": "eth0",
                        "mac": mac(place).hex(":"),
                        "address": f"10.0.0.{place}/24",
                        "segment": "lan",
                        "mtu": 1500,
                    }
                ],
            }
            for place, name in enumerate(("client", "server"), start=1)
        }
        document = {
            "version": 1, "status": "complete",
            "scenario": {"name": "test", "linger": self.linger, "expect": expect or {}},
            "clock": self.clock, "epoch_ns": EPOCH_NS, "captures": {"wire/lan.pcapng": ""}, "mtu": {"lan": 1500},
            "nodes": nodes,
        }  # fmt: skip
        (self.directory / "run.json").write_text(json.dumps(document))
        return seal(self.directory)


__all__ = ["CLIENT", "CONNECTION", "EPOCH", "SERVER", "MbcfBed", "connection"]

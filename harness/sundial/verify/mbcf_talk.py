# SPDX-License-Identifier: Apache-2.0
"""Which call each MBCF frame belongs to, from what the frames say.

A request names its call by the xid of the RPC message in it. What carries no xid follows from names on the wire: parts
and results share an op_id; a READ asks for the address that a TASKQUE write named; a signal without data belongs to
what its sender WROTE before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

TASKQUE, WRITE, READ, FIFO, SIGNAL, SWAP, CAS, FETCH_ADD, CLOSE = range(0x10, 0x19)
RESULT = 0x20
NAMES = {
    TASKQUE: "TASKQUE", WRITE: "WRITE", READ: "READ", FIFO: "FIFO", SIGNAL: "SIGNAL", SWAP: "SWAP", CAS: "CAS",
    FETCH_ADD: "FETCH_ADD", CLOSE: "CLOSE", RESULT: "RESULT",
}  # fmt: skip
RESULT_REQ, MORE = 1, 4
CONNECTION_NAME = 1 << 31
BOUND, QUERY = "4d424e44", "4d424244"
"""First bytes of the binder's and the server's own messages, little endian (MBND, MBBD)."""
_CALL, _REPLY = "0000000000000002", ("0000000100000000", "0000000100000001")
"""Second and third word of RPC messages (RFC 5531 section 9): CALL and version 2; REPLY, accepted or denied."""
KIND_CALL, KIND_CALL_AT, KIND_BIND = "01000000", "02000000", "03000000"

COLUMNS = (
    "row", "time_ns", "mbcf_op", "mbcf_flags", "mbcf_status", "mbcf_source", "mbcf_source_task", "mbcf_target",
    "mbcf_target_task", "mbcf_op_id", "mbcf_length", "mbcf_part_offset", "mbcf_address", "mbcf_data",
)  # fmt: skip


@dataclass
class Talk:
    """One exchange: frames (row, text) by sender, in order. `kind`: call, setup, or operation."""

    kind: str
    node: int
    """Of whoever began it."""
    task: int
    peer: int
    peer_task: int
    began_ns: int
    xid: int | None = None
    op: int | None = None
    op_id: int | None = None
    frames: dict[bool, list[tuple[int, str]]] = field(default_factory=lambda: {False: [], True: []})
    """By whether the other side sent them."""
    request: list[int] = field(default_factory=list)
    reply: list[int] = field(default_factory=list)
    attempts: int = 0
    failed: list[tuple[int, int]] = field(default_factory=list)
    """(row, status) of RESULTs that tell of a failure."""


@dataclass
class Talks:
    """All exchanges, and the rows of frames that end connections or belong to none."""

    talks: list[Talk]
    closing: list[int]
    nobodys: list[int]


@dataclass(frozen=True)
class _Frame:
    row: int
    time: int
    op: int
    flags: int
    status: int
    node: int
    task: int
    peer: int
    peer_task: int
    op_id: int
    length: int
    offset: int | None
    address: str
    data: str

    @property
    def text(self) -> str:
        """As `expect.mbcf.Frame.text`."""
        more, asks = "+" if self.flags & MORE else "", "!" if self.flags & RESULT_REQ else ""
        return f"{NAMES.get(self.op, self.op)}:{self.length}{more}{asks}"


def find_talks(lines: Iterable[tuple[object, ...]]) -> Talks:
    """`lines`: COLUMNS of frames as they were sent for the first time, in the order of time."""
    finder = _Finder()
    for line in lines:
        finder.take(_Frame(*line))  # type: ignore[arg-type]
    return Talks(finder.talks, finder.closing, finder.nobodys)


class _Finder:
    def __init__(self) -> None:
        self.talks: list[Talk] = []
        self.closing: list[int] = []
        self.nobodys: list[int] = []
        self.calls: dict[tuple[int, int], Talk] = {}
        """By client's node and xid."""
        self.named: dict[tuple[int, int, int], Talk] = {}
        """By the node that began an operation, its peer and op_id."""
        self.open: set[tuple[int, int, int]] = set()
        """Operations of which parts are to come."""
        self.sources: dict[tuple[int, str], Talk] = {}
        """Calls that wait to be read, by client's node and address."""
        self.written: dict[tuple[int, int, int, int], Talk] = {}
        """The latest call written into another task's memory, by the tasks."""

    def take(self, frame: _Frame) -> None:
        if frame.op == CLOSE:
            self.closing.append(frame.row)
            return
        talk = self.result(frame) if frame.op == RESULT else self.request(frame)
        if talk is None:
            self.nobodys.append(frame.row)
            return
        talk.frames[frame.node != talk.node].append((frame.row, frame.text))

    def result(self, frame: _Frame) -> Talk | None:
        talk = self.named.get((frame.peer, frame.node, frame.op_id))
        if talk is None:
            return None
        if frame.status:
            talk.failed.append((frame.row, frame.status))
        if talk.xid is None and talk.kind == "call" and frame.data[8:24] == _CALL:
            talk.xid = int(frame.data[:8], 16)
            self.calls[(talk.node, talk.xid)] = talk
        if talk.kind == "call" and frame.node == talk.node and frame.length:
            talk.request.append(frame.row)  # what the server reads
        return talk

    def request(self, frame: _Frame) -> Talk | None:
        name = (frame.node, frame.peer, frame.op_id)
        goes_on = name in self.open
        talk = self.named[name] if goes_on else self.begun(frame)
        self.named[name] = talk
        if frame.flags & MORE:
            self.open.add(name)
        else:
            self.open.discard(name)
        if talk.kind == "call":
            if frame.node == talk.node:
                talk.request.append(frame.row)
            elif frame.op == FIFO:
                talk.reply.append(frame.row)
        return talk

    def begun(self, frame: _Frame) -> Talk:
        """The exchange that a new operation belongs to, or begins."""
        data = frame.data
        if frame.op in (FIFO, SIGNAL, WRITE) and data[8:24] == _CALL:
            talk = self.call(frame, int(data[:8], 16))
            if frame.op == WRITE:
                self.written[(frame.node, frame.task, frame.peer, frame.peer_task)] = talk
            return talk
        if frame.op == FIFO and data[8:24] in _REPLY:
            known = self.calls.get((frame.peer, int(data[:8], 16)))
            if known is not None:
                return known
        if frame.op == SIGNAL and not data:
            known = self.written.get((frame.node, frame.task, frame.peer, frame.peer_task))
            if known is not None:
                return known
        if frame.op == TASKQUE:
            return self.taskque(frame)
        if frame.op == READ:
            known = self.sources.pop((frame.peer, frame.address), None)
            if known is not None:
                return known
        if frame.op == FIFO and data.startswith(BOUND):
            return self.new(frame, "setup")
        return self.new(frame, "operation")

    def taskque(self, frame: _Frame) -> Talk:
        kind = frame.data[24:32]
        if kind == KIND_CALL and frame.data[40:56] == _CALL:
            return self.call(frame, int(frame.data[32:40], 16))
        if kind == KIND_CALL_AT:
            talk = self.new(frame, "call")
            talk.attempts = 1
            address = int.from_bytes(bytes.fromhex(frame.data[32:48]), "little")
            self.sources[(frame.node, f"0x{address:016x}")] = talk
            return talk
        return self.new(frame, "setup" if kind == KIND_BIND or frame.data.startswith(QUERY) else "operation")

    def call(self, frame: _Frame, xid: int) -> Talk:
        talk = self.calls.get((frame.node, xid))
        if talk is None:
            talk = self.new(frame, "call")
            talk.xid = xid
            self.calls[(frame.node, xid)] = talk
        talk.attempts += 1
        return talk

    def new(self, frame: _Frame, kind: str) -> Talk:
        talk = Talk(
            kind, frame.node, frame.task, frame.peer, frame.peer_task, frame.time, op=frame.op, op_id=frame.op_id
        )
        self.talks.append(talk)
        return talk

# SPDX-License-Identifier: Apache-2.0
"""Which call each MBCF frame belongs to, from what the frames say.

A request names its call by the xid of the RPC message in it. What carries no xid follows from names on the wire: parts
and results share an op_id; a READ asks for the address that a TASKQUE write named; a signal without data belongs to
what its sender WROTE before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

TASKQUE, WRITE, READ, FIFO, SIGNAL, SWAP, CAS, FETCH_ADD, CLOSE = range(0x10, 0x19)
RESULT = 0x20
NAMES = {
    TASKQUE: "TASKQUE", WRITE: "WRITE", READ: "READ", FIFO: "FIFO", SIGNAL: "SIGNAL", SWAP: "SWAP", CAS: "CAS",
    FETCH_ADD: "FETCH_ADD", CLOSE: "CLOSE", RESULT: "RESULT",
}  # fmt: skip
ACK_NOW, MORE = 2, 4
CONNECTION_NAME = 1 << 31
BOUND, QUERY = "4d424e44", "4d424244"
"""First bytes of the binder's and the server's own messages, little endian (MBND, MBBD)."""
_CALL, _REPLY = "0000000000000002", ("0000000100000000", "0000000100000001")
"""Second and third word of RPC messages (RFC 5531 section 9): CALL and version 2; REPLY, accepted or denied."""
KIND_CALL, KIND_CALL_AT, KIND_BIND = "01000000", "02000000", "03000000"

COLUMNS = (
    "row", "time_ns", "mbcf_op", "mbcf_flags", "mbcf_status", "mbcf_source", "mbcf_source_task", "mbcf_target",
    "mbcf_target_task", "mbcf_op_id", "mbcf_length", "mbcf_connection", "mbcf_epoch", "mbcf_address",
    "mbcf_data",
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
    tries: list[list[int]] = field(default_factory=list)
    """Rows of the frames that carry the request, for each time that it was made."""
    reply: list[int] = field(default_factory=list)
    closed: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    """Rows of the ends of its connections, by whether the other side said so."""
    connections: int = 0
    failed: list[tuple[int, int]] = field(default_factory=list)
    """(row, status) of RESULTs that tell of a failure."""

    @property
    def attempts(self) -> int:
        """How often the request was made."""
        return len(self.tries)

    @property
    def request(self) -> list[int]:
        """Rows of the frames that carry the request, of all attempts."""
        return [row for rows in self.tries for row in rows]


@dataclass
class Talks:
    """All exchanges, and the rows of frames that end connections, end a task, or belong to none."""

    talks: list[Talk]
    closing: list[int]
    farewells: dict[tuple[int, int, int], dict[int, list[int]]]
    """By node, task, and who is told; and by the node's epoch."""
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
    connection: int
    epoch: int
    address: str
    data: str

    @property
    def text(self) -> str:
        """As `expect.mbcf.Frame.text`."""
        more, now = "+" if self.flags & MORE else "", "!" if self.flags & ACK_NOW else ""
        return f"{NAMES.get(self.op, self.op)}:{self.length}{more}{now}"


def find_talks(lines: Iterable[tuple[object, ...]], refused: Mapping[int, int]) -> Talks:
    """`lines`: COLUMNS of frames as they were sent for the first time, in the order of time. `refused`: rows of error
    RESULTs -> of what they refuse."""
    finder = _Finder(refused)
    for line in lines:
        finder.take(_Frame(*line))  # type: ignore[arg-type]
    return Talks(finder.talks, finder.closing, finder.farewells, finder.nobodys)


class _Finder:
    def __init__(self, refused: Mapping[int, int]) -> None:
        self.refused, self.meant = refused, set(refused.values())
        self.of_row: dict[int, Talk] = {}
        """Exchanges of frames that are refused."""
        self.talks: list[Talk] = []
        self.closing: list[int] = []
        self.farewells: dict[tuple[int, int, int], dict[int, list[int]]] = {}
        self.connections: dict[tuple[int, int], Talk] = {}
        """Exchanges that make a connection, by the node that begins and its name of it."""
        self.asked: dict[tuple[int, str], Talk] = {}
        """Exchanges of setting up that wait for an answer, by the asker's node and the address for it."""
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
            self.close(frame)
            return
        talk = self.result(frame) if frame.op == RESULT else self.request(frame)
        if talk is None:
            self.nobodys.append(frame.row)
            return
        talk.frames[frame.node != talk.node].append((frame.row, frame.text))
        if frame.row in self.meant:
            self.of_row[frame.row] = talk

    def close(self, frame: _Frame) -> None:
        """The end of a connection, or of a task."""
        self.closing.append(frame.row)
        if frame.peer_task == 0:
            told = self.farewells.setdefault((frame.node, frame.task, frame.peer), {})
            told.setdefault(frame.epoch, []).append(frame.row)
            return
        theirs = self.connections.get((frame.peer, int(frame.address or "0", 16)))
        talk = theirs or self.connections.get((frame.node, frame.op_id))
        if talk is None:
            self.closing.pop()
            self.nobodys.append(frame.row)
        else:
            talk.closed[theirs is not None].append(frame.row)

    def result(self, frame: _Frame) -> Talk | None:
        talk = self.of_row.get(self.refused.get(frame.row, -1)) or self.named.get((frame.peer, frame.node, frame.op_id))
        if talk is None:
            return None
        if frame.status:
            talk.failed.append((frame.row, frame.status))
        if talk.kind == "call" and frame.node == talk.node and frame.length:
            talk.tries[-1].append(frame.row)  # what the server reads
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
                talk.tries[-1].append(frame.row)
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
        answered = (frame.op == FIFO and data.startswith(BOUND)) or frame.op == WRITE
        known = self.asked.pop((frame.peer, frame.address), None) if answered else None
        return known or self.new(frame, "operation")

    def taskque(self, frame: _Frame) -> Talk:
        talk = self.making(frame)
        self.connections[(frame.node, frame.connection)] = talk
        talk.connections += 1
        return talk

    def making(self, frame: _Frame) -> Talk:
        """The exchange of a TASKQUE write, which makes a connection."""
        kind, data = frame.data[24:32], frame.data
        if kind == KIND_CALL and data[40:56] == _CALL:
            return self.call(frame, int(data[32:40], 16))
        if kind == KIND_CALL_AT:
            talk = self.call(frame, int.from_bytes(bytes.fromhex(data[56:64]), "little"))
            self.sources[(frame.node, _address(data[32:48]))] = talk
            return talk
        query = data.startswith(QUERY)
        if kind != KIND_BIND and not query:
            return self.new(frame, "operation")
        talk = self.new(frame, "setup")
        self.asked[(frame.node, _address(data[48:64] if query else data[:16]))] = talk
        return talk

    def call(self, frame: _Frame, xid: int) -> Talk:
        talk = self.calls.get((frame.node, xid))
        if talk is None:
            talk = self.new(frame, "call")
            talk.xid = xid
            self.calls[(frame.node, xid)] = talk
        talk.tries.append([])
        return talk

    def new(self, frame: _Frame, kind: str) -> Talk:
        talk = Talk(
            kind, frame.node, frame.task, frame.peer, frame.peer_task, frame.time, op=frame.op, op_id=frame.op_id
        )
        self.talks.append(talk)
        return talk


def _address(data: str) -> str:
    """Eight bytes of a machine's memory, little endian, as the dissector shows addresses."""
    return f"0x{int.from_bytes(bytes.fromhex(data), 'little'):016x}"

# SPDX-License-Identifier: Apache-2.0
"""Which transaction each MBCF frame belongs to, from what the frames say.

A request names its call by what is spoken over MBCF (`Meaning`), an xid for one. What carries no such name follows from
those on the wire: parts share an op_id, a RESULT says which frame it
answers; a READ asks for the address that a TASKQUE write named; a signal
without data belongs to what its sender WROTE before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sundial.workloads.mbcf.wire import (
    ACK_NOW,
    CLOSE,
    FIFO,
    MORE,
    OPERATIONS,
    READ,
    RESULT,
    SIGNAL,
    TASKQUE,
    WRITE,
)


@dataclass(frozen=True)
class Request:
    """The data of an operation is a call, or says from where its server is to READ it."""

    xid: int
    source: str | None = None


@dataclass(frozen=True)
class Reply:
    """It is the reply to a call."""

    xid: int


@dataclass(frozen=True)
class Question:
    """It asks, before any call, for something that is written to an address. `about`: what, in a word."""

    answer_to: str
    about: str


@dataclass(frozen=True)
class Answer:
    """It is written to the address of a question, and may give an accesskey away."""

    key: int | None = None


Meaning = Request | Reply | Question | Answer
Meanings = Callable[[int, str], Meaning | None]
"""What an operation (of wire.OPERATIONS) with this data is, None for nothing but itself."""

COLUMNS = (
    "row", "time_ns", "mbcf_op", "mbcf_flags", "mbcf_status", "mbcf_source", "mbcf_source_task", "mbcf_target",
    "mbcf_target_task", "mbcf_op_id", "mbcf_length", "mbcf_connection", "mbcf_epoch", "mbcf_address",
    "mbcf_data", "mbcf_close_connection", "mbcf_close_peer", "mbcf_answers",
)  # fmt: skip


@dataclass
class Transaction:
    """One exchange of frames: frames (row, text) by sender, in order. `kind`: call, setup, or operation."""

    kind: str
    node: int
    """The node that began it."""
    task: int
    peer: int
    peer_task: int
    began_ns: int
    xid: int | None = None
    op: int | None = None
    op_id: int | None = None
    about: str | None = None
    """What is asked in setting up."""
    frames: dict[bool, list[tuple[int, str]]] = field(default_factory=lambda: {False: [], True: []})
    """By whether the other side sent them."""
    other_tasks: set[int] = field(default_factory=set)
    """Of the peer, that were asked again."""
    tries: list[list[int]] = field(default_factory=list)
    """Rows of the frames that carry the request, for each time that it was made."""
    unread: set[int] = field(default_factory=set)
    """Of these, by their place, those whose request the peer was to READ and has not had whole."""
    reply: list[int] = field(default_factory=list)
    closed: dict[bool, list[int]] = field(default_factory=lambda: {False: [], True: []})
    """Rows of the ends of its connections, by whether the other side said so."""
    connections: int = 0
    failed: list[tuple[int, int]] = field(default_factory=list)
    """(row, status) of RESULTs that tell of a failure."""

    def is_between(self, one: int, other: int) -> bool:
        """Whether these tasks are its two, in either order: a server that was restarted is another task."""
        return any({one, other} == {self.task, task} for task in (self.peer_task, *self.other_tasks))

    @property
    def attempts(self) -> int:
        """How often the request was made."""
        return len(self.tries)

    @property
    def request(self) -> list[int]:
        """Rows of the frames that carry the request, of all attempts."""
        return [row for rows in self.tries for row in rows]


@dataclass
class Transactions:
    """All exchanges, and the rows of frames that end connections, end a task, or belong to none."""

    transactions: list[Transaction]
    closing: list[int]
    farewells: dict[tuple[int, int, int], dict[int, list[int]]]
    """By node, task, and the node that hears of it; and by the node's epoch."""
    unclaimed: list[int]


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
    close_connection: int
    close_peer: int
    answers: int
    """The row of the frame that a RESULT answers."""

    @property
    def tasks(self) -> tuple[int, int, int, int]:
        """Whose it is, and for whom."""
        return self.node, self.task, self.peer, self.peer_task

    @property
    def text(self) -> str:
        """As `expect.Frame.text`."""
        more, now = "+" if self.flags & MORE else "", "!" if self.flags & ACK_NOW else ""
        return f"{OPERATIONS.get(self.op, self.op)}:{self.length}{more}{now}"


def find_transactions(lines: Iterable[tuple[object, ...]], meanings: Meanings) -> Transactions:
    """`lines`: COLUMNS of frames as they were sent for the first time, in the order of time."""
    finder = _Finder(meanings)
    for line in lines:
        finder.take(_Frame(*line))  # type: ignore[arg-type]
    return Transactions(finder.transactions, finder.closing, finder.farewells, finder.unclaimed)


class _Finder:
    def __init__(self, meanings: Meanings) -> None:
        self.meanings = meanings
        self.of_row: dict[int, Transaction] = {}
        """Exchanges of requests."""
        self.transactions: list[Transaction] = []
        self.closing: list[int] = []
        self.farewells: dict[tuple[int, int, int], dict[int, list[int]]] = {}
        self.connections: dict[tuple[int, int], Transaction] = {}
        """Exchanges that make a connection, by the node that begins and its name of it."""
        self.asked: dict[tuple[int, str], Transaction] = {}
        """Exchanges of setting up that wait for an answer, by the asker's node and the address for it."""
        self.unclaimed: list[int] = []
        self.calls: dict[tuple[int, int], Transaction] = {}
        """By client's node and xid."""
        self.named: dict[tuple[int, int, int], Transaction] = {}
        """By the node that began an operation, its peer and op_id."""
        self.open: set[tuple[int, int, int]] = set()
        """Operations of which parts are to come."""
        self.sources: dict[tuple[int, str], list[tuple[int, Transaction, int]]] = {}
        """Tries of calls that wait to be read, by client's node and address, in order: the connection, the call, the
        place of the try."""
        self.reading: dict[tuple[int, int, int], tuple[Transaction, int]] = {}
        """The tries that READs are for, as `named`."""
        self.last_read: dict[int, tuple[Transaction, int]] = {}
        """The same, by the row of the READ that asks for the last part."""
        self.read: dict[int, tuple[Transaction, int]] = {}
        """The same, by the row of any."""
        self.written: dict[tuple[int, int, int, int], Transaction] = {}
        """The latest call written into another task's memory, by the tasks."""

    def take(self, frame: _Frame) -> None:
        if frame.op == CLOSE:
            self.close(frame)
            return
        transaction = self.result(frame) if frame.op == RESULT else self.request(frame)
        if transaction is None:
            self.unclaimed.append(frame.row)
            return
        transaction.frames[frame.node != transaction.node].append((frame.row, frame.text))
        self.of_row[frame.row] = transaction

    def close(self, frame: _Frame) -> None:
        """The end of a connection, or of a task."""
        self.closing.append(frame.row)
        if frame.peer_task == 0:
            ends = self.farewells.setdefault((frame.node, frame.task, frame.peer), {})
            ends.setdefault(frame.epoch, []).append(frame.row)
            return
        theirs = self.connections.get((frame.peer, frame.close_peer))
        transaction = theirs or self.connections.get((frame.node, frame.close_connection))
        if theirs is not None:  # the server reads no more for it
            for waiting in self.sources.values():
                waiting[:] = [one for one in waiting if (one[1], one[0]) != (theirs, frame.close_peer)]
        if transaction is None or not transaction.is_between(frame.task, frame.peer_task):
            self.closing.pop()
            self.unclaimed.append(frame.row)
        else:
            transaction.closed[theirs is not None].append(frame.row)

    def result(self, frame: _Frame) -> Transaction | None:
        transaction = self.of_row.get(frame.answers)
        if transaction is None:
            return None
        if frame.status:
            transaction.failed.append((frame.row, frame.status))
        if transaction.kind == "call" and frame.node == transaction.node and frame.length:
            _, number = self.read.get(frame.answers, (transaction, -1))
            transaction.tries[number].append(frame.row)  # what the server reads
        whole = self.last_read.get(frame.answers)
        if whole is not None and not frame.status:
            whole[0].unread.discard(whole[1])
        return transaction

    def request(self, frame: _Frame) -> Transaction | None:
        name = (frame.node, frame.peer, frame.op_id)
        goes_on = name in self.open
        transaction = self.named[name] if goes_on else self.begun(frame)
        self.named[name] = transaction
        if frame.flags & MORE:
            self.open.add(name)
        else:
            self.open.discard(name)
        if frame.op == READ and name in self.reading:
            self.read[frame.row] = self.reading[name]
            if not frame.flags & MORE:
                self.last_read[frame.row] = self.reading.pop(name)
        if transaction.kind == "call":
            if frame.node == transaction.node:
                transaction.tries[-1].append(frame.row)
            elif frame.op == FIFO:
                transaction.reply.append(frame.row)
        return transaction

    def begun(self, frame: _Frame) -> Transaction:
        """The transaction that a new operation belongs to, or begins."""
        meaning = self.meanings(frame.op, frame.data)
        if frame.op == TASKQUE:
            return self.taskque(frame, meaning)
        known: Transaction | None = None
        if isinstance(meaning, Request):
            transaction = self.call(frame, meaning.xid)
            if frame.op == WRITE:
                self.written[frame.tasks] = transaction
            return transaction
        if isinstance(meaning, Reply):
            known = self.calls.get((frame.peer, meaning.xid))
        elif frame.op == SIGNAL and not frame.data:
            known = self.written.get(frame.tasks)
        elif frame.op == READ:
            waiting = self.sources.get((frame.peer, frame.address))
            if waiting:
                _, known, number = waiting.pop(0)
                self.reading[frame.node, frame.peer, frame.op_id] = known, number
        elif frame.op == WRITE or isinstance(meaning, Answer):
            known = self.asked.pop((frame.peer, frame.address), None)
        return known or self.new(frame, "operation")

    def taskque(self, frame: _Frame, meaning: Meaning | None) -> Transaction:
        """A TASKQUE write makes a connection."""
        if isinstance(meaning, Request):
            transaction = self.call(frame, meaning.xid)
            if meaning.source is not None:
                number = len(transaction.tries) - 1
                transaction.unread.add(number)
                waiting = self.sources.setdefault((frame.node, meaning.source), [])
                # The memory of a call that is over is used for others.
                waiting[:] = [one for one in waiting if one[1] is transaction]
                waiting.append((frame.connection, transaction, number))
        elif isinstance(meaning, Question):
            transaction = self.new(frame, "setup")
            transaction.about = meaning.about
            self.asked[(frame.node, meaning.answer_to)] = transaction
        else:
            transaction = self.new(frame, "operation")
        self.connections[(frame.node, frame.connection)] = transaction
        transaction.connections += 1
        return transaction

    def call(self, frame: _Frame, xid: int) -> Transaction:
        transaction = self.calls.get((frame.node, xid))
        if transaction is None:
            transaction = self.new(frame, "call")
            transaction.xid = xid
            self.calls[(frame.node, xid)] = transaction
        elif frame.peer_task != transaction.peer_task:
            transaction.other_tasks.add(frame.peer_task)
        transaction.tries.append([])
        return transaction

    def new(self, frame: _Frame, kind: str) -> Transaction:
        transaction = Transaction(
            kind, frame.node, frame.task, frame.peer, frame.peer_task, frame.time, op=frame.op, op_id=frame.op_id
        )
        self.transactions.append(transaction)
        return transaction


def address(data: str) -> str:
    """Eight bytes of a machine's memory, little endian, as the dissector shows addresses."""
    return f"0x{int.from_bytes(bytes.fromhex(data), 'little'):016x}"

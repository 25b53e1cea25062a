# SPDX-License-Identifier: Apache-2.0
"""Frames of Sun RPC calls over MBCF, byte by byte: the messages, which say what those over UDP and TCP say
(`verify_content`), and around them heads, addresses, keys and tasks, which follow from what was agreed on before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from sundial.expect import Call
from sundial.expect.call import unsent_leg
from sundial.verify.findings import Finding, none
from sundial.verify.sockets.contents import check_contents
from sundial.verify.sockets.protocol import Setting, SocketProtocol
from sundial.workloads.mbcf.verify_evidence import (
    Due,
    Evidence,
    check_frame,
    gives_up,
    taskque_head,
    taskque_key,
)
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.mbcf.wire import FIFO, MORE, PART, PART_HEAD, PAYLOAD, READ, RESULT, SIGNAL, TASKQUE, WRITE
from sundial.workloads.mbcf.wire import TASKQUE_HEAD as OWNER
from sundial.workloads.sunrpc.expect import Options, messages
from sundial.workloads.sunrpc.expect_mbcf import SINGLE_MOST
from sundial.workloads.sunrpc.verify_bound import (
    CALL_AT_KIND,
    CALL_KIND,
    HEAD,
    SOURCE,
    Bound,
    Handles,
    handle_at,
    message_most,
    permission,
)

NAME = "sunrpc"
_PIECE = {
    "row": pl.UInt32, "call": pl.UInt32, "reply": pl.Boolean, "attempt": pl.Int64, "begin": pl.Int64, "at": pl.Int64,
    "length": pl.Int64,
}  # fmt: skip


class _Call(NamedTuple):
    """As `contents.check_contents` knows a call."""

    protocol: str
    transport: str
    procedure: str
    size: int
    kind: int
    setting: int
    xid: int
    retransmits: int | None
    call: int
    id: int


class Described(Protocol):
    """What is known of a run, over whatever its calls went."""

    @property
    def batches(self) -> Mapping[tuple[str, int], Mapping[str, Any]]:
        """The lines above samples, by client and batch."""

    @property
    def files(self) -> list[tuple[Path, str]]:
        """The captures, and their names in tables."""

    def step(self, client: str, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of the step that a line is about."""


@dataclass
class Contents:
    """Gathers the pieces of messages that frames carry; what they say is compared at the end, all at once."""

    described: Described
    frames: pl.DataFrame
    """Those that carry them: row, capture, octets_begin, captured_length."""
    protocol: SocketProtocol
    pieces: list[tuple[Any, ...]] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    kinds: dict[tuple[str, int, Setting], int] = field(default_factory=dict)
    settings: dict[Setting, int] = field(default_factory=dict)
    of_batches: dict[tuple[str, int], Setting] = field(default_factory=dict)

    def options(self, sample: Mapping[str, Any]) -> Options:
        """How the step of a sample was configured, as far as it changes messages."""
        options = self._setting(sample).options
        assert isinstance(options, Options)
        return options

    def _setting(self, sample: Mapping[str, Any]) -> Setting:
        batch = (sample["client"], sample["batch"])
        if batch not in self.of_batches:
            line = self.described.batches.get(batch, {})
            step = self.described.step(sample["client"], line)
            self.of_batches[batch] = self.protocol.setting({"one_way": line.get("one_way"), **step}, [])
        return self.of_batches[batch]

    def add(
        self, call: int | None, sample: Mapping[str, Any], pieces: Sequence[tuple[int, bool, int, int, int]]
    ) -> None:
        """A call; of one without a sample `sample` is what it would be. Pieces: row, whether it is of the reply, where
        it begins in the message and in its frame, and its length."""
        own = _UNSAMPLED + len(self.calls) if call is None else call
        transport, procedure, size = (sample[name] for name in ("transport", "procedure", "size"))
        setting = self._setting(sample)
        kind = self.kinds.setdefault((procedure, size, setting), len(self.kinds))
        place = self.settings.setdefault(setting, len(self.settings))
        numbers = (sample["xid"], sample["retransmits"], sample["call"])
        self.calls.append(_Call(NAME, transport, procedure, size, kind, place, *numbers, own))
        self.pieces += [(row, own, reply, 0, begin, at, length) for row, reply, begin, at, length in pieces]

    def check(self) -> pl.DataFrame:
        """Findings about what the messages say."""
        if not self.pieces:
            return none()
        pieces = pl.DataFrame(self.pieces, schema=_PIECE, orient="row").join(
            self.frames.select("row", "capture", "octets_begin", "captured_length"), on="row", how="left"
        )
        calls = pl.DataFrame(self.calls, schema=_CALLS, orient="row")
        number = len(self.kinds)
        legs = pl.DataFrame(
            {"kind": [*range(number)] * 2, "reply": [False] * number + [True] * number},
            schema={"kind": pl.UInt32, "reply": pl.Boolean},
        ).with_columns(records=pl.lit(""), payload=pl.lit(0, pl.Int64))
        collected = pl.DataFrame(schema={"call": pl.UInt32, "records": pl.String})
        nothing = Call(unsent_leg("mbcf", 0), unsent_leg("mbcf", 0))
        found = check_contents(
            pieces, calls, legs, collected, [nothing] * number, list(self.settings), {NAME: self.protocol},
            self.described.files,
        )  # fmt: skip
        sampled = pl.col("call") < _UNSAMPLED
        return found.with_columns(call=pl.when(sampled).then("call"))


@dataclass
class Messages:
    """The messages of calls over MBCF, with all that is around them."""

    evidence: Evidence
    handles: Handles
    contents: Contents

    def options(self, sample: Mapping[str, Any]) -> Options:
        """How the step of a sample was configured, as far as it changes messages."""
        return self.contents.options(sample)

    def add(self, transaction: Transaction, sample: Mapping[str, Any]) -> Iterator[Finding]:
        """A call with a sample."""
        yield from self._call(transaction, sample["id"], sample)

    def add_null(self, transaction: Transaction, sample: Mapping[str, Any]) -> Iterator[Finding]:
        """A call of nothing that the library makes by itself, behind or between one-way calls like `sample`."""
        own = {**sample, "procedure": "null", "size": 0, "call": 0, "xid": transaction.xid, "retransmits": 0}
        yield from self._call(transaction, None, own)

    def _call(self, transaction: Transaction, call: int | None, sample: Mapping[str, Any]) -> Iterator[Finding]:
        line = self.evidence.batches.get((sample["client"], sample["batch"]), {})
        step = self.evidence.step(sample["client"], line)
        lengths = messages(sample["procedure"], sample["size"], self.options(sample).credential)
        most = message_most(sample["transport"], step) if step else None
        walk = _Walk(self.evidence, self.handles, transaction, call, sample, lengths, most)
        yield from walk.go()
        self.contents.add(call, sample, walk.pieces)


_UNSAMPLED = 1 << 31
"""Ids of calls without a sample begin here."""
_CALLS = {
    "protocol": pl.String, "transport": pl.String, "procedure": pl.String, "size": pl.Int64, "kind": pl.UInt32,
    "setting": pl.UInt32, "xid": pl.Int64, "retransmits": pl.Int64, "call": pl.Int64, "id": pl.UInt32,
}  # fmt: skip


@dataclass
class _Walk:
    """Through the frames of one call, in order."""

    evidence: Evidence
    handles: Handles
    transaction: Transaction
    call: int | None
    sample: Mapping[str, Any]
    lengths: tuple[int, int]
    most: int | None
    pieces: list[tuple[int, bool, int, int, int]] = field(default_factory=list)
    """row, reply, begin in the message, begin in the frame, length."""
    done: dict[tuple[bool, int, int], int] = field(default_factory=dict)
    """Bytes of an operation in parts that were sent, by its side, number and name."""
    reads: dict[int, int] = field(default_factory=dict)
    """Where what a READ asks for begins in the message, by row."""
    source: int | None = None
    """Where the call is in the client's memory."""
    replies: int | None = None
    key: int | None = None
    server: int | None = None
    """The task that was asked last: one that was restarted has another number."""
    known: tuple[Bound, ...] = ()
    """What had been agreed on when the last frame left."""
    bound: Bound | None = None
    place: int | None = None
    """Where the last call that was WRITTEN began."""

    def go(self) -> Iterator[Finding]:
        frames = self.evidence.carried
        rows = [(row, False) for row, _ in self.transaction.frames[False]]
        rows += [(row, True) for row, _ in self.transaction.frames[True]]
        for row, back in rows if len(rows) <= 2 else self._ordered(rows):
            op = frames[row].op
            if back:
                yield from self._reply(row) if op == FIFO else self._read(row) if op == READ else ()
            elif op == TASKQUE:
                yield from self._taskque(row)
            elif op == RESULT:
                self._result(row)
            else:
                yield from self._request(row)

    def _ordered(self, rows: list[tuple[int, bool]]) -> list[tuple[int, bool]]:
        sent = self.evidence.channels.sent_ns
        return sorted(rows, key=lambda each: (sent[each[0]], each[0]))

    def _piece(self, row: int, reply: bool, begin: int, head: int) -> None:
        frame = self.evidence.carried[row]
        if not gives_up(self.evidence, row):
            self.pieces.append((row, reply, begin, frame.at + head, frame.length - head))

    def _part(self, row: int, back: bool, length: int) -> int:
        """Where this part of an operation begins."""
        frame = self.evidence.carried[row]
        name = (back, frame.op, frame.op_id)
        begin = self.done.pop(name, 0)
        if frame.flags & MORE:
            self.done[name] = begin + length
        return begin

    def _taskque(self, row: int) -> Iterator[Finding]:
        """Types 1 and 2: the head says where the reply goes, and behind it are the call or where that is."""
        message, transport = self.lengths[0], self.sample["transport"]
        self.server = self.evidence.carried[row].target_task
        at = transport == "mbcf2" or message > SINGLE_MOST
        seen = self.evidence.payload(row, OWNER + HEAD.size + SOURCE.size)
        if len(seen) < OWNER + HEAD.size:
            return
        self.key = taskque_key(seen)
        self.replies, most, _ = HEAD.unpack_from(seen, OWNER)
        most = most if self.most is None else self.most
        due = taskque_head(seen, permission(at)) + HEAD.pack(self.replies, most, CALL_AT_KIND if at else CALL_KIND)
        if at and len(seen) == OWNER + HEAD.size + SOURCE.size:
            self.source = SOURCE.unpack_from(seen, OWNER + HEAD.size)[0]
            due += SOURCE.pack(self.source, message, self.sample["xid"])
        else:
            self._piece(row, False, 0, OWNER + HEAD.size)
        yield from check_frame(self.evidence, self.call, row, Due(due))

    def _read(self, row: int) -> Iterator[Finding]:
        """The server fetches the call in parts."""
        asked = int.from_bytes(self.evidence.payload(row, 4))
        begin = self.reads[row] = self._part(row, True, asked)
        due = min(PAYLOAD, max(0, self.lengths[0] - begin)).to_bytes(4) + bytes(4)
        address = None if self.source is None else self.source + begin
        tasks = (self.server or self.transaction.peer_task, self.transaction.task)
        yield from check_frame(self.evidence, self.call, row, Due(due, address, self.key, tasks))

    def _result(self, row: int) -> None:
        """What was fetched; an error has nothing."""
        begin = self.reads.get(self.evidence.carried[row].answers or -1)
        if begin is not None:
            self._piece(row, False, begin, 0)

    def _request(self, row: int) -> Iterator[Finding]:
        """Types 3: into the FIFO or to the handler that the server has named, or into the area for long calls."""
        frame = self.evidence.carried[row]
        known = self.handles.known(self.transaction, frame.target_task, self.evidence.channels.sent_ns[row])
        if self.known != known:
            self.known, self.bound = known, handle_at(known, None if frame.op == WRITE else frame.address)
        bound, message = self.bound, self.lengths[0]
        key = None if bound is None else bound.key
        if frame.op == FIFO:
            head, begin = self._segment(row, False, message)
            yield from check_frame(self.evidence, self.call, row, Due(head, bound and bound.fifo, key))
            self._piece(row, False, begin, len(head))
        elif frame.op == WRITE:
            begin = self._part(row, False, frame.length)
            start = (frame.address or 0) - begin
            self.place = start if begin == 0 or self.place is None else self.place
            due = self.place
            if bound is not None and bound.slots:
                # Some whole place of the area.
                number = (self.place - bound.area) // (bound.slot or 1)
                due = bound.area + min(max(number, 0), bound.slots - 1) * bound.slot
            yield from check_frame(self.evidence, self.call, row, Due(b"", due + begin, key))
            self._piece(row, False, begin, 0)
        elif frame.op == SIGNAL:
            handler = bound and bound.handler
            if self.place is None:
                yield from check_frame(self.evidence, self.call, row, Due(b"", handler, key))
                self._piece(row, False, 0, 0)
                return
            seen = self.evidence.payload(row, 8)
            offset = seen if bound is None else ((self.place - bound.area) % (1 << 64)).to_bytes(8)
            yield from check_frame(self.evidence, self.call, row, Due(offset + message.to_bytes(8), handler, key))
            self.place = None

    def _reply(self, row: int) -> Iterator[Finding]:
        message = self.lengths[1]
        head, begin = self._segment(row, True, message)
        bound = self.bound
        tasks = None
        if self.transaction.connections:
            tasks = (self.server or self.transaction.peer_task, self.transaction.task)
        elif bound is not None:
            # Of type 3a the one that was asked answers, for its dummy; of 3b the dummy.
            tasks = (bound.dispatcher if bound.fifo else bound.task, self.transaction.task)
        replies = self.replies if bound is None else bound.replies
        key = self.key if bound is None else bound.client_key
        yield from check_frame(self.evidence, self.call, row, Due(head, replies, key, tasks))
        self._piece(row, True, begin, len(head))

    def _segment(self, row: int, back: bool, message: int) -> tuple[bytes, int]:
        """The head of a part of a FIFO segment, and where its data begin."""
        frame = self.evidence.carried[row]
        if not frame.flags & PART:
            return b"", 0
        begin = self._part(row, back, frame.length - PART_HEAD)
        if gives_up(self.evidence, row):
            return bytes(PART_HEAD), begin
        return message.to_bytes(4) + begin.to_bytes(4), begin

# SPDX-License-Identifier: Apache-2.0
"""What clients and servers of Sun RPC over MBCF agree on before a call: where the server is, which the binder says, and
where requests go, which the server says (guest-apps/sss-core/rpc/mbcf_messages.h, include/rpc/mbcf_binder.h)."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from sundial.verify.findings import Finding
from sundial.workloads.mbcf.verify_evidence import (
    READ_ALLOWED,
    WRITE_ALLOWED,
    Due,
    Evidence,
    check_frame,
    taskque_head,
    taskque_key,
)
from sundial.workloads.mbcf.verify_target import PROGRAM as TARGET_PROGRAM
from sundial.workloads.mbcf.verify_target import VERSION as TARGET_VERSION
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.mbcf.wire import FIFO, SIGNAL_MOST, TASKQUE_HEAD, WRITE
from sundial.workloads.sunrpc.expect import CALL, MAX_AUTH_BODY, WORD, padded
from sundial.workloads.sunrpc.expect_functions import LARGEST
from sundial.workloads.sunrpc.expect_mbcf import SINGLE_MOST, Server
from sundial.workloads.sunrpc.scenario import VRPC_MBCF
from sundial.workloads.sunrpc.verify_content import program_of
from sundial.workloads.sunrpc.verify_rings import BUFFER, MESSAGE_MOST, RING

BINDER = 1
"""The task of every node that is asked where a program is."""
LOOKUP, BINDING, RINGS = "lookup", "binding", "rings"
QUERY_MAGIC, BOUND_MAGIC = 0x4442424D, 0x444E424D
CALL_KIND, CALL_AT_KIND, BIND_KIND = 1, 2, 3
HEAD = struct.Struct("<QII")
"""struct mbm_head: the client's FIFO, bytes of the longest reply that it takes, and what follows."""
SOURCE = struct.Struct("<QII")
"""struct mbm_source: where the call is, its length and its xid."""
_QUERY, _ANSWER = struct.Struct("<6IQ"), struct.Struct("<HHI")
_BIND, _BOUND = struct.Struct("<6I"), struct.Struct("<II4Q3IHH")
_FIND, _FOUND, _NOT_FOUND = 3, 1, 2
_TYPES: tuple[str, ...] = (*get_args(Server), VRPC_MBCF)
RING_TYPE = _TYPES.index(VRPC_MBCF)
_MESSAGE_DEFAULT, _MESSAGE_MOST = 65536 + 1024, 131072 - 64
_CREDENTIALS = 2 * (2 * WORD + MAX_AUTH_BODY)
_RECORD, _SIGNAL_HEAD, _PAGE = 16, 40, 4096
_DEPTH_MOST = 64
_DUMMY_FIFO = 1 << 32
"""Where the FIFO of type 3a is in the dummy's address space (rpc/mbcf_places.c)."""


Batches = dict[tuple[int, int], list[tuple[str, Mapping[str, Any]]]]
"""Clients and lines of batches, by node and task."""


class Bound(NamedTuple):
    """What a client asks for with BIND, and a server accepts."""

    replies: int
    client_key: int
    dispatcher: int
    """The task that was asked."""
    key: int
    fifo: int
    handler: int
    area: int
    slots: int
    slot: int
    task: int


class Line(NamedTuple):
    """The rings of a client and a server, by node, task, and where each has what it reads."""

    client: tuple[int, int]
    replies: int
    client_key: int
    server: tuple[int, int]
    requests: int
    server_key: int


@dataclass
class Handles:
    """What has been agreed on, by client's node and task, server's node and the task that requests go to: the moments,
    in order, and what holds from each."""

    agreed: dict[tuple[int, int, int, int], tuple[list[int], list[Bound]]] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def add(self, transaction: Transaction, bound: Bound) -> None:
        key = (transaction.node, transaction.task, transaction.peer, bound.task)
        since, what = self.agreed.setdefault(key, ([], []))
        since.append(transaction.began_ns)
        what.append(bound)

    def accepted(self, server: int, until_ns: int | None = None) -> int:
        """Clients that a node's server has bound, of those that asked before a time; None: of all."""
        asked_ns = [at for (_, _, peer, _), (since, _) in self.agreed.items() if peer == server for at in since]
        return sum(1 for at in asked_ns if until_ns is None or at < until_ns)

    def known(self, call: Transaction, task: int, at_ns: int) -> tuple[Bound, ...]:
        """What had been agreed on with a task when a frame of a call left.

        A repeated call may meet a server that was restarted, and that was asked again."""
        since, what = self.agreed.get((call.node, call.task, call.peer, task), ([], []))
        return tuple(what[: bisect_right(since, at_ns)])


def handle_at(known: Sequence[Bound], address: int | None) -> Bound | None:
    """The last one, but of several the one whose FIFO or handler is at `address`."""
    named = [bound for bound in known if address in (bound.fifo, bound.handler)]
    return named[-1] if named else known[-1] if known else None


def message_most(transport: str, options: Mapping[str, Any]) -> int:
    """Bytes of the longest message that a client's handle takes (tasks/common/port_mbcf.c)."""
    if transport == "mbcf1":
        return SINGLE_MOST
    largest = LARGEST if options.get("functions") else max(options.get("sizes") or [0])
    return min(CALL + WORD + _CREDENTIALS + padded(largest), _MESSAGE_MOST)


def check_setup(evidence: Evidence, handles: Handles) -> Iterator[Finding]:
    """Findings about questions and answers, byte by byte; fills `handles`."""
    asked: dict[tuple[int, int], set[int]] = {}
    for transaction in evidence.transactions.transactions:
        if transaction.connections and transaction.peer_task != BINDER:
            asked.setdefault((transaction.node, transaction.task), set()).add(transaction.peer_task)
    dummies: dict[tuple[int, int], tuple[int, int]] = {}
    batches: Batches = {}
    for (client, _), line in evidence.batches.items():
        task = (evidence.nodes.get(client, 0), int(line.get("client_task") or 0))
        batches.setdefault(task, []).append((client, line))
    for transaction in evidence.of_kind("setup"):
        if not _is_whole(evidence, transaction):
            continue
        if transaction.about == LOOKUP:
            tasks = asked.get((transaction.node, transaction.task), set())
            yield from _check_lookup(evidence, transaction, tasks, batches)
        elif transaction.about == BINDING:
            yield from _check_binding(evidence, transaction, handles, dummies, batches)
        elif transaction.about == RINGS:
            yield from _check_rings(evidence, transaction, handles, batches)


def _is_whole(evidence: Evidence, transaction: Transaction) -> bool:
    """Whether the question has its length; what is missing, others say."""
    bind = HEAD.size + _BIND.size
    length = {LOOKUP: _QUERY.size, BINDING: bind, RINGS: bind}.get(transaction.about or "", -1)
    return evidence.carried[transaction.frames[False][0][0]].length == TASKQUE_HEAD + length


def _answers(evidence: Evidence, transaction: Transaction, op: int) -> list[int]:
    """Rows of what the other side says; a RESULT that refuses the question is none."""
    return [row for row, _ in transaction.frames[True] if evidence.carried[row].op == op]


def _any(seen: bytes, choices: set[bytes]) -> bytes:
    """What is seen, where it is one of them; else one of them, or nothing where there are none."""
    return seen if seen in choices else min(choices, default=b"")


def _check_lookup(evidence: Evidence, transaction: Transaction, tasks: set[int], batches: Batches) -> Iterator[Finding]:
    row = transaction.frames[False][0][0]
    seen = evidence.payload(row)
    *_, answer_to = _QUERY.unpack_from(seen, TASKQUE_HEAD)
    choices = set()
    for _, line in batches.get((transaction.node, transaction.task), ()):
        transport = str(line.get("transport"))
        over_rpc = transport in _TYPES
        program = program_of(str(line.get("procedure")))
        what = (*program, _TYPES.index(transport)) if over_rpc else (TARGET_PROGRAM, TARGET_VERSION, 0)
        choices.add(_QUERY.pack(QUERY_MAGIC, _FIND, *what, 0, answer_to))
    due = _any(seen[TASKQUE_HEAD:], choices)
    yield from check_frame(evidence, None, row, Due(taskque_head(seen, WRITE_ALLOWED) + due))
    for answer in _answers(evidence, transaction, WRITE):
        said = evidence.payload(answer)
        found = {_ANSWER.pack(transaction.peer, task, _FOUND) for task in tasks}
        nothing = _ANSWER.pack(transaction.peer, 0, _NOT_FOUND)
        from_binder = Due(_any(said, found | {nothing}), answer_to, taskque_key(seen), (BINDER, transaction.task))
        yield from check_frame(evidence, None, answer, from_binder)


def _check_binding(
    evidence: Evidence,
    transaction: Transaction,
    handles: Handles,
    dummies: dict[tuple[int, int], tuple[int, int]],
    batches: Batches,
) -> Iterator[Finding]:
    row = transaction.frames[False][0][0]
    seen = evidence.payload(row)
    replies, *_ = HEAD.unpack_from(seen, TASKQUE_HEAD)
    choices = set()
    for client, line in batches.get((transaction.node, transaction.task), ()):
        transport = str(line.get("transport"))
        if transport in _TYPES:
            options = evidence.step(client, line)
            most = message_most(transport, options) if options else HEAD.unpack_from(seen, TASKQUE_HEAD)[1]
            program = program_of(str(line.get("procedure")))
            asks = (*program, _TYPES.index(transport), most, int(line.get("depth") or 1), 0)
            choices.add(HEAD.pack(replies, most, BIND_KIND) + _BIND.pack(*asks))
    due = _any(seen[TASKQUE_HEAD:], choices)
    yield from check_frame(evidence, None, row, Due(taskque_head(seen, WRITE_ALLOWED) + due))
    for answer in _answers(evidence, transaction, FIFO):
        if evidence.carried[answer].length != _BOUND.size:
            return
        said = evidence.payload(answer)
        key = taskque_key(seen)
        asked = _BIND.unpack_from(seen, TASKQUE_HEAD + HEAD.size)
        expected = _bound(said, transaction, asked, dummies)
        tasks = (transaction.peer_task, transaction.task)
        yield from check_frame(evidence, None, answer, Due(expected, replies, key, tasks))
        _, refusal, bound_key, fifo, handler, area, _, slots, slot, task, _ = _BOUND.unpack(said)
        if refusal == 0:
            agreed = Bound(
                replies, key, transaction.peer_task, bound_key, fifo, handler, area, slots, slot, task
            )  # fmt: skip
            handles.add(transaction, agreed)


def _check_rings(evidence: Evidence, transaction: Transaction, handles: Handles, batches: Batches) -> Iterator[Finding]:
    """Both sides say where their rings are; the answer is written into the client's."""
    row = transaction.frames[False][0][0]
    seen = evidence.payload(row)
    replies, *_ = HEAD.unpack_from(seen, TASKQUE_HEAD)
    lines = [line for _, line in batches.get((transaction.node, transaction.task), ())]
    programs = {program_of(str(line.get("procedure"))) for line in lines if line.get("transport") == VRPC_MBCF}
    choices = {
        HEAD.pack(replies, BUFFER, BIND_KIND) + _BIND.pack(*program, RING_TYPE, MESSAGE_MOST, 1, 0)
        for program in programs
    }
    due = _any(seen[TASKQUE_HEAD:], choices)
    yield from check_frame(evidence, None, row, Due(taskque_head(seen, WRITE_ALLOWED) + due))
    for answer in _answers(evidence, transaction, WRITE):
        said = evidence.payload(answer)
        if len(said) != _BOUND.size:
            return
        _, refusal, key, _, _, area, *_, task, _ = _BOUND.unpack(said)
        key_due, area_due, ring, task_due = (0, 0, 0, 0) if refusal else (key, area, RING, transaction.peer_task)
        expected = _BOUND.pack(BOUND_MAGIC, refusal, key_due, 0, 0, area_due, ring, 0, 0, task_due, 0)
        client_key, tasks = taskque_key(seen), (transaction.peer_task, transaction.task)
        yield from check_frame(evidence, None, answer, Due(expected, replies, client_key, tasks))
        if not refusal:
            client, server = (transaction.node, transaction.task), (transaction.peer, task)
            handles.lines.append(Line(client, replies, client_key, server, area, key))


def _bound(
    said: bytes, transaction: Transaction, asked: tuple[int, ...], dummies: dict[tuple[int, int], tuple[int, int]]
) -> bytes:
    """The answer to BIND. Keys and addresses are the server's own, and said again by the frames that use them."""
    _, refusal, key, fifo, handler, area, *_, task, _ = _BOUND.unpack(said)
    if refusal:
        return _BOUND.pack(BOUND_MAGIC, refusal, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    *_, kind, most, depth, _ = asked
    transport = _TYPES[kind] if kind < len(_TYPES) else ""
    if transport != "mbcf3b":
        ring = _ring(_MESSAGE_DEFAULT, 2)
        where = _DUMMY_FIFO if transport == "mbcf3a" else fifo
        to = transaction.peer_task if transport == "mbcf3" else task
        return _BOUND.pack(BOUND_MAGIC, 0, key, where, 0, 0, ring, 0, 0, to, 0)
    # A dummy keeps the area of an earlier client where that is large enough (rpc/mbcf_dummy.c).
    slot, slots = dummies.get((transaction.peer, task), (0, 0))
    needed = _in_sixteens(most), (depth + 1) % (1 << 32) if most > SIGNAL_MOST else 0
    if needed[0] > slot or needed[1] > slots:
        slot, slots = dummies[transaction.peer, task] = needed
    ring = _ring(SIGNAL_MOST + _SIGNAL_HEAD, _DEPTH_MOST)
    return _BOUND.pack(BOUND_MAGIC, 0, key, 0, handler, area if slots else 0, ring, slots, slot, task, 0)


def _ring(most: int, count: int) -> int:
    """Bytes of a ring in which `count` records of `most` bytes always have a place (rpc/mbcf_common.c)."""
    wanted = (_RECORD + _in_sixteens(most)) * (count + 2)
    return max(_PAGE, 1 << (wanted - 1).bit_length())


def _in_sixteens(length: int) -> int:
    """Bytes that data take in a ring, and a call in the area."""
    return -(-length // 16) * 16 % (1 << 32)


def permission(at: bool) -> int:
    """What the server may do with the key that it is given: `at`, it is to READ the call."""
    return READ_ALLOWED | WRITE_ALLOWED if at else WRITE_ALLOWED

# SPDX-License-Identifier: Apache-2.0
"""Operations against samples, by order: those of a stream have no names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import polars as pl

from sundial.workloads.mbcf.expect import Exchange, Operation, expect_operation
from sundial.workloads.mbcf.verify_contents import PLACE, Carried, check_contents, check_places
from sundial.workloads.mbcf.verify_evidence import (
    Evidence,
    Finding,
    Judgement,
    MbcfProtocol,
    check_executed,
    check_in_time,
    frames_text,
    observed_row,
    part_text,
    same,
)
from sundial.workloads.mbcf.verify_transactions import Meaning, Transaction
from sundial.workloads.mbcf.wire import OPERATIONS, STATUS_BUSY, STATUS_FULL, WRITE

TRANSPORT = "mbcf"
"""Of samples that are operations."""
STREAM_UNACKED = 524288 // 4
"""Bytes of records after which mbcf-client asks in a stream whether all was taken (tasks/mbcf-client.c)."""
_RECORD_HEADS = 16 + 40
_ARGUMENTS = 1
"""Of mbcf-client's SIGNALs: the number of the call."""

Queues = Mapping[tuple[int, int, int, int], deque[Transaction]]
"""Operations in order, by node, task, the other task, and what they are; what is judged leaves them."""


class _Operations:
    def speaks(self, transport: str) -> bool:
        return transport == TRANSPORT

    def meaning(self, operation: int, data: str) -> Meaning | None:
        return None

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        queues: dict[tuple[int, int, int, int], deque[Transaction]] = {}
        operations = evidence.of_kind("operation")
        for transaction in operations:
            # One that was refused for want of a place is made again, as another operation of the same call.
            if not _refused(transaction):
                key = (transaction.node, transaction.task, transaction.peer_task, transaction.op or 0)
                queues.setdefault(key, deque()).append(transaction)
        clients = set()
        samples = evidence.samples.filter(pl.col("transport") == TRANSPORT)
        for (client, batch), part in samples.group_by("client", "batch", maintain_order=True):
            line = evidence.batches.get((str(client), batch), {})
            node, task = evidence.nodes.get(str(client), 0), int(line.get("client_task") or 0)
            clients.add((node, task))
            _judge_batch(evidence, judgement, part.sort("call"), line, (node, task), queues)
        for transaction in operations:
            # What the measuring tasks do around a batch: preparing memory, asking the server, reading back.
            ends = {(transaction.node, transaction.task), (transaction.peer, transaction.peer_task)}
            if ends & clients:
                for row, _ in (*transaction.frames[False], *transaction.frames[True]):
                    judgement.owner.setdefault(row, None)
        return judgement

    def display_filter(self, xid: int) -> str:
        return f"mbcf.op_id == {xid}"


KIND: MbcfProtocol = _Operations()


def _judge_batch(
    evidence: Evidence,
    judgement: Judgement,
    samples: pl.DataFrame,
    line: Mapping[str, Any],
    client: tuple[int, int],
    queues: Queues,
) -> None:
    """One batch of samples against the operations of its task: those after the batch before, and since it began."""
    server, procedure = int(line.get("server_task") or 0), str(samples["procedure"][0]).upper()
    operation = next((number for number, name in OPERATIONS.items() if name == procedure), 0)
    start = int(samples["start_ns"].min())  # type: ignore[arg-type]
    queue = queues.get((*client, server, operation), deque())
    # Under the real clock a guest's time is not the captures'.
    while evidence.exact and queue and queue[0].began_ns < start:
        queue.popleft()
    told = _told(evidence, queues.get((int(line.get("server_node") or 0), server, client[1], WRITE), deque()), start)
    for sample, asks in zip(samples.iter_rows(named=True), _asked(samples, line), strict=True):
        judgement.findings += _judge(evidence, judgement, sample, queue.popleft() if queue else None, asks, told)


def _told(evidence: Evidence, queue: deque[Transaction], start: int) -> Carried | None:
    """What the server wrote last to say where its memory is, before the batch; it says so once for each."""
    told = None
    while queue and (not evidence.exact or queue[0].began_ns < start):
        sent = queue.popleft().frames[False]
        if len(sent) == 1 and sent[0][1].startswith(PLACE):
            told = evidence.carried[sent[0][0]]
            if not evidence.exact:
                break
    return told


def _judge(
    evidence: Evidence,
    judgement: Judgement,
    sample: Mapping[str, Any],
    transaction: Transaction | None,
    asks: bool,
    told: Carried | None,
) -> Iterator[Finding]:
    call, expected = sample["id"], expect_operation(_operation(sample["procedure"]), sample["size"], asks, _ARGUMENTS)
    frames = (expected.there, expected.back)
    judgement.expected.setdefault((TRANSPORT, sample["procedure"], sample["size"]), frames)
    judgement.observed.append(observed_row(evidence.channels, sample, transaction, frames))
    if transaction is None:
        if sample["ok"]:
            yield call, "mbcf.request", frames_text(expected.there), "none", []
        return
    judgement.claim(transaction, call)
    if sample["ok"]:
        wrong = list(_check_frames(evidence, call, transaction, expected))
        yield from wrong or _check_contents(evidence, sample, transaction, expected, told)
    if sample["xid"] is not None and transaction.op_id not in (None, sample["xid"]):
        rows = [row for row, _ in transaction.frames[False]]
        yield call, "mbcf.op_id", str(sample["xid"]), str(transaction.op_id), rows
    yield from check_executed(evidence.channels, sample, transaction)
    yield from check_in_time(evidence, sample, transaction, asks and not expected.back)


def _check_frames(evidence: Evidence, call: int, transaction: Transaction, expected: Exchange) -> Iterator[Finding]:
    for name, frames, part in (
        ("mbcf.operation", expected.there, transaction.frames[False]),
        ("mbcf.result", expected.back, transaction.frames[True]),
    ):  # fmt: skip
        # An error is reported by its status.
        left = [one for one in part if one[0] not in evidence.channels.refused]
        if not same(evidence.channels, left, frames):
            rows = [row for row, _ in part]
            yield call, name, frames_text(frames) or "none", part_text(left) or "none", rows


def _check_contents(
    evidence: Evidence, sample: Mapping[str, Any], transaction: Transaction, expected: Exchange, told: Carried | None
) -> Iterator[Finding]:
    refused = evidence.channels.refused
    sent, back = ([one for one in transaction.frames[way] if one[0] not in refused] for way in (False, True))
    procedure, carried = sample["procedure"], evidence.carried
    problems = chain(
        check_contents(carried, procedure, sample["size"], sample["call"], sent, back, expected),
        check_places(carried, procedure, sent, expected, told),
    )
    yield from ((sample["id"], *problem) for problem in problems)


def _refused(transaction: Transaction) -> bool:
    """For want of a place: it is made again, as another operation of the same call."""
    return any(status in (STATUS_FULL, STATUS_BUSY) for _, status in transaction.failed)


def _asked(samples: pl.DataFrame, line: Mapping[str, Any]) -> list[bool]:
    """Which operations of a batch wait for their ACK: all, or of a stream the last, and before a queue may be full."""
    if line.get("ack"):
        return [True] * samples.height
    asks, unacked = [], 0
    for procedure, size in samples.select("procedure", "size").iter_rows():
        unacked += 2 * (_RECORD_HEADS + size)
        asks.append(procedure != "write" and unacked >= STREAM_UNACKED)
        unacked = 0 if asks[-1] else unacked
    return [*asks[:-1], True]


def _operation(procedure: str) -> Operation:
    return procedure  # type: ignore[return-value]  # checked by expect_operation

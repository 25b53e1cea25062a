# SPDX-License-Identifier: Apache-2.0
"""Operations against samples, by order: those of a stream have no names."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.verify.findings import Finding
from sundial.workloads.mbcf.expect import Exchange, Operation, expect_operation
from sundial.workloads.mbcf.verify_contents import check_contents
from sundial.workloads.mbcf.verify_evidence import (
    Due,
    Evidence,
    Judgement,
    MbcfProtocol,
    check_executed,
    check_frame,
    check_in_time,
    check_server,
    frames_text,
    observed_row,
    part_text,
    same,
)
from sundial.workloads.mbcf.verify_target import (
    TARGET,
    Place,
    asks_counts,
    check_counts,
    check_open,
    check_reported,
    place_of,
    question,
)
from sundial.workloads.mbcf.verify_transactions import Meaning, Transaction
from sundial.workloads.mbcf.wire import OPERATIONS, PAYLOAD, STATUS_BUSY, STATUS_FULL, TASKQUE

TRANSPORT = "mbcf"
"""Of samples that are operations."""
STREAM_UNACKED = 524288 // 4
"""Bytes of records after which mbcf-client asks in a stream whether all was taken (tasks/mbcf-client.c)."""
_RECORD_HEADS = 16 + 40
_ARGUMENTS = 1
"""Of mbcf-client's SIGNALs: the number of the call."""

_ALWAYS = {"semantics": "exactly_once", "depth": 1}
"""Of each batch."""

Queues = Mapping[tuple[int, int, int, int], deque[Transaction]]
"""Operations in order, by node, task, the other task, and what they are; what is judged leaves them."""


class _Operations:
    def speaks(self, transport: str) -> bool:
        return transport == TRANSPORT

    def meaning(self, operation: int, data: str) -> Meaning | None:
        return question(data) if operation == TASKQUE else None

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        queues: dict[tuple[int, int, int, int], deque[Transaction]] = {}
        for transaction in evidence.of_kind("operation"):
            # One that was refused for want of a place is made again, as another operation of the same call.
            if _refused(transaction):
                judgement.attribute(transaction, None)
            else:
                key = (transaction.node, transaction.task, transaction.peer_task, transaction.op or 0)
                queues.setdefault(key, deque()).append(transaction)
        questions: dict[tuple[int, int], deque[Transaction]] = {}
        for transaction in evidence.of_kind("setup"):
            if transaction.about == TARGET:
                questions.setdefault((transaction.node, transaction.task), deque()).append(transaction)
        places: dict[tuple[int, int], Place] = {}
        samples = evidence.samples.filter(pl.col("transport") == TRANSPORT)
        for (client, batch), part in samples.group_by("client", "batch", maintain_order=True):
            line = evidence.batches.get((str(client), batch), {})
            task = (evidence.nodes.get(str(client), 0), int(line.get("client_task") or 0))
            judged = _Batch(evidence, judgement, part.sort("call"), line, task, queues)
            judgement.findings += judged.judge(questions.get(task, deque()), places)
        judgement.findings += check_reported(evidence)
        return judgement

    def display_filter(self, xid: int) -> str:
        return f"mbcf.op_id == {xid}"


KIND: MbcfProtocol = _Operations()
UNPROVEN: tuple[str, ...] = ("MBCF: how long mbcf-client waits for what it reads back behind its writes",)


@dataclass
class _Batch:
    """One batch of samples against the operations of its task: those after the batch before, and since it began."""

    evidence: Evidence
    judgement: Judgement
    samples: pl.DataFrame
    line: Mapping[str, Any]
    client: tuple[int, int]
    queues: Queues
    place: Place | None = None

    def judge(self, questions: deque[Transaction], places: dict[tuple[int, int], Place]) -> Iterator[Finding]:
        """What its task did, in that order; `questions` are its."""
        procedure, size = str(self.samples["procedure"][0]), int(self.samples["size"][0])
        start = int(self.samples["start_ns"].min())  # type: ignore[arg-type]
        yield from check_server(self.evidence, self.samples.row(0, named=True), self.line)
        for field, due in _ALWAYS.items():
            if self.line.get(field, due) != due:
                yield Finding(self.samples["id"][0], f"samples.{field}", str(due), str(self.line[field]))
        opening = questions.popleft() if questions else None
        if opening is not None:
            self.judgement.attribute(opening, None)
            yield from check_open(self.evidence, opening, places)
            self.place = place_of(self.evidence, opening)
        if procedure == "read" and size:  # something to be read
            yield from self.beside("write", size, 0, questions)
        queue = self.queue(procedure)
        # Under the real clock a guest's time is not the captures'.
        while self.evidence.exact and queue and queue[0].began_ns < start:
            queue.popleft()
        for sample, asks in zip(self.samples.iter_rows(named=True), _asked(self.samples, self.line), strict=True):
            yield from self.call(sample, queue.popleft() if queue else None, asks)
        if questions and asks_counts(self.evidence, questions[0]):
            counting = questions.popleft()
            self.judgement.attribute(counting, None)
            yield from check_counts(self.evidence, counting, self.samples)
        if procedure == "write":
            yield from self.beside("read", size, self.samples.height - 1, questions)

    def queue(self, procedure: str) -> deque[Transaction]:
        """Operations of one kind between its task and the server's."""
        operation = next((number for number, name in OPERATIONS.items() if name == procedure.upper()), 0)
        return self.queues.get((*self.client, int(self.line.get("server_task") or 0), operation), deque())

    def beside(self, procedure: str, size: int, number: int, questions: deque[Transaction]) -> Iterator[Finding]:
        """An operation without a sample: what is to be read is written first, and what was written without a failure is
        read back, unless the server did not answer how much that was. It comes before the next of `questions`."""
        queue, right = self.queue(procedure), self.samples["ok"].all()
        asked = bool(queue and questions) and questions[0].began_ns < queue[0].began_ns
        if not queue or asked or (procedure == "read" and not right):
            return
        transaction = queue.popleft()
        self.judgement.attribute(transaction, None)
        if not right:
            return
        expected = expect_operation(_operation(procedure), size, procedure == "write")
        back = transaction.frames[True]
        if procedure == "read" and sum(row in self.evidence.channels.received for row, _ in back) < len(expected.back):
            # It has failed, which no sample says: what was asked and answered is a beginning.
            there = expected.there[: len(transaction.frames[False])]
            expected = Exchange(there, expected.back[: len(back)])
        wrong = list(_check_frames(self.evidence, None, transaction, expected))
        yield from wrong or self.contents(None, procedure, size, number, transaction, expected)

    def call(self, sample: Mapping[str, Any], transaction: Transaction | None, asks: bool) -> Iterator[Finding]:
        """One call against its operation; `asks`: it waits for its ACK."""
        call, procedure, size = sample["id"], sample["procedure"], sample["size"]
        try:
            expected = expect_operation(_operation(procedure), size, asks, _ARGUMENTS)
        except ValueError as error:
            yield Finding(call, "mbcf.request", "an operation that there is", str(error))
            return
        frames = (expected.there, expected.back)
        self.judgement.expected.setdefault((TRANSPORT, procedure, size), frames)
        self.judgement.observed.append(observed_row(self.evidence.channels, sample, transaction, frames))
        if transaction is None:
            if sample["ok"]:
                yield Finding(call, "mbcf.request", frames_text(expected.there), "none")
            return
        self.judgement.attribute(transaction, call)
        if sample["ok"]:
            wrong = list(_check_frames(self.evidence, call, transaction, expected))
            number = 0 if procedure == "read" else sample["call"]  # it was written before the first
            yield from wrong or self.contents(call, procedure, size, number, transaction, expected)
        if sample["retransmits"]:
            yield Finding(call, "mbcf.request.count", "1", str(sample["retransmits"] + 1))
        if sample["xid"] is not None and transaction.op_id not in (None, sample["xid"]):
            rows = [row for row, _ in transaction.frames[False]]
            yield Finding(call, "mbcf.op_id", str(sample["xid"]), str(transaction.op_id), rows)
        yield from check_executed(self.evidence.channels, sample, transaction)
        yield from check_in_time(self.evidence, sample, transaction, asks and not expected.back)

    def contents(
        self, call: int | None, procedure: str, size: int, number: int, transaction: Transaction, expected: Exchange
    ) -> Iterator[Finding]:
        """Data, addresses and keys of an operation whose frames are those expected."""
        refused, carried = self.evidence.channels.refused, self.evidence.carried
        sent, back = ([one for one in transaction.frames[way] if one[0] not in refused] for way in (False, True))
        yield from check_contents(carried, procedure, size, number, sent, back, expected, call)
        if self.place is None:
            return
        address = self.place.of(procedure)
        for (row, _), frame in zip(sent, expected.there, strict=True):
            yield from check_frame(self.evidence, call, row, Due(b"", address, self.place.key))
            if procedure in ("write", "read"):
                address += frame.payload if procedure == "write" else PAYLOAD


def _check_frames(
    evidence: Evidence, call: int | None, transaction: Transaction, expected: Exchange
) -> Iterator[Finding]:
    for name, frames, part in (
        ("mbcf.operation", expected.there, transaction.frames[False]),
        ("mbcf.result", expected.back, transaction.frames[True]),
    ):  # fmt: skip
        # An error is reported by its status.
        left = [one for one in part if one[0] not in evidence.channels.refused]
        if not same(evidence.channels, left, frames):
            rows = [row for row, _ in part]
            yield Finding(call, name, frames_text(frames) or "none", part_text(left) or "none", rows)


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

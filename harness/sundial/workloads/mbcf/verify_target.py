# SPDX-License-Identifier: Apache-2.0
"""What mbcf-client and mbcf-server tell each other (guest-apps/sss-core/tasks/common/mbcf_target.h): before a batch
where the server's memory is, and after it what the server has counted."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from sundial.verify.findings import Finding
from sundial.workloads import reporting
from sundial.workloads.mbcf.verify_evidence import (
    WRITE_ALLOWED,
    Due,
    Evidence,
    check_frame,
    part_text,
    taskque_head,
    taskque_key,
)
from sundial.workloads.mbcf.verify_transactions import Question, Transaction, address
from sundial.workloads.mbcf.wire import TASKQUE_HEAD

PROGRAM, VERSION = 0x20001999, 1
TARGET = "target"
_MAGIC = 0x54424D53
_OPEN, _COUNTS = 1, 2
_QUERY = struct.Struct("<IIQ")
_PLACE = struct.Struct("<5QII")
_COUNTED = struct.Struct("<7QII")
_REPORTED = ("fifo_records", "fifo_bytes", "fifo_wrong", "signals", "signal_bytes", "signal_wrong", "word")
_TEXTS = {_OPEN: _PLACE.size, _COUNTS: _COUNTED.size}


@dataclass(frozen=True)
class Place:
    """Where a server's memory is: its answer to OPEN."""

    key: int
    memory: int
    fifo: int
    handler: int
    word: int

    def of(self, procedure: str) -> int:
        """Where an operation goes to."""
        names = {"write": "memory", "read": "memory", "fifo": "fifo", "signal": "handler"}
        place: int = getattr(self, names.get(procedure, "word"))
        return place


def question(data: str) -> Question | None:
    """What a TASKQUE write (its first data in hexadecimal) asks of a mbcf-server, if anything."""
    return Question(address(data[16:32]), TARGET) if data.startswith(_MAGIC.to_bytes(4, "little").hex()) else None


def place_of(evidence: Evidence, asked: Transaction | None) -> Place | None:
    """What the server has said, as far as it has answered."""
    answer = asked.frames[True] if asked is not None else []
    if not answer or evidence.carried[answer[0][0]].length != _PLACE.size:
        return None
    return Place(*_PLACE.unpack(evidence.payload(answer[0][0]))[:5])


def asks_counts(evidence: Evidence, asked: Transaction) -> bool:
    """Whether it is not OPEN, which begins the next batch."""
    seen = evidence.payload(asked.frames[False][0][0])
    return len(seen) < TASKQUE_HEAD + _QUERY.size or _QUERY.unpack_from(seen, TASKQUE_HEAD)[1] != _OPEN


def check_open(evidence: Evidence, asked: Transaction, places: dict[tuple[int, int], Place]) -> Iterator[Finding]:
    """A server gives every client the same answer. `places`: the first answer of each, by node and task."""
    yield from _check(evidence, asked, _OPEN, b"")
    place = place_of(evidence, asked)
    if place is None:
        return
    first = places.setdefault((asked.peer, asked.peer_task), place)
    due = _PLACE.pack(first.key, first.memory, first.fifo, first.handler, first.word, 1, 0)
    yield from check_frame(evidence, None, asked.frames[True][0][0], Due(due))


def check_counts(evidence: Evidence, asked: Transaction, samples: pl.DataFrame) -> Iterator[Finding]:
    """What a server has counted since it was asked before follows from the samples of the batch where all went well."""
    due = b""
    if samples["ok"].all():
        count, procedure, size = samples.height, str(samples["procedure"][0]), int(samples["size"][0])
        taken = {"fifo": (count, count * size, 0, 0, 0, 0), "signal": (0, 0, 0, count, count * size, 0)}
        word = {"swap": count, "cas": count, "fetch_add": count * (count + 1) // 2}
        due = _COUNTED.pack(*taken.get(procedure, (0,) * 6), word.get(procedure, 0), 1, 0)
    yield from _check(evidence, asked, _COUNTS, due)


def check_reported(evidence: Evidence) -> Iterator[Finding]:
    """The counts that a server writes last are those that it sent to the client that asked last, unless another batch
    has begun behind that: then it counts from 0. A run that ends soon may have the line of an earlier batch."""
    counts: dict[int, tuple[int, ...]] = {}
    before: set[tuple[int, tuple[int, ...]]] = set()
    for asked in evidence.of_kind("setup"):
        answer = asked.frames[True] if asked.about == TARGET else []
        if asked.about == TARGET and not asks_counts(evidence, asked):
            counts.pop(asked.peer, None)
        elif answer and evidence.carried[answer[0][0]].length == _COUNTED.size:
            counts[asked.peer] = _COUNTED.unpack(evidence.payload(answer[0][0]))[: len(_REPORTED)]
            before.add((asked.peer, counts[asked.peer]))
    for name, lines in evidence.records.items():
        written = [line for line in lines if line["type"] == "counters" and line.get("app") == "mbcf-server"]
        node = evidence.nodes.get(name, 0)
        due = counts.get(node)
        last = (node, tuple(written[-1].get(field) for field in _REPORTED)) if written else None
        if written and due is not None and (last not in before or reporting.is_due(evidence.run)):
            for field, count in zip(_REPORTED, due, strict=True):
                if written[-1].get(field) != count:
                    yield Finding(
                        None, f"counted.{field}", str(count), f"{written[-1].get(field)} by {name}'s own count"
                    )


def _check(evidence: Evidence, asked: Transaction, what: int, answer: bytes) -> Iterator[Finding]:
    if asked.failed:
        return
    rows = [row for part in asked.frames.values() for row, _ in part]
    texts = part_text(asked.frames[False]), part_text(asked.frames[True])
    due = f"TASKQUE:{TASKQUE_HEAD + _QUERY.size}", f"WRITE:{_TEXTS[what]}"
    if texts[0].removesuffix("!") != due[0] or texts[1].removesuffix("!") not in (due[1], ""):
        yield Finding(None, "mbcf.setup", " ".join(due), " ".join(texts), rows)
        return
    row = asked.frames[False][0][0]
    seen = evidence.payload(row)
    *_, answer_to = _QUERY.unpack_from(seen, TASKQUE_HEAD)
    begin = taskque_head(seen, WRITE_ALLOWED) + _QUERY.pack(_MAGIC, what, answer_to)
    yield from check_frame(evidence, None, row, Due(begin))
    if texts[1]:
        key = taskque_key(seen)
        tasks = (asked.peer_task, asked.task)
        yield from check_frame(evidence, None, asked.frames[True][0][0], Due(answer, answer_to, key, tasks))

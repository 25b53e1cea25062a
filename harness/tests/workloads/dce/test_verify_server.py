# SPDX-License-Identifier: Apache-2.0
"""A server's side held against C706's rules: what explains each PDU that it sends, and what does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

import pytest

from sundial.workloads.dce.expect_pdu import NO_HINT, Flags, Pdu, Type
from sundial.workloads.dce.verify_replay import Item, Replay
from sundial.workloads.dce.verify_server import EITHER, EXECUTED, Server
from tests.workloads.dce.dialogue import (
    FIRST,
    LAST,
    MS,
    SILENT,
    answer,
    body,
    came,
    fack,
    found,
    pdu,
    question,
    request,
    sent,
    server,
)

SIZE = 8032
NEW = {"boot_time": 0, "activity_hint": NO_HINT}
WHOLE = Flags(0)


def two_fragments() -> list[Item]:
    return [
        came(1, request(0, FIRST, SIZE, **NEW)),
        sent(1.1, fack(0, 0)),
        sent(1.2, question()),
        came(2, request(1, LAST, SIZE)),
        came(3, answer()),
        sent(3.2, pdu(Type.RESPONSE)),
        came(1003, pdu(Type.ACK)),
    ]


def known(*items: Item) -> list[Item]:
    """Behind a call of one PDU that has ended."""
    return [
        came(1, request(0, WHOLE, 8, **NEW)),
        sent(1.1, question()),
        came(2, answer()),
        sent(2.1, pdu(Type.RESPONSE)),
        *items,
    ]


def test_a_call_of_two_fragments_is_explained() -> None:
    assert found(server(), *two_fragments(), end_ms=1100) == []


def test_what_the_server_counts() -> None:
    replay = Replay([server()])
    replay.run(two_fragments(), 1100 * MS)
    least, most = replay.histories[0].tally()
    assert least == most
    assert least == Counter({"fragments": 1, "facks": 1, "who_are_you": 1, "acks": 1, f"{EXECUTED}1": 1})


def test_counts_at_marks_are_kept_where_they_change_and_asked_for_where_they_may() -> None:
    marks = [at * MS for at in range(0, 600_000, 100)]

    class Asked(Replay[Server]):
        at_ns: ClassVar[list[int]] = []

        def counts(self, until_ns: int) -> list[Counter[str]]:
            self.at_ns.append(until_ns)
            return super().counts(until_ns)

    few, each = Asked([server()]), []
    few.run(two_fragments(), 1100 * MS, marks)
    for number, mark in enumerate(marks):
        replay = Replay([server()])
        replay.run([item for item in two_fragments() if item.at_ns <= mark], min(mark, 1100 * MS), [mark])
        if not each or replay.counted[0][1] != each[-1][1]:
            each.append((number, replay.counted[0][1]))
    assert few.counted == each
    assert len(few.counted) > 1
    assert len(few.at_ns) < 50


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        (1, fack(1, 0)),
        (1, fack(0, 1)),
        (1, fack(0, 0, 1)),
        (1, replace(fack(0, 0), activity_hint=NO_HINT)),
        (1, replace(fack(0, 0), flags=Flags.NO_FACK)),
        (2, question(2)),
        (2, replace(question(), flags=Flags(0))),
        (5, pdu(Type.RESPONSE, boot_time=1)),
        (5, pdu(Type.RESPONSE, serial=1)),
        (5, pdu(Type.RESPONSE, body=b"more")),
        (5, pdu(Type.RESPONSE, little_endian=False)),
    ],
)
def test_each_answer_says_what_is_so(place: int, wrong: Pdu) -> None:
    items = two_fragments()
    assert found(server(), *items[:place], sent(items[place].at_ns / MS, wrong), *items[place + 1 :], end_ms=1100)


@pytest.mark.parametrize("place", [1, 2, 5])
def test_an_answer_that_is_missing(place: int) -> None:
    items = two_fragments()
    findings = found(server(), *items[:place], *items[place + 1 :], end_ms=1100)
    assert findings[0][0] == "sent"


@pytest.mark.parametrize(
    "extra",
    [
        sent(2.5, fack(1, 1)),
        sent(1.15, fack(0, 0)),
        sent(2.6, pdu(Type.WORKING)),
        sent(2.6, pdu(Type.NOCALL)),
        sent(5, pdu(Type.RESPONSE, serial=1)),
        sent(2.9, pdu(Type.RESPONSE)),
    ],
    ids=["of the last fragment", "twice", "working", "nocall", "again", "before who it is was answered"],
)
def test_an_answer_without_a_cause(extra: Item) -> None:
    assert found(server(), *two_fragments(), extra, end_ms=1100)


def test_a_response_goes_again_when_its_time_has_come() -> None:
    again = pdu(Type.RESPONSE, serial=1)
    items = [item for item in two_fragments() if item.at_ns < 1000 * MS]
    ack = came(2100, pdu(Type.ACK))
    assert found(server(), *items, sent(2004, again), ack, end_ms=3000) == []
    assert found(server(), *items, sent(1990, again), ack, end_ms=3000)
    assert found(server(), *items, ack, end_ms=3000) == []
    assert found(server(), *items, came(2900, pdu(Type.ACK)), end_ms=9000) == []
    assert found(server(), *items, end_ms=9000) != []


def test_a_fragment_twice_is_acknowledged_twice() -> None:
    items = two_fragments()
    twice = [*items[:3], came(1.5, request(0, FIRST, SIZE, **NEW)), sent(1.6, fack(0, 0)), *items[3:]]
    assert found(server(), *twice, end_ms=1100) == []
    assert found(server(), *twice[:4], *twice[5:], end_ms=1100)


def test_pings_are_answered_by_the_state() -> None:
    ping = pdu(Type.PING)
    half = two_fragments()[:3]
    assert found(server(), *half, came(2000, ping), sent(2000.1, fack(0, 0, kind=Type.NOCALL))) == []
    assert found(server(), *half, came(2000, ping), sent(2000.1, pdu(Type.WORKING)))
    done = known(came(500, pdu(Type.ACK)), came(600, ping))
    assert found(server(), *done, sent(600.1, pdu(Type.NOCALL))) == []
    kept = known(came(500, ping))
    assert found(server(), *kept, sent(500.1, pdu(Type.RESPONSE, serial=1))) == []
    slow = server()
    slow.work_ns = 3000 * MS
    running = [item for item in known() if item.at_ns < 2.05 * MS]
    working = [came(2002, ping), sent(2002.1, pdu(Type.WORKING))]
    assert found(slow, *running, *working, sent(3003, pdu(Type.RESPONSE))) == []


def test_a_response_before_its_work_is_done() -> None:
    slow = server()
    slow.work_ns = 3000 * MS
    assert found(slow, *known())


def test_an_at_most_once_call_is_not_executed_again() -> None:
    items = known(came(500, pdu(Type.ACK)), came(600, request(0, WHOLE, 8, **NEW)))
    reject = pdu(Type.REJECT, boot_time=0x5A5A, activity_hint=NO_HINT, body=b"\x0b\0\x01\x1c")
    assert found(server(), *items, sent(600.1, reject)) == []
    assert found(server(), *items, sent(600.1, pdu(Type.RESPONSE)))


def test_an_idempotent_call_is_executed_as_often_as_it_comes() -> None:
    ask = request(0, Flags.IDEMPOTENT, 8, **NEW)
    items = [came(1, ask), sent(1.1, pdu(Type.RESPONSE)), came(5, ask), sent(5.1, pdu(Type.RESPONSE))]
    replay = Replay([server()])
    replay.run(items, 100 * MS)
    assert replay.findings == []
    assert replay.histories[0].counts[f"{EXECUTED}1"] == 2


def test_maybe_calls_are_executed_or_dropped_and_never_answered() -> None:
    asks = [came(1 + number, request(0, Flags.MAYBE, 8, sequence=number, **NEW)) for number in range(3)]
    replay = Replay([server()])
    replay.run(asks, 100 * MS)
    assert replay.findings == []
    assert {each.counts[f"{EITHER}1"] for each in replay.histories} == {3}
    assert found(server(), *asks, sent(5, pdu(Type.RESPONSE)))


def responses(size: int) -> list[Pdu]:
    count = -(-size // 4016)
    return [
        pdu(Type.RESPONSE, fragment=number, serial=number, body=body(size, 4016 * number, 4016 * (number + 1)))
        for number in range(count)
    ]


def test_a_response_keeps_within_its_window() -> None:
    """Bursts of 1, 2 and 4: seven fragments, of which the first of each burst's last asks."""
    size = 7 * 4016
    flags = [FIRST, SILENT, FIRST, SILENT, SILENT, SILENT, LAST]
    parts = [replace(part, flags=flag) for part, flag in zip(responses(size), flags, strict=True)]
    ask = request(0, Flags.IDEMPOTENT, 8, **NEW)
    items = [
        came(1, ask),
        sent(1.1, parts[0]),
        came(2, fack(0, 0)),
        *(sent(2.1 + number / 10, part) for number, part in enumerate(parts[1:3])),
        came(3, fack(2, 2)),
        *(sent(3.1 + number / 10, part) for number, part in enumerate(parts[3:])),
        came(500, pdu(Type.ACK)),
    ]
    assert found(server(size=size), *items, end_ms=600) == []
    early = [*items[:3], sent(2.05, parts[1]), sent(2.06, parts[2]), sent(2.07, parts[3]), *items[5:]]
    assert found(server(size=size), *early, end_ms=600)
    unasked = replace(parts[2], flags=SILENT)
    assert found(server(size=size), *items[:4], sent(2.2, unasked), *items[5:], end_ms=600)


def test_histories_that_only_count_otherwise_are_one() -> None:
    one = server()
    other = one.clone()
    other.counts["strays"] = 3
    assert one.joins(other)
    assert (one.counts["strays"], one.spread["strays"]) == (0, 3)
    other.state = "idle"
    assert not one.joins(other)

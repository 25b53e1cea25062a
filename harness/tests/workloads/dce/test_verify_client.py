# SPDX-License-Identifier: Apache-2.0
"""A client's side held against C706's rules: what explains each PDU that it sends, and what does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sundial.workloads.dce.expect_pdu import NO_HINT, NONE_IN_ORDER, Flags, Pdu, Type
from sundial.workloads.dce.verify_client import OK, Call
from sundial.workloads.dce.verify_replay import Item, Replay
from sundial.workloads.dce.verify_stream import NEVER, SUNDIAL, Settings
from tests.workloads.dce.dialogue import (
    FIRST,
    LAST,
    MS,
    PUT,
    SILENT,
    answer,
    body,
    came,
    client,
    fack,
    found,
    pdu,
    question,
    request,
    sent,
)

SIZE = 8032
"""Two fragments."""
NEW = {"boot_time": 0, "activity_hint": NO_HINT}
"""Of a client that has not heard of its server."""
CALL = Call(0, SUNDIAL, PUT, sizes=(SIZE, 0), start_ns=0, begins=True)
SMALL = replace(CALL, sizes=(8, 0))


def two_fragments() -> list[Item]:
    """A put of two fragments, first call of its activity, and its acknowledgement a second later."""
    return [
        sent(1, request(0, FIRST, SIZE, **NEW)),
        came(2, fack(0, 0)),
        sent(2.1, request(1, LAST, SIZE)),
        came(3, question()),
        sent(3.1, answer()),
        came(5, pdu(Type.RESPONSE)),
        sent(1005, pdu(Type.ACK)),
    ]


def with_pdu(items: list[Item], place: int, **fields: object) -> list[Item]:
    """With other fields in the PDU at a place."""
    item = items[place]
    changed = replace(item.pdu, **fields)  # type: ignore[union-attr, arg-type]
    return [*items[:place], sent(item.at_ns / MS, changed), *items[place + 1 :]]


def test_a_call_of_two_fragments_is_explained() -> None:
    assert found(client(CALL), *two_fragments()) == []


def test_what_the_client_counts_and_how_its_call_ended() -> None:
    replay = Replay([client(CALL)])
    replay.run(two_fragments(), NEVER - 1)
    (machine,) = replay.histories
    assert machine.ended == {0: (OK, 5 * MS)}
    assert dict(machine.counts) == {
        "fragments": 2,
        "facks_received": 1,
        "who_are_you": 1,
        "acks": 1,
        "fragments_resent": 0,
    }


@pytest.mark.parametrize(
    ("place", "field", "fields"),
    [
        (0, "activity hint", {"activity_hint": 3}),
        (0, "boot time", {"boot_time": 5}),
        (0, "opnum", {"opnum": 2}),
        (0, "interface version", {"interface_version": 2}),
        (0, "body", {"body": b"\xff" + body(SIZE, 1, 4016)}),
        (0, "length", {"body": body(SIZE, 0, 4008)}),
        (0, "flags1", {"flags": FIRST | Flags.IDEMPOTENT}),
        (2, "serial", {"serial": 2}),
        (2, "activity hint", {"activity_hint": NO_HINT}),
        (4, "body", {"body": bytes(7) + b"\x01"}),
        (6, "authentication", {"auth": 1}),
        (6, "interface hint", {"interface_hint": 0}),
    ],
)
def test_each_field_has_its_value(place: int, field: str, fields: dict[str, object]) -> None:
    names = [name for name, _, _ in found(client(CALL), *with_pdu(two_fragments(), place, **fields))]
    assert names == [field]


@pytest.mark.parametrize(
    "extra",
    [
        sent(4, pdu(Type.PING)),
        sent(6, pdu(Type.ACK)),
        sent(4, request(1, LAST, SIZE, serial=2)),
        sent(6, pdu(Type.FACK)),
        sent(1.5, request(1, LAST, SIZE, **NEW)),
        sent(1006, pdu(Type.ACK)),
    ],
    ids=["a ping before its time", "an ack before its time", "a fragment again", "a fack for nothing",
         "a fragment before its fack", "another ack"],
)  # fmt: skip
def test_a_pdu_without_a_cause(extra: Item) -> None:
    assert found(client(CALL), *two_fragments(), extra)


@pytest.mark.parametrize("place", [0, 2, 4, 6])
def test_a_pdu_that_is_missing(place: int) -> None:
    items = two_fragments()
    findings = found(client(CALL), *items[:place], *items[place + 1 :])
    assert next(name for name, _, _ in findings) == "sent"


def test_the_ack_waits_for_its_delay() -> None:
    *items, ack = two_fragments()
    assert found(client(CALL), *items, sent(1004, ack.pdu))  # type: ignore[union-attr]
    assert found(client(CALL), *items, sent(1009, ack.pdu)) == []  # type: ignore[union-attr]


def test_the_next_call_is_the_acknowledgement() -> None:
    calls = [replace(SMALL, settles=False), replace(SMALL, sequence=1, start_ns=4 * MS, begins=False)]
    whole = Flags(0)
    items = [
        sent(1, request(0, whole, 8, **NEW)),
        came(3, pdu(Type.RESPONSE)),
        sent(5, request(0, whole, 8, sequence=1)),
        came(6, pdu(Type.RESPONSE, sequence=1)),
        sent(1006, pdu(Type.ACK, sequence=1)),
    ]
    assert found(client(*calls), *items) == []
    assert found(client(*calls), *items, sent(1003.5, pdu(Type.ACK)))


def test_pings_come_at_two_six_and_fourteen_seconds() -> None:
    ping = pdu(Type.PING, **NEW)
    start = sent(1, request(0, Flags(0), 8, **NEW))
    end = [came(14_500, pdu(Type.RESPONSE)), sent(15_500, pdu(Type.ACK))]
    in_time = [sent(2002, ping), sent(6003, ping), sent(14_004, ping)]
    assert found(client(SMALL), start, *in_time, *end) == []
    assert found(client(SMALL), start, sent(1900, ping), *in_time, *end)
    assert found(client(SMALL), start, *in_time[1:], *end)


def test_working_puts_the_next_ping_off() -> None:
    start = sent(1, request(0, Flags(0), 8, **NEW))
    ping = pdu(Type.PING, **NEW)
    later = pdu(Type.PING)
    items = [start, sent(2002, ping), came(2100, pdu(Type.WORKING)), sent(5101, later), came(5200, pdu(Type.RESPONSE))]
    ack = sent(6200, pdu(Type.ACK))
    assert found(client(SMALL), *items, ack) == []
    assert found(client(SMALL), *items[:3], sent(4100, later), *items[4:], ack)


def test_a_nocall_names_what_is_lost() -> None:
    """The second fragment was lost: nothing asks for it until a ping is answered."""
    ping = pdu(Type.PING)
    items = [
        *two_fragments()[:3],
        sent(2003, ping),
        came(2010, fack(0, 0, kind=Type.NOCALL)),
        sent(2011, request(1, LAST, SIZE, serial=2)),
        came(2015, pdu(Type.RESPONSE)),
        sent(3015, pdu(Type.ACK)),
    ]
    assert found(client(CALL), *items) == []
    assert found(client(CALL), *items[:4], came(2010, fack(1, 1, kind=Type.NOCALL)), *items[5:])


def test_a_nocall_without_a_body_asks_for_all() -> None:
    items = [
        sent(1, request(0, Flags(0), 8, **NEW)),
        sent(2002, pdu(Type.PING, **NEW)),
        came(2010, pdu(Type.NOCALL)),
        sent(2011, request(0, Flags(0), 8, serial=1)),
        came(2015, pdu(Type.RESPONSE)),
        sent(3015, pdu(Type.ACK)),
    ]
    assert found(client(SMALL), *items) == []


def test_a_selack_says_what_goes_again() -> None:
    """Four fragments: of the burst of 2 the first is lost; the second asks, and its fack leaves the first out."""
    size = 16_064
    call = replace(CALL, sizes=(size, 0))
    items = [
        sent(1, request(0, FIRST, size, **NEW)),
        came(2, fack(0, 0)),
        sent(2.1, request(1, SILENT, size)),
        sent(2.2, request(2, FIRST, size)),
        came(3, fack(0, 2, 0b10)),
        sent(3.1, request(1, FIRST, size, serial=3)),
        came(4, fack(2, 3)),
        sent(4.1, request(3, LAST, size, serial=4)),
        came(5, pdu(Type.RESPONSE)),
        sent(1005, pdu(Type.ACK)),
    ]
    assert found(client(call), *items) == []
    again = [*items[:5], sent(3.1, request(2, FIRST, size, serial=3)), *items[6:]]
    assert found(client(call), *again)
    more = [*items[:3], sent(2.15, request(2, SILENT, size)), sent(2.2, request(3, LAST, size)), *items[4:]]
    assert found(client(call), *more)


def test_the_resend_timer_sends_the_oldest_alone_and_doubles() -> None:
    again = [request(0, FIRST, SIZE, serial=number, **NEW) for number in (1, 2)]
    items = [
        sent(1, request(0, FIRST, SIZE, **NEW)),
        sent(2002, again[0]),
        sent(6003, again[1]),
        came(6010, fack(0, 2)),
        sent(6011, request(1, LAST, SIZE, serial=3)),
        came(6020, pdu(Type.RESPONSE)),
        sent(7020, pdu(Type.ACK)),
    ]
    assert found(client(CALL), *items) == []
    assert found(client(CALL), items[0], sent(1900, again[0]), *items[2:])
    assert found(client(CALL), items[0], items[1], sent(4100, again[1]), *items[3:])


def test_a_call_that_nothing_answers_ends() -> None:
    replay = Replay([client(SMALL, settings=Settings(give_up_ns=5000 * MS))])
    items = [sent(1, request(0, Flags(0), 8, **NEW)), sent(2001, pdu(Type.PING, **NEW))]
    replay.run(items, NEVER - 1)
    assert replay.findings == []
    assert replay.histories[0].ended == {0: ("no answer", 5000 * MS)}


def test_facks_of_a_response() -> None:
    """Responses are acknowledged as requests are: what asks while it is incomplete, with what is there."""
    get = replace(SMALL, opnum=1000, sizes=(0, 12_048))
    ask = pdu(Type.REQUEST, opnum=1000, **NEW)

    def response(number: int, flags: Flags) -> Pdu:
        return pdu(Type.RESPONSE, opnum=1000, fragment=number, serial=number, flags=flags)

    def told(number: int, serial: int, *words: int) -> Pdu:
        return replace(fack(number, serial, *words), opnum=1000)

    items = [
        sent(1, ask),
        came(2, response(1, FIRST)),
        sent(2.1, told(NONE_IN_ORDER, 1, 0b10)),
        came(3, response(0, FIRST)),
        sent(3.1, told(1, 0)),
        came(4, response(2, LAST)),
        sent(1004, replace(pdu(Type.ACK), opnum=1000)),
    ]
    assert found(client(get), *items) == []
    for wrong in (told(0, 0), told(1, 1), told(1, 0, 1)):
        assert found(client(get), *items[:4], sent(3.1, wrong), *items[5:])
    assert found(client(get), *items[:4], *items[5:])
    assert found(client(get), *items, sent(4.1, told(2, 2)))


def test_no_ack_for_an_idempotent_call_and_none_after_maybe() -> None:
    for flags, items in (
        (Flags.IDEMPOTENT, [came(3, pdu(Type.RESPONSE))]),
        (Flags.MAYBE, []),
        (Flags.BROADCAST | Flags.IDEMPOTENT, [came(3, pdu(Type.RESPONSE))]),
    ):
        call = replace(SMALL, semantics=flags)
        ask = sent(1, request(0, flags, 8, **NEW))
        assert found(client(call), ask, *items) == []
        assert found(client(call), ask, *items, sent(1003, pdu(Type.ACK)))


def test_an_idempotent_call_in_fragments_goes_at_most_once() -> None:
    call = replace(CALL, semantics=Flags.IDEMPOTENT)
    assert found(client(call), *two_fragments()) == []


def test_a_cancel_comes_after_its_time_and_each_second() -> None:
    settings = Settings(cancel_ns=1200 * MS)
    number = b"\0\0\0\0\x01\0\0\0"
    cancel = pdu(Type.CL_CANCEL, body=number, **NEW)
    items = [
        sent(1, request(0, Flags(0), 8, **NEW)),
        sent(1201, cancel),
        sent(2001, pdu(Type.PING, **NEW)),
        sent(2202, cancel),
        came(2210, pdu(Type.CANCEL_ACK, body=number + b"\x01")),
        came(2300, pdu(Type.FAULT, body=b"\x0d\0\0\x1c")),
        sent(3300, pdu(Type.ACK)),
    ]
    assert found(client(SMALL, settings=settings), *items) == []
    assert found(client(SMALL, settings=settings), items[0], sent(1100, cancel), *items[2:])


def test_who_are_you_is_answered_by_who_is_in_the_call() -> None:
    items = two_fragments()
    late = [*items[:6], came(500, question(2)), sent(500.1, replace(answer(0, 0x1C01000A), sequence=2)), items[6]]
    assert found(client(CALL), *late) == []
    wrong = [*items[:6], came(500, question(2)), sent(500.1, replace(answer(0, 0), sequence=2)), items[6]]
    assert [name for name, _, _ in found(client(CALL), *wrong)] == ["body"]

# SPDX-License-Identifier: Apache-2.0
"""All activities of a server: which place each gets, which one loses it, how many there are; the threads that they
share."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from sundial.judge.replay import LATE_NS, Item, Replay
from sundial.workloads.dce.expect import TABLE_BYTES
from sundial.workloads.dce.expect_pdu import Fack, Flags, Pdu, Type
from sundial.workloads.dce.verify_executors import Executors, replay_together
from sundial.workloads.dce.verify_names import Service
from sundial.workloads.dce.verify_places import Party, Table
from sundial.workloads.dce.verify_server import TOO_BUSY, Server
from sundial.workloads.dce.verify_stream import FACK_VERSION, MOST_TSDU, Settings, fack_body
from tests.workloads.dce.dialogue import BOOT, MS, answer, came, pdu, question, sent

Heard = tuple[str, Item]
"""What the server heard of an activity, or said to it."""
UNREAD_NS = 250 * MS


def asked(
    who: str, at_ms: float, kind: Type = Type.REQUEST, flags: Flags = Flags.IDEMPOTENT, sequence: int = 0
) -> Heard:
    return who, came(at_ms, _own(who, kind, flags=flags, boot_time=0, activity_hint=0xFFFF, sequence=sequence))


def said(who: str, at_ms: float, hint: int, kind: Type = Type.RESPONSE, **fields: object) -> Heard:
    return who, sent(at_ms, _own(who, kind, activity_hint=hint, **fields))


def _own(who: str, kind: Type, **fields: object) -> Pdu:
    return replace(pdu(kind, **fields), activity=_uuid(who))


def _uuid(who: str) -> UUID:
    return UUID(int=ord(who))


def _conv(place: int) -> UUID:
    return UUID(int=0xC0000 + place)


def calls(who: str, at_ms: float, hint: int) -> list[Heard]:
    """An idempotent call, after which its activity is idle."""
    return [asked(who, at_ms), said(who, at_ms + 1, hint)]


def call_once(who: str, at_ms: float, hint: int, serial: int) -> list[Heard]:
    """A call that is executed once; `serial`: of the question that comes before."""
    about = replace(question(serial), activity=_conv(hint), body=_uuid(who).bytes_le + struct.pack("<I", BOOT))
    answered = replace(answer(), activity=_conv(hint), sequence=serial)
    return [
        asked(who, at_ms, flags=Flags(0)),
        (who, sent(at_ms + 1, about)),
        (who, came(at_ms + 2, answered)),
        said(who, at_ms + 3, hint),
        asked(who, at_ms + 4, Type.ACK, Flags(0)),
    ]


def rejected(who: str, at_ms: float) -> list[Heard]:
    body = struct.pack("<I", TOO_BUSY)
    return [asked(who, at_ms), said(who, at_ms + 1, 0xFFFF, Type.REJECT, body=body)]


def found(*heard: Sequence[Heard], places: int = 2, work_ms: int = 0, executors: int = 8) -> list[tuple[str, str, str]]:
    """What the replay of all activities finds: field, expected, seen."""
    items: dict[str, list[Item]] = defaultdict(list)
    for who, item in (each for part in heard for each in part):
        items[who].append(item)
    last = max(item.at_ns for own in items.values() for item in own)
    table = Table(places, UNREAD_NS, _conv)
    waits = work_ms > 0
    parties = [
        Party(
            Replay([Server(Settings(), activity=_uuid(who), boot_time=BOOT, work_ns=work_ms * MS, waits=waits)]),
            sorted(own, key=lambda item: item.at_ns),
            table,
        )
        for who, own in items.items()
    ]
    replay_together(parties, Executors(executors, LATE_NS) if waits else None, BOOT, last)
    return [finding[1:4] for party in parties for finding in party.replay.findings]


TWO = [*calls("a", 0, 0), *calls("b", 1000, 1)]


def test_new_activities_get_the_next_places() -> None:
    assert found(TWO) == []
    assert found(calls("a", 0, 0), calls("b", 1000, 0)) != []


@pytest.mark.parametrize(("hint", "right"), [(0, True), (1, False), (2, False)])
def test_activity_idle_for_longest_loses_its_place(hint: int, right: bool) -> None:
    assert (found(TWO, calls("c", 2000, hint)) == []) == right


def test_activity_that_called_again_keeps_its_place() -> None:
    again = [asked("a", 1500, sequence=1), said("a", 1501, 0, sequence=1)]
    assert found(TWO, again, calls("c", 2000, 1)) == []
    assert found(TWO, again, calls("c", 2000, 0)) != []


def test_hint_decides_between_activities_that_became_idle_together() -> None:
    together = [*calls("a", 0, 0), *calls("b", 100, 1)]
    for hint in (0, 1):
        assert found(together, calls("c", 2000, hint), calls("d", 3000, 1 - hint)) == []


def test_activity_without_its_place_is_unknown() -> None:
    lost = [*TWO, *calls("c", 2000, 0)]
    ping = asked("a", 2500, Type.PING, Flags(0))
    assert found(lost, [ping, said("a", 2501, 0xFFFF, Type.NOCALL)]) == []
    # Its request is executed once more, at another place.
    assert found(lost, [asked("a", 2500), said("a", 2501, 1)]) == []
    assert found(lost, [asked("a", 2500), said("a", 2501, 0)]) != []


def test_questions_count_on_in_their_place() -> None:
    two = [*call_once("a", 0, 0, 1), *call_once("b", 1000, 1, 1)]
    assert found(two, call_once("c", 2000, 0, 2), call_once("d", 3000, 1, 2), call_once("a", 4000, 0, 3)) == []
    assert found(two, call_once("c", 2000, 0, 1)) != []
    assert found(two, call_once("c", 2000, 0, 3)) != []


def test_place_that_is_free_again_comes_first() -> None:
    assert found(TWO, calls("c", 400_000, 0), places=8) == []
    assert found(TWO, calls("c", 400_000, 2), places=8) != []
    assert found(TWO, calls("c", 200_000, 2), places=8) == []
    assert found(TWO, calls("c", 200_000, 0), places=8) != []


def test_request_is_rejected_while_all_are_in_calls() -> None:
    busy = [asked("a", 0), said("a", 3000, 0), asked("b", 1, sequence=0), said("b", 3001, 1)]
    assert found(busy, rejected("c", 10), work_ms=2900) == []
    assert found(busy, calls("c", 10, 0), work_ms=2900) != []
    assert found(TWO, rejected("c", 2000)) != []
    assert found(busy, rejected("c", 10), places=3, work_ms=2900) != []


def test_place_of_what_is_never_answered_is_open_until_another_names_it() -> None:
    """Three maybe calls in two places: the third has that of one of the others."""
    silent = [asked(who, at, flags=Flags.MAYBE) for who, at in (("a", 0), ("b", 10), ("c", 1000))]
    for hint in (0, 1):
        assert found(silent, calls("d", 2000, hint)) == []


def test_half_a_request_holds_its_place() -> None:
    half = [("a", came(0, replace(_own("a", Type.REQUEST, flags=Flags.IDEMPOTENT | Flags.FRAGMENT | Flags.NO_FACK))))]
    assert found(half, calls("b", 1000, 1), calls("c", 2000, 1)) == []
    assert found(half, calls("b", 1000, 1), calls("c", 2000, 0)) != []


@pytest.mark.parametrize(
    ("options", "places"),
    [
        ({"interface_sizes": [24_096]}, 59),
        ({"interface_sizes": [0, 64_256, 4016]}, 35),
        ({"interface_sizes": [196_608]}, 15),
        ({"interface_sizes": [0], "fragment_bytes": 8192}, 96),
        ({"interface_sizes": [0], "fragment_bytes": 2040}, 52),
        ({"interface": "functions"}, 85),
    ],
)
def test_places_that_the_memory_of_sss_core_holds(options: dict[str, object], places: int) -> None:
    """guest-apps/sss-core/README.md; guest-apps/dce/tests/order_test.c has the bytes of a place."""
    service = Service("server", ("10.0.0.2",), "dce-server", {"port": 1027, "mapper_port": 135, **options})
    assert service.places(1027, TABLE_BYTES) == places
    assert service.places(1027, None) == 128
    assert service.places(135, TABLE_BYTES) == service.places(135, None) == 16


# ---- executors ----


def worked(who: str, at_ms: float, end_ms: float, hint: int) -> list[Heard]:
    """An idempotent call whose procedure ends late; a ping is answered with working."""
    ping, working = Type.PING, Type.WORKING
    asks = asked(who, at_ms + 1000, ping, Flags(0))
    return [asked(who, at_ms), asks, said(who, at_ms + 1001, 0xFFFF, working), said(who, end_ms, hint)]


def one_thread(*ends_ms: float) -> list[Heard]:
    """Calls that come together and end one after another."""
    return [each for i, end_ms in enumerate(ends_ms) for each in worked("abcdefgh"[i], i, end_ms, i)]


def test_calls_wait_for_a_thread_in_the_order_of_their_arrival() -> None:
    each = one_thread(3001, 6002, 9010, 12_015)
    assert found(each, places=8, work_ms=3000, executors=1) == []
    assert found(each, places=8, work_ms=3000, executors=8) != []
    assert found(one_thread(3001, 6002, 12_015, 9010), places=8, work_ms=3000, executors=1) != []


def test_call_that_ends_before_a_thread_can_have_run_it() -> None:
    assert found(one_thread(3001, 3002), places=8, work_ms=3000, executors=2) == []
    assert found(one_thread(3001, 3002), places=8, work_ms=3000, executors=1) != []
    assert found(one_thread(3001, 3002, 6002), places=8, work_ms=3000, executors=2) == []
    assert found(one_thread(3001, 3002, 5990), places=8, work_ms=3000, executors=2) != []


def test_call_that_waits_for_a_thread_must_be_answered() -> None:
    half = [each for each in one_thread(3001, 6002) if each[1].at_ns < 6000 * MS]
    missing = found(half, [asked("c", 20_000), said("c", 23_001, 2)], places=8, work_ms=3000, executors=1)
    assert missing == [("sent", "response of call 0, fragment 0, serial 0", "nothing")]


def test_cancelled_call_gives_its_thread_to_the_next() -> None:
    cancel = struct.pack("<II", 0, 1)
    asks = ("a", came(1000, _own("a", Type.CL_CANCEL, activity_hint=0xFFFF, boot_time=0, body=cancel)))
    acks = ("a", sent(1001, _own("a", Type.CANCEL_ACK, activity_hint=0xFFFF, body=cancel + b"\x01")))
    fault = {"kind": Type.FAULT, "flags2": 2, "body": struct.pack("<I", 0x1C00000D)}
    first = [asked("a", 0), asks, acks, said("a", 1005, 0, **fault)]  # type: ignore[arg-type]
    second = [asked("b", 1), said("b", 4010, 1)]
    assert found(first, second, work_ms=3000, executors=1) == []
    assert found(first, [asked("b", 1), said("b", 3990, 1)], work_ms=3000, executors=1) != []


def test_cancelled_broadcast_gives_its_thread_to_the_next_without_an_answer() -> None:
    cancel = struct.pack("<II", 0, 1)
    asks = ("a", came(1000, _own("a", Type.CL_CANCEL, activity_hint=0xFFFF, boot_time=0, body=cancel)))
    acks = ("a", sent(1001, _own("a", Type.CANCEL_ACK, activity_hint=0xFFFF, body=cancel + b"\x01")))
    first = [asked("a", 0, flags=Flags.BROADCAST | Flags.IDEMPOTENT), asks, acks]
    assert found(first, [asked("b", 1), said("b", 4010, 1)], work_ms=3000, executors=1) == []
    assert found(first, [asked("b", 1), said("b", 3990, 1)], work_ms=3000, executors=1) != []
    assert found(first[:1], [asked("b", 1), said("b", 4010, 1)], work_ms=3000, executors=1) != []


def test_maybe_calls_of_an_activity_have_one_thread() -> None:
    """The server drops those that come while the first one runs."""
    maybe = [asked("a", at_ms, flags=Flags.MAYBE, sequence=at_ms) for at_ms in range(3)]
    assert found(maybe, worked("b", 10, 3011, 1), work_ms=3000, executors=2) == []
    assert found(maybe, worked("b", 10, 3005, 1), work_ms=3000, executors=2) != []
    assert found(maybe, worked("b", 10, 6010, 1), work_ms=3000, executors=1) == []
    assert found(maybe, worked("b", 10, 3011, 1), work_ms=3000, executors=1) != []
    # The next one comes when the first is over, and has the thread again.
    again = asked("a", 3500, flags=Flags.MAYBE, sequence=9)
    assert found(maybe, [again], worked("b", 3600, 9510, 1), work_ms=3000, executors=1) == []
    assert found(maybe, [again], worked("b", 3600, 6700, 1), work_ms=3000, executors=1) != []


def half(at_ms: float, number: int, sequence: int) -> list[Heard]:
    """A fragment of a maybe call of two; the first is acknowledged."""
    flags = Flags.MAYBE | Flags.FRAGMENT | (Flags.LAST_FRAGMENT | Flags.NO_FACK if number else Flags(0))
    plain = _own("a", Type.REQUEST, flags=flags, sequence=sequence, fragment=number)
    body = fack_body(Fack(FACK_VERSION, 32, MOST_TSDU, 4096, number, ()), "<")
    fack = said("a", at_ms + 1, 0, Type.FACK, sequence=sequence, fragment=number, body=body)
    return [("a", came(at_ms, replace(plain, serial=number))), *([] if number else [fack])]


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_call_that_was_cancelled_before_it_was_whole_ends_at_once(is_cancelled: bool) -> None:
    body = struct.pack("<II", 0, 1)
    cancel = ("a", came(500, _own("a", Type.CL_CANCEL, activity_hint=0xFFFF, body=body)))
    acks = ("a", sent(501, _own("a", Type.CANCEL_ACK, activity_hint=0xFFFF, body=body + b"\x01")))
    call = [*half(0, 0, 0), *([cancel, acks] if is_cancelled else []), *half(1000, 1, 0)]
    # The next call is taken, and its fragment acknowledged; so is the thread by another activity.
    assert (found(call, half(1020, 0, 1), work_ms=3000, executors=1) == []) == is_cancelled
    assert (found(call, worked("b", 1010, 4020, 1), work_ms=3000, executors=1) == []) == is_cancelled


def test_request_that_came_long_before_the_end_of_a_run_was_not_read_behind_it() -> None:
    """Its run ends at 3 s; what comes at 2.9 s may have waited for 0.1 s."""
    for at_ms, sequences in ((2000, {0}), (2900, {0, 1})):
        machine = Server(Settings(), activity=_uuid("a"), boot_time=BOOT, work_ns=3000 * MS)
        party = Party(Replay([machine]), [], Table(2, UNREAD_NS, _conv))
        for _, item in (asked("a", 0), asked("a", at_ms, sequence=1)):
            party.feed(item)
        assert {each.sequence for each in party.leaves(4000 * MS)} == sequences

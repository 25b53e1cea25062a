# SPDX-License-Identifier: Apache-2.0
"""What a port cannot tell about a client: what it did in one turn, and when its call began."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sundial.judge.replay import Item, Replay
from sundial.workloads.dce.expect_pdu import Fack, Flags, Pdu, Type
from sundial.workloads.dce.verify_client import Call, Client
from sundial.workloads.dce.verify_datagrams import Datagram
from sundial.workloads.dce.verify_names import Activity
from sundial.workloads.dce.verify_sides import REAL_EARLY_NS, Sides, clients_of
from sundial.workloads.dce.verify_stream import FACK_VERSION, MOST_TSDU, SUNDIAL, Settings, fack_body, payload
from tests.workloads.dce.dialogue import ACTIVITY, MS, came, found, pdu, sent

SIZE, BODY, CANCEL_MS = 4016 * 3, 4016, 100


def calling() -> Client:
    settings = replace(Settings(), cancel_ns=CANCEL_MS * MS)
    return Client(settings, activity=ACTIVITY, calls=[Call(0, SUNDIAL, 1, sizes=(SIZE, 0), start_ns=0)])


def fragment(
    number: int, *, serial: int | None = None, new: bool = False, last: bool = False, asks: bool = True
) -> Pdu:
    flags = Flags.FRAGMENT | (Flags.LAST_FRAGMENT if last else Flags(0)) | (Flags(0) if asks else Flags.NO_FACK)
    body = payload(0, SIZE)[number * BODY : (number + 1) * BODY]
    own = pdu(Type.REQUEST, flags=flags, fragment=number, serial=number if serial is None else serial, body=body)
    return replace(own, boot_time=0, activity_hint=0xFFFF) if new else own


FACK = pdu(Type.FACK, body=fack_body(Fack(FACK_VERSION, 32, MOST_TSDU, 4096, 0, ()), "<"))
CANCEL = pdu(Type.CL_CANCEL, body=bytes((0, 0, 0, 0, 1, 0, 0, 0)))
FAULT = pdu(Type.FAULT, body=bytes((0x0D, 0, 0, 0x1C)))
REST = [fragment(1, asks=False), fragment(2, last=True, asks=False)]


@pytest.mark.parametrize(
    ("fack_ms", "cancel_ms", "rest_ms", "right"),
    [
        (50, 100, 51, True),
        (150, 100, 151, True),
        (99, 101, 102, True),  # both are due when it wakes up, and the cancel goes first
        (50, 101, 102, True),  # the fack waited to be read
        (50, 60, 61, False),  # before its time
    ],
)
def test_cancel_that_is_due_goes_before_what_a_fack_lets_out(
    fack_ms: float, cancel_ms: float, rest_ms: float, right: bool
) -> None:
    early = replace(CANCEL, boot_time=0, activity_hint=0xFFFF) if cancel_ms < fack_ms else CANCEL
    items: list[Item] = [sent(0, fragment(0, new=True)), came(fack_ms, FACK), sent(cancel_ms, early)]
    items += [sent(rest_ms + place / 10, each) for place, each in enumerate(REST)]
    items += [came(200, FAULT), sent(1201, pdu(Type.ACK))]
    assert (found(calling(), *items) == []) == right


@pytest.mark.parametrize(
    ("resend_ms", "right"),
    [
        (2000, True),  # the second cancel is due 1 s behind the first one, which was late, too: the fault comes before
        (2020, False),  # a cancel is missing that was due long before
    ],
)
def test_timer_that_follows_a_late_one_may_be_behind_another(resend_ms: int, right: bool) -> None:
    settings = replace(Settings(), cancel_ns=1000 * MS, resend_ns=resend_ms * MS)
    machine = Client(settings, activity=ACTIVITY, calls=[Call(0, SUNDIAL, 1, sizes=(SIZE, 0), start_ns=0)])
    new = {"boot_time": 0, "activity_hint": 0xFFFF}
    items: list[Item] = [sent(0, fragment(0, new=True)), sent(1002, replace(CANCEL, **new))]  # type: ignore[arg-type]
    items += [sent(resend_ms + 1, fragment(0, serial=1, new=True)), came(resend_ms + 2, FAULT)]
    items += [sent(resend_ms + 1003, pdu(Type.ACK))]
    assert (found(machine, *items) == []) == right


@pytest.mark.parametrize(("left_ms", "right"), [(100, True), (1, False)])
def test_timer_begins_when_its_request_has_left_at_the_latest(left_ms: int, right: bool) -> None:
    """A slow client's ping is due 2 s behind its request, so behind the cancel 2.05 s after the beginning."""
    settings = replace(Settings(), cancel_ns=2050 * MS)
    machine = Client(settings, activity=ACTIVITY, calls=[Call(0, SUNDIAL, 1, sizes=(8, 0), start_ns=0)])
    new = {"boot_time": 0, "activity_hint": 0xFFFF}
    request = pdu(Type.REQUEST, body=payload(0, 8), **new)
    items: list[Item] = [sent(left_ms, request), sent(2052, replace(CANCEL, **new))]  # type: ignore[arg-type]
    items += [sent(2102, pdu(Type.PING, **new)), came(2103, FAULT), sent(3104, pdu(Type.ACK))]
    assert (found(machine, *items) == []) == right


@pytest.mark.parametrize(
    ("asked_ms", "starts_ms"),
    [
        ([], {5000}),
        ([3000, 4000], {5000, 3000}),  # its first packet may have waited since the first question
        ([1000, 6000], {5000}),  # those before the packets of the call before, and later ones, are of others
        ([1000, 4500], {5000, 4500}),
    ],
)
def test_call_may_have_begun_when_arp_asked(asked_ms: list[int], starts_ms: set[int]) -> None:
    """Under the real clock, where the time of a sample is on another axis."""
    ends = ("10.0.0.1", 40000), ("10.0.0.2", 1027)
    calls = [Call(number, SUNDIAL, 1, sizes=(0, 0), start_ns=99) for number in (0, 1)]
    sides = Sides(Activity(ACTIVITY, "client", "server", *ends, Settings(), calls))
    for sequence, at_ms in ((0, 500), (0, 2000), (1, 5000)):
        at_ns = at_ms * MS
        datagram = Datagram("client", True, *ends, at_ns, at_ns, [], {})
        sides.client.sent.append((0, datagram, pdu(Type.REQUEST, sequence=sequence)))
    every = clients_of(sides, [each * MS for each in asked_ms], exact=False)
    assert {each.calls[1].start_ns for each in every} == {each * MS - REAL_EARLY_NS for each in starts_ms}
    assert {each.calls[1].start_ns for each in clients_of(sides, [4000 * MS], exact=True)} == {99}


def test_call_without_its_first_request_has_begun_as_its_client_says() -> None:
    """Under the real clock: the other call shows that the client's clock is 2 s ahead."""
    ends = ("10.0.0.1", 40000), ("10.0.0.2", 1027)
    starts = (100, 1000, 3000)
    calls = [Call(number, SUNDIAL, 1, start_ns=at_ms * MS) for number, at_ms in enumerate(starts)]
    sides = Sides(Activity(ACTIVITY, "client", "server", *ends, Settings(), calls))
    for sequence, at_ms, kind in ((1, 3500, Type.CL_CANCEL), (2, 5000, Type.REQUEST)):
        datagram = Datagram("client", True, *ends, at_ms * MS, at_ms * MS, [], {})
        sides.client.sent.append((0, datagram, pdu(kind, sequence=sequence)))
    _, reckoned = clients_of(sides, [], exact=False)
    assert [call.start_ns + REAL_EARLY_NS for call in reckoned.calls] == [2100 * MS, 3000 * MS, 5000 * MS]
    sides.client.sent.pop()
    assert len(clients_of(sides, [], exact=False)) == 1


@pytest.mark.parametrize(("again", "agrees"), [(8, True), (9, False)])
def test_what_a_client_says_of_calls_decides_among_histories_without_a_packet(again: int, agrees: bool) -> None:
    """While ARP has no answer a call ends before a resend timer or behind it; twelve calls end in 4096 ways."""
    settings = Settings(resend_ns=100 * MS, give_up_ns=3000 * MS)
    calls = [Call(number, SUNDIAL, 1, sizes=(8000, 0), settles=False, start_ns=0) for number in range(12)]

    def fits(machine: Client) -> bool:
        return not machine.ended or machine.resent.get(len(machine.ended) - 1) == again

    replay = Replay([Client(settings, activity=ACTIVITY, calls=calls)], agrees=fits, drops=lambda at_ns: True)
    replay.run([], 60_000 * MS)
    assert not replay.findings
    assert any(set(each.resent.values()) == {again} and len(each.ended) == 12 for each in replay.histories) == agrees

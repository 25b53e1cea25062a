# SPDX-License-Identifier: Apache-2.0
"""Datagrams put together from frames, activities reply apart, names from seeds, counters against pauses."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.judge.replay import Histories
from sundial.observe import Octets
from sundial.verify.conservation import Transit
from sundial.verify.findings import Finding
from sundial.verify.frames import DROPPED
from sundial.workloads.dce.expect_pdu import HEADER, NO_HINT, Flags, Pdu, Type, parse
from sundial.workloads.dce.verify_boot import boots, fewest_findings
from sundial.workloads.dce.verify_calls import Exchange, check_packets, observed, uncaused
from sundial.workloads.dce.verify_client import Call
from sundial.workloads.dce.verify_counters import COUNTED, Bounds, Reports, Totals, check_batch, check_server, pauses
from sundial.workloads.dce.verify_datagrams import (
    HELD_NS,
    Datagram,
    Traffic,
    balance,
    check_layouts,
    datagrams,
    in_turn,
)
from sundial.workloads.dce.verify_message import encode
from sundial.workloads.dce.verify_names import Activity, Service, identity, map_question, map_results, tower
from sundial.workloads.dce.verify_server import EITHER, EXECUTED
from sundial.workloads.dce.verify_sides import divide, replay_servers
from sundial.workloads.dce.verify_stream import EPM, EPT_MAP, SUNDIAL, Settings, blank
from tests.workloads.dce.dialogue import ACTIVITY, BOOT, MS, answer, pdu, question

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 1027)
MTU = 1500


def frames(*pieces: tuple[float, str, int, bool, bytes]) -> tuple[pl.DataFrame, Octets]:
    """Frames of datagram 77 at one port: when, `sent` or `received`, offset, more, bytes above IP."""
    rows, data, begin = [], b"", []
    for number, (at_ms, view, offset, more, payload) in enumerate(pieces):
        begin.append(len(data))
        data += bytes(34) + payload
        rows.append(
            {
                "row": number, "end": "lan|client:eth0", "machine": "client", "mtu": MTU, "view": view,
                "time_ns": int(at_ms * MS), "source": "10.0.0.1", "target": "10.0.0.2", "source_port": 40000,
                "target_port": 1027, "ip_id": 77, "more": more, "fragment_offset": offset, "ip_header": 20,
                "ip_length": 20 + len(payload), "damaged": False, "passes_ip": False, "fate": None, "direction": 2,
                "octets_hash": number,
            }
        )  # fmt: skip
    table = pl.DataFrame(rows, schema_overrides={"fate": pl.String, "direction": pl.UInt8})
    lengths = np.array([34 + len(payload) for *_, payload in pieces], dtype=np.int64)
    return table, Octets(np.frombuffer(data, np.uint8), np.array(begin, dtype=np.int64), lengths)


def together(*pieces: tuple[float, str, int, bool, bytes]) -> Traffic:
    table, octets = frames(*pieces)
    return datagrams(table, octets, {})


def udp(payload: bytes) -> bytes:
    return struct.pack(">HHHH", 40000, 1027, 8 + len(payload), 0) + payload


WHOLE = udp(bytes(range(250)) * 8)
FIRST, SECOND = WHOLE[:1480], WHOLE[1480:]


def test_fragments_make_a_datagram_in_any_order() -> None:
    traffic = together((1, "received", 1480, False, SECOND), (2, "received", 0, True, FIRST))
    (one,) = traffic.datagrams
    assert one.payload == WHOLE[8:]
    assert (one.at_ns, one.whole_ns) == (1 * MS, 2 * MS)
    assert (one.source, one.target) == (CLIENT, SERVER)


def test_a_copy_of_a_fragment_makes_no_other_datagram() -> None:
    first = (1, "received", 0, True, FIRST)
    traffic = together(first, (2, "received", 0, True, FIRST), (3, "received", 1480, False, SECOND))
    assert [each.whole_ns for each in traffic.datagrams] == [3 * MS]
    twice = together(first, (2, "received", 1480, False, SECOND), (3, "received", 0, True, FIRST))
    assert len(twice.datagrams) == 1


def test_old_fragments_are_forgotten() -> None:
    late = 1 + HELD_NS / MS + 1
    assert not together((1, "received", 0, True, FIRST), (late, "received", 1480, False, SECOND)).datagrams


def test_what_was_not_sent_whole_is_a_finding() -> None:
    traffic = together((1, "sent", 0, True, FIRST))
    assert [seen for _, _, _, seen, _ in check_layouts(traffic, {})] == ["0:1480+"]


def test_what_comes_with_another_checksum_is_not_delivered() -> None:
    """A bridge's kernel has damaged it, of which the fabric knows nothing; an adapter had yet to make the checksum."""

    def summed(payload: bytes, checksum: int) -> bytes:
        return struct.pack(">HHHH", 40000, 1027, 8 + len(payload), checksum) + payload

    body = bytes(100)
    whole = b"".join(bytes(map(int, end[0].split("."))) for end in (CLIENT, SERVER)) + struct.pack(">HH", 17, 108)
    total = sum(struct.unpack(">60H", whole + summed(body, 0)))
    right = 0xFFFF - (total % 0xFFFF)
    rows = ((right, b"", True), (right, b"\1", False), (right ^ 1, b"", True), (0, b"\1", True))
    for checksum, damage, comes in rows:
        sent = summed(body, checksum)
        came = sent[:8] + (damage + body)[:100] if damage else sent
        traffic = together((1, "sent", 0, False, sent), (2, "received", 0, False, came))
        assert [each.sent for each in traffic.datagrams] == [True, False][: 1 + comes], (checksum, damage)


@pytest.mark.parametrize(("cut", "wrong"), [(1480, False), (1472, True)])
def test_fragments_are_as_long_as_the_mtu_lets_them(cut: int, wrong: bool) -> None:
    traffic = together((1, "sent", 0, True, WHOLE[:cut]), (1.1, "sent", cut, False, WHOLE[cut:]))
    assert bool(list(check_layouts(traffic, {}))) == wrong


# ---- activities ----


def datagram(what: bytes, *, sent: bool = True, back: bool = False) -> Datagram:
    source, target = (SERVER, CLIENT) if back else (CLIENT, SERVER)
    machine = ("client" if sent else "server") if not back else ("server" if sent else "client")
    return Datagram(machine, sent, source, target, MS, MS, [0], {0: udp(what)}, 8 + len(what), MTU)


def activity(**fields: object) -> Activity:
    own = Activity(ACTIVITY, "client", "server", CLIENT, SERVER, Settings(), [Call(0, SUNDIAL, 1)])
    return replace(own, **fields)  # type: ignore[arg-type]


def test_datagrams_go_to_their_activity_and_side() -> None:
    ask, reply = datagram(encode(pdu(Type.REQUEST))), datagram(encode(pdu(Type.RESPONSE)), back=True)
    sides, others = divide([ask, reply], [activity()])
    assert not others
    assert [each for _, each, _ in sides[ACTIVITY].client.sent] == [ask]
    assert [each for _, each, _ in sides[ACTIVITY].server.sent] == [reply]


def test_a_question_of_the_server_names_its_activity_and_the_answer_does_not() -> None:
    asked, reply = datagram(encode(question()), back=True), datagram(encode(answer()))
    sides, others = divide([asked, reply], [activity()])
    assert not others
    assert [each for _, each, _ in sides[ACTIVITY].client.sent] == [reply]
    assert divide([reply], [activity()])[1]


@pytest.mark.parametrize(
    "what",
    [
        datagram(b"no PDU"),
        datagram(encode(pdu(Type.REQUEST, activity=UUID(int=1)))),
        replace(datagram(encode(pdu(Type.REQUEST))), source=("10.0.0.1", 40001)),
        replace(datagram(encode(pdu(Type.REQUEST))), machine="another"),
        replace(datagram(encode(pdu(Type.REQUEST))), target=("10.0.0.2", 1028)),
    ],
)
def test_what_belongs_to_no_activity(what: Datagram) -> None:
    assert [each.datagram for each in divide([what], [activity()])[1]] == [what]


@pytest.mark.parametrize(("answered", "missing"), [(True, []), (False, ["cancel ack of call 0"])])
def test_a_server_answers_an_activity_of_which_no_request_came(answered: bool, missing: list[str]) -> None:
    reply = pdu(Type.CANCEL_ACK, body=struct.pack("<IIB", 0, 1, 0))
    came = [datagram(encode(pdu(Type.CL_CANCEL, body=struct.pack("<II", 0, 1))), sent=False)]
    came += [datagram(encode(reply), back=True)] * answered
    sides, _ = divide(came, [activity()])
    service = Service("server", ("10.0.0.2",), "dce-server", {"port": SERVER[1]})
    served = replay_servers(
        [*sides.values()], service, 1, memory=None, marks=(), end_ns=10**10, drops=lambda at_ns: False, exact=True
    )
    found = [each for _, replay in served for each in replay.findings]
    assert [each.expected for each in found] == missing


def test_a_server_that_has_only_asked_has_said_its_boot_time() -> None:
    """Its next request echoes that, and is not rejected."""
    first, later = pdu(Type.REQUEST, boot_time=0, activity_hint=NO_HINT), pdu(Type.REQUEST, sequence=1)
    heard = [datagram(encode(each), sent=False) for each in (first, later)]
    asked = [replace(datagram(encode(question()), back=True), at_ns=MS, whole_ns=MS)]
    sides, _ = divide([heard[0], *asked, replace(heard[1], at_ns=2 * MS, whole_ns=2 * MS)], [activity()])
    service = Service("server", ("10.0.0.2",), "dce-server", {"port": SERVER[1]})
    ((_, served),) = replay_servers(
        [*sides.values()], service, 1, memory=None, marks=(), end_ns=100 * MS, drops=lambda at_ns: False, exact=True
    )
    assert {each.boot_time for each in served.histories} == {BOOT}


# ---- causes ----


def exchange(*came: int) -> Exchange:
    """A request at 1 ms and again at 2001 ms; `came`: when one was whole at the server."""
    data = encode(pdu(Type.REQUEST))
    each = [(replace(datagram(data), at_ns=at * MS), parse(data)) for at in (1, 2001)]
    return Exchange(each, [(replace(datagram(data, sent=False), whole_ns=at * MS), parse(data)) for at in came])


def test_a_fragment_that_goes_again_needs_a_loss() -> None:
    call = Call(0, SUNDIAL, 1, id=5)
    assert not list(uncaused(call, exchange(2002), Exchange(), Settings()))
    (finding,) = uncaused(call, exchange(2, 2002), Exchange(), Settings())
    assert finding[:2] == (5, "request.retransmissions")


@pytest.mark.parametrize(
    ("left", "came", "answered", "caused"),
    [(5, 9, None, True), (5, 7, None, True), (5, 7, 7, False), (5, 9, 7, False), (11, 15, None, False)],
)
def test_a_response_that_goes_again_needs_a_ping_that_crossed_it(
    left: int, came: int, answered: int | None, caused: bool
) -> None:
    """It leaves at 8 ms, is whole at 10 ms and leaves again at 20 ms. `answered`: when working leaves."""

    def sent(kind: Type, at_ms: int, *, back: bool = False) -> tuple[Datagram, Pdu]:
        data = encode(pdu(kind))
        return replace(datagram(data, back=back), at_ns=at_ms * MS), parse(data)

    def arrived(kind: Type, at_ms: int, *, back: bool = False) -> tuple[Datagram, Pdu]:
        data = encode(pdu(kind))
        return replace(datagram(data, sent=False, back=back), whole_ns=at_ms * MS), parse(data)

    replies = [sent(Type.RESPONSE, at_ms, back=True) for at_ms in (8, 20)]
    replies = [*replies[:1], *([sent(Type.WORKING, answered, back=True)] if answered else []), *replies[1:]]
    backs = [arrived(Type.RESPONSE, 10, back=True)]
    backs = [*([arrived(Type.WORKING, 8, back=True)] if answered else []), *backs]
    exchanged = Exchange(
        sorted([sent(Type.REQUEST, 1), sent(Type.PING, left), *replies], key=lambda each: each[0].at_ns),
        [arrived(Type.REQUEST, 2), arrived(Type.PING, came), *backs],
    )
    assert (not list(uncaused(Call(0, SUNDIAL, 1, id=5), exchanged, Exchange(), Settings()))) == caused


@pytest.mark.parametrize(
    ("again", "acknowledged", "caused"),
    [(2_008, 2_009, True), (2_008, None, True), (2_008, 2_003, True), (2_008, 2_002, False), (2_007, 2_009, False)],
)
def test_a_response_goes_again_if_its_client_has_not_acknowledged_it_in_time(
    again: int, acknowledged: int | None, caused: bool
) -> None:
    """It leaves at 8 ms, is under way for a second and leaves again at `again`; its client waits for another second."""
    response, ack = encode(pdu(Type.RESPONSE)), encode(pdu(Type.ACK))
    sent = [(replace(datagram(response, back=True), at_ns=at * MS), parse(response)) for at in (8, again)]
    came = [(replace(datagram(response, sent=False, back=True), whole_ns=1_008 * MS), parse(response))]
    if acknowledged is not None:
        sent.append((replace(datagram(ack), at_ns=acknowledged * MS), parse(ack)))
        came.append((replace(datagram(ack, sent=False), whole_ns=acknowledged * MS), parse(ack)))
    exchanged = Exchange(sorted(sent, key=lambda each: each[0].at_ns), came)
    assert (not list(uncaused(Call(0, SUNDIAL, 1, id=5), exchanged, Exchange(), Settings()))) == caused


def test_a_fragment_that_goes_again_since_its_server_did_not_take_it() -> None:
    call, came = Call(0, SUNDIAL, 1, id=5), exchange(2, 2002)
    assert not list(uncaused(call, came.without({2 * MS}), Exchange(), Settings()))
    assert list(uncaused(call, came.without({3 * MS}), Exchange(), Settings()))


def test_request_of_a_maybe_call_that_waited_for_arp_is_not_missing() -> None:
    """Whether it may be, the replay says; of one that left each packet counts."""
    maybe = Call(0, SUNDIAL, 1, Flags.MAYBE, sizes=(3000, 0), id=5)
    data = encode(pdu(Type.REQUEST, flags=Flags.MAYBE, body=bytes(3000)))
    left = Exchange([(replace(datagram(data), layout=["0:1480+"]), parse(data))])
    assert not list(check_packets(observed(maybe, activity(), Exchange(), (MTU, MTU)), True))
    assert list(check_packets(observed(maybe, activity(), left, (MTU, MTU)), True))
    assert list(check_packets(observed(replace(maybe, semantics=Flags(0)), activity(), Exchange(), (MTU, MTU)), True))


# ---- the order of what a machine sent ----


def test_frame_that_a_full_ring_refused_is_behind_those_in_the_ring() -> None:
    """Handed in at 5 ms, while the ring has what leaves at 6 and 8 ms."""
    columns = {"fate": [None, DROPPED, None], "fate_adapter": [None, "a:eth0", None]}
    shown = pl.DataFrame({"row": [0, 1, 2], "time_ns": [6, 5, 8], **columns}).sort("time_ns")
    turns = shown.with_columns(time_ns=pl.when(pl.col("row") == 1).then(9).otherwise("time_ns"))
    assert shown["row"].to_list() == [1, 0, 2]
    assert in_turn(shown, turns)["row"].to_list() == [0, 2, 1]


# ---- a machine that boots ----


def test_what_comes_before_a_machine_speaks_may_be_unheard() -> None:
    assert boots([1, 2, 3], 3) == [1, 2]
    assert boots([1, 2, 3], 1) == []
    assert boots([*range(100), 1000], 2000)[-2:] == [99, 1000]
    assert len(boots(range(100), 2000)) == 32


def test_boot_with_the_fewest_findings_is_meant() -> None:
    asked: list[int] = []

    def served(until_ns: int) -> list[Finding]:
        asked.append(until_ns)
        return [Finding(None, "dce.sent", "nothing", str(until_ns))] * abs(until_ns - 5)

    assert fewest_findings(served, [-1, 5, 7]) == []
    assert [each.seen for each in fewest_findings(served, [-1, 7])] == ["7", "7"]
    assert asked[-1] == 7


def test_what_comes_to_a_closed_port_is_not_delivered() -> None:
    table, octets = frames((0, "received", 0, False, udp(b"early")), (5, "received", 0, False, udp(b"late")))
    for until_ms, payloads in ((-1, [b"early", b"late"]), (0, [b"late"]), (5, [])):
        found = datagrams(table, octets, {("client", 1027): until_ms * MS}).datagrams
        assert [each.payload for each in found] == payloads
    assert len(datagrams(table, octets, {("server", 1027): 9 * MS}).datagrams) == 2


# ---- names ----


def test_what_a_seed_gives_to_an_activity() -> None:
    """As a client in a guest wrote it: guest-apps/dce/identity.c."""
    assert identity(3925693625085367385, "client", 0, "activity", 0) == UUID("f146bdf5-1894-4daf-a808-5c07034bf3d5")
    assert identity(3925693625085367385, "client", 9, "activity", 1) == UUID("478d5704-8d8c-46cc-a1ca-f577a72dc04c")


def test_a_tower_is_as_c706_appendix_l_has_it() -> None:
    """Five floors: interface, NDR, connectionless, UDP, IP; little-endian but for port and address."""
    floors = (
        "0500"
        "1300 0d fde95aca6397e84faa55b03fea95bd80 0100 0200 0000"
        "1300 0d 045d888aeb1cc9119fe808002b104860 0200 0200 0000"
        "0100 0a 0200 0000"
        "0100 08 0200 0403"
        "0100 09 0400 0a000002"
    )
    assert tower(SUNDIAL, 1027, "10.0.0.2") == bytes.fromhex(floors)


@pytest.mark.parametrize("little", [True, False])
def test_the_mapper_is_asked_and_answers_with_a_port(little: bool) -> None:
    order = "<" if little else ">"
    body = map_question("10.0.0.2", little=little)
    assert len(body) == 8 + 8 + 76 + 20 + 4
    service = Service(
        "server", ("10.0.0.2",), "dce-server", {"port": 1027, "byte_order": "little" if little else "big"}
    )
    results = map_results(blank(ACTIVITY, EPM, 0, EPT_MAP, little=little), service)
    assert struct.unpack_from(order + "I", results, 20) == (1,)
    assert tower(SUNDIAL, 1027, "10.0.0.2") in results
    assert results[-4:] == bytes(4)


# ---- counters ----


def test_a_batch_has_the_counters_of_its_machine() -> None:
    counts = Counter(fragments=3, acks=1)
    said = {name: counts[name] for name in COUNTED}
    assert not list(check_batch("x", {"counters": said}, [counts]))
    for name in COUNTED:
        (finding,) = check_batch("x", {"counters": said | {name: 9}}, [counts])
        assert finding[1] == f"x counters {name}"
    assert list(check_batch("x", {"counters": said | {"more": 0}}, [counts]))
    assert list(check_batch("x", {}, [counts]))


def test_pauses() -> None:
    second = 1000 * MS
    assert pauses([0, second], 2 * second, mips=125) == [
        (150 * MS, second - 1, True),
        (1150 * MS, 2 * second - 1, True),
    ]
    assert pauses([0, 220 * MS], 300 * MS, mips=125) == [(150 * MS, 220 * MS - 1, False)]
    assert pauses([], second, mips=125) == []
    # The run may have ended with its last frame, 60 ms after the last packet.
    assert pauses([0], 260 * MS, mips=125, seen_ns=60 * MS) == [(150 * MS, 260 * MS - 1, False)]
    assert pauses([0], 450 * MS, mips=125, seen_ns=250 * MS) == [(150 * MS, 450 * MS - 1, True)]
    # A machine that is slower by 64 works longer beside it: 3.2 s.
    assert pauses([0], 4 * second, mips=1.953125, seen_ns=3 * second)[0][2] is False
    assert pauses([0], 4 * second, mips=1.953125, seen_ns=3400 * MS)[0][2] is True
    # Under the real clock a machine that stands still sees a pause that the capture does not show.
    assert [each[2] for each in pauses([0, 2 * MS, second], second, mips=125, exact=False)] == [False, False]
    assert pauses([0, MS // 2], MS, mips=125, exact=False) == []
    # One that runs other programs, too, may be busy for 0.4 s.
    assert pauses([0], second, mips=125, alone=False, seen_ns=550 * MS)[0][2] is False
    assert pauses([0], second, mips=125, alone=False, seen_ns=650 * MS)[0][2] is True


def line(**fields: object) -> dict[str, object]:
    zero = {**dict.fromkeys((*COUNTED, "kept", "mapped", "bad_payload", "undecodable"), 0), "executed": 2}
    return zero | {"by_opnum": {"1": 2}, "fragments": 2} | fields


def reports(*counts: Counter[str], sure: Sequence[bool] = (True,)) -> Reports:
    """Of a server whose one activity may have counted these, all the time."""
    served = Totals([[(0, counts)]], len(sure))
    return Reports(served, Totals([], len(sure)), sure)


TWO = Counter({f"{EXECUTED}1": 2, "fragments": 2})


def test_a_servers_lines_are_of_its_pauses() -> None:
    assert not list(check_server("x", [line()], reports(TWO)))
    changes: dict[str, object] = {
        "executed": 3, "by_opnum": {"1": 3}, "kept": 1, "mapped": 1, "bad_payload": 1, "undecodable": 1, "facks": 1,
        "fragments": 1, "strays": 1, "overruns": 1,
    }  # fmt: skip
    for name, value in changes.items():
        assert list(check_server("x", [line(**{name: value})], reports(TWO))), name


def test_a_line_for_each_pause_that_was_long_enough() -> None:
    assert list(check_server("x", [], reports(TWO)))
    assert list(check_server("x", [line()], reports(TWO, sure=(True, True))))
    assert not list(check_server("x", [line()], reports(TWO, sure=(True, False))))
    assert not list(check_server("x", [line(), line()], reports(TWO)))
    assert list(check_server("x", [line(), line(), line()], reports(TWO)))
    assert list(check_server("x", [line()], reports(sure=())))


def test_maybe_calls_are_executed_or_counted_as_not_taken() -> None:
    either = reports(Counter({f"{EITHER}1": 3}))
    for executed, dropped in ((3, 0), (1, 2)):
        said = line(executed=executed, by_opnum={"1": executed}, dropped=dropped, fragments=0)
        assert not list(check_server("x", [said], either))
    assert list(check_server("x", [line(executed=4, by_opnum={"1": 4}, fragments=0)], either))
    one_less = line(executed=1, by_opnum={"1": 1}, dropped=1, fragments=0)
    assert list(check_server("x", [one_less], either))
    # The third may wait until a procedure that takes a time has ended.
    working = replace(either, works=True)
    assert not list(check_server("x", [one_less], working))
    assert list(check_server("x", [line(executed=4, by_opnum={"1": 4}, fragments=0)], working))


def test_a_line_is_looked_for_in_later_pauses_and_missed_in_none() -> None:
    """Counts that change in the second and the fourth pause, at its end."""
    four = Counter({f"{EXECUTED}1": 2, f"{EXECUTED}2": 1, "fragments": 3})
    six = Counter({f"{EXECUTED}1": 2, f"{EXECUTED}2": 2, "fragments": 4})
    counted = [(0, [TWO]), (3, [four]), (7, [six])]

    def found(*lines: dict[str, object], sure: Sequence[bool] = (False,) * 4) -> list[str]:
        made = Reports(Totals([counted], 4), Totals([], 4), sure)
        return [finding[3] for finding in check_server("x", lines, made)]

    later = line(executed=3, by_opnum={"1": 2, "2": 1}, fragments=3)
    last = line(executed=4, by_opnum={"1": 2, "2": 2}, fragments=4)
    assert found(line(), later, last) == []
    assert found(last) == found(later, later, later) == []
    assert found(last, line()) == ["2"], "the first count that differs: fragments"
    assert found(line(), last, sure=(True, True, True, True)) == ["none before line 1"]
    # Neither a line of no pause nor the search for it in all of them changes what later lines are checked against.
    assert found(line(fragments=9), later, last) == ["9"]


@settings(deadline=None)
@given(data=st.data())
def test_bounds_are_those_of_the_sums_of_all_activities_in_a_pause(data: st.DataObject) -> None:
    names = st.sampled_from(("fragments", "facks", f"{EXECUTED}1", f"{EXECUTED}2", f"{EITHER}2"))
    histories = st.lists(st.dictionaries(names, st.integers(0, 3)).map(Counter), min_size=1, max_size=3)
    pauses = data.draw(st.integers(1, 6))

    def counted() -> list[tuple[int, Histories]]:
        marks = data.draw(st.sets(st.integers(1, 2 * pauses - 1)))
        return [(mark, data.draw(histories)) for mark in sorted({0, *marks})]

    every = [counted() for _ in range(data.draw(st.integers(1, 3)))]
    totals = Totals(every, pauses)
    for pause in data.draw(st.lists(st.integers(0, pauses - 1))):
        totals.move(pause)
        seen = [
            [each for late in (0, 1) for each in [had for mark, had in one if mark <= 2 * pause + late][-1]]
            for one in every
        ]
        for name in ("fragments", "facks", f"{EXECUTED}1", f"{EXECUTED}2", f"{EITHER}2"):
            least = sum(min(each[name] for each in part) for part in seen)
            most = sum(max(each[name] for each in part) for part in seen)
            assert totals[name] == Bounds(least, most)
            if name.startswith(EXECUTED):
                assert totals.executed.get(name.removeprefix(EXECUTED), 0) == least


def test_a_header_is_encoded_as_it_is_read() -> None:
    for little in (True, False):
        whole = pdu(Type.RESPONSE, little_endian=little, serial=0x1234, fragment=5, body=b"abc")
        assert parse(encode(whole)) == whole
        assert len(encode(whole)) == HEADER + 3


@pytest.mark.parametrize(("target", "found"), [(0xFFFFFFFFFFFF, 0), (0x025344000002, 1)])
def test_a_broadcast_may_come_to_several_stations(target: int, found: int) -> None:
    """A packet that one station sends and three receive."""
    seen = pl.DataFrame({"row": range(4), "end": [f"wire/lan.pcapng|{name}:eth0" for name in "abcd"]}).with_columns(
        pl.lit(None, pl.String).alias("fate"), pl.lit("").alias("udp_head"), pl.lit(False).alias("damaged"),
        pl.lit(0, pl.UInt32).alias("corrupted"), pl.lit(False).alias("more"), eth_target=pl.lit(target),
        **{name: pl.lit(7, pl.UInt32) for name in ("ip_id", "fragment_offset", "ip_length")},
        source=pl.lit("10.0.0.1"), target=pl.lit("10.0.0.255"),
    )  # fmt: skip
    own = pl.DataFrame({"row": range(4), "view": ["sent", *["received"] * 3], "refused": [False] * 4})
    nothing = pl.DataFrame(schema={"row": pl.Int64, "step": pl.Int64, "aside": pl.Boolean, "under_way": pl.Int64})
    transit = Transit(pl.Series([], dtype=pl.String), nothing.drop("under_way"), nothing.select("row", "under_way"))
    assert balance(seen, own, transit).height == found

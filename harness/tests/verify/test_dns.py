# SPDX-License-Identifier: Apache-2.0
"""The decoder of DNS: messages made by hand from RFC 1035, right ones and one damage for each rule."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.verify import verify_pcap
from sundial.verify.decoders.dns import DECODER
from sundial.verify.decoders.traffic import Traffic
from tests.verify.foreign import Connection, Scene, classic
from tests.verify.talk import MS, Talk

SERVER = ("10.0.0.2", 53)
QUERY, RESPONSE, RD = 0, 0x8000, 0x0100
A, NS, CNAME, SOA, PTR, MX, TXT, AAAA, SRV, OPT, AXFR = 1, 2, 5, 6, 12, 15, 16, 28, 33, 41, 252


def name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def question(text: str = "isi.arpa", kind: int = A) -> bytes:
    return name(text) + struct.pack(">HH", kind, 1)


def pointer(at: int) -> bytes:
    return struct.pack(">H", 0xC000 | at)


def rr(kind: int, data: bytes, owner: bytes = b"\xc0\x0c", class_: int = 1) -> bytes:
    return owner + struct.pack(">HHIH", kind, class_, 60, len(data)) + data


def message(number: int, flags: int, *sections: list[bytes]) -> bytes:
    padded = [*sections, *[[]] * (4 - len(sections))]
    return struct.pack(">6H", number, flags, *map(len, padded)) + b"".join(b"".join(each) for each in padded)


ASK = message(1, RD, [question()])
ADDRESS = rr(A, bytes([10, 0, 0, 52]))
ANSWER = message(1, RESPONSE | RD, [question()], [ADDRESS])


def fields(talk: Talk) -> list[str]:
    return [each.field.removeprefix("decoded ") for each in DECODER.judge(talk.traffic()).findings]


def over_udp(ask: bytes, answer: bytes) -> list[str]:
    talk = Talk()
    talk.ask(0, ask, SERVER)
    talk.answer(5, answer, SERVER)
    return fields(talk)


RIGHT_RECORDS = {
    "A": [ADDRESS, ADDRESS],
    "AAAA": [rr(AAAA, bytes(16))],
    "NS": [rr(NS, name("a.isi.arpa"))],
    # The example of RFC 1035 section 4.1.4: a label in front of a pointer, and the pointer alone.
    "compressed": [
        rr(CNAME, b"\1f" + pointer(12)), rr(CNAME, pointer(12), b"\3foo" + pointer(12)), rr(NS, pointer(16)),
    ],
    "MX": [rr(MX, struct.pack(">H", 10) + pointer(12))],
    "SOA": [rr(SOA, name("a") + pointer(12) + bytes(20))],
    "SRV": [rr(SRV, bytes(6) + name("host"))],
    "TXT": [rr(TXT, b"\3abc\0\1x")],
    "PTR": [rr(PTR, name("a.b"), name("52.0.0.10.in-addr.arpa"))],
    "another type": [rr(99, b"anything")],
    "the longest label": [rr(NS, name("a" * 63))],
}  # fmt: skip
WRONG_RECORDS = {
    "answer RDATA": [
        [rr(A, bytes(3))], [rr(AAAA, bytes(15))], [rr(A, bytes(5))], [rr(NS, name("a") + b"x")], [rr(TXT, b"\4abc")],
        [rr(MX, b"\0")], [rr(SOA, name("a") + name("b") + bytes(19))], [rr(NS, b"\x80abc\0")],
        [rr(NS, pointer(200))], [rr(NS, pointer(4))], [rr(NS, b"\3abc")],
    ],
    "answer RDLENGTH": [[ADDRESS[:-4] + b"\0"]],
    "answer name": [[rr(A, bytes(4), b"\x40a\0")], [rr(A, bytes(4), name(".".join(["a" * 63] * 4)))], [b"\xc0\x1a"]],
    "answer type": [[b"\xc0\x0c"]],
    "OPT": [[rr(OPT, b"", b"\0", 4096)]],
}  # fmt: skip


@pytest.mark.parametrize("kind", RIGHT_RECORDS)
def test_records_of_the_standard_pass(kind: str) -> None:
    assert over_udp(ASK, message(1, RESPONSE | RD, [question()], RIGHT_RECORDS[kind])) == []


@pytest.mark.parametrize(("field", "records"), [(field, one) for field, many in WRONG_RECORDS.items() for one in many])
def test_a_wrong_record_is_named(field: str, records: list[bytes]) -> None:
    found = over_udp(ASK, message(1, RESPONSE | RD, [question()], records))
    assert found == [f"message {field}"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (message(2, RESPONSE | RD, [question()], [ADDRESS]), ["answer", "question"]),
        (message(1, RESPONSE | RD, [question("isi.edu")], [ADDRESS]), ["message question"]),
        (message(1, RESPONSE | RD, [question(kind=AAAA)]), ["message question"]),
        (message(1, RESPONSE | RD, [], [rr(A, bytes(4), name("isi.arpa"))]), ["message question"]),
        (message(1, RESPONSE, [question()]), ["message RD"]),
        (message(1, RESPONSE | RD | 0x2000, [question()]), ["message opcode"]),
        (message(1, RESPONSE | RD | 0x40, [question()]), ["message Z"]),
        (ANSWER + b"\0", ["message length"]),
        (ANSWER[:7] + b"\2" + ANSWER[8:], ["message answer name"]),
        (ANSWER[:7] + b"\0" + ANSWER[8:], ["message length"]),
        (ANSWER[:5] + b"\2" + ANSWER[6:], ["message QDCOUNT"]),
        (ANSWER[:11], ["message header"]),
        (message(1, RESPONSE | RD, [question()], [ADDRESS] * 31), ["message length"]),
    ],
)
def test_a_response_that_cannot_be_that_of_the_query_is_found(answer: bytes, expected: list[str]) -> None:
    assert over_udp(ASK, answer) == expected


@pytest.mark.parametrize(
    ("ask", "answer"),
    [
        (message(1, RD, [question("ISI.arpa")]), ANSWER),
        (ASK, message(1, RESPONSE | RD | 3, [question()])),
        (ASK, message(1, RESPONSE | RD | 1)),
        (ASK, message(1, RESPONSE | RD | 0x0430, [question()], [ADDRESS] * 30)),
        (
            message(1, RD, [question()], [], [], [rr(OPT, struct.pack(">HH", 10, 8) + bytes(8), b"\0", 1232)]),
            message(1, RESPONSE | RD, [question()], [ADDRESS] * 60, [], [rr(OPT, b"", b"\0", 4096)]),
        ),
        (message(1, 5 << 11, [question(kind=SOA)], [], [rr(A, b"", class_=255)]), message(1, RESPONSE | 5 << 11)),
    ],
)
def test_what_the_standards_allow_passes(ask: bytes, answer: bytes) -> None:
    if ask[2] >> 3 == 5:
        assert over_udp(ask, answer[:4] + ask[4:6] + answer[6:] + question(kind=SOA)) == []
    else:
        assert over_udp(ask, answer) == []


def test_a_label_that_is_reserved_is_named() -> None:
    (found,) = DECODER.judge(
        _asked(message(1, RD, [b"\x41" + bytes(0x41) + b"\0" + struct.pack(">HH", A, 1)]))
    ).findings
    assert (found.field, found.expected) == ("decoded message question", "a label of at most 63 bytes, or a pointer")


def _asked(ask: bytes) -> Traffic:
    talk = Talk()
    talk.ask(0, ask, SERVER)
    return talk.traffic()


def test_two_opt_records_are_found() -> None:
    twice = [rr(OPT, b"", b"\0", 1232)] * 2
    assert "message OPT" in over_udp(message(1, RD, [question()], [], [], twice), ANSWER)


def test_queries_again_and_with_one_number() -> None:
    talk = Talk()
    talk.ask(0, ASK, SERVER, lost=True)
    talk.ask(50, ASK, SERVER)
    talk.ask(60, message(1, RD, [question(kind=AAAA)]), SERVER)
    talk.answer(70, message(1, RESPONSE | RD, [question(kind=AAAA)]), SERVER)
    talk.answer(71, ANSWER, SERVER)
    judged = DECODER.judge(talk.traffic())
    assert (judged.findings, judged.calls, judged.counts["retransmission"]) == ([], 2, 1)
    talk.answer(72, ANSWER, SERVER)
    talk.ask(99, message(3, RD, [question()]), SERVER)
    assert fields(talk) == ["answer", "question"]


def prefixed(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data


@pytest.mark.parametrize("size", [1, 3, 17, 5000])
def test_messages_over_tcp_are_cut_anywhere_and_answered_in_any_order(size: int) -> None:
    second = message(2, RD, [question("b.c")])
    longer = message(2, RESPONSE | RD, [question("b.c")], [ADDRESS] * 100)
    talk = Talk()
    for lane, data in ((talk.out, prefixed(ASK) + prefixed(second)), (talk.back, prefixed(longer) + prefixed(ANSWER))):
        begin = 5000 if lane is talk.back else 0
        lane += [(begin + at, data[at : at + size]) for at in range(0, len(data), size)]
    assert fields(talk) == []
    talk.back[-1] = (talk.back[-1][0], talk.back[-1][1] + b"\0\5")
    assert fields(talk) == ["stream"]


def test_a_length_that_is_another_is_found() -> None:
    talk = Talk()
    talk.out += [(0, prefixed(ASK + b"x") + prefixed(message(2, RD, [question()])))]
    talk.back += [(50, prefixed(ANSWER) + prefixed(message(2, RESPONSE | RD, [question()])))]
    assert fields(talk) == ["message length"]
    talk.out = [(0, struct.pack(">H", len(ASK) - 1) + ASK + prefixed(message(2, RD, [question()])))]
    assert "message question" in fields(talk)


def test_a_transfer_has_several_answers() -> None:
    talk = Talk()
    zone = [question("isi.arpa", AXFR)]
    talk.out += [(0, prefixed(message(1, QUERY, zone)))]
    answers = [message(1, RESPONSE, zone, [ADDRESS]), message(1, RESPONSE, [], [rr(A, bytes(4), name("a"))])]
    talk.back += [(50, b"".join(map(prefixed, answers)))]
    assert fields(talk) == []


def test_a_capture_has_its_queries_at_port_53_or_at_the_one_that_is_given(tmp_path: Path) -> None:
    for port in (53, 5300):
        scene = Scene()
        scene.udp(("10.0.0.1", 700), ("10.0.0.2", port), ASK)
        scene.udp(("10.0.0.2", port), ("10.0.0.1", 700), ANSWER)
        made = Connection(scene, 701, server_port=port)
        made.open()
        made.send(False, prefixed(ASK) + prefixed(message(2, RD, [question()])), 1, 20)
        made.send(True, prefixed(ANSWER) + prefixed(message(2, RESPONSE | RD, [question()])), 3)
        made.close()
        file = classic(tmp_path / f"{port}.pcap", scene.packets)
        result = verify_pcap(file, protocol="dns", port=None if port == 53 else port)
        assert (result.problems, result.calls) == ([], 3)
        assert result.remarks is not None
        assert result.remarks[0] == "dns: 3 queries, 3 responses"
    with pytest.raises(BadInput, match="holds no message of dns"):
        verify_pcap(file, protocol="dns")


def test_times_decide_what_a_response_answers() -> None:
    talk = Talk()
    talk.ask(5, ASK, SERVER)
    talk.answer(5, ANSWER, SERVER)
    assert talk.datagrams[0].arrived_ns == (6 * MS,)
    assert fields(talk) == ["answer", "question"]

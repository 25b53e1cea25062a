# SPDX-License-Identifier: Apache-2.0
"""The decoder of ONC RPC: bytes made by hand from RFC 5531 and RFC 1833, right ones and one damage for each rule."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.verify import verify_pcap
from sundial.verify.decoders.onc_rpc import DECODER
from sundial.verify.decoders.traffic import Present, Service
from tests.verify import test_foreign
from tests.verify.foreign import PORT, SERVER, Scene, call, classic, record, reply
from tests.verify.talk import FAR, MS, NEAR, Talk

MAPPER = ("10.0.0.2", 111)


def words(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def found(talk: Talk, **more: Any) -> list[tuple[str, str]]:
    """Fields of findings, and what was seen, up to the first comma."""
    judged = DECODER.judge(talk.traffic(**more))
    return [(each.field.removeprefix("decoded "), each.seen.partition(",")[0]) for each in judged.findings]


def fields(talk: Talk, **more: Any) -> list[str]:
    return [name for name, _ in found(talk, **more)]


# ---- records, wherever TCP cuts them ----

STREAM = record(call(1)) + record(call(2, 400), 1, 0, 7, 100) + record(call(3, 40, 0)[:40]) + record(call(4, 1200), 600)
ANSWERS = record(reply(2, 400), 12) + record(reply(1)) + record(reply(4), 4, 4) + record(reply(3, 24))


def cut(data: bytes, sizes: Sequence[int], begin: int) -> Iterator[tuple[int, bytes]]:
    place = 0
    while data:
        size = sizes[place % len(sizes)]
        yield begin + place, data[:size]
        data, place = data[size:], place + 1


@pytest.mark.parametrize("sizes", [[1], [3, 5], [4], [41, 2], [1448], [100_000]])
def test_records_across_segments_and_several_in_one_pass(sizes: list[int]) -> None:
    talk = Talk()
    talk.out += cut(STREAM, sizes, 0)
    talk.back += cut(ANSWERS, sizes, 5000)
    judged = DECODER.judge(talk.traffic())
    assert judged.findings == []
    assert (judged.calls, judged.counts) == (4, {"call": 4, "reply": 4})


STREAM_DAMAGES: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes], str]] = {
    "xid of a reply": (lambda out: out, lambda back: back.replace(reply(1)[:8], words(5, 1)), "answer"),
    "xid of a call": (lambda out: out.replace(call(3)[:12], words(5, 0, 2)), lambda back: back, "answer"),
    "a mark longer by 4": (lambda out: struct.pack(">I", 0x8000002C) + out[4:], lambda back: back, "stream"),
    "a mark longer by 1": (lambda out: struct.pack(">I", 0x80000029) + out[4:], lambda back: back, "stream"),
    "a mark that is not the last": (lambda out: b"\0" + out[1:], lambda back: back, "answer"),
    "a record without bytes": (lambda out: struct.pack(">I", 1 << 31) + out, lambda back: back, "stream"),
    "bytes behind the last": (lambda out: out + b"abc", lambda back: back, "stream"),
    "a reply that no call asked for": (lambda out: out, lambda back: back + record(reply(9)), "answer"),
    "a reply twice": (lambda out: out, lambda back: back + record(reply(4)), "answer"),
    "a call that is not answered": (lambda out: record(call(9)) + out, lambda back: back, "question"),
    "arguments of procedure 0": (
        lambda out: out + record(call(9, 48, 0)), lambda back: back + record(reply(9)),
        "message arguments of procedure 0",
    ),
    "a reply in front of its call": (lambda out: b"", lambda back: back, "answer"),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAM_DAMAGES)
def test_a_damaged_stream_is_found(name: str) -> None:
    ask, answer, expected = STREAM_DAMAGES[name]
    talk = Talk()
    talk.out += [(0, ask(STREAM))] if ask(STREAM) else []
    talk.back += [(50, answer(ANSWERS))]
    assert expected in fields(talk, ended=90_000)


def test_a_mark_that_promises_more_than_the_stream_has_is_found_at_its_end() -> None:
    talk = Talk()
    talk.out += [(0, record(call(1)) + struct.pack(">I", 0x800000FF) + call(2))]
    talk.back += [(50, record(reply(1)))]
    assert found(talk) == [("stream", "215 of 255 bytes are not there")]


def test_calls_of_both_ends_share_a_connection() -> None:
    talk = Talk()
    talk.out += [(0, record(call(1)) + record(reply(7)))]
    talk.back += [(0, record(call(7))), (50, record(reply(1)))]
    assert fields(talk) == ["answer", "question"]  # sent before the call had come
    talk.out = [(0, record(call(1))), (9, record(reply(7)))]
    assert fields(talk) == []


def test_an_xid_may_come_again_once_it_is_answered() -> None:
    talk = Talk()
    for at in (0, 10, 20):
        talk.out.append((at, record(call(1, 40 + at))))
        talk.back.append((at + 5, record(reply(1))))
    assert DECODER.judge(talk.traffic()).calls == 3
    assert fields(talk) == []


# ---- calls without an answer ----


@pytest.mark.parametrize(("ended", "expected"), [(18, []), (90_000, ["question"]), (None, ["question"])])
def test_a_connection_that_ends_before_an_answer_was_due_is_its_reason(ended: int | None, expected: list[str]) -> None:
    talk = Talk()
    talk.out += [(0, record(call(1))), (10, record(call(2)))]
    talk.back += [(5, record(reply(1)))]
    assert fields(talk, ended=ended) == expected


def test_what_is_on_its_way_when_a_connection_is_reset_is_lost() -> None:
    talk = Talk()
    talk.out += [(0, record(call(1))), (10, record(call(2))), (20, record(call(3)))]
    talk.back += [(5, record(reply(1)))]
    assert fields(talk, ended=90_000, reset=True) == []
    talk.back += [(25, record(reply(3)))]
    assert fields(talk, ended=90_000, reset=True) == ["question"]


def test_calls_in_front_of_an_answered_one_are_batched_where_their_procedure_never_answers() -> None:
    talk = Talk()
    talk.out += [(at, record(call(at, 40, 7))) for at in (1, 2, 3)] + [(4, record(call(4, 40, 0)))]
    talk.back += [(9, record(reply(4)))]
    assert fields(talk, ended=90_000) == []
    talk.back += [(10, record(reply(2)))]
    assert fields(talk, ended=90_000) == ["question", "question"]


def test_a_program_that_had_ended_is_a_reason() -> None:
    class Killed(Present):
        def of_service(self, service: Service, since_ns: int, until_ns: int) -> bool:
            return service == Service("udp", *FAR) and since_ns <= 3 * MS

    talk = Talk()
    talk.ask(1, call(1))
    assert fields(talk) == ["question"]
    assert fields(talk, absence=Killed()) == []
    assert fields(talk, unreachable=frozenset({(NEAR, FAR)})) == []
    assert fields(talk, unreachable=frozenset({(FAR, NEAR)})) == ["question"]


# ---- datagrams ----


def sent_three_times() -> Talk:
    """A call that is lost, one whose reply is, and one that is answered."""
    talk = Talk()
    talk.ask(0, call(1), lost=True)
    talk.ask(100, call(1))
    talk.answer(105, reply(1), lost=True)
    talk.ask(200, call(1))
    talk.answer(205, reply(1))
    return talk


def test_a_call_is_sent_again_with_the_same_bytes_for_a_loss() -> None:
    talk = sent_three_times()
    judged = DECODER.judge(talk.traffic())
    assert (judged.findings, judged.calls, judged.counts["retransmission"]) == ([], 1, 2)
    assert judged.remark("x") == "x: 3 calls, 2 replies, 2 retransmissions, 2 of them after a loss"


def test_a_call_may_be_sent_again_before_its_reply_without_a_loss() -> None:
    talk = Talk()
    talk.ask(0, call(1))
    talk.ask(100, call(1), lost=True)
    talk.answer(105, reply(1))
    talk.ask(106, call(1))
    talk.answer(107, reply(1))
    judged = DECODER.judge(talk.traffic())
    assert judged.findings == []
    ((count, after_loss),) = [(each.retransmissions, each.after_loss) for each in judged.exchanges]
    assert (count, after_loss) == (2, 1)


def test_a_round_trip_is_from_the_first_call_to_the_first_reply_that_arrives() -> None:
    talk = sent_three_times()
    talk.ask(300, call(2), lost=True)
    answered, lost = DECODER.judge(talk.traffic()).exchanges
    assert (answered.client, answered.server, answered.transport) == (NEAR, FAR, "udp")
    assert (answered.sent_ns, answered.answered_ns, answered.retransmissions) == (0, 206 * MS, 2)
    assert (answered.question_bytes, answered.answer_bytes) == (len(call(1)), len(reply(1)))
    assert answered.procedure == ".".join(map(str, struct.unpack(">3I", call(1)[12:24])))
    assert (lost.sent_ns, lost.answered_ns, lost.answer_bytes) == (300 * MS, None, None)


OTHER_PORT = ("10.0.0.2", 999)
LOST = {"lost": True}
ASKED = ("ask", 50, call(8), {})
DATAGRAM_DAMAGES: dict[str, tuple[list[tuple[str, int, bytes, dict[str, Any]]], list[str]]] = {
    "sent again with other bytes": (
        [ASKED, ("ask", 52, call(8, 48), {}), ("answer", 60, reply(8), {})], ["question bytes", "question"],
    ),
    "an answer without a call": ([("answer", 50, reply(8), {})], ["answer"]),
    "an answer to a call that was lost": ([("ask", 50, call(8), LOST), ("answer", 60, reply(8), {})], ["answer"]),
    "an answer before its call came": ([ASKED, ("answer", 50, reply(8), {})], ["answer", "question"]),
    "an answer more often than its call came": (
        [ASKED, ("answer", 60, reply(8), {}), ("answer", 61, reply(8), {})], ["answer"],
    ),
    "an answer from another port": ([ASKED, ("answer", 60, reply(8), {"of": OTHER_PORT})], ["answer source"]),
    "sent again after the answer": (
        [ASKED, ("answer", 60, reply(8), {}), ("ask", 90, call(8), {})], ["retransmission"],
    ),
    "not answered": ([ASKED], ["question"]),
    "another xid in the answer": ([ASKED, ("answer", 60, reply(9), {})], ["answer", "question"]),
    "of another protocol": ([("ask", 50, b"GET / HTTP/1.0\r\n\r\n", {})], ["message type"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DATAGRAM_DAMAGES)
def test_damaged_datagrams_are_found(name: str) -> None:
    steps, expected = DATAGRAM_DAMAGES[name]
    talk = Talk()
    for verb, at, data, more in steps:
        getattr(talk, verb)(at, data, **more)
    assert fields(talk) == expected


def test_a_client_that_was_paused_may_ask_again_before_it_reads() -> None:
    class Paused(Present):
        def of_client(self, address: str, since_ns: int, until_ns: int) -> bool:
            return address == NEAR[0] and (since_ns, until_ns) == (61 * MS, 90 * MS)

    talk = Talk()
    talk.ask(50, call(8))
    talk.answer(60, reply(8))
    talk.ask(90, call(8))
    assert fields(talk, absence=Paused()) == []


def test_any_server_answers_a_broadcast_and_none_must() -> None:
    talk = Talk()
    talk.ask(0, call(1), ("10.0.0.255", 111), to_all=True)
    talk.answer(5, reply(1), ("10.0.0.2", 111))
    talk.answer(6, reply(1), ("10.0.0.3", 111))
    talk.ask(9, call(2), ("10.0.0.255", 111), to_all=True)
    assert fields(talk) == []


# ---- headers ----


SYS = words(7) + words(3) + b"abc\0" + words(0, 0, 2, 4, 5)
"""AUTH_SYS of RFC 5531 appendix A: stamp, machine name, uid, gid, gids."""


def with_sys(body: bytes) -> bytes:
    return words(1, 0, 2, 100003, 3, 1, 1, len(body)) + body + bytes(-len(body) % 4) + words(0, 0)


RIGHT_CALLS = {
    "AUTH_SYS": with_sys(SYS),
    "the longest credential": words(1, 0, 2, 100003, 3, 1, 3, 400) + bytes(400) + words(0, 0),
    "RPCSEC_GSS makes a context": words(1, 0, 2, 100003, 3, 0, 6, 8) + bytes(8) + words(0, 0) + bytes(20),
}
WRONG_CALLS = {
    "type": words(1, 2, 2, 100003, 3, 1, 0, 0, 0, 0),
    "RPC version": words(1, 0, 3, 100003, 3, 1, 0, 0, 0, 0),
    "credential": words(1, 0, 2, 100003, 3, 1, 3, 404) + bytes(404) + words(0, 0),
    "verifier": words(1, 0, 2, 100003, 3, 1, 0, 0, 0),
    "procedure": words(1, 0, 2, 100003, 3),
    "length": words(1, 0, 2, 100003, 3, 1, 0, 0, 0, 0) + b"abc",
    "AUTH_SYS gids": with_sys(words(7, 0, 0, 0, 17) + bytes(68)),
    "AUTH_SYS credential": with_sys(SYS + words(1)),
    "AUTH_SYS machine name": with_sys(words(7) + words(3) + b"abc\1" + words(0, 0, 0)),
}
WRONG_REPLIES = {
    "reply status": words(1, 1, 2, 0, 0, 0),
    "accept status": words(1, 1, 0, 0, 0, 6),
    "reject status": words(1, 1, 1, 2),
    "auth status": words(1, 1, 1, 1, 0),
    "versions": words(1, 1, 0, 0, 0, 2, 4, 3),
    "denial": words(1, 1, 1, 1, 5, 0),
    "reply without results": words(1, 1, 0, 0, 0, 1, 0),
    "RPC_MISMATCH": words(1, 1, 1, 0, 2, 2),
    "verifier": words(1, 1, 0, 1, 401),
}


@pytest.mark.parametrize("name", RIGHT_CALLS)
def test_headers_of_the_standard_pass(name: str) -> None:
    talk = Talk()
    talk.ask(0, RIGHT_CALLS[name])
    talk.answer(5, reply(1))
    assert fields(talk) == []


@pytest.mark.parametrize(
    "answer", [words(1, 1, 0, 0, 0, 2, 3, 4), words(1, 1, 1, 1, 14), words(1, 1, 0, 0, 0, 5), reply(1, 800)]
)
def test_every_outcome_of_the_standard_passes(answer: bytes) -> None:
    talk = Talk()
    talk.ask(0, call(1))
    talk.answer(5, answer)
    assert fields(talk) == []


def test_another_version_of_rpc_is_right_where_it_is_denied() -> None:
    talk = Talk()
    talk.ask(0, words(1, 0, 3))
    talk.answer(5, words(1, 1, 1, 0, 2, 2))
    assert fields(talk) == []


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_wrong_field_of_a_call_is_named(name: str) -> None:
    talk = Talk()
    talk.ask(0, WRONG_CALLS[name])
    talk.answer(5, reply(1))
    assert f"message {name}" in fields(talk)


@pytest.mark.parametrize("name", WRONG_REPLIES)
def test_a_wrong_field_of_a_reply_is_named(name: str) -> None:
    talk = Talk()
    talk.ask(0, call(1))
    talk.answer(5, WRONG_REPLIES[name])
    assert f"message {name}" in fields(talk)


def test_results_of_procedure_0_are_found() -> None:
    talk = Talk()
    talk.ask(0, call(1, 40, 0))
    talk.answer(5, reply(1, 32))
    assert fields(talk) == ["message results of procedure 0"]


# ---- the port mapper ----


def text(value: str) -> bytes:
    return words(len(value)) + value.encode() + bytes(-len(value) % 4)


def mapper(version: int, procedure: int, arguments: bytes) -> bytes:
    return words(1, 0, 2, 100000, version, procedure, 0, 0, 0, 0) + arguments


GETPORT = mapper(2, 3, words(100003, 3, 6, 0))
GETADDR = mapper(4, 3, words(100003, 3) + text("udp") + text("") + text(""))


@pytest.mark.parametrize(
    ("question", "results", "expected"),
    [
        (GETPORT, words(2049), {Service("tcp", SERVER, 2049)}),
        (mapper(2, 3, words(100003, 3, 17, 0)), words(900), {Service("udp", SERVER, 900)}),
        (GETPORT, words(0), set()),
        (GETADDR, text("10.0.0.9.8.1"), {Service("udp", "10.0.0.9", 2049)}),
        (GETADDR, text("0.0.0.0.8.1"), {Service("udp", SERVER, 2049)}),
        (GETADDR, text(""), set()),
        (mapper(4, 9, GETADDR[40:]), text("10.0.0.2.8.1"), {Service("udp", SERVER, 2049)}),
    ],
)
def test_answers_name_services(question: bytes, results: bytes, expected: set[Service]) -> None:
    talk = Talk()
    talk.ask(0, question, MAPPER)
    talk.answer(5, reply(1) + results, MAPPER)
    judged = DECODER.judge(talk.traffic())
    assert (judged.findings, judged.services) == ([], expected)


@pytest.mark.parametrize(
    ("question", "results", "expected"),
    [
        (GETPORT + words(0), words(1), "message GETPORT arguments"),
        (GETPORT[:-4], words(1), "message GETPORT port"),
        (GETPORT, b"", "message GETPORT port"),
        (GETPORT, words(1, 1), "message GETPORT result"),
        (GETPORT, words(65536), "message GETPORT port"),
        (GETADDR, text("10.0.0.2.8"), "message GETADDR address"),
        (GETADDR, text("10.0.0.2.8.256"), "message GETADDR address"),
    ],
)
def test_a_wrong_question_or_answer_of_the_port_mapper_is_found(question: bytes, results: bytes, expected: str) -> None:
    talk = Talk()
    talk.ask(0, question, MAPPER)
    talk.answer(5, reply(1) + results, MAPPER)
    assert fields(talk) == [expected]


def test_an_indirect_call_may_stay_without_an_answer() -> None:
    talk = Talk()
    talk.ask(0, mapper(2, 5, bytes(16)), MAPPER)
    assert fields(talk) == []


# ---- captures from elsewhere ----


@pytest.mark.parametrize("name", [*test_foreign.RIGHT_STREAMS, *test_foreign.RIGHT_DATAGRAMS])
def test_a_right_capture_passes(name: str, tmp_path: Path) -> None:
    scene = Scene()
    play = (test_foreign.RIGHT_STREAMS | test_foreign.RIGHT_DATAGRAMS)[name]
    play(scene, 700, 1000)
    result = verify_pcap(classic(tmp_path / "c.pcap", scene.packets), protocol="onc-rpc")
    assert (result.problems, result.verdict) == ([], "pass")
    assert result.remarks is not None
    assert result.remarks[0].startswith("onc-rpc: ")


LEFT_TO_THE_KIND = ("longer_than_the_mss",)
"""What a capture has that does not concern RPC."""
WRONG = {play.__name__: play for play in (*test_foreign.WRONG_STREAMS, *test_foreign.WRONG_DATAGRAMS)}


@pytest.mark.parametrize("name", [name for name in WRONG if name not in LEFT_TO_THE_KIND])
def test_a_wrong_capture_fails_once(name: str, tmp_path: Path) -> None:
    scene = Scene()
    WRONG[name](scene, 700, 1000)
    result = verify_pcap(classic(tmp_path / "c.pcap", scene.packets), protocol="onc-rpc", port=PORT)
    assert [each["rule"].partition(".")[0] for each in result.problems] == ["decoded"]
    assert result.problems[0]["frames"] or "none" in result.problems[0]["seen"]


def test_ports_that_the_port_mapper_names_are_followed(tmp_path: Path) -> None:
    scene = Scene()
    near = ("10.0.0.1", 700)
    scene.udp(near, MAPPER, mapper(2, 3, words(100003, 3, 17, 0)))
    scene.udp(MAPPER, near, reply(1) + words(901))
    scene.udp((SERVER, 901), near, b"not a message at all")
    result = verify_pcap(classic(tmp_path / "c.pcap", scene.packets), protocol="onc-rpc")
    assert [each["field"] for each in result.problems] == ["decoded message type"]
    assert result.remarks is not None
    assert "UDP 10.0.0.2:901" in result.remarks[1]


def test_a_capture_of_one_direction_is_one_finding(tmp_path: Path) -> None:
    scene = Scene()
    for xid in (1, 2, 3):
        scene.udp(("10.0.0.1", 700), (SERVER, PORT), call(xid))
    (problem,) = verify_pcap(classic(tmp_path / "c.pcap", scene.packets), protocol="onc-rpc").problems
    assert (problem["field"], problem["expected"]) == ("decoded answers", "3")
    assert problem["seen"].startswith(f"none from UDP {SERVER}:{PORT}: captured in one direction")


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    scene = Scene()
    scene.udp(("10.0.0.1", 700), (SERVER, 53), b"something else entirely")
    file = classic(tmp_path / "c.pcap", scene.packets)
    with pytest.raises(BadInput, match="holds no message of onc-rpc"):
        verify_pcap(file, protocol="onc-rpc")
    with pytest.raises(BadInput, match="onc-rpc has no expectation of packets"):
        verify_pcap(file, protocol="onc-rpc", mtu=1500)
    with pytest.raises(BadInput, match=r"'onc' is unknown.*onc-rpc"):
        verify_pcap(file, protocol="onc")
    scene = Scene()
    scene.udp(("10.0.0.1", 700), (SERVER, PORT), call(1, 400))
    with pytest.raises(BadInput, match=r"frame 1: is cut to 96 bytes.*a capture of whole frames"):
        verify_pcap(classic(tmp_path / "cut.pcap", scene.packets, snap=96), protocol="onc-rpc")

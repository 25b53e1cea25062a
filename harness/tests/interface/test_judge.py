# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""Messages against an interface and what clients printed: any bit that is wrong is found."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from sundial.interface.judge import Message, facts, judge
from sundial.interface.language import parse
from sundial.interface.messages import records
from sundial.interface.values import Fault

CALC = parse(
    "program CALC { version FIRST { int ADD(int a, int b) = 1; string GREET(string n<20>) = 2; } = 1; } = 536870913;",
    "calc.x",
)
CLIENT, SERVER = ("10.0.0.1", 700), ("10.0.0.2", 20000)
PROGRAM = 0x20000001


def call(xid: int, procedure: int, arguments: bytes, transport: str = "udp") -> Message:
    head = struct.pack(">10I", xid, 0, 2, PROGRAM, 1, procedure, 0, 0, 0, 0)
    return Message(transport, CLIENT, SERVER, head + arguments, f"call {xid}")


def reply(xid: int, results: bytes, status: int = 0, transport: str = "udp") -> Message:
    return Message(transport, SERVER, CLIENT, struct.pack(">6I", xid, 1, 0, 0, 0, status) + results, f"reply {xid}")


def two() -> list[Message]:
    text = struct.pack(">I3sx", 3, b"Ada")
    return [
        call(1, 1, struct.pack(">2i", 40, 2)),
        reply(1, struct.pack(">i", 42)),
        call(2, 2, text, "tcp"),
        reply(2, text, transport="tcp"),
    ]


LINES = facts(
    ("10.0.0.1",),
    f"hello\nrpc 0x00000001 udp {PROGRAM} 1 1 250000 SUCCESS | 40 2 | 42\n"
    f"rpc 0x00000002 tcp {PROGRAM} 1 2 300000 SUCCESS | x416461 | x416461\n",
)


def words(messages: list[Message], lines: list = LINES) -> list[str]:  # type: ignore[type-arg]
    return [str(each) for each in judge(CALC, messages, lines).findings]


def test_what_is_right_passes() -> None:
    judged = judge(CALC, two(), LINES)
    assert judged.findings == []
    assert judged.calls == {"ADD_1": 1, "GREET_1": 1}
    assert judged.times_ns == {"ADD_1": [250_000], "GREET_1": [300_000]}
    assert judged.octets == sum(len(each.data) for each in two())


def test_each_bit_that_is_flipped_is_a_finding() -> None:
    for place, message in enumerate(two()):
        for bit in range(len(message.data) * 8):
            data = bytearray(message.data)
            data[bit // 8] ^= 1 << bit % 8
            messages = two()
            messages[place] = replace(message, data=bytes(data))
            assert words(messages), f"{message.place}, bit {bit}"


def test_a_damaged_argument_is_named_with_both_values() -> None:
    messages = two()
    messages[0] = call(1, 1, struct.pack(">2i", 40, 3))
    assert words(messages) == ["ADD_1 argument b at byte 44 of call 1: expected 2, as its client says, seen 3"]
    assert words(messages, []) == []  # without its client's word any number is one


def test_without_lines_types_are_judged() -> None:
    messages = two()
    messages[2] = call(2, 2, struct.pack(">I3sB", 3, b"Ada", 1), "tcp")
    assert words(messages, []) == ["GREET_1 argument n at byte 47 of call 2: expected zeros, seen padding 01"]
    messages[2] = call(2, 2, struct.pack(">I3sxI", 3, b"Ada", 0), "tcp")
    assert words(messages, []) == [
        "GREET_1 argument end at byte 48 of call 2: expected the end of the message, seen 4 bytes more"
    ]


def test_what_is_sent_again_is_the_same() -> None:
    messages = two()
    assert words([messages[0], *messages[:2], messages[1], *messages[2:]]) == []
    assert words([messages[0], call(1, 1, bytes(8)), *messages[1:]]) == [
        "ADD_1 0x00000001 in call 1 sent again in call 1: expected the same bytes, seen others"
    ]
    assert "answered again" in words([*messages, reply(1, bytes(4))])[0]


@pytest.mark.parametrize(
    ("left_out", "line"),
    [
        (1, "ADD_1 0x00000001 in call 1: expected a reply, seen none"),
        (0, "reply 0x00000001 in reply 1: expected a call with its xid before it, seen none"),
    ],
)
def test_calls_and_replies_belong_together(left_out: int, line: str) -> None:
    messages = two()
    del messages[left_out]
    assert words(messages)[0] == line


def test_an_error_of_the_server_is_a_reply() -> None:
    assert words([call(1, 9, b""), reply(1, b"", 3)], []) == []
    assert words([call(1, 1, bytes(8)), reply(1, b"", 4)], []) == []
    assert words([call(1, 1, bytes(8)), reply(1, struct.pack(">2I", 1, 2), 2)], []) == []
    assert words([call(1, 9, b""), reply(1, b"")], []) != []


def test_lines_and_calls_are_the_same_ones() -> None:
    assert words(two(), LINES[:1]) == ["GREET_1 0x00000002 in call 2: expected a line of its client, seen none"]
    assert words(two()[:2]) == ["GREET_1 0x00000002 over tcp: expected a call in the capture, seen none"]
    with pytest.raises(ValueError, match="rpc 1"):
        facts(("10.0.0.1",), "rpc 1\n")


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("1 1 250000 SUCCESS | 40 2 7 | 42", "ADD_1 0x00000001 in call 1 arguments: expected 3, as its client says, seen 2"),
        ("1 1 250000 SUCCESS | 40 2 |", "ADD_1 0x00000001 in call 1 values: expected 0, as its client says, seen 1"),
        ("1 1 250000 GARBAGE_ARGS | 40 2 |", "ADD_1 0x00000001 in call 1: expected status GARBAGE_ARGS, as its client says, seen SUCCESS"),
        ("1 2 250000 SUCCESS | 40 2 | 42", f"ADD_1 0x00000001 in call 1: expected procedure {PROGRAM}.1.2, as its client says, seen {PROGRAM}.1.1"),
    ],
)  # fmt: skip
def test_what_a_client_says_is_compared_whole(line: str, finding: str) -> None:
    assert words(two()[:2], facts((CLIENT[0],), f"rpc 0x00000001 udp {PROGRAM} {line}\n")) == [finding]


def test_two_programs_of_a_machine_may_use_one_xid() -> None:
    other = ("10.0.0.1", 701)
    messages = two()[:2]
    messages += [
        replace(call(1, 1, struct.pack(">2i", 1, 1)), source=other),
        replace(reply(1, struct.pack(">i", 2)), target=other),
    ]
    begin = f"rpc 0x00000001 udp {PROGRAM} 1 1 5 SUCCESS"
    lines = facts(("10.0.1.1", "10.0.0.1"), f"{begin} | 1 1 | 2\n{begin} | 40 2 | 42\n")
    assert words(messages, lines) == []
    assert words(messages, lines[:1]) == ["ADD_1 0x00000001 in call 1: expected a line of its client, seen none"]


def test_the_null_procedure_takes_nothing() -> None:
    assert words([call(1, 0, b""), reply(1, b"")], []) == []
    assert len(words([call(1, 0, bytes(4)), reply(1, b"")], [])) == 1


def test_a_client_that_was_ended_may_lack_lines() -> None:
    lines = facts(("10.0.0.1",), f"rpc 0x00000001 udp {PROGRAM} 1 1 250000 SUCCESS | 40 2 | 42\nrpc 0x00000002 tcp 5")
    assert len(lines) == 1
    assert len(judge(CALC, two(), lines).findings) == 1
    assert judge(CALC, two(), lines, {CLIENT[0]}).findings == []
    unanswered = [*two()[:2], call(3, 1, bytes(8))]
    assert words(unanswered, lines) == ["ADD_1 0x00000003 in call 3: expected a reply, seen none"]


def test_credentials_of_auth_sys_are_read() -> None:
    def with_credential(flavor: int, body: bytes) -> Message:
        head = struct.pack(">8I", 1, 0, 2, PROGRAM, 1, 1, flavor, len(body)) + body + bytes(8)
        return Message("udp", CLIENT, SERVER, head + bytes(8), "call 1")

    sys = struct.pack(">2I4s4I", 7, 3, b"own", 0, 0, 1, 5)
    assert words([with_credential(1, sys), reply(1, bytes(4))], []) == []
    (line, *_) = words([with_credential(1, sys[:-4]), reply(1, bytes(4))], [])
    assert line.startswith("message rpc.call.cred.sys.gids at byte 56 of call 1")
    assert "AUTH_NONE with 4 bytes" in words([with_credential(0, bytes(4)), reply(1, bytes(4))], [])[0]


def test_records_are_read_over_their_fragments() -> None:
    stream = struct.pack(">I2sI3s", 2, b"ab", 1 << 31 | 3, b"cde") + struct.pack(">I1s", 1 << 31 | 1, b"f")
    assert [(each.begin, each.end, each.data) for each in records(stream)] == [(0, 13, b"abcde"), (13, 18, b"f")]
    for cut in (17, 15, 12, 3):
        with pytest.raises(Fault, match="record mark"):
            list(records(stream[:cut]))

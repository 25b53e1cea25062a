# SPDX-License-Identifier: Apache-2.0
"""The decoder of HTTP/2: frames made by hand from RFC 9113, header blocks from RFC 7541 appendix C."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.verify import verify_pcap
from sundial.verify.decoders.http2 import DECODER
from tests.verify.foreign import Connection, Scene, classic
from tests.verify.talk import Talk

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, UPDATE, MORE = range(10)
ENDS, ACK, WHOLE, PADDED = 1, 1, 4, 8
GET = bytes.fromhex("828684410f7777772e6578616d706c652e636f6d")
"""C.3.1, and C.3.2, which refers to what the first has put into the table."""
AGAIN = bytes.fromhex("828684be58086e6f2d6361636865")
OK = b"\x88"
TRAILERS = b"\x00\x05grace\x03yes"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def words(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}I", *numbers)


def setting(number: int, value: int) -> bytes:
    return frame(SETTINGS, 0, 0, struct.pack(">HI", number, value))


NONE, ACKED = frame(SETTINGS, 0, 0), frame(SETTINGS, ACK, 0)
OUT = [
    PREFACE + NONE,
    ACKED + frame(HEADERS, WHOLE | ENDS, 1, GET) + frame(HEADERS, WHOLE, 3, AGAIN) + frame(DATA, ENDS, 3, b"body"),
]
BACK = [
    NONE + ACKED,
    frame(HEADERS, WHOLE, 3, OK)
    + frame(DATA, 0, 3, b"x")
    + frame(HEADERS, WHOLE, 1, OK)
    + frame(DATA, ENDS, 1)
    + frame(HEADERS, WHOLE | ENDS, 3, TRAILERS),
]


def talk(out: bytes = b"", back: bytes = b"", size: int = 0) -> Talk:
    """The exchange above, with more at its ends, each end's second part when the other's first has come."""
    made = Talk()
    for lane, parts, more, begin in ((made.out, OUT, out, 0), (made.back, BACK, back, 2)):
        for at, data in enumerate([*parts, more]):
            cut = size or max(1, len(data))
            lane += [(begin + 10 * at, data[place : place + cut]) for place in range(0, len(data), cut)]
    return made


def fields(made: Talk, ended: int | None = 90_000) -> list[str]:
    return [each.field.removeprefix("decoded ") for each in DECODER.judge(made.traffic(ended)).findings]


@pytest.mark.parametrize("size", [0, 1, 7, 40])
def test_the_exchange_passes_wherever_tcp_cuts_it(size: int) -> None:
    judged = DECODER.judge(talk(size=size).traffic(90_000))
    assert judged.findings == []
    assert (judged.calls, judged.counts["HEADERS frame"], judged.counts["DATA frame"]) == (2, 5, 3)


@pytest.mark.parametrize("size", [0, 7])
def test_a_round_trip_ends_when_the_response_has_come_to_its_end(size: int) -> None:
    one, two = DECODER.judge(talk(size=size).traffic(90_000)).exchanges
    assert one.procedure == two.procedure == "GET /"
    assert one.sent_ns <= two.sent_ns < one.answered_ns <= two.answered_ns
    cut = talk()
    cut.back = [(at, data[: -len(TRAILERS)]) for at, data in cut.back]
    assert DECODER.judge(cut.traffic(90_000, reset=True)).exchanges[1].answered_ns is None


RIGHT = {
    "CONTINUATION": (frame(HEADERS, ENDS, 5, GET[:3]) + frame(MORE, 0, 5, GET[3:9]) + frame(MORE, 4, 5, GET[9:]), b""),
    "padding": (frame(HEADERS, WHOLE | PADDED | ENDS, 5, b"\4" + AGAIN + bytes(4)), b""),
    "priority": (frame(HEADERS, WHOLE | 0x20 | ENDS, 5, bytes(5) + AGAIN) + frame(PRIORITY, 0, 9, bytes(5)), b""),
    "RST_STREAM": (frame(HEADERS, WHOLE, 5, AGAIN) + frame(RST, 0, 5, words(8)), b""),
    "window updates": (frame(UPDATE, 0, 0, words(1)) + frame(UPDATE, 0, 1, words(5)), frame(UPDATE, 0, 3, words(9))),
    "PING": (frame(PING, 0, 0, b"12345678"), frame(PING, ACK, 0, b"12345678")),
    "GOAWAY": (frame(GOAWAY, 0, 0, words(0, 0) + b"bye"), frame(GOAWAY, 0, 0, words(3, 0))),
    "an unknown type": (frame(0x42, 0xFF, 77, b"?"), b""),
    "an unknown setting": (setting(0xFE03, 1), ACKED),
    "100 in front of the response": (
        frame(HEADERS, WHOLE | ENDS, 5, AGAIN),
        frame(HEADERS, WHOLE, 5, b"\x08\x03100") + frame(HEADERS, WHOLE | ENDS, 5, OK),
    ),
    "a table of another size": (frame(HEADERS, WHOLE | ENDS, 5, b"\x20" + GET), b""),
    "larger frames": (setting(5, 20_000), ACKED),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_the_standard_allows_passes(name: str) -> None:
    assert fields(talk(*RIGHT[name])) == []


def test_a_server_promises_before_it_answers() -> None:
    made = talk(back=frame(HEADERS, WHOLE | ENDS, 2, OK))
    assert fields(made) == ["message stream"]
    made.back[1] = (12, frame(PUSH, WHOLE, 3, words(2) + GET) + made.back[1][1])
    assert fields(made) == []


WRONG = {
    "frame size": (frame(DATA, 0, 1, bytes(16385)), b""),
    "reserved bit": (frame(PING, 0, 1 << 31, bytes(8)), b""),
    "header block": (frame(HEADERS, 0, 5, GET) + frame(PING, 0, 0, bytes(8)), b""),
    "flags": (frame(PING, 2, 0, bytes(8)), frame(PING, ACK, 0, bytes(8))),
    "stream": (frame(DATA, 0, 0, b"x"), b""),
    "increment": (frame(UPDATE, 0, 0, words(0)), b""),
    "SETTINGS": (frame(SETTINGS, 0, 0, bytes(5)), ACKED),
    "SETTINGS ACK": (b"", ACKED),
    "PING ACK": (frame(PING, 0, 0, bytes(8)), frame(PING, ACK, 0, b"12345678")),
    "ENABLE_PUSH": (setting(2, 2), ACKED),
    "INITIAL_WINDOW_SIZE": (setting(4, 1 << 31), ACKED),
    "MAX_FRAME_SIZE": (setting(5, 16383), ACKED),
    "padding": (frame(HEADERS, WHOLE | PADDED | ENDS, 5, b"\xff" + AGAIN), b""),
    "HPACK": (frame(HEADERS, WHOLE | ENDS, 5, b"\xff\x10"), b""),
    "HPACK table size": (frame(HEADERS, WHOLE | ENDS, 5, AGAIN + b"\x20"), b""),
    "pseudo-headers": (frame(HEADERS, WHOLE | ENDS, 5, b"\x82\x86"), b""),
    ":status": (frame(HEADERS, WHOLE | ENDS, 5, AGAIN), frame(HEADERS, WHOLE | ENDS, 5, b"\x08\x0220")),
    "header name": (frame(HEADERS, WHOLE | ENDS, 5, AGAIN + b"\x00\x01A\x01b"), b""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_frame_is_named(name: str) -> None:
    assert f"message {name}" in fields(talk(*WRONG[name]))


MORE_WRONG = [
    ("frame size", frame(PRIORITY, 0, 1, bytes(4))),
    ("frame size", frame(GOAWAY, 0, 0, bytes(7))),
    ("header block", frame(MORE, WHOLE, 5, AGAIN)),
    ("padding", frame(HEADERS, WHOLE | PADDED | ENDS, 5, b"\1" + AGAIN + b"x")),
    ("pseudo-headers", frame(HEADERS, WHOLE | ENDS, 5, b"\x00\x01a\x01b" + AGAIN)),
    ("header name", frame(HEADERS, WHOLE | ENDS, 5, AGAIN + b"\x00\x0aconnection\x05close")),
    ("header name", frame(HEADERS, WHOLE | ENDS, 5, AGAIN + b"\x00\x02te\x04gzip")),
]


@pytest.mark.parametrize(("name", "out"), MORE_WRONG)
def test_another_wrong_frame_is_named(name: str, out: bytes) -> None:
    assert fields(talk(out)) == [f"message {name}"]


OUT_OF_STATE = {
    "a stream that is not open": (frame(DATA, 0, 7, b"x"), b""),
    "an even number": (frame(HEADERS, WHOLE, 8, AGAIN), b""),
    "a number below the last": (frame(HEADERS, WHOLE, 7, AGAIN) + frame(HEADERS, WHOLE, 5, AGAIN), b""),
    "behind END_STREAM": (frame(DATA, 0, 3, b"x"), b""),
    "behind RST_STREAM": (frame(RST, 0, 3, words(8)) + frame(UPDATE, 0, 3, words(8)), b""),
    "trailers that do not end": (
        frame(HEADERS, WHOLE, 5, AGAIN), frame(HEADERS, WHOLE, 5, OK) + frame(HEADERS, WHOLE, 5, TRAILERS),
    ),
    "DATA in front of HEADERS": (frame(HEADERS, WHOLE | ENDS, 5, AGAIN), frame(DATA, 0, 5, b"x")),
    "a server that opens": (b"", frame(HEADERS, WHOLE, 5, OK)),
    "SETTINGS of a stream": (frame(SETTINGS, 0, 1), b""),
    "a client that promises": (frame(HEADERS, WHOLE, 5, AGAIN) + frame(PUSH, WHOLE, 5, words(2) + GET), b""),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT_OF_STATE)
def test_a_frame_that_its_stream_cannot_have_is_found(name: str) -> None:
    assert "message stream" in fields(talk(*OUT_OF_STATE[name]))


def test_a_response_before_its_request_has_come_is_found() -> None:
    made = talk(frame(HEADERS, WHOLE | ENDS, 5, AGAIN), frame(HEADERS, WHOLE | ENDS, 5, OK))
    assert fields(made) == []
    made.back[-1] = (20, made.back[-1][1])
    assert fields(made) == ["message stream"]


def test_what_is_due_is_missed() -> None:
    asks = frame(PING, 0, 0, bytes(8)) + setting(4, 100)
    assert fields(talk(asks)) == ["message SETTINGS ACK", "message PING ACK"]
    assert fields(talk(asks), ended=21) == []


def test_the_beginning_of_a_connection() -> None:
    for begin, expected in ((b"GET / HTTP/1.1\r\n\r\n", "stream"), (PREFACE[:-1] + b"x", "stream")):
        made = talk()
        made.out[0] = (0, begin)
        assert fields(made) == [expected]
    made = talk()
    made.out[0] = (0, PREFACE + frame(PING, 0, 0, bytes(8)) + NONE)
    assert "message first frame" in fields(made)


def test_a_frame_that_is_not_whole_is_found() -> None:
    assert fields(talk(frame(DATA, 0, 1, bytes(8))[:-1])) == ["stream"]
    made = talk()
    made.out[1] = (10, struct.pack(">I", 3)[1:] + made.out[1][1][3:])
    assert fields(made) != []


def test_a_capture_has_its_connections_by_their_preface(tmp_path: Path) -> None:
    scene = Scene()
    made = Connection(scene, 701, server_port=50051)
    made.open()
    for part in (0, 1):
        made.send(False, OUT[part], 3, 30)
        made.send(True, BACK[part], 8)
    made.close()
    file = classic(tmp_path / "c.pcap", scene.packets)
    result = verify_pcap(file, protocol="http2")
    assert (result.problems, result.calls) == ([], 2)
    assert result.remarks is not None
    assert result.remarks[1] == "services: TCP 10.0.0.2:50051"
    for gone in (8, 9):
        holes = classic(tmp_path / f"{gone}.pcap", [*scene.packets[:gone], *scene.packets[gone + 1 :]])
        assert [each["field"] for each in verify_pcap(holes, protocol="http2").problems] == ["decoded stream"]
    late = classic(tmp_path / "late.pcap", scene.packets[5:])
    assert [each["field"] for each in verify_pcap(late, protocol="http2", port=50051).problems] == ["decoded stream"]
    with pytest.raises(BadInput, match="holds no message of http2"):
        verify_pcap(file, protocol="http2", port=80)

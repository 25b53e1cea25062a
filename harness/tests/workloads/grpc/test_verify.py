# SPDX-License-Identifier: Apache-2.0
"""Verification of gRPC over runs whose bytes two programs said: nothing is found, and each damage is, by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sundial.expect import http2
from sundial.expect.http2 import Frame, Setting, Type
from sundial.observe import open_run
from sundial.verify.plan import check_plan
from sundial.verify.samples import load_samples
from sundial.workloads import functions
from sundial.workloads.grpc import verify
from sundial.workloads.grpc.expect import LIBRARIES, Client
from sundial.workloads.grpc.expect_languages import CPP, LANGUAGES, Language
from sundial.workloads.grpc.verify_frames import Due, read
from tests.verify.bed import ACK as TCP_ACK
from tests.verify.bed import CLIENT, FIN, OUT, SERVER, Bed, Record, Stream, capture
from tests.verify.seal import seal
from tests.verify.test_places import arp
from tests.workloads.grpc.dialogue import AUTHORITY, NAMES, Dialogue, findings, recorded, settle


def test_what_was_said_has_a_reason(tmp_path: Path) -> None:
    settled, frames = settle(Dialogue().write(tmp_path))
    assert findings(settled) == []
    assert settled.observed.height == len(NAMES)
    # A string array is longer than a segment; the first segments open the connection.
    arrays = settled.calls.filter(pl.col("procedure") == "string_array")["id"].to_list()
    counts = settled.observed.select("call", "request_packets", "reply_packets").rows()
    assert counts == [(call, *(2, 2)) if call in arrays else (call, 1, 1) for call, _, _ in counts]
    classes = settled.classes.join(frames.select("row", "fate"), on="row")
    assert classes.height == frames.height
    assert dict(classes.group_by("class").len().iter_rows()) == {
        "tcp_handshake": 6,
        "grpc_connection": 2 * 3,
        "call": 2 * (2 * len(NAMES) + 2 * len(arrays) - 1),
        "tcp_fin": 4,
    }


def test_programs_in_cpp(tmp_path: Path) -> None:
    said = Dialogue(language=CPP)
    assert findings(settle(said.write(tmp_path))[0]) == []
    # The other language's user agent is one octet sequence that is not right, in the first request.
    said.said["client"][1] = Dialogue().said["client"][1]
    (found,) = findings(settle(said.write(tmp_path / "agent"))[0])
    assert found[0] == "grpc.request.headers"
    assert "grpc-c++/1.51.1" in found[1]
    assert "grpc-python/1.51.1" in found[2]


@pytest.mark.parametrize(
    ("clock", "expected"),
    [
        ("real", []),
        # Here the server was ready before the step began.
        ("virtual", [("grpc.connection", "of a client's step", f"{CLIENT}:39000 > {SERVER}:50051, 0 bytes")]),
    ],
)
def test_a_server_that_was_still_starting(tmp_path: Path, clock: str, expected: list[tuple[str, str, str]]) -> None:
    settled, frames = settle(Dialogue(clock=clock, refused=39_000).write(tmp_path))
    assert findings(settled) == expected
    assert settled.classes.height == frames.height


def test_a_batch_that_names_another_language(tmp_path: Path) -> None:
    directory = Dialogue(language=CPP).write(tmp_path)
    file = directory / "nodes" / "client" / "samples.jsonl"
    file.write_text(file.read_text().replace('"language": "cpp"', '"language": "python"'))
    assert findings(settle(directory)[0]) == [("sample.language", "cpp", "python")] * len(NAMES)


def test_the_newer_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = LIBRARIES["1.85.1"]
    monkeypatch.setattr(verify, "libraries", lambda run: {(end, "python"): newer for end in ("client", "server")})
    assert findings(settle(Dialogue("1.85.1").write(tmp_path))[0]) == []


def test_another_library_than_the_image_has(tmp_path: Path) -> None:
    """Every trailer differs, the settings do, and so does the user agent of the first request; and nothing else."""
    found = findings(settle(Dialogue("1.85.1").write(tmp_path))[0])
    assert len(found) == len(NAMES) + 3
    assert {name for name, _, _ in found} == {
        "grpc.request.settings", "grpc.reply.settings", "grpc.request.headers", "grpc.reply.headers"
    }  # fmt: skip


def test_segments_that_are_lost_are_sent_again(tmp_path: Path) -> None:
    said = Dialogue(lose={("client", 3): (0,), ("server", 47): (1,)})
    said.retransmits = 1
    settled, _ = settle(said.write(tmp_path))
    assert findings(settled) == []
    assert settled.retransmissions == {"grpc_request": 1, "grpc_reply": 1}
    said.retransmits = 0
    assert findings(settle(said.write(tmp_path / "wrong"))[0]) == [
        ("nodes/client batch 0 tcp_retransmits", "1, as captured", "0")
    ]


@pytest.mark.parametrize("turn", [-1, 0])
def test_what_opens_a_connection_is_sent_again(tmp_path: Path, turn: int) -> None:
    """The preface, and the segment with the settings' acknowledgement and the first request: the kernel counts both."""
    said = Dialogue(lose={("client", turn): (0,)})
    said.retransmits = 1
    settled, _ = settle(said.write(tmp_path))
    assert findings(settled) == []
    # Of a call is what has its octets.
    assert settled.retransmissions == {"grpc_request": turn + 1, "grpc_reply": 0}
    said.retransmits = 0
    assert findings(settle(said.write(tmp_path / "wrong"))[0]) == [
        ("nodes/client batch 0 tcp_retransmits", "1, as captured", "0")
    ]


# ---- damages: each is one finding, by its name ----


def change(frames: list[Frame], place: int, at: int, octet: int) -> None:
    payload = bytearray(frames[place].payload)
    payload[at] = octet
    frames[place] = replace(frames[place], payload=bytes(payload))


def flag(frames: list[Frame], kind: Type) -> None:
    """The lowest flag of the first such frame of the connection."""
    place = next(number for number, each in enumerate(frames) if each.type == kind and not each.stream)
    frames[place] = replace(frames[place], flags=1)


def remove(frames: list[Frame], kind: Type, *, connection: bool) -> None:
    (place,) = (number for number, each in enumerate(frames) if each.type == kind and connection == (not each.stream))
    del frames[place]


def insert(frame: Frame) -> Callable[[Dialogue], None]:
    return lambda said: said.said["client"][5].insert(1, frame)


def of_connection(frames: list[Frame]) -> int:
    """Where the window update of the connection is."""
    (place,) = (number for number, each in enumerate(frames) if each.type == Type.WINDOW_UPDATE and not each.stream)
    return place


def reserve(said: Dialogue) -> None:
    """The highest bit of an increment."""
    frames = said.said["client"][3]
    change(frames, of_connection(frames), 0, 0x80)


def update(turn: int, increment: int) -> Callable[[Dialogue], None]:
    """Another increment for the connection."""

    def damage(said: Dialogue) -> None:
        frames = said.said["client"][turn]
        frames[of_connection(frames)] = http2.window_update(0, increment)

    return damage


def behind(frame: Frame) -> Callable[[Dialogue], None]:
    """A client's frame behind those of a call."""
    return lambda said: said.said["client"][5].append(frame)


def swap(said: Dialogue) -> None:
    replies = said.said["server"]
    replies[12], replies[13] = replies[13], replies[12]


def move_credit(said: Dialogue) -> None:
    """A window update of a call's comes with the call before: its octets had not come."""
    (update,) = (each for each in said.said["server"][43] if each.type == Type.WINDOW_UPDATE)
    said.said["server"][43].remove(update)
    said.said["server"][42].append(update)


def count(said: Dialogue) -> None:
    said.counted["void"] = 4


NONE = "none: the scenario does not count control frames"
CLOSED = ("grpc.request.window_update", ": it is not open", "5")
CAME = "none: its reply had come at"
DAMAGES: dict[str, tuple[Callable[[Dialogue], object], list[tuple[str, str, str]]]] = {
    "a window update before its octets": (
        move_credit,
        [("grpc.reply.window_update", "10348 or 11156 with this one", "11964")],
    ),
    "no acknowledged settings": (
        lambda said: said.said["client"][0].remove(http2.SETTINGS_ACK),
        [("grpc.request.settings", "one acknowledgement", "0")],
    ),
    "settings that say they are an acknowledgement": (
        lambda said: flag(said.said["server"][0], Type.SETTINGS),
        [("grpc.reply.settings", "flags 0 of SETTINGS", "flags 1")],
    ),
    "the reserved bit of a window update": (
        reserve,
        [("grpc.request.window_update", "the reserved bit 0", "80000005")],
    ),
    "a window update of nothing": (
        update(3, 0),
        [("grpc.request.window_update", "an increment", "an increment is four octets, and not 0")],
    ),
    "a window update of a stream that is over": (behind(http2.window_update(1, 5)), [CLOSED]),
    "a window update of a stream that is yet to come": (behind(http2.window_update(9999, 5)), [CLOSED]),
    "a window update of a stream of no client": (behind(http2.window_update(8, 5)), [CLOSED]),
    "a PING": (insert(http2.ping(bytes(8))), [("grpc.request.ping", NONE, "PING flags 0x00")]),
    "a GOAWAY": (insert(http2.goaway(9, 0)), [("grpc.request.goaway", NONE, "GOAWAY flags 0x00")]),
    "a RST_STREAM": (
        insert(http2.rst_stream(9, 8)),
        [("grpc.request.rst_stream", "none of a call that did not fail", "error 8")],
    ),
    "a frame too much": (
        insert(http2.data(9, b"again", last=True)),
        [("grpc.request.data", "WINDOW_UPDATE flags 0x00 stream 9 length 4", "DATA flags 0x01 stream 9 length 5")],
    ),
    "a call that is said to have failed": (
        lambda said: said.row[7].update(ok=0, xid=None, error="UNAVAILABLE"),
        [("sample.error", CAME, "UNAVAILABLE")],
    ),
    "a call that is said to have had its time": (
        lambda said: said.row[7].update(ok=0, xid=None, error="DEADLINE_EXCEEDED"),
        [("sample.error", CAME, "DEADLINE_EXCEEDED")],
    ),
    "a reply that is said to be another": (
        lambda said: said.row[7].update(ok=0, error="DATA_LOSS"),
        [("sample.error", "none: its reply is right", "DATA_LOSS")],
    ),
    "a call that ends too early": (
        lambda said: said.row[7].update(end=1_000_000),
        [("end", "not before its reply is whole", "ns too early")],
    ),
    "a batch that does not say what was sent again": (
        lambda said: setattr(said, "retransmits", None),
        [("nodes/client batch 0 tcp_retransmits", "0, as captured", "None")],
    ),
    "no context switches of a client": (
        lambda said: setattr(said, "switches", 4),
        [("nodes/client batch 0 context_switches", "5 or more", "4")],
    ),
    "no context switches of a server": (
        lambda said: said.switched.update(long=3),
        [("nodes/server port 50051 counters context_switches of long", "4 or more", "3")],
    ),
}


# In the gate each damage in one language, in turn.
@pytest.mark.parametrize(
    ("name", "language"),
    [
        pytest.param(
            *(name, LANGUAGES[language]),
            id=f"{name}-{language}",
            marks=[pytest.mark.night] if (number + turn) % len(LANGUAGES) else [],
        )
        for number, name in enumerate(DAMAGES)
        for turn, language in enumerate(LANGUAGES)
    ],
)
def test_damages(tmp_path: Path, name: str, language: Language) -> None:
    damage, expected = DAMAGES[name]
    said = Dialogue(language=language)
    damage(said)
    found = findings(settle(said.write(tmp_path))[0])
    assert [field for field, _, _ in found] == [field for field, _, _ in expected]
    for (_, right, wrong), (_, due, seen) in zip(found, expected, strict=True):
        assert due in right
        assert seen in wrong


@pytest.mark.parametrize(
    ("increment", "found"), [(1778, []), (1779, [("grpc.request.window_update", "1605 or 1778 for stream 93", "1779")])]
)
def test_a_message_that_is_read_in_parts(tmp_path: Path, increment: int, found: list[tuple[str, str, str]]) -> None:
    """A client that has read 1,427 of 1,605 octets lets the stream send the 178 that are left, and the connection.

    Measured with guests on a hub. Its account then has 173 octets more than it needs for the next request.
    """
    said = Dialogue()
    after, later = said.said["client"][48], said.said["client"][49]
    remove(after, Type.WINDOW_UPDATE, connection=True)
    after[:0] = [http2.window_update(93, increment), http2.window_update(0, 1778)]
    remove(later, Type.WINDOW_UPDATE, connection=True)
    later.append(http2.window_update(0, 1605 - 173))
    assert findings(settle(said.write(tmp_path))[0]) == found


def test_replies_that_are_swapped(tmp_path: Path) -> None:
    said = Dialogue()
    swap(said)
    found = findings(settle(said.write(tmp_path))[0])
    # With their names come what follows: credit and replies that are there before their cause.
    assert {field for field, _, _ in found} >= {"grpc.reply.headers", "reply.sent"}
    (swapped,) = (each for each in found if each[0] == "grpc.reply.headers")
    assert swapped[2] == "HEADERS flags 0x04 stream 25 length 3 instead, and these later"


def killed(call: int) -> Dialogue:
    """The server is killed in a call, counted from 1: it and those after it are UNAVAILABLE."""
    said = Dialogue(stop=call - 1, die_call=call)
    for number in range(call - 1, len(NAMES)):
        said.row[number] |= {"ok": 0, "xid": None, "error": "UNAVAILABLE"}
    said.counted = {name: max(0, min(5, call - 5 * place)) for place, name in enumerate(dict.fromkeys(NAMES))}
    return said


def test_a_server_that_is_killed_in_a_call(tmp_path: Path) -> None:
    """The stream is given up, and the connection ends."""
    said = killed(23)
    settled, frames = settle(said.write(tmp_path))
    assert findings(settled) == []
    assert settled.observed.height == 23
    assert settled.classes.height == frames.height


@pytest.mark.parametrize(("asked", "explained"), [(3, True), (2, False)])
def test_a_server_whose_address_arp_does_not_find(tmp_path: Path, asked: int, explained: bool) -> None:
    said = Dialogue()
    said.counted = dict.fromkeys(said.counted, 0)
    for number in range(len(NAMES)):
        said.row[number] |= {"ok": 0, "xid": None, "error": "UNAVAILABLE", "start": 4 * 10**9, "end": 4 * 10**9 + 1}
    path = said.write(tmp_path)
    names = ["client:eth0", "server:eth0", "lan:fate"]
    records = [Record(place * 10**9, 0, OUT, arp()) for place in range(asked)]
    # The capture goes on: a question at its end may wait for its answer.
    records.append(Record(5 * 10**9, 1, OUT, arp()))
    (path / "wire" / "lan.pcapng").write_bytes(capture(names, records))
    found = [field for field, _, _ in findings(settle(path)[0])]
    assert found.count("sample.error") == (0 if explained else len(NAMES))


@pytest.mark.parametrize("ended", [False, True])
def test_a_refused_connection_is_not_one_that_its_server_ended(tmp_path: Path, ended: bool) -> None:
    said = Dialogue(client_ports=dict.fromkeys(range(len(NAMES)), None), counted=dict.fromkeys(functions.NAMES, 0))
    for number in range(len(NAMES)):
        said.row[number] |= {"ok": 0, "xid": None, "error": "UNAVAILABLE", "start": 1, "end": 10**9}
    path = said.write(tmp_path)
    bed = Bed(tmp_path / "other")
    stream = Stream(bed, 39_000, 50051, {CLIENT: 50, SERVER: 0})
    if ended:
        stream.open()
        bed.send(SERVER, [stream.frame(SERVER, FIN | TCP_ACK, stream.sent[SERVER])])
    else:
        stream.refuse()
    (path / "wire" / "lan.pcapng").write_bytes(capture(["client:eth0", "server:eth0", "lan:fate"], bed.records))
    found = [(field, seen) for field, _, seen in findings(settle(path)[0])]
    assert (("grpc.connection", "by the server") in found) == ended


def test_streams_behind_a_call_that_failed_are_not_known(tmp_path: Path) -> None:
    """A call had had its time before it had a stream: the client no longer knows those of later calls."""
    said = Dialogue()
    for number in range(3, len(NAMES)):
        said.row[number]["xid"] = None
    assert len(findings(settle(said.write(tmp_path / "none"))[0])) == len(NAMES) - 3
    # The reply of the fourth had not come when its time was over.
    said.row[3] |= {"ok": 0, "error": "UNAVAILABLE"}
    fields = {field for field, _, _ in findings(settle(said.write(tmp_path / "failed"))[0])}
    assert "sample.xid" not in fields
    said.row[7]["xid"] = 17
    found = [each for each in findings(settle(said.write(tmp_path / "named"))[0]) if each[0] == "sample.xid"]
    assert found == [("sample.xid", "15", "17")]


def late(said: Dialogue, number: int) -> None:
    """A call has its time over; its client gives the stream up and knows those of later calls no more."""
    said.limit_ms = 1
    said.row[number] |= {"ok": 0, "xid": None, "error": "DEADLINE_EXCEEDED", "back": 2_000_000}
    for later in range(number + 1, len(NAMES)):
        said.row[later]["xid"] = None
    said.said["client"][number + 1].append(http2.rst_stream(2 * number + 1, 8))


UNREAD = b"".join(
    bytes((0, len(name))) + name + bytes((len(value),)) + value
    for name, value in (
        (b":status", b"200"), (b"content-type", b"application/grpc"), (b"grpc-status", b"13"),
        (b"grpc-message", b"Unable to parse request"),
    )
)  # fmt: skip
"""What gRPC's C++ says of a stream that was given up before it read the request, as captured: literals without the
table."""


def unread(said: Dialogue, number: int, *answer: Frame, after: int = 0) -> None:
    """A request that the server does not execute; what it answers comes behind so many later replies."""
    late(said, number)
    replies = said.said["server"]
    replies[number + 1] = [each for each in replies[number + 1] if each.type == Type.WINDOW_UPDATE]
    replies[number + 1 + after] += answer
    # Of a reply that does not come nothing is given back.
    remove(said.said["client"][number + 2], Type.WINDOW_UPDATE, connection=True)
    said.counted["string_32"] -= 1


REFUSAL = http2.headers(45, UNREAD, last=True)


@pytest.mark.parametrize("after", [0, 2])
def test_a_request_that_was_given_up_before_it_was_read(tmp_path: Path, after: int) -> None:
    """A server in C++ answers with headers alone, at its leisure; each octet of them counts."""
    said = Dialogue(language=CPP)
    unread(said, 22, REFUSAL, http2.rst_stream(45, 0), after=after)
    assert findings(settle(said.write(tmp_path / "right"))[0]) == []
    wrong = Dialogue(language=CPP)
    damaged = replace(REFUSAL, payload=REFUSAL.payload.replace(b"Unable", b"unable"))
    unread(wrong, 22, damaged, http2.rst_stream(45, 2), after=after)
    fields = [field for field, _, _ in findings(settle(wrong.write(tmp_path / "wrong"))[0])]
    assert fields == ["grpc.reply.headers", "grpc.reply.rst_stream"]


def test_a_server_in_python_says_nothing_of_it(tmp_path: Path) -> None:
    said = Dialogue()
    unread(said, 22)
    assert findings(settle(said.write(tmp_path / "right"))[0]) == []
    said = Dialogue()
    unread(said, 22, REFUSAL)
    assert findings(settle(said.write(tmp_path / "wrong"))[0])[0][0] == "grpc.reply.headers"


def test_what_a_late_call_left_behind_is_sent_again_in_a_later_batch(tmp_path: Path) -> None:
    said = Dialogue(language=CPP)
    unread(said, 22, REFUSAL, http2.rst_stream(45, 0))
    said.lose[("client", 22)] = (0,)
    assert [field for field, _, _ in findings(settle(said.write(tmp_path / "none"))[0])] == [
        "nodes/client batches 0 to 11 tcp_retransmits"
    ]
    said.retransmits = 1  # of the first batch, as the client says it
    assert findings(settle(said.write(tmp_path / "right"))[0]) == []


def test_a_client_that_no_longer_finds_its_connection(tmp_path: Path) -> None:
    said = killed(3)
    said.client_ports[0] = None
    assert findings(settle(said.write(tmp_path))[0]) == []
    # Nor does it know what its kernel had sent again by then.
    said.lose[("client", 1)] = (0,)
    assert findings(settle(said.write(tmp_path / "again"))[0]) == []
    said.retransmits = 2
    assert [field for field, _, _ in findings(settle(said.write(tmp_path / "more"))[0])] == [
        "nodes/client batch 0 tcp_retransmits"
    ]
    said = Dialogue()
    said.client_ports[0] = None
    assert [field for field, _, _ in findings(settle(said.write(tmp_path / "false"))[0])] == [
        "nodes/client batch 0 client_port"
    ]


def answer(said: Dialogue) -> None:
    said.row[22] |= {"ok": 1, "xid": 45, "error": None}


def count_another(said: Dialogue) -> None:
    said.counted["string_32"] -= 1


COUNTERS = "nodes/server port 50051 counters"
DEATHS: dict[str, tuple[Callable[[Dialogue], object], list[str]]] = {
    "a call without a reply that is said to have succeeded": (answer, ["grpc.request.rst_stream", "grpc.reply"]),
    "a server that was not to be killed": (lambda said: setattr(said, "die_call", None), ["grpc.connection"]),
    "a server that was to be killed later": (lambda said: setattr(said, "die_call", 24), ["grpc.connection"]),
    "a server that was to be killed before": (
        lambda said: setattr(said, "die_call", 22), ["grpc.replies", f"{COUNTERS} calls"]
    ),
    "a server that did not count the call": (count_another, [f"{COUNTERS} calls"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DEATHS)
def test_another_death_than_the_job_says(tmp_path: Path, name: str) -> None:
    damage, fields = DEATHS[name]
    said = killed(23)
    damage(said)
    assert [field for field, _, _ in findings(settle(said.write(tmp_path))[0])] == fields


def test_a_server_that_goes_on_beyond_its_death(tmp_path: Path) -> None:
    assert [field for field, _, _ in findings(settle(Dialogue(die_call=23).write(tmp_path))[0])] == [
        "grpc.connection", "grpc.replies", f"{COUNTERS} calls"
    ]  # fmt: skip


def test_a_call_that_has_had_its_time_is_cancelled(tmp_path: Path) -> None:
    said = Dialogue()
    said.said["server"][5] = []
    # What its stream was granted is the next one's: so there is nothing to give back on the connection.
    said.said["client"][6] = [each for each in said.said["client"][6] if each.stream or each.type != Type.WINDOW_UPDATE]
    said.said["client"][6].insert(0, http2.rst_stream(9, 8))
    # The server gives back the request that it did not answer with the next one: 5 and 7 octets.
    said.said["server"][6] = [
        http2.window_update(0, 12) if each.type == Type.WINDOW_UPDATE and not each.stream else each
        for each in said.said["server"][6]
    ]
    said.row[4] |= {"ok": 0, "xid": None, "error": "DEADLINE_EXCEEDED"}
    assert findings(settle(said.write(tmp_path))[0]) == []


def test_a_step_makes_a_batch_of_each_function(tmp_path: Path) -> None:
    directory = Dialogue().write(tmp_path)
    file = directory / "nodes" / "client" / "job.json"

    def batches() -> list[tuple[str, str, str]]:
        run = open_run(directory)
        found = check_plan(run, load_samples(run), {}).select("field", "expected", "seen")
        return [row for row in found.rows() if "batch" in row[0]]

    assert batches() == []
    file.write_text(
        file.read_text().replace('"void", "boolean"', '"boolean", "void"').replace('"calls": 5', '"calls": 6')
    )
    assert batches()[:2] == [
        ("nodes/client batch 0 procedure", "boolean", "void"),
        ("nodes/client batch 0 calls", "6", "5"),
    ]


@pytest.mark.parametrize("rest", [1, 500])
def test_every_octet_counts(tmp_path: Path, rest: int) -> None:
    """A bit of any octet of any frame that a call has, and of any other: one finding in what is read."""
    client = Client(LIBRARIES["1.51.1"], AUTHORITY)
    due = [Due(frame, None) for frame in client.opening()]
    due += [Due(frame, place) for place, name in enumerate(NAMES) for frame in client.call(2 * place + 1, name)]
    octets = recorded("1.51.1", "client")
    whole = read(octets, len(http2.PREFACE), due)
    assert (whole.wrong, whole.missing, whole.end) == ([], {}, len(octets))
    for place in range(len(http2.PREFACE) + rest, len(octets), 501):
        damaged = bytearray(octets)
        damaged[place] ^= 1 << place % 8
        result = read(bytes(damaged), len(http2.PREFACE), due)
        changed = [each.frame for each in result.controls] != [each.frame for each in whole.controls]
        assert len(result.wrong) == 1 or (changed and not result.wrong)
        assert result.end == len(octets)


# ---- control frames that the scenario counts ----


PING, ACK = http2.ping(b"sundial!"), http2.ping(b"sundial!", ack=True)
LARGER = http2.settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)])


def both(client: Frame, *server: Frame) -> Callable[[Dialogue], None]:
    """A client's frame in a request, and a server's in the reply."""

    def damage(said: Dialogue) -> None:
        said.said["client"][5].insert(1, client)
        said.said["server"][5][:0] = server

    return damage


def enlarge(said: Dialogue) -> None:
    """Another window, the other end's acknowledgement, and an update that follows from no message."""
    both(LARGER, http2.SETTINGS_ACK)(said)
    update(6, 4096)(said)


COUNTED: dict[str, tuple[Callable[[Dialogue], object], list[tuple[str, str, str]]]] = {
    "a PING": (both(PING, ACK), []),
    "a PING without an acknowledgement": (
        both(PING),
        [("grpc.reply.ping", f"an acknowledgement of {PING.payload.hex()}", "none")],
    ),
    "an acknowledgement of another PING": (
        both(PING, http2.ping(bytes(8), ack=True)),
        [("grpc.reply.ping", f"{PING.payload.hex()}, of a PING that has come", "00" * 8)],
    ),
    "two acknowledgements of a PING": (
        both(PING, ACK, ACK),
        [("grpc.reply.ping", "none: no PING had come", PING.payload.hex())],
    ),
    "an acknowledgement of no PING": (
        insert(ACK),
        [("grpc.request.ping", "none: no PING had come", PING.payload.hex())],
    ),
    "a flag of a PING": (
        both(replace(PING, flags=8), ACK),
        [("grpc.request.ping", "flags 0x00 or 0x01", "flags 0x08")],
    ),
    "a client's GOAWAY": (insert(http2.goaway(0, 0)), []),
    "a client's GOAWAY with a stream": (
        insert(http2.goaway(9, 0)),
        [("grpc.request.goaway", "stream 0, the last that was answered", "stream 9")],
    ),
    "a server's GOAWAY": (lambda said: said.said["server"][-1].append(http2.goaway(2 * len(NAMES) - 1, 0)), []),
    "a server's GOAWAY with a stream before the last": (
        lambda said: said.said["server"][5].append(http2.goaway(9, 11)),
        [("grpc.reply.goaway", f"stream {2 * len(NAMES) - 1}, the last that was answered", "stream 9")],
    ),
    "a RST_STREAM": (
        insert(http2.rst_stream(9, 8)),
        [("grpc.request.rst_stream", "none of a call that did not fail", "error 8")],
    ),
    "a larger window update": (update(3, 16), [("grpc.request.window_update", "10 or 15 with this one", "26")]),
    "no window update": (
        lambda said: remove(said.said["client"][3], Type.WINDOW_UPDATE, connection=True),
        [("grpc.request.window_update", "15 octets together", "10")],
    ),
    "another window": (enlarge, []),
}


@pytest.mark.parametrize("name", COUNTED)
def test_frames_that_the_scenario_counts(tmp_path: Path, name: str) -> None:
    damage, expected = COUNTED[name]
    said = Dialogue()
    damage(said)
    directory = said.write(tmp_path)
    record(directory, workloads=[{"app": "grpc", "server": "server", "control_frames": "counted"}])
    found = findings(settle(seal(directory))[0])
    assert [(field, seen) for field, _, seen in found] == [(field, seen) for field, _, seen in expected]
    for (_, right, _), (_, due, _) in zip(found, expected, strict=True):
        assert due in right


def test_another_server_on_the_same_port_counts(tmp_path: Path) -> None:
    said = Dialogue()
    both(PING, ACK)(said)
    directory = said.write(tmp_path)
    record(directory, workloads=[{"app": "grpc", "server": "client", "control_frames": "counted"}])
    assert [field for field, _, _ in findings(settle(seal(directory))[0])] == ["grpc.request.ping", "grpc.reply.ping"]


# ---- what opens a connection that probes, and a run that ends early ----


def probing(tmp_path: Path, said: Dialogue, first: int) -> list[tuple[str, str, str]]:
    """Findings where the client says it probes, and its first update of the connection is of `first` octets."""
    settings = Client(LIBRARIES[said.version], AUTHORITY, bdp_probe=True).opening()[0]
    said.said["client"][0][0] = settings
    frames = said.said["client"][1]
    (place,) = (number for number, each in enumerate(frames) if each.type == Type.WINDOW_UPDATE and not each.stream)
    frames[place] = http2.window_update(0, first)
    directory = said.write(tmp_path)
    job = directory / "nodes" / "client" / "job.json"
    document = json.loads(job.read_text())
    document["steps"][0]["options"]["bdp_probe"] = True
    job.write_text(json.dumps(document))
    record(directory, workloads=[{"app": "grpc", "control_frames": "counted"}], linger="1 s")
    return findings(settle(seal(directory))[0])


def record(directory: Path, **scenario: object) -> None:
    """The scenario of a run's run.json."""
    path = directory / "run.json"
    document = json.loads(path.read_text())
    document["scenario"] = {**(document.get("scenario") or {}), **scenario}
    path.write_text(json.dumps(document))


def test_a_client_that_probes_opens_with_its_first_request(tmp_path: Path) -> None:
    # gRPC 1.51.1 asks for 4 MiB; what the first reply's prefix takes is in the same update.
    assert probing(tmp_path / "right", Dialogue(), (4 << 20) - 65535 - 1 + 5) == []
    ((field, expected, _),) = probing(tmp_path / "less", Dialogue(), (4 << 20) - 65535 - 1)
    assert (field, expected) == ("grpc.request.window_update", f"{(4 << 20) - 65536 + 5} octets")


@pytest.mark.parametrize(("linger", "found"), [("100 ms", []), ("250 ms", [COUNTERS])])
def test_a_run_may_end_before_a_server_says_what_it_counted(tmp_path: Path, linger: str, found: list[str]) -> None:
    directory = Dialogue().write(tmp_path)
    (directory / "nodes" / "server" / "samples.jsonl").write_text('{"type":"hello"}\n')
    record(directory, linger=linger)
    assert [field for field, *_ in findings(settle(seal(directory))[0])] == found


@pytest.mark.parametrize(("linger", "found"), [("100 ms", []), ("250 ms", [f"{COUNTERS} string_32"])])
def test_a_run_may_end_before_a_server_says_what_it_counted_last(tmp_path: Path, linger: str, found: list[str]) -> None:
    said = Dialogue()
    count_another(said)
    directory = said.write(tmp_path)
    record(directory, linger=linger)
    assert [field for field, *_ in findings(settle(seal(directory))[0])] == found

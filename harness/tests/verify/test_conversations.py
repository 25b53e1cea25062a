# SPDX-License-Identifier: Apache-2.0
"""Streams of TCP connections made by hand: bytes, times, rows, and what frames are called."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.observe import open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify.conservation import transit_of
from sundial.verify.corruption import with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.headers.ports import ports_of
from sundial.verify.sockets.conversations import Conversation, Conversations, Explained, Segment, Way, conversations
from tests.verify.bed import ACK, CLIENT, RST, SERVER, Bed, Stream

PORT = 50051
REQUEST, REPLY = bytes(range(256)) * 12, b"answer" * 300


def spoken(directory: Path, isn: int = 1000, **loss: tuple[int, ...]) -> tuple[Conversations, pl.DataFrame]:
    """A request of 3,072 bytes in three segments, its answer of 1,800 in two."""
    stream = Stream(Bed(directory / "run"), 4000, PORT, {CLIENT: isn, SERVER: isn + 77})
    stream.open()
    stream.write(CLIENT, REQUEST, [1448, 1448, 176], loss.get("request", ()))
    stream.write(SERVER, REPLY, [1448, 352], loss.get("reply", ()))
    stream.close()
    return read(stream.bed)


def read(bed: Bed) -> tuple[Conversations, pl.DataFrame]:
    run = open_run(bed.write())
    files = [(run.path / name, name) for name in sorted(run.captures)]
    frames = with_places(read_frames(files, run.epoch_ns))
    frames = with_corrupted(frames, lambda rows: octets_of(rows, files))
    found = conversations(run, frames, {(SERVER, PORT)})
    assert found.balance(transit_of(frames, ports_of(run))).is_empty()
    return found, frames


def only(found: Conversations) -> Conversation:
    assert len(found.all) == 1
    return found.all[0]


@pytest.mark.parametrize("isn", [1000, 2**32 - 1500])
@pytest.mark.parametrize("lost", [(), (1,), (0, 2)])
def test_streams_have_each_byte_once(tmp_path: Path, isn: int, lost: tuple[int, ...]) -> None:
    found, _ = spoken(tmp_path, isn, request=lost)
    one = only(found)
    assert (one.client, one.server) == ((CLIENT, 4000), (SERVER, PORT))
    assert (one.client_machine, one.server_machine) == ("client", "server")
    assert (one.ways[False].data, one.ways[True].data) == (REQUEST, REPLY)
    assert one.mss == (1460, 1460)
    assert one.timestamps
    assert all(way.finished for way in one.ways.values())
    assert one.reset_rows == []
    assert found.findings.is_empty()


def test_times_are_those_of_the_frames_that_brought_the_bytes(tmp_path: Path) -> None:
    found, frames = spoken(tmp_path, request=(1,))
    way = only(found).ways[False]
    data = frames.filter(pl.col("source") == CLIENT, pl.col("tcp_length") > 0)
    sent = data.filter(pl.col("interface") == "client:eth0")["time_ns"].to_list()
    came = data.filter(pl.col("interface") == "server:eth0")["time_ns"].to_list()
    assert [way.sent_ns(end) for end in (1, 1448, 1449, 2896, 2897, 3072)] == [
        *[sent[0]] * 2,
        *[sent[1]] * 2,
        *[sent[2]] * 2,
    ]
    # The second was lost: it came last, and what had come before it counted from then on.
    assert [way.arrived_ns(end) for end in (1, 1448, 1449, 2896, 3072)] == [*[came[0]] * 2, *[came[2]] * 3]
    assert [way.arrived_by(at) for at in (came[0] - 1, came[0], came[1], came[2])] == [0, 1448, 1448, 3072]
    assert way.arrived_ns(3073) is None
    with pytest.raises(ValueError, match="byte 3073 of a stream of 3072"):
        way.sent_ns(3073)
    assert [segment.end for segment in way.segments(1447, 1449)] == [1448, 2896]
    assert way.segments(5, 5) == []
    # The lost one once as sent and once as lost, and again at both ends; the others at both ends.
    assert [len(way.rows(*part)) for part in ((0, 1), (1448, 1449), (1447, 1449))] == [2, 4, 6]


def test_bytes_that_are_others_when_sent_again_are_found(tmp_path: Path) -> None:
    stream = Stream(Bed(tmp_path / "run"), 4000, PORT, {CLIENT: 1, SERVER: 2})
    stream.open()
    stream.write(CLIENT, b"spoken", [6])
    stream.sent[CLIENT] = 0
    stream.write(CLIENT, b"spolen and more", [15])
    found, _ = read(stream.bed)
    assert only(found).ways[False].data == b"spoken and more"
    assert found.findings.select("field", "expected", "seen").rows() == [
        ("request.bytes", "0x6b at 3, as sent before", "0x6c")
    ]


def test_a_gap_is_found_and_ends_the_stream(tmp_path: Path) -> None:
    stream = Stream(Bed(tmp_path / "run"), 4000, PORT, {CLIENT: 1, SERVER: 2})
    stream.open()
    stream.write(CLIENT, b"one", [3])
    stream.sent[CLIENT] += 4
    stream.write(CLIENT, b"three", [5])
    found, _ = read(stream.bed)
    assert only(found).ways[False].data == b"one"
    assert found.findings["expected"].to_list() == ["the stream's byte 3"]


@pytest.mark.parametrize("reply", [False, True])
def test_what_came_before_its_connection_is_in_no_stream(tmp_path: Path, reply: bool) -> None:
    stream = Stream(Bed(tmp_path / "run"), 4000, PORT, {CLIENT: 1, SERVER: 2})
    early = SERVER if reply else CLIENT
    stream.write(early, b"early", [5])
    stream.sent[early] = 0
    stream.open()
    stream.write(CLIENT, b"spoken", [6])
    found, frames = read(stream.bed)
    one = only(found)
    assert {way: one.ways[way].data for way in (False, True)} == {False: b"spoken", True: b""}
    rows = found.classes([Explained(one.number, way, 0, 6, 7) for way in (False, True)])["row"].to_list()
    before = frames.filter(pl.col("tcp_length") == 5)["row"].to_list()
    assert len(before) == 2
    assert not set(before) & set(rows)


def test_frames_have_a_class_where_all_their_bytes_are_explained(tmp_path: Path) -> None:
    found, frames = spoken(tmp_path, request=(2,))
    number = only(found).number
    explained = [
        Explained(number, False, 0, 2000, 7),
        Explained(number, False, 2000, 2900, None, "preface"),
        Explained(number, True, 0, 1800, 7),
    ]
    table = found.classes(explained).join(frames, on="row")
    names = table.filter(pl.col("tcp_length") == 0)["class"].value_counts(sort=True, name="n").sort("class").rows()
    assert names == [("tcp_fin", 4), ("tcp_handshake", 6)]
    data = table.filter(pl.col("tcp_length") > 0).group_by("source", "tcp_length", "class", "call").len()
    # The last segment ends at 3,072, which nothing explains.
    assert sorted(data.rows()) == [
        (CLIENT, 1448, "call", 7, 4),
        (SERVER, 352, "call", 7, 2),
        (SERVER, 1448, "call", 7, 2),
    ]


WAITS = frozenset({("client", (SERVER, PORT))})


def refused_then_served(bed: Bed) -> Bed:
    """One attempt before the server listens, and one behind the connection."""
    Stream(bed, 3999, PORT, {CLIENT: 7, SERVER: 0}).refuse()
    stream = Stream(bed, 4000, PORT, {CLIENT: 1, SERVER: 2})
    stream.open()
    stream.write(CLIENT, b"one", [3])
    stream.close()
    Stream(bed, 4001, PORT, {CLIENT: 9, SERVER: 0}).refuse()
    return bed


def test_a_server_that_is_still_starting_refuses(tmp_path: Path) -> None:
    found, frames = read(refused_then_served(Bed(tmp_path / "run")))
    by_port = {each.client[1]: each for each in found.all}
    assert {port: each.refused for port, each in by_port.items()} == {3999: True, 4000: False, 4001: True}
    # Behind the first that was accepted the server is there: what refuses then is another matter.
    assert found.attempts(WAITS) == {by_port[3999].number}
    assert found.attempts({("client", (SERVER, PORT + 1)), ("server", (SERVER, PORT))}) == set()
    table = found.classes([]).join(frames, on="row")
    own = table.filter(pl.col("source_port").eq(3999) | pl.col("target_port").eq(3999))
    assert sorted(own["class"].to_list()) == ["tcp_handshake"] * 2 + ["tcp_reset"] * 2


def test_a_server_that_never_serves_is_not_starting(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    Stream(bed, 3999, PORT, {CLIENT: 7, SERVER: 0}).refuse()
    found, _ = read(bed)
    assert only(found).refused
    assert found.attempts(WAITS) == set()


def test_what_was_accepted_and_reset_was_not_refused(tmp_path: Path) -> None:
    stream = Stream(Bed(tmp_path / "run"), 4000, PORT, {CLIENT: 1, SERVER: 2})
    stream.open()
    stream.bed.send(SERVER, [stream.frame(SERVER, RST | ACK, 0)])
    assert not only(read(stream.bed)[0]).refused


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=30))
def test_arrivals_are_those_of_a_receiver_that_notes_each_byte(pieces: list[tuple[int, int]]) -> None:
    segments = [Segment(begin, begin + length, at, at) for at, (begin, length) in enumerate(pieces, 1)]
    way = Way(b"", segments, segments)
    had: dict[int, int] = {}
    for each in segments:
        for byte in range(each.begin, each.end):
            had.setdefault(byte, each.at_ns)
    for end in range(1, 60):
        whole = all(byte in had for byte in range(end))
        assert way.arrived_ns(end) == (max(had[byte] for byte in range(end)) if whole else None)
        rows = {each.row for each in segments if each.begin < end and each.end > end - 3}
        assert set(way.rows(end - 3, end)) == rows
        if end - 1 in had and all(byte in had for byte in range(end)):
            assert way.sent_ns(end) in {each.at_ns for each in segments if each.begin < end <= each.end}

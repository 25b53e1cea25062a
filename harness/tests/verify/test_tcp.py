# SPDX-License-Identifier: Apache-2.0
"""TCP: segments, positions, retransmissions, record marks, on connections made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sundial.verify import Verification, verify_run
from sundial.verify.headers import tcp
from sundial.verify.sockets.tcp import sent_segments
from tests.verify.bed import ACK, CLIENT, FIN, RPC_PORT, SERVER, Bed, Stream


def connection(directory: Path, size: int, isn: int = 1000, port: int = 800, **more: object) -> Stream:
    bed = Bed(directory / "run")
    stream = Stream(bed, port, RPC_PORT, {CLIENT: isn, SERVER: isn ^ 0x5A5A}, **more)
    stream.open()
    bed.batch("echo-client", "tcp", size, RPC_PORT, port)
    return stream


def verify(stream: Stream) -> Verification:
    stream.close()
    return verify_run(stream.bed.write())


# 4000 bytes: 4 + 44 + 4000 = 4048 = 2 * 1448 + 1152, and 4 + 28 + 4000 = 4032 = 2 * 1448 + 1136.
CALL, REPLY = [1448, 1448, 1152], [1448, 1448, 1136]


@pytest.mark.parametrize("isn", [1000, 2**32 - 3000])
def test_segments_of_several_calls_on_one_connection(tmp_path: Path, isn: int) -> None:
    stream = connection(tmp_path, 4000, isn)
    for xid in range(5):
        stream.call(4000, xid, CALL, REPLY)
    result = verify(stream)
    assert result.problems == []
    assert (result.calls, result.packets) == (5, 30)
    assert result.classified["tcp_handshake"] == 6
    assert result.classified["tcp_fin"] == 4


def test_without_timestamps_segments_are_longer(tmp_path: Path) -> None:
    stream = connection(tmp_path, 4000, timestamps=False)
    stream.call(4000, 1, [1460, 1460, 1128], [1460, 1460, 1112])
    assert verify(stream).problems == []


def test_the_peers_mss_limits_segments(tmp_path: Path) -> None:
    stream = connection(tmp_path, 1000, mss=512)
    stream.call(1000, 1, [500, 500, 48], [500, 500, 32])
    # That it is less than the MTU allows is found in both SYNs, and nothing else.
    found = [(problem["field"], problem["seen"]) for problem in verify(stream).problems]
    assert found == [("tcp.options.mss", "512")] * 2


@pytest.mark.parametrize(("reply", "seen"), [([1436, 1436, 1160], []), ([1436, 1160, 1436], ["reply.segments"])])
def test_segments_with_sack_blocks_hold_so_much_less(tmp_path: Path, reply: list[int], seen: list[str]) -> None:
    """A block takes 10 octets (RFC 2018, section 3), and two of padding."""
    stream = connection(tmp_path, 4000, sacked=(0, 1448))
    stream.call(4000, 1, CALL, reply)
    fields = [problem["field"] for problem in verify(stream).problems]
    assert [field for field in fields if field.endswith("segments")] == seen


@pytest.mark.parametrize(
    ("reply", "lost", "seen"),
    [
        ([1436, 1436, 24, 1136], (), []),
        ([1436, 1448, 12, 1136], (), []),
        ([1436, 1448, 12, 1136], (1,), []),
        ([1436, 1436, 12, 12, 8, 1128], (), ["reply.segments"]),
        ([1448, 1436, 24, 24, 1100], (), ["reply.segments"]),
        ([1436, 1448, 12, 12, 1124], (1,), ["reply.segments"]),
    ],
)
def test_what_a_segment_with_sack_blocks_leaves_over_goes_by_itself(
    tmp_path: Path, reply: list[int], lost: tuple[int, ...], seen: list[str]
) -> None:
    stream = replace(connection(tmp_path, 4000, sacked=(0, 1448)), sacks=2 if reply[1] == 1436 else 1)
    stream.call(4000, 1, CALL, reply, reply=lost)
    fields = [problem["field"] for problem in verify(stream).problems]
    assert [field for field in fields if field.endswith("segments")] == seen


@pytest.mark.parametrize(("again", "found"), [(True, 0), (False, 2)])
def test_a_sack_block_names_a_syn_that_came_twice(tmp_path: Path, again: bool, found: int) -> None:
    """RFC 2883 section 4: what came twice, and a SYN takes a number."""
    stream = replace(connection(tmp_path, 4000, sacked=(-1, 0)), sacks=1)
    if again:
        stream.bed.send(CLIENT, [stream.frame(CLIENT, 0x02, -1, syn=True)])
    stream.call(4000, 1, CALL, [1436, 1448, 12, 1136])
    fields = [problem["field"] for problem in verify(stream).problems]
    assert fields.count("tcp.options.sack") == found


def test_another_division_is_a_mismatch(tmp_path: Path) -> None:
    stream = connection(tmp_path, 4000)
    stream.call(4000, 1, CALL, REPLY)
    stream.call(4000, 2, [1448, 1152, 1448], REPLY)
    result = verify(stream)
    assert [(p["field"], p["expected"], p["seen"], p["call"]["xid"]) for p in result.problems] == [
        ("request.segments", "1448,1448,1152", "1448,1152,1448", 2)
    ]
    # Frames are numbered in time: 3 of the handshake twice, then 6 segments of the first call, each seen twice.
    assert result.problems[0]["frames"][0] == 6 + 12 + 1


def test_retransmissions_are_counted_apart(tmp_path: Path) -> None:
    stream = connection(tmp_path, 4000)
    stream.call(4000, 1, CALL, REPLY, request=(1,))
    stream.call(4000, 2, CALL, REPLY, reply=(0, 2))
    result = verify(stream)
    assert result.problems == []
    assert result.retransmissions == {"calls": 0, "replies": 0, "tcp": 3}


def test_a_mark_in_two_segments_is_read(tmp_path: Path) -> None:
    """What is said is only that TCP need not have cut there."""
    stream = connection(tmp_path, 16)
    stream.call(16, 1, [64], [48])
    stream.call(16, 2, [2, 62], [48])
    assert [(p["field"], p["seen"], p["call"]["xid"]) for p in verify(stream).problems] == [
        ("request.segments", "2,62", 2)
    ]


@pytest.mark.parametrize(
    ("sent", "fresh"),
    [
        # Three segments go again as one, which is one retransmission.
        ([(0, 100), (100, 200), (200, 300), (0, 300)], [(0, 100), (100, 100), (200, 100), (0, 0)]),
        # The same with new bytes behind them.
        ([(0, 100), (100, 200), (0, 300)], [(0, 100), (100, 100), (0, 100)]),
        # One in between was not captured.
        ([(0, 100), (200, 300), (100, 200), (50, 250)], [(0, 100), (100, 100), (200, 100), (50, 0)]),
    ],
)
def test_bytes_are_fresh_that_were_in_no_segment_before(
    sent: list[tuple[int, int]], fresh: list[tuple[int, int]]
) -> None:
    rows = [(1, False, "sent", pos, stop - pos, place, place) for place, (pos, stop) in enumerate(sent)]
    names = ["conn", "reply", "view", "pos", "data", "time_ns", "row"]
    found = sent_segments(pl.DataFrame(rows, names, orient="row"))
    assert sorted(found.select("pos", "fresh").rows()) == sorted(fresh)
    assert found.filter(pl.col("fresh") > 0).select(pl.col("stop") - pl.col("fresh")).to_series().is_sorted()


def test_a_retransmission_cut_another_way_is_one_too(tmp_path: Path) -> None:
    stream = connection(tmp_path, 4000)
    stream.call(4000, 1, CALL, REPLY)
    again = stream.frame(CLIENT, 0x10, 0, bytes(2896))
    stream.bed.send(CLIENT, [again])
    result = verify(stream)
    assert result.retransmissions["tcp"] == 1


def test_a_port_used_again_begins_a_new_stream(tmp_path: Path) -> None:
    first = connection(tmp_path, 16)
    first.call(16, 1, [64], [48])
    first.close()
    first.bed.now += 1_000_000
    second = Stream(first.bed, 800, RPC_PORT, {CLIENT: 77_000_000, SERVER: 88_000_000})
    second.open()
    second.bed.batch("echo-client", "tcp", 4000, RPC_PORT, 800)
    second.call(4000, 1, CALL, REPLY)
    assert verify(second).problems == []


def test_data_beyond_every_call_is_a_frame_without_a_call(tmp_path: Path) -> None:
    stream = connection(tmp_path, 16)
    stream.call(16, 1, [64], [48])
    stream.write(CLIENT, bytes(100), [100])
    fields = [problem["field"] for problem in verify(stream).problems]
    assert fields == ["frame without a call"] * 2


def test_an_empty_fin_stands_behind_all_data(tmp_path: Path) -> None:
    """RFC 9293, section 3.4: SND.NXT is its number, not one of data that were sent before."""
    stream = connection(tmp_path, 16)
    stream.call(16, 1, [64], [48])
    stream.bed.send(CLIENT, [stream.frame(CLIENT, FIN | ACK, 60)])
    stream.bed.send(SERVER, [stream.frame(SERVER, FIN | ACK, 48)])
    fields = [problem["field"] for problem in verify_run(stream.bed.write()).problems]
    assert "tcp.seq" in fields


@pytest.mark.parametrize(("late", "found"), [(False, []), (True, ["frame without a call"] * 4)])
def test_a_server_that_does_not_listen_yet_refuses(tmp_path: Path, late: bool, found: list[str]) -> None:
    """Behind a connection that it accepted the server is there: what refuses then is another matter."""
    bed = Bed(tmp_path / "run")
    early = Stream(bed, 799, RPC_PORT, {CLIENT: 50, SERVER: 0})
    if not late:
        early.refuse()
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1000, SERVER: 1000 ^ 0x5A5A})
    stream.open()
    bed.batch("echo-client", "tcp", 16, RPC_PORT, 800)
    stream.call(16, 1, [64], [48])
    if late:
        early.refuse()
    result = verify(stream)
    assert [each["field"] for each in result.problems] == found


@pytest.mark.parametrize(("least", "sizes"), [(1, [2, 3, 1]), (2, [2, 3, 1]), (3, [5, 1]), (9, [6])])
def test_connections_are_followed_whole(least: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "_AT_ONCE", least)
    events = pl.DataFrame({"conn": [0, 0, 1, 1, 1, 2]}, schema={"conn": pl.UInt32})
    parts = list(tcp._some(events))
    assert [part.height for part in parts] == sizes
    assert pl.concat(parts).equals(events)

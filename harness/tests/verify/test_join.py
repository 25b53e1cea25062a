# SPDX-License-Identifier: Apache-2.0
"""Segments put together to streams, and iperf3's streams read by it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.observe import open_run, read_frames
from sundial.verify.corruption import with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.sockets import tcp
from sundial.verify.sockets.conversations import conversations
from sundial.verify.sockets.stream import join
from sundial.workloads.iperf3.verify_control import COOKIE
from sundial.workloads.iperf3.verify_transfers import Connections, check_blocks
from tests import fates
from tests.verify.bed import CLIENT, SERVER, Bed, Record, Stream

TEXT = bytes(range(200))
PORT = 5201


@given(st.lists(st.tuples(st.integers(-3, 190), st.integers(1, 60)), max_size=30))
def test_each_byte_comes_once_and_from_the_first_segment_that_has_it(cuts: list[tuple[int, int]]) -> None:
    segments = sorted((pos, row, pos + size) for row, (pos, size) in enumerate(cuts))
    padded = b"abc" + TEXT + bytes(60)
    parts = list(join((row, pos, padded[pos + 3 : end + 3]) for pos, row, end in segments))
    assert [part.row for part in parts] == [row for _, row, _ in segments]
    assert not any(part.changed for part in parts)
    seen: set[int] = set()
    for part, (pos, _, end) in zip(parts, segments, strict=True):
        fresh = set(range(max(pos, 0), end)) - seen
        assert list(range(part.pos, part.pos + len(part.new))) == sorted(fresh)
        assert part.new == padded[part.pos + 3 :][: len(part.new)]
        reach = max(seen, default=-1) + 1
        assert part.gap == (reach if pos > reach else None)
        seen |= fresh


@pytest.mark.parametrize(
    ("again", "changed"),
    [
        ((2, b"cdef"), None),
        ((2, b"cd"), None),
        ((5, b"fgh"), None),
        ((2, b"cdxf"), (4, ord("e"), ord("x"))),
        ((2, b"cdexgh"), (5, ord("f"), ord("x"))),
        ((5, b"x"), (5, ord("f"), ord("x"))),
        ((6, b"xyz"), None),
    ],
)
def test_what_was_sent_before_must_be_the_same(again: tuple[int, bytes], changed: tuple[int, int, int] | None) -> None:
    first, second = join([(7, 0, b"abcdef"), (8, *again)])
    assert (first.new, first.changed, second.changed) == (b"abcdef", None, changed)
    assert second.new == again[1][6 - again[0] :], "the first to send a byte says what it is"


def test_a_segment_behind_one_that_was_changed_is_compared_with_the_first() -> None:
    parts = list(join([(1, 0, b"abcd"), (2, 0, b"abXd"), (3, 2, b"cdef")]))
    assert [part.changed for part in parts] == [None, (2, ord("c"), ord("X")), None]
    assert b"".join(part.new for part in parts) == b"abcdef"


def stream_of(directory: Path) -> Stream:
    stream = Stream(Bed(directory / "run"), 4000, PORT, {CLIENT: 2**32 - 50, SERVER: 7})
    stream.open()
    return stream


def opened(stream: Stream) -> Connections:
    run = open_run(stream.bed.write())
    files = [(run.path / name, name) for name in sorted(run.captures)]
    frames = with_corrupted(with_places(read_frames(files, run.epoch_ns)), lambda rows: pytest.fail("no octets"))
    placed = conversations(run, frames, {(SERVER, PORT)}).frames
    return Connections(placed, tcp.sent_segments(placed), files)


def test_a_stream_is_read_up_to_its_gap(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    stream.write(CLIENT, TEXT, [90, 10, 100], (1,))
    stream.sent[CLIENT] += 5
    stream.write(CLIENT, TEXT, [200])
    connections = opened(stream)
    assert [connections.read(0, False, count) for count in (0, 1, 95, 1000)] == [b"", TEXT[:1], TEXT[:95], TEXT]
    assert (connections.length(0, False), connections.behind_gaps(0, False)) == (200, 200)
    assert list(connections.changed(0, 1000)) == []


@pytest.mark.parametrize(("adapter", "reached"), [("client:eth0", (405, 0)), ("server:eth0", (200, 200))])
def test_what_the_senders_adapter_gave_up_is_no_gap(tmp_path: Path, adapter: str, reached: tuple[int, int]) -> None:
    """A hub's station gives up after 16 attempts (IEEE 802.3 section 4.2.3.2.5), and TCP may not send again in time."""
    stream = stream_of(tmp_path)
    stream.write(CLIENT, TEXT, [200])
    frame = stream.frame(CLIENT, 0x10, 200, TEXT[:5])
    stream.bed.records.append(Record(stream.bed.now, 2, 0, frame, fates.given_up(adapter)))
    stream.sent[CLIENT] += 5
    stream.write(CLIENT, TEXT, [200])
    connections = opened(stream)
    assert (connections.length(0, False), connections.behind_gaps(0, False)) == reached
    assert connections.length(0, False, "received") == 200


@pytest.mark.parametrize(("count", "found"), [(4, []), (5, [(4, ord("e"), ord("X"))]), (9, [(4, ord("e"), ord("X"))])])
def test_what_iperf3_sends_again_is_compared(tmp_path: Path, count: int, found: list[tuple[int, int, int]]) -> None:
    stream = stream_of(tmp_path)
    stream.write(CLIENT, b"abcdefghi", [9])
    stream.sent[CLIENT] = 0
    stream.write(CLIENT, b"abcdXfghi", [9])
    assert [changed for _, changed in opened(stream).changed(0, count)] == found


BLOCK = bytes((7 * place) % 251 for place in range(160))


@pytest.mark.parametrize("lost", [(), (1,), (0, 3)])
@pytest.mark.parametrize("damage", [None, 300])
def test_blocks_follow_one_another(tmp_path: Path, lost: tuple[int, ...], damage: int | None) -> None:
    stream = stream_of(tmp_path)
    data = bytearray(bytes(COOKIE) + BLOCK * 4)
    if damage is not None:
        data[damage] ^= 1
    stream.write(CLIENT, bytes(data), [COOKIE + 40, 200, 100, 300], lost)
    connections = opened(stream)
    places = {place for _, place in check_blocks(connections, 0, len(BLOCK))}
    assert places == (set() if damage is None else {damage})


@pytest.mark.parametrize("segments", [[COOKIE + 178, 18 + 320], [COOKIE + 165, 20, 331]])
@pytest.mark.parametrize("damage", [None, COOKIE + 160 + 9, COOKIE + 160 + 50])
def test_a_write_may_end_within_the_first_bytes_of_a_block(
    tmp_path: Path, segments: list[int], damage: int | None
) -> None:
    stream = stream_of(tmp_path)
    data = bytearray(bytes(COOKIE) + BLOCK + BLOCK[:18] + BLOCK * 2 + BLOCK[:18])
    if damage is not None:
        data[damage] ^= 1
    stream.write(CLIENT, bytes(data), segments)
    places = {place for _, place in check_blocks(opened(stream), 0, len(BLOCK))}
    assert bool(places) == (damage is not None)


def test_a_block_is_not_looked_for_over_a_gap(tmp_path: Path) -> None:
    stream = stream_of(tmp_path)
    # The first bytes of a block, of which the last follow 50 bytes later as if they were next.
    stream.write(CLIENT, bytes(COOKIE) + BLOCK * 2 + BLOCK[:16], [COOKIE + 336])
    stream.sent[CLIENT] += 50
    stream.write(CLIENT, BLOCK[16:] + BLOCK, [304])
    connections = opened(stream)
    begins = connections.segments.filter(pl.col("pos") > COOKIE + 336)["pos"].to_list()
    rows = [place for _, place in check_blocks(connections, 0, len(BLOCK))]
    assert begins == [COOKIE + 386]
    assert begins[0] in rows, "what is behind the gap is not where a block would have it"

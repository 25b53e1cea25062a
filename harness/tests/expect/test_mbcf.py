# SPDX-License-Identifier: Apache-2.0
"""MBCF frames against tables written by hand from wire.h and mbcf_messages.h; sizes are bytes behind 42 of headers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.workloads.mbcf.expect import Exchange, Frame, expect_operation, frame_bytes, wire_bytes
from sundial.workloads.sunrpc.expect_mbcf import expect_binding, expect_lookup, expect_rpc


def texts(frames: tuple[Frame, ...]) -> str:
    return " ".join(frame.text for frame in frames)


# Operation, bytes of data, whether its user waits for the ACK; frames there (+ parts follow, ! the ACK is wanted at
# once) and back, the ACK; frames in all and their bytes without preamble, FCS and gap: 14 + 28 + payload each,
# at least 60.
OPERATIONS = [
    ("write", 0, False, "WRITE:0", "", "", 1, 60),
    ("write", 4, True, "WRITE:4!", "", "ACK:0", 2, 2 * 60),
    ("write", 1408, False, "WRITE:1408", "", "", 1, 1450),
    ("write", 1409, False, "WRITE:1408+ WRITE:1", "", "", 2, 1450 + 60),
    ("write", 2816, True, "WRITE:1408+ WRITE:1408!", "", "ACK:0", 3, 2 * 1450 + 60),
    ("fifo", 1408, False, "FIFO:1408", "", "", 1, 1450),
    ("fifo", 1409, False, "FIFO:1408+ FIFO:17", "", "", 2, 1450 + 60),
    ("fifo", 2800, True, "FIFO:1408+ FIFO:1408!", "", "ACK:0", 3, 2 * 1450 + 60),
    ("fifo", 2801, True, "FIFO:1408+ FIFO:1408+ FIFO:9!", "", "ACK:0", 4, 2 * 1450 + 2 * 60),
    ("read", 0, True, "READ:8", "RESULT:0", "", 2, 2 * 60),
    ("read", 1408, True, "READ:8", "RESULT:1408", "", 2, 60 + 1450),
    ("read", 1500, True, "READ:8+ READ:8", "RESULT:1408 RESULT:92", "", 4, 2 * 60 + 1450 + 134),
    ("taskque", 1392, False, "TASKQUE:1408", "", "", 1, 1450),
    ("taskque", 0, True, "TASKQUE:16!", "", "ACK:0", 2, 2 * 60),
    ("signal", 1376, True, "SIGNAL:1408!", "", "ACK:0", 2, 1450 + 60),
    ("signal", 0, False, "SIGNAL:32", "", "", 1, 74),  # four arguments
    ("swap", 8, True, "SWAP:8", "RESULT:8", "", 2, 2 * 60),
    ("cas", 4, True, "CAS:16", "RESULT:8", "", 2, 2 * 60),
    ("fetch_add", 4, True, "FETCH_ADD:8", "RESULT:8", "", 2, 2 * 60),
    ("fetch_add", 4, False, "FETCH_ADD:8", "", "", 1, 60),
]


@pytest.mark.parametrize(("operation", "length", "wait", "there", "back", "ack", "frames", "size"), OPERATIONS)
def test_operations(
    operation: str, length: int, wait: bool, there: str, back: str, ack: str, frames: int, size: int
) -> None:
    exchange = expect_operation(operation, length, wait)
    assert (texts(exchange.there), texts(exchange.back), texts(exchange.ack)) == (there, back, ack)
    every = exchange.there + exchange.back + exchange.ack
    assert (len(every), frame_bytes(every), wire_bytes(every)) == (frames, size, size + 24 * frames)


# An echo call is 40 + 4 + size bytes, its reply 24 + 4 + size, sizes rounded up to four (RFC 5531, RFC 4506). The last
# columns: frames of both sides with the CLOSE, and their bytes.
RPC = [
    ("mbcf1", 0, "TASKQUE:76", "FIFO:28", 3, 118 + 86 + 60),
    ("mbcf1", 1332, "TASKQUE:1408", "FIFO:1360", 3, 1450 + 1418 + 60),
    ("mbcf2", 0, "TASKQUE:48 RESULT:44", "READ:8 FIFO:28", 5, 90 + 86 + 66 + 70 + 60),
    ("mbcf2", 1400, "TASKQUE:48 RESULT:1408 RESULT:36", "READ:8+ READ:8 FIFO:1408+ FIFO:36",
     8, 90 + 1450 + 78 + 66 + 60 + 1450 + 78 + 60),
    ("mbcf12", 1332, "TASKQUE:1408", "FIFO:1360", 3, 1450 + 1418 + 60),
    ("mbcf12", 1333, "TASKQUE:48 RESULT:1380", "READ:8 FIFO:1364", 5, 90 + 1422 + 66 + 1406 + 60),
    ("mbcf3", 0, "FIFO:44", "FIFO:28", 2, 86 + 70),
    ("mbcf3", 1024, "FIFO:1068", "FIFO:1052", 2, 1110 + 1094),
    ("mbcf3a", 1364, "FIFO:1408", "FIFO:1392", 2, 1450 + 1434),
    ("mbcf3a", 1365, "FIFO:1408+ FIFO:20", "FIFO:1396", 3, 1450 + 62 + 1438),
    ("mbcf3", 1384, "FIFO:1408+ FIFO:36", "FIFO:1408+ FIFO:20", 4, 1450 + 78 + 1450 + 62),
    ("mbcf3b", 0, "SIGNAL:44", "FIFO:28", 2, 86 + 70),
    ("mbcf3b", 1332, "SIGNAL:1376", "FIFO:1360", 2, 1418 + 1402),
    ("mbcf3b", 1333, "WRITE:1380 SIGNAL:16", "FIFO:1364", 3, 1422 + 60 + 1406),
    ("mbcf3b", 4096, "WRITE:1408+ WRITE:1408+ WRITE:1324 SIGNAL:16", "FIFO:1408+ FIFO:1408+ FIFO:1332",
     7, 2 * 1450 + 1366 + 60 + 2 * 1450 + 1374),
]  # fmt: skip


@pytest.mark.parametrize(("server", "size", "client", "back", "frames", "total"), RPC)
def test_rpc_of_each_type(server: str, size: int, client: str, back: str, frames: int, total: int) -> None:
    call = expect_rpc(server, "echo", size)
    close = "CLOSE:8" if server in ("mbcf1", "mbcf2", "mbcf12") else ""
    assert (texts(call.client), texts(call.server), texts(call.close), call.fails) == (client, back, close, False)
    every = call.client + call.server + call.close
    assert (call.frames, frame_bytes(every), wire_bytes(every)) == (frames, total, total + 24 * frames)


def test_a_request_beyond_a_taskque_fails_with_type_1() -> None:
    assert not expect_rpc("mbcf1", "echo", 1332).fails
    assert expect_rpc("mbcf1", "echo", 1333).fails


def test_one_way_calls_have_no_reply() -> None:
    call = expect_rpc("mbcf3", "sink", 64, one_way=True)
    assert (texts(call.client), texts(call.server)) == ("FIFO:108", "")
    # Nothing but the ACK tells that it was taken.
    assert texts(expect_rpc("mbcf3", "sink", 64, one_way=True, ack=True).client) == "FIFO:108!"
    assert texts(expect_rpc("mbcf3", "sink", 64, ack=True).client) == "FIFO:108"


def test_setting_up() -> None:
    binding, lookup = expect_binding("mbcf3b"), expect_lookup()
    assert (texts(binding.client), texts(binding.server), texts(binding.close)) == ("TASKQUE:56", "FIFO:56", "CLOSE:8")
    assert (texts(lookup.client), texts(lookup.server)) == ("TASKQUE:48", "WRITE:8")
    with pytest.raises(ValueError, match="mbcf1 makes a connection with each call"):
        expect_binding("mbcf1")


def test_time_on_the_wire() -> None:
    # 14 + 28 + 44 = 86 and 14 + 28 + 28 = 70; preamble 8, FCS 4, gap 12: 110 and 94 byte times of 80 ns at 100 Mb/s.
    call = expect_rpc("mbcf3", "echo", 0)
    assert 80 * wire_bytes(call.client) == 8_800
    assert 80 * wire_bytes(call.server) == 7_520
    # A WRITE of four bytes and its ACK at 10 Mb/s: 84 byte times of 800 ns each.
    write = expect_operation("write", 4, True)
    assert 800 * wire_bytes(write.there + write.ack) == 134_400
    # 95 % of the wire is the most that a stream of full WRITEs can carry: 1408 of 1450 + 24.
    assert wire_bytes(expect_operation("write", 1408).there) == 1474


@pytest.mark.parametrize(
    ("operation", "length", "text"),
    [
        ("taskque", 1393, "taskque of 1393 bytes: at most 1392"),
        ("signal", 1377, "signal of 1377 bytes: at most 1376"),
        ("cas", 5, "cas of 5 bytes: atomic operations are on 4 or 8"),
        ("move", 5, "operation 'move': known are taskque, "),
        ("write", -1, "length -1: must not be negative"),
    ],
)
def test_what_cannot_be(operation: str, length: int, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        expect_operation(operation, length)


def data(exchange: Exchange) -> int:
    return sum(frame.payload - (8 if frame.part else 0) for frame in exchange.there)


@settings(deadline=None)
@given(length=st.integers(0, 2_000_000), kind=st.sampled_from(["write", "fifo"]), ack=st.booleans())
def test_parts_add_up(length: int, kind: str, ack: bool) -> None:
    exchange = expect_operation(kind, length, ack)
    assert data(exchange) == length
    assert all(frame.payload == 1408 for frame in exchange.there[:-1])
    assert all(frame.payload <= 1408 for frame in exchange.there)
    assert [frame.more for frame in exchange.there] == [True] * (len(exchange.there) - 1) + [False]
    assert [frame.now for frame in exchange.there] == [False] * (len(exchange.there) - 1) + [ack]
    assert (exchange.back, len(exchange.ack)) == ((), int(ack))


@settings(deadline=None)
@given(length=st.integers(0, 2_000_000))
def test_what_is_read_comes_back(length: int) -> None:
    exchange = expect_operation("read", length)
    assert sum(frame.payload for frame in exchange.back) == length
    assert len(exchange.there) == len(exchange.back) == max(1, -(-length // 1408))


@settings(deadline=None)
@given(size=st.integers(0, 70_000), server=st.sampled_from(["mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b"]))
def test_every_type_carries_the_same_messages(size: int, server: str) -> None:
    call = expect_rpc(server, "echo", size)
    padded = size + -size % 4
    heads = {"TASKQUE": 32, "SIGNAL": 16 if any(frame.kind == "WRITE" for frame in call.client) else 0, "READ": 8}
    carried = sum(frame.payload - heads.get(frame.kind, 8 if frame.part else 0) for frame in call.client)
    back = sum(frame.payload - heads.get(frame.kind, 8 if frame.part else 0) for frame in call.server)
    assert back == 28 + padded
    named = 16 if any(frame.kind == "READ" for frame in call.server) else 0
    assert carried == 44 + padded + named
    # What is read has its result, nothing else has one, and no operation asks for an ACK at once.
    every = call.client + call.server
    assert sum(frame.kind == "READ" for frame in every) == sum(frame.kind == "RESULT" for frame in every)
    assert not any(frame.now for frame in every)

# SPDX-License-Identifier: Apache-2.0
"""MBCF frames against tables written by hand from wire.h and mbcf_messages.h; sizes are bytes behind 62 of headers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.expect.mbcf import (
    Exchange,
    Frame,
    expect_binding,
    expect_lookup,
    expect_operation,
    expect_rpc,
    frame_bytes,
    wire_bytes,
)


def texts(frames: tuple[Frame, ...]) -> str:
    return " ".join(frame.text for frame in frames)


# + parts follow, ! a result is asked for
OPERATIONS = [
    ("write", 0, False, "WRITE:0", ""),
    ("write", 4, True, "WRITE:4!", "RESULT:0"),
    ("write", 1408, False, "WRITE:1408", ""),
    ("write", 1409, False, "WRITE:1408+ WRITE:1!", "RESULT:0"),
    ("write", 2816, True, "WRITE:1408+ WRITE:1408!", "RESULT:0"),
    ("fifo", 1408, False, "FIFO:1408", ""),
    ("fifo", 1409, False, "FIFO:1408+ FIFO:17!", "RESULT:0"),
    ("fifo", 2800, True, "FIFO:1408+ FIFO:1408!", "RESULT:0"),
    ("fifo", 2801, True, "FIFO:1408+ FIFO:1408+ FIFO:9!", "RESULT:0"),
    ("read", 0, True, "READ:8!", "RESULT:0"),
    ("read", 1408, True, "READ:8!", "RESULT:1408"),
    ("read", 1500, True, "READ:8+! READ:8!", "RESULT:1408 RESULT:92"),
    ("taskque", 1392, False, "TASKQUE:1408", ""),
    ("signal", 1376, True, "SIGNAL:1408!", "RESULT:0"),
    ("signal", 0, False, "SIGNAL:32", ""),
    ("swap", 8, True, "SWAP:8!", "RESULT:8"),
    ("cas", 4, True, "CAS:16!", "RESULT:8"),
    ("fetch_add", 4, False, "FETCH_ADD:8", ""),
]


@pytest.mark.parametrize(("operation", "length", "ack", "there", "back"), OPERATIONS)
def test_operations(operation: str, length: int, ack: bool, there: str, back: str) -> None:
    exchange = expect_operation(operation, length, ack)
    assert (texts(exchange.there), texts(exchange.back)) == (there, back)


# An echo call is 40 + 4 + size bytes, its reply 24 + 4 + size, sizes rounded up to four (RFC 5531, RFC 4506).
RPC = [
    ("mbcf1", 0, False, "TASKQUE:76", "FIFO:28"),
    ("mbcf1", 0, True, "TASKQUE:76!", "RESULT:0 FIFO:28"),
    ("mbcf1", 1332, False, "TASKQUE:1408", "FIFO:1360"),
    ("mbcf2", 0, False, "TASKQUE:48 RESULT:44", "READ:8! FIFO:28"),
    ("mbcf2", 1400, True, "TASKQUE:48! RESULT:1408 RESULT:36 RESULT:0",
     "RESULT:0 READ:8+! READ:8! FIFO:1408+ FIFO:36!"),
    ("mbcf12", 1332, False, "TASKQUE:1408", "FIFO:1360"),
    ("mbcf12", 1333, False, "TASKQUE:48 RESULT:1380", "READ:8! FIFO:1364"),
    ("mbcf3", 0, False, "FIFO:44", "FIFO:28"),
    ("mbcf3", 0, True, "FIFO:44!", "RESULT:0 FIFO:28"),
    ("mbcf3", 1024, True, "FIFO:1068!", "RESULT:0 FIFO:1052"),
    ("mbcf3a", 1364, False, "FIFO:1408", "FIFO:1392"),
    ("mbcf3a", 1365, False, "FIFO:1408+ FIFO:20!", "RESULT:0 FIFO:1396"),
    ("mbcf3", 1384, False, "FIFO:1408+ FIFO:36! RESULT:0", "RESULT:0 FIFO:1408+ FIFO:20!"),
    ("mbcf3b", 0, False, "SIGNAL:76", "FIFO:28"),
    ("mbcf3b", 1332, True, "SIGNAL:1408!", "RESULT:0 FIFO:1360"),
    ("mbcf3b", 1333, False, "WRITE:1380 SIGNAL:32", "FIFO:1364"),
    ("mbcf3b", 4096, True, "WRITE:1408+ WRITE:1408+ WRITE:1324! SIGNAL:32! RESULT:0",
     "RESULT:0 RESULT:0 FIFO:1408+ FIFO:1408+ FIFO:1332!"),
]  # fmt: skip


@pytest.mark.parametrize(("server", "size", "ack", "client", "back"), RPC)
def test_rpc_of_each_type(server: str, size: int, ack: bool, client: str, back: str) -> None:
    call = expect_rpc(server, "echo", size, ack=ack)
    assert (texts(call.client), texts(call.server), call.fails) == (client, back, False)


def test_a_request_beyond_a_taskque_fails_with_type_1() -> None:
    assert not expect_rpc("mbcf1", "echo", 1332).fails
    assert expect_rpc("mbcf1", "echo", 1333).fails


def test_one_way_calls_have_no_reply() -> None:
    call = expect_rpc("mbcf3", "sink", 64, one_way=True)
    assert (texts(call.client), texts(call.server)) == ("FIFO:108", "")


def test_setting_up() -> None:
    binding, lookup = expect_binding("mbcf3b"), expect_lookup()
    assert (texts(binding.client), texts(binding.server)) == ("TASKQUE:56", "FIFO:56")
    assert (texts(lookup.client), texts(lookup.server)) == ("TASKQUE:48", "WRITE:8")
    with pytest.raises(ValueError, match="mbcf1 makes a connection with each call"):
        expect_binding("mbcf1")


def test_bytes_on_the_wire() -> None:
    # 14 + 48 + 44 = 106 and 14 + 48 = 62; preamble 8, FCS 4, gap 12.
    call = expect_rpc("mbcf3", "echo", 0, ack=True)
    assert frame_bytes(call.client) == 106
    assert frame_bytes(call.server) == 62 + 90
    assert wire_bytes(call.client) == 106 + 24
    # 97 % of the wire is the most that a stream of full WRITEs can carry: 1408 of 1470 + 24.
    assert wire_bytes(expect_operation("write", 1408).there) == 1494


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
    assert len(exchange.back) == (1 if ack or len(exchange.there) > 1 else 0) == exchange.there[-1].asks


@settings(deadline=None)
@given(length=st.integers(0, 2_000_000))
def test_what_is_read_comes_back(length: int) -> None:
    exchange = expect_operation("read", length)
    assert sum(frame.payload for frame in exchange.back) == length
    assert len(exchange.there) == len(exchange.back) == max(1, -(-length // 1408))


@settings(deadline=None)
@given(
    size=st.integers(0, 70_000),
    server=st.sampled_from(["mbcf2", "mbcf12", "mbcf3", "mbcf3a", "mbcf3b"]),
    ack=st.booleans(),
)
def test_every_type_carries_the_same_messages(size: int, server: str, ack: bool) -> None:
    call = expect_rpc(server, "echo", size, ack=ack)
    padded = size + -size % 4
    heads = {"TASKQUE": 32, "SIGNAL": 32, "READ": 8}
    carried = sum(frame.payload - heads.get(frame.kind, 8 if frame.part else 0) for frame in call.client)
    back = sum(frame.payload - heads.get(frame.kind, 8 if frame.part else 0) for frame in call.server)
    assert back == 28 + padded
    named = 16 if any(frame.kind == "READ" for frame in call.server) else 0
    assert carried == 44 + padded + named
    # Every frame that asks has its result, and no other has one.
    asked = sum(frame.asks for frame in call.client + call.server)
    assert asked == sum(frame.kind == "RESULT" for frame in call.client + call.server)

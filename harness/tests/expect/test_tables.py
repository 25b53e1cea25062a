# SPDX-License-Identifier: Apache-2.0
"""Lengths computed by hand from the RFCs, or measured on Linux 6.18 with libtirpc 1.3.3 and glibc's older RPC code."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from sundial.expect import Call, Connection, Packet, Shape, udp_leg
from sundial.workloads.raw import expect as raw_expect
from sundial.workloads.sunrpc import expect as sunrpc_expect
from sundial.workloads.sunrpc.expect import (
    Options,
    auth_sys_bytes,
    expect_getport,
    record_buffer,
    record_fragments,
    shipped_records,
)

DEFAULT = Options()
NEGOTIATED, NO_TIMESTAMPS = Connection(), Connection(timestamps=False)


def sunrpc(
    transport: str,
    size: int,
    mtu: int = 1500,
    options: Options = DEFAULT,
    procedure: str = "echo",
    connection: Connection = NEGOTIATED,
) -> Call:
    return sunrpc_expect.expect_call(Shape(transport, procedure, size, mtu, connection), options)


def raw(transport: str, size: int, mtu: int = 1500, procedure: str = "echo") -> Call:
    return raw_expect.expect_call(Shape(transport, procedure, size, mtu))


def packets(call: Call) -> tuple[int, int]:
    return len(call.request.packets), len(call.reply.packets)


def test_empty_echo_is_44_and_28_bytes_of_message() -> None:
    call = sunrpc("udp", 0)
    assert (call.request.message, call.reply.message) == (44, 28)
    # RFC 768: the UDP length counts its own 8 bytes; RFC 791: 20 bytes of IP header.
    assert call.request.packets == (Packet(72, 52, 0, False),)
    assert call.reply.packets == (Packet(56, 36, 0, False),)
    tcp = sunrpc("tcp", 0)
    assert (tcp.request.payload, tcp.reply.payload) == (48, 32)


@pytest.mark.parametrize(
    ("procedure", "size", "request_bytes", "reply_bytes"),
    [
        ("null", 0, 40, 24),
        ("echo", 5, 52, 36),
        ("echo_string", 8, 52, 36),
        ("sink", 100, 144, 24),
        ("source", 100, 48, 128),
    ],
)
def test_messages_of_each_procedure(procedure: str, size: int, request_bytes: int, reply_bytes: int) -> None:
    for transport in ("udp", "tcp"):
        call = sunrpc(transport, size, procedure=procedure)
        assert (call.request.message, call.reply.message) == (request_bytes, reply_bytes)


def test_auth_sys_adds_its_body_to_the_call_alone() -> None:
    # stamp 4, name "vm" 4 + 4, uid 4, gid 4, no gids 4 (RFC 5531 appendix A); UDP length 92 was measured for 16 bytes.
    assert auth_sys_bytes(2, 0) == 24
    call = sunrpc("udp", 16, options=Options(credential=24))
    assert call.request.packets[0].data == 92
    assert call.reply.packets[0].data == 52
    assert auth_sys_bytes(5, 3) == 4 + 4 + 8 + 12 + 12


# Size at which the count first appears: (count, UDP call, UDP reply, TCP call, TCP reply with and without timestamps).
FIRST_SIZES = [
    (2, 1429, 1445, 1401, 1417, 1413, 1429),
    (3, 2909, 2925, 2849, 2865, 2873, 2889),
    (4, 4389, 4405, 4297, 4313, 4333, 4349),
    (5, 5869, 5885, 5745, 5761, 5793, 5809),
    (6, 7349, 7365, 7193, 7209, 7253, 7269),
]


@pytest.mark.parametrize("row", FIRST_SIZES)
def test_first_size_of_each_packet_count_at_mtu_1500(row: tuple[int, ...]) -> None:
    count, *firsts = row
    cases = [("udp", NEGOTIATED), ("tcp", NEGOTIATED), ("tcp", NO_TIMESTAMPS)]
    for (transport, connection), request, reply in zip(cases, firsts[::2], firsts[1::2], strict=True):
        for leg, first in ((0, request), (1, reply)):
            assert packets(sunrpc(transport, first - 1, connection=connection))[leg] == count - 1
            assert packets(sunrpc(transport, first, connection=connection))[leg] == count


def test_largest_default_udp_message_takes_six_packets_each_way() -> None:
    assert packets(sunrpc("udp", 8192)) == (6, 6)
    assert packets(sunrpc("udp", 8756)) == (6, 6)
    assert packets(sunrpc("tcp", 8192)) == (6, 6)


def test_a_call_above_the_handle_limit_is_not_sent() -> None:
    refused = sunrpc("udp", 8757)
    assert refused.fails == "request"
    assert packets(refused) == (0, 0)
    assert sunrpc("udp", 60000, options=Options(udp_message=65507)).fails is None


def test_a_reply_above_the_handle_limit_becomes_a_system_error() -> None:
    call = sunrpc("udp", 8773, procedure="source")  # 24 + 4 + 8776 > 8800
    assert (call.fails, call.reply.message) == ("reply", 24)
    assert sunrpc("udp", 8772, procedure="source").fails is None


def test_the_last_fragment_may_fill_the_room_that_others_cannot() -> None:
    # MTU 4528: R = 4508 is not a multiple of 8, U = 4504.
    assert sunrpc("udp", 4456, 4528).request.lengths == (4508,)
    assert sunrpc("udp", 4457, 4528).request.lengths == (4504, 8)
    big = Options(udp_message=65507)
    assert sunrpc("udp", 8976, 4528, big).reply.lengths == (4504, 4508)


def test_minimum_mtu_leaves_48_bytes_a_fragment() -> None:
    assert udp_leg(100, 68).packets == (
        Packet(68, 48, 0, True),
        Packet(68, 48, 48, True),
        Packet(32, 12, 96, False),
    )


@pytest.mark.parametrize(
    ("message", "buffer", "library", "expected"),
    [
        (3996, 4000, "libtirpc", (3996, 0)),
        (3996, 4000, "glibc", (3996,)),
        (3997 + 3, 4000, "libtirpc", (3996, 4)),
        (65532, 65536, "libtirpc", (65532, 0)),
        (65528, 65536, "libtirpc", (65528,)),
        (7992, 4000, "glibc", (3996, 3996)),
        (7996, 4000, "glibc", (3996, 3996, 4)),
    ],
)
def test_record_fragments(message: int, buffer: int, library: str, expected: tuple[int, ...]) -> None:
    assert record_fragments(message, buffer, library) == expected


def test_measured_sizes_with_an_empty_last_record() -> None:
    for size in range(65485, 65489):
        assert sunrpc("tcp", size).request.records == (65532, 0)
    assert sunrpc("tcp", 65484).request.records == (65528,)
    for size in range(65501, 65505):
        assert sunrpc("tcp", size).reply.records == (65532, 0)


def test_a_message_that_ends_in_a_word_fills_the_buffer_without_flushing() -> None:
    assert record_fragments(96, 100, "libtirpc", ends_in_word=True) == (96,)
    assert record_fragments(96, 100, "libtirpc") == (96, 0)


@pytest.mark.parametrize(
    ("asked", "library", "used"),
    [
        (0, "libtirpc", 65536),
        (0, "glibc", 4000),
        (99, "libtirpc", 4000),
        (101, "glibc", 104),
        (300000, "libtirpc", 262144),
    ],
)
def test_record_buffer_sizes(asked: int, library: str, used: int) -> None:
    assert record_buffer(asked, library) == used


def test_a_small_request_buffer_splits_the_call_and_not_the_reply() -> None:
    options = Options(request_buffer=4000)
    assert sunrpc("tcp", 3952, options=options).request.lengths == (1448, 1448, 1104, 4)
    assert sunrpc("tcp", 4000, options=options).request.lengths == (1448, 1448, 1104, 52)
    assert [packets(sunrpc("tcp", size, options=options))[0] for size in (3936, 5408, 6848, 7952)] == [3, 5, 6, 7]
    assert packets(sunrpc("tcp", 4000, options=options))[1] == 3


def test_port_mapper_getport() -> None:
    call = expect_getport(Shape("udp", "getport", 0, 1500))
    assert (call.request.packets[0].data, call.reply.packets[0].data) == (64, 36)


def test_raw_echo() -> None:
    one = raw("udp", 1472)
    two = raw("udp", 1473)
    assert (packets(one), packets(two)) == ((1, 1), (2, 2))
    assert two.request.lengths == (1480, 1)
    # 14 + 20 + 1 = 35 bytes are padded to 60; the other frame is 1514. Preamble, FCS and gap add 24 each.
    assert two.request.frame_bytes == 1514 + 35
    assert two.request.padded_frame_bytes == 1514 + 60
    assert two.request.wire_bytes == 1538 + 84
    assert raw("tcp", 1449).request.lengths == (1448, 1)


def test_beyond_the_initial_window_only_bounds_hold() -> None:
    ten = raw("tcp", 14480).request
    eleven = raw("tcp", 14481).request
    assert (ten.exact, ten.fewest, ten.most) == (True, 10, 10)
    assert (eleven.exact, eleven.fewest, eleven.most) == (False, 11, 22)
    window = raw("tcp", 65500, 9198).request  # eight segments, but 7 * 9146 = 64022
    assert (window.exact, len(window.packets)) == (False, 8)


def test_edges_of_sun_rpc_over_udp_at_mtu_1500() -> None:
    sizes = sunrpc_expect.edge_sizes("udp", 1500, 16, 3000)
    assert sizes == [
        1425, 1428, 1429, 1430, 1433, 1441, 1444, 1445, 1446, 1449,
        2905, 2908, 2909, 2910, 2913, 2921, 2924, 2925, 2926, 2929,
    ]  # fmt: skip


def test_edges_of_raw_sockets() -> None:
    assert raw_expect.edge_sizes("udp", 1500, 0, 3000) == [1472, 1473, 1474, 2952, 2953, 2954]
    assert raw_expect.edge_sizes("tcp", 1500, 0, 3000) == [1448, 1449, 1450, 2896, 2897, 2898]
    assert raw_expect.edge_sizes("tcp", 1500, 0, 1448) == [1448], (
        "the edge itself is out of range, its neighbour is not"
    )


def test_edge_sizes_include_the_empty_last_record() -> None:
    # 65485: the message fills the record buffer, a segment of four bytes follows.
    assert 65485 in sunrpc_expect.edge_sizes("tcp", 1500, 65400, 65500)


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: raw("tcp", 15),
        lambda: raw("udp", 65508),
        lambda: raw("udp", 16, procedure="null"),
        lambda: sunrpc("udp", 0, procedure="getport"),
        lambda: sunrpc("udp", -1),
        lambda: sunrpc("udp", 16, 67),
        lambda: sunrpc("sctp", 16),
    ],
)
def test_what_cannot_be_is_refused(impossible: Callable[[], Call]) -> None:
    with pytest.raises(ValueError, match=r"\d|'"):
        impossible()


@pytest.mark.parametrize("kind", [raw_expect, sunrpc_expect])
def test_unknown_transport_is_named(kind: ModuleType) -> None:
    with pytest.raises(ValueError, match="sctp"):
        kind.edge_sizes("sctp", 1500, 0, 100)


def test_records_that_are_collected() -> None:
    """libtirpc: 4 bytes of mark before each; a buffer of 100 has room for 96 bytes of a first record."""
    one = (20, False)
    assert shipped_records([one, one, one], 100) == (((20,), (20,), (20,)), (72,))
    # The fourth ends at 96, where a mark fits and nothing behind it.
    assert shipped_records([one] * 5, 100) == (((20,), (20,), (20,), (20,), (20,)), (96, 24))
    # A record that fills the buffer is flushed by its last byte, and ends empty; not so if it ends with a word.
    assert shipped_records([one, (72, False), one], 100) == (((20,), (72, 0), (20,)), (100, 4, 24))
    assert shipped_records([one, (72, True), one], 100) == (((20,), (72,), (20,)), (100, 24))
    # One that does not fit is cut where the buffer ends, and sent at its own end.
    assert shipped_records([one, (80, False), one], 100) == (((20,), (72, 8), (20,)), (100, 12, 24))


@pytest.mark.parametrize(
    ("size", "exact", "fewest", "most"),
    [(32741, True, 1, 1), (32742, False, 1, 4), (65482, False, 1, 4), (65484, False, 2, 6), (200000, False, 4, 14)],
)
def test_a_segment_as_long_as_a_window_may_be_cut_at_half_of_it(size: int, exact: bool, fewest: int, most: int) -> None:
    """Measured: Linux 6.18 sends 65,483 bytes as 35,328 and 30,155 where the other end has offered 70,656."""
    leg = raw("tcp", size, mtu=65535).request
    assert (leg.exact, leg.fewest, leg.most, leg.largest) == (exact, fewest, most, 65483)

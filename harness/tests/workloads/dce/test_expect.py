# SPDX-License-Identifier: Apache-2.0
"""Lengths of DCE RPC messages, against khandker's text and numbers computed by hand from RFC 791."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.expect.call import Shape
from sundial.workloads.dce.expect import bodies, edge_sizes, expect_call, message_leg, packet_count, pdu_packets

# Size, PDUs, IP packets at MTU 1500: section 3 of the paper says "6000 bytes take five packets" and 48 at 64256.
KHANDKER = [
    (0, 1, 1),
    (1392, 1, 1),
    (1393, 1, 2),
    (2872, 1, 2),
    (2873, 1, 3),
    (4016, 1, 3),
    (4017, 2, 4),
    (5408, 2, 4),
    (6000, 2, 5),
    (8032, 2, 6),
    (8033, 3, 7),
    (12048, 3, 9),
    (16064, 4, 12),
    (24096, 6, 18),
    (28112, 7, 21),
    (64256, 16, 48),
    (64257, 17, 49),
]


@pytest.mark.parametrize(("size", "pdus", "packets"), KHANDKER)
def test_khandkers_counts(size: int, pdus: int, packets: int) -> None:
    assert len(bodies(size)) == pdus
    assert len(message_leg(size, 1500).packets) == packets


def test_a_full_pdu_is_cut_as_the_paper_says() -> None:
    (packets,) = pdu_packets(4016, 1500)
    assert [packet.data for packet in packets] == [1480, 1480, 1144]
    assert [packet.ip_length for packet in packets] == [1500, 1500, 1164]


def test_a_small_mtu() -> None:
    # 4104 bytes above IP by 552, the largest multiple of 8 in 576 - 20.
    (packets,) = pdu_packets(4016, 576)
    assert [packet.data for packet in packets] == [552] * 7 + [240]
    assert len(pdu_packets(4016, 4124)[0]) == 1
    assert len(pdu_packets(4016, 4123)[0]) == 2


def test_only_what_a_procedure_carries() -> None:
    def payloads(procedure: str) -> tuple[int, int]:
        call = expect_call(Shape(transport="udp", procedure=procedure, size=5000, mtu=1500))
        return call.request.message, call.reply.message

    assert payloads("null") == (0, 0)
    assert payloads("put") == (5000, 0)
    assert payloads("get") == (0, 5000)
    assert payloads("echo") == (5000, 5000)
    with pytest.raises(ValueError, match="known are null, put, get, echo"):
        payloads("copy")
    with pytest.raises(ValueError, match="size 196609"):
        expect_call(Shape(transport="udp", procedure="put", size=196_609, mtu=1500))


def test_edges_at_1500() -> None:
    assert edge_sizes(1500, 0, 4100) == [1392, 1393, 1394, 2872, 2873, 2874, 4016, 4017, 4018]


@given(st.integers(0, 196_608), st.integers(68, 9180), st.sampled_from([1464, 2048, 4096, 8192]))
def test_the_closed_form_is_the_count(size: int, mtu: int, fragment: int) -> None:
    legs = message_leg(size, mtu, fragment)
    assert packet_count(size, mtu, fragment) == len(legs.packets)
    assert sum(bodies(size, fragment)) == size
    assert all(body % 8 == 0 for body in bodies(size, fragment)[:-1])
    assert all(packet.ip_length <= mtu for packet in legs.packets)

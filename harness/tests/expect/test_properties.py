# SPDX-License-Identifier: Apache-2.0
"""What holds for every size and every MTU."""

from __future__ import annotations

import itertools
from types import ModuleType

from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.expect import Connection, Shape, udp_leg
from sundial.expect.ip import udp_packet_count
from sundial.workloads.raw import expect as raw
from sundial.workloads.sunrpc import expect as sunrpc
from sundial.workloads.sunrpc.expect import Options, record_fragments, shipped_records

sizes = st.integers(0, 65507)
mtus = st.integers(68, 9198)
transports = st.sampled_from(["udp", "tcp"])
options = st.builds(
    Options,
    credential=st.integers(0, 100).map(lambda words: 4 * words),
    udp_message=st.just(65507),
    request_buffer=st.integers(0, 70000),
    reply_buffer=st.integers(0, 70000),
    library=st.sampled_from(["libtirpc", "glibc"]),
)
connections = st.builds(Connection, timestamps=st.booleans())


@settings(deadline=None)
@given(payload=sizes, mtu=mtus)
def test_fragments_cover_the_datagram(payload: int, mtu: int) -> None:
    packets = udp_leg(payload, mtu).packets
    offset = 0
    for packet in packets:
        assert packet.offset == offset
        assert packet.offset % 8 == 0
        assert packet.ip_length == packet.data + 20 <= mtu
        assert not packet.more or packet.data % 8 == 0
        offset += packet.data
    assert offset == payload + 8
    assert [packet.more for packet in packets] == [True] * (len(packets) - 1) + [False]
    assert udp_packet_count(payload, mtu) == len(packets)


@settings(deadline=None)
@given(payload=sizes, mtu=mtus)
def test_no_fewer_fragments_would_do(payload: int, mtu: int) -> None:
    packets = udp_leg(payload, mtu).packets
    assert all(packet.data + 8 > mtu - 20 for packet in packets[:-1]), "each full fragment is as large as it can be"


@settings(deadline=None)
@given(size=sizes, mtu=mtus, transport=transports, chosen=options, connection=connections)
def test_sun_rpc_legs_add_up(size: int, mtu: int, transport: str, chosen: Options, connection: Connection) -> None:
    call = sunrpc.expect_call(Shape(transport, "echo", size, mtu, connection), chosen)
    if call.fails:
        assert not call.request.packets or call.reply.message == 24
        return
    assert call.request.message - call.reply.message == 16 + chosen.credential
    for leg in (call.request, call.reply):
        assert leg.message % 4 == 0
        assert all(packet.ip_length <= mtu for packet in leg.packets)
        if transport == "udp":
            assert sum(leg.lengths) == leg.message + 8
        else:
            assert sum(leg.records) == leg.message
            assert sum(leg.lengths) == leg.payload == leg.message + 4 * len(leg.records)
            assert leg.fewest <= len(leg.packets) <= leg.most
            assert max(leg.lengths) <= leg.largest


@settings(deadline=None)
@given(size=st.integers(16, 65507), mtu=mtus, connection=connections)
def test_raw_tcp_segments_add_up(size: int, mtu: int, connection: Connection) -> None:
    leg = raw.expect_call(Shape("tcp", "echo", size, mtu, connection)).request
    full = mtu - 40 - (12 if connection.timestamps else 0)
    assert sum(leg.lengths) == size
    assert set(leg.lengths[:-1]) <= {full}
    assert all(packet.ip_length <= mtu for packet in leg.packets)


@settings(deadline=None)
@given(message=st.integers(1, 70000), buffer=st.integers(25, 20000).map(lambda words: 4 * words))
def test_records_fill_the_buffer(message: int, buffer: int) -> None:
    for library in ("libtirpc", "glibc"):
        records = record_fragments(message, buffer, library)
        assert sum(records) == message
        assert set(records[:-1]) <= {buffer - 4}
        assert 0 <= records[-1] <= buffer - 4


@settings(deadline=None)
@given(
    kind=st.sampled_from([raw, sunrpc]),
    transport=transports,
    mtu=st.integers(576, 9198),
    smallest=st.integers(0, 9000),
    span=st.integers(0, 3000),
)
def test_every_change_of_the_packet_count_is_an_edge(
    kind: ModuleType, transport: str, mtu: int, smallest: int, span: int
) -> None:
    largest = smallest + span
    found = set(kind.edge_sizes(transport, mtu, smallest, largest))
    assert all(smallest <= size <= largest for size in found)
    options = (Options(udp_message=65507),) if kind is sunrpc else ()
    first = max(smallest, 16)
    calls = [kind.expect_call(Shape(transport, "echo", size, mtu), *options) for size in range(first, largest + 1)]
    counts = [(len(call.request.packets), len(call.reply.packets)) for call in calls]
    for size, (before, now) in enumerate(itertools.pairwise(counts), start=first + 1):
        if before != now:
            assert {size - 1, size} <= found


@given(st.lists(st.tuples(st.integers(1, 80).map(lambda n: 4 * n), st.booleans()), min_size=1), st.integers(25, 99))
def test_collected_records_lose_no_byte(messages: list[tuple[int, bool]], words: int) -> None:
    records, writes = shipped_records(messages, 4 * words)
    assert [sum(record) for record in records] == [message for message, _ in messages]
    assert sum(writes) == sum(message for message, _ in messages) + 4 * sum(map(len, records))
    assert all(0 < write <= 4 * words for write in writes)
    # Alone, a message is cut as record_fragments says.
    for message, word in messages:
        assert shipped_records([(message, word)], 4 * words)[0] == (
            record_fragments(message, 4 * words, ends_in_word=word),
        )

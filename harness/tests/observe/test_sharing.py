# SPDX-License-Identifier: Apache-2.0
"""What is dissected once for several ports, and by several tsharks, is what one tshark says of each port alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from sundial.observe import frames, open_capture, read_frames, sharing
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, Record, Stream, capture, rpc_call, udp_packets

SERVERS = {"sunrpc": {"udp": (RPC_PORT,), "tcp": (RPC_PORT,)}}
PORTS = ["client:eth0", "server:eth0", "lan:fate"]


def traffic(directory: Path) -> Bed:
    """Calls over UDP in one packet and in several, some lost and doubled, and two TCP connections at once."""
    bed = Bed(directory)
    bed.batch("echo-client", "udp", 2000, RPC_PORT, 853)
    for xid in range(1, 13):
        bed.udp_call(40 if xid % 2 else 3000, xid)
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(20, 3000)), lose=(1,))
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(20, 3000)), twice=(0, 2))
    streams = [Stream(bed, port, RPC_PORT, {CLIENT: 1000, SERVER: 5000}) for port in (801, 802)]
    for stream in streams:
        stream.open()
    for xid in (30, 31, 32):
        for stream in streams:
            loss = {"request": (1,)} if xid == 31 and stream is streams[0] else {}
            stream.call(1000, xid, [500, 548], [700, 332], **loss)
    return bed


def ports(record: Record) -> tuple[int, int]:
    source, target = struct.unpack(">HH", record.frame[34:38])
    return source, target


def untouched(records: list[Record]) -> None:
    pass


def another_byte(records: list[Record]) -> None:
    """In the procedure of a call over UDP, as the server's port saw it."""
    damaged = next(record for record in records if record.interface == 1 and len(record.frame) > 60)
    damaged.frame = damaged.frame[:65] + bytes([damaged.frame[65] ^ 1]) + damaged.frame[66:]


def another_mark(records: list[Record]) -> None:
    """In the record mark of a message over TCP: what follows of the connection is read otherwise."""
    damaged = next(r for r in records if r.interface == 1 and struct.pack(">I", 30) == r.frame[70:74])
    damaged.frame = damaged.frame[:68] + b"\1" + damaged.frame[69:]


def another_order(records: list[Record]) -> None:
    """Two segments of a connection change places on their way."""
    first, second = [r for r in records if r.interface == 1 and 801 in ports(r)][4:6]
    first.frame, second.frame = second.frame, first.frame


def missing_call(records: list[Record]) -> None:
    """The server's port did not see a call that it answered."""
    records.remove(next(r for r in records if r.interface == 1 and r.frame[42:46] == struct.pack(">I", 3)))


def no_answers(records: list[Record]) -> None:
    """The end of a run cuts off what was on its way: less of the same was seen there."""
    del records[-3:]


def another_kind(records: list[Record]) -> None:
    """A ping of DCE RPC, which one of the tsharks gets: it alone would show columns of that kind."""
    like = next(record for record in records if record.interface == 0 and RPC_PORT in ports(record))
    ping = bytes([4, 1, 0, 0, 0x10, 0, 0, 0]) + bytes(72)
    [frame] = udp_packets(CLIENT, SERVER, (4000, 4001), ping, 7, 1500)
    records.append(Record(records[-1].at + 1, 0, like.direction, frame))


@pytest.mark.parametrize(
    "change",
    [another_kind, untouched, another_byte, another_mark, another_order, missing_call, no_answers],
    ids=lambda x: x.__name__,
)
def test_all_columns_are_those_of_each_port_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Record]], None]
) -> None:
    records = traffic(tmp_path).records
    change(records)
    alone = []
    for number, name in enumerate(PORTS):
        file = tmp_path / f"{number}.pcapng"
        own = [Record(r.at, 0, r.direction, r.frame, r.comment) for r in records if r.interface == number]
        file.write_bytes(capture([name], own))
        alone.append(read_frames([(file, "lan")], 0, SERVERS))
    file = tmp_path / "all.pcapng"
    file.write_bytes(capture(PORTS, records))
    monkeypatch.setattr(frames, "_FEW", 1)
    together = read_frames([(file, "lan")], 0, SERVERS)
    places = ("frame", "octets_begin")
    assert together.filter(pl.col("rpc_xid").is_not_null()).height > 40
    assert_frame_equal(together.drop(places), pl.concat(alone).drop(places))


def test_what_was_seen_alike_is_dissected_once(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    file = tmp_path / "all.pcapng"
    file.write_bytes(capture(PORTS, bed.records))
    opened = open_capture(file)
    first, second, fates = sharing.shares(opened, opened.interfaces, 2)
    opened.close()
    assert len(first.known) == 0
    assert all(len(part) for part in first.parts)
    assert sum(map(len, first.parts)) == len(first.interface.blocks)
    # The connection that lost a segment; the three first packets with one xid, where two were sent; and the copies of
    # a last packet, of which one was sent.
    of_connection = sum(record.interface == 1 and 801 in ports(record) for record in bed.records)
    assert sum(map(len, second.parts)) == of_connection + 3 + 2
    assert sum(map(len, second.parts)) + len(second.known) == len(second.interface.blocks)
    assert set(fates.source.tolist()) <= {0, 1}

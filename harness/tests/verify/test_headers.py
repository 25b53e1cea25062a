# SPDX-License-Identifier: Apache-2.0
"""Headers and content: frames that are right, and some damages that no recorded run can have."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest

from sundial.errors import BadInput
from sundial.model.network import build_network
from sundial.model.timeline import Event
from sundial.model.topology import Topology
from sundial.observe import octets_of, open_run, read_frames
from sundial.verify.corruption import intact, with_corrupted
from sundial.verify.frames import with_places
from sundial.verify.headers import check_headers
from sundial.verify.headers.arp import Overflow
from sundial.verify.headers.carriage import check_order
from sundial.verify.headers.ports import not_taken, ports_of
from sundial.verify.headers.tcp import AT_ONCE_NS, LAST_ACK_NS
from sundial.verify.segment import HELD_BACK
from sundial.verify.unsent import Unsent, unsent
from tests import fates
from tests.fates import by_adapter, ring_full
from tests.verify.bed import (
    ACK,
    CLIENT,
    FIN,
    FLIGHT_NS,
    IN,
    MAC,
    OUT,
    PUSH,
    RPC_PORT,
    RST,
    SERVER,
    SYN,
    Bed,
    Record,
    Stream,
    address,
    checksum,
    ip_packet,
    rpc_call,
    rpc_reply,
)

BROADCAST = b"\xff" * 6
NOBODY = b"\0" * 6


def arp(operation: int, source: str, target: str, to: bytes) -> bytes:
    asked = NOBODY if operation == 1 else MAC[target]
    head = struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation)
    return to + MAC[source] + b"\x08\x06" + head + MAC[source] + address(source) + asked + address(target)


def icmp(source: str, target: str, kind: int, code: int, rest: bytes, ident: int) -> bytes:
    bare = struct.pack(">BBH", kind, code, 0) + rest
    whole = bare[:2] + struct.pack(">H", checksum(bare)) + bare[4:]
    frame = bytearray(ip_packet(source, target, 1, whole, ident, 0, False))
    frame[15] = 0xC0
    return resummed(frame)


def resummed(frame: bytearray) -> bytes:
    """With a right checksum of IP again, and of UDP or TCP in a packet that is whole."""
    frame[24:26] = b"\0\0"
    frame[24:26] = struct.pack(">H", checksum(bytes(frame[14:34])))
    at = {6: 50, 17: 40}.get(frame[23])
    if at is not None and not (frame[20] & 0x3F or frame[21]):
        frame[at : at + 2] = b"\0\0"
        packet = bytes(frame[34:])
        ends = bytes(frame[26:34]) + struct.pack(">HH", frame[23], len(packet))
        frame[at : at + 2] = struct.pack(">H", checksum(ends + packet))
    return bytes(frame)


def traffic(directory: Path) -> Bed:
    """ARP, three UDP calls of which one is fragmented, a TCP connection with a loss, and a closed port."""
    bed = Bed(directory / "run")
    bed.send(CLIENT, [arp(1, CLIENT, SERVER, BROADCAST)])
    bed.send(SERVER, [arp(2, SERVER, CLIENT, MAC[CLIENT])])
    for xid, size in ((1, 100), (2, 3000), (3, 100)):
        bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(xid, size)))
        bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(xid, size)))
    asked = bed.records[-1].frame
    stream = Stream(bed, 900, RPC_PORT, {CLIENT: 2**32 - 700, SERVER: 77})
    stream.open()
    stream.write(CLIENT, bytes(2000), [1000, 1000], lose=(0,))
    stream.write(SERVER, bytes(500), [500])
    bed.send(CLIENT, [stream.frame(CLIENT, ACK, 2000)])
    stream.close()
    bed.send(CLIENT, [icmp(CLIENT, SERVER, 3, 3, bytes(4) + asked[14:], 7)])
    return bed


def fields(
    bed: Bed,
    *,
    timed: bool = False,
    end_ns: int | None = None,
    topology: dict[str, object] | None = None,
    of_users: Mapping[str, Collection[int]] = MappingProxyType({}),
    held: Sequence[tuple[int, int]] = (),
) -> list[str]:
    """`of_users`: machines with programs of users, with types of frames that they make. `timed`: the law of the segment
    says when its frames arrive; `end_ns`: of the run, as the fabric counted it. `held`: rows of frames that an adapter
    may have kept back, since when."""
    path = bed.write()
    if topology is not None:
        document = json.loads((path / "run.json").read_bytes()) | {"topology": topology}
        (path / "run.json").write_text(json.dumps(document))
    counters = path / "wire" / "counters.json"
    counters.write_text(json.dumps(json.loads(counters.read_bytes()) | {"virtual_ns": end_ns}))
    run = open_run(path)
    files = [(path / "wire" / "lan.pcapng", "wire/lan.pcapng")]
    frames = with_corrupted(with_places(read_frames(files, run.epoch_ns)), partial(octets_of, files=files))
    ports = ports_of(run).with_columns(timed=pl.lit(timed))
    with patch("sundial.verify.headers.ports_of", lambda _: ports):
        dropped = unsent(intact(frames), ports, partial(octets_of, files=files))
        kept = partial(pl.DataFrame, held, HELD_BACK, orient="row")
        found = check_headers(run, frames, files, [], dropped, of_users, kept)
    assert found.filter(pl.col("rows").list.len() == 0).is_empty()
    return found["field"].unique().sort().to_list()


def test_sound_traffic_has_nothing_to_find(tmp_path: Path) -> None:
    assert fields(traffic(tmp_path)) == []


def at(place: int, value: int) -> Callable[[bytearray], None]:
    def change(frame: bytearray) -> None:
        frame[place] ^= value

    return change


def where(bed: Bed, begins: Callable[[bytes], bool]) -> bytes:
    """The first frame that was sent of which this is true."""
    return next(record.frame for record in bed.records if record.direction == OUT and begins(record.frame))


def is_ip(protocol: int, *, flags: int | None = None, fragment: int | None = None) -> Callable[[bytes], bool]:
    def matches(frame: bytes) -> bool:
        if frame[12:14] != b"\x08\x00" or frame[23] != protocol:
            return False
        if flags is not None and frame[47] != flags:
            return False
        return fragment is None or struct.unpack_from(">H", frame, 20)[0] & 0x3FFF == fragment

    return matches


UDP = is_ip(17, fragment=0)
PLAIN, PUSHED = (is_ip(6, flags=flags) for flags in (0x10, 0x18))
DAMAGES = {
    "source, a lower address": (UDP, at(6, 0x02), "eth.src"),
    "protocol": (UDP, at(23, 3), "ip.proto"),
    "window": (PUSHED, at(48, 0xFF), "tcp.window_size"),
    "quote": (is_ip(1), at(47, 1), "icmp.quote"),
    "kind of message": (is_ip(1), at(34, 1), "icmp.type"),
}
"""What no damage to a recorded run does: the others are in `mutation/expected.yaml`."""


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_at_both_ports(tmp_path: Path, name: str) -> None:
    which, change, field = DAMAGES[name]
    bed = traffic(tmp_path)
    sound = where(bed, which)
    damaged = bytearray(sound)
    change(damaged)
    for record in bed.records:
        if record.frame == sound:
            record.frame = resummed(damaged)
    assert field in fields(bed)


def probe(source: str, target: str, operation: int = 1) -> bytes:
    """As arping of busybox asks: for all, in the packet as well."""
    frame = arp(operation, source, target, BROADCAST)
    return frame[:32] + BROADCAST + frame[38:]


OTHER = BROADCAST + MAC[CLIENT] + b"\x88\xb6" + bytes(range(50))
TYPES = {"client": [0x0806, 0x88B6]}


@pytest.mark.parametrize(
    ("machine", "frame", "found"),
    [
        (CLIENT, probe(CLIENT, SERVER), ["arp", "arp.dst.hw_mac"]),
        (CLIENT, probe(CLIENT, SERVER, 2), ["arp.opcode"]),
        (CLIENT, OTHER, ["eth.type"]),
    ],
)
def test_frames_that_a_program_makes_need_a_machine_with_one(
    tmp_path: Path, machine: str, frame: bytes, found: list[str]
) -> None:
    def sent(folder: str, source: str, **more: Any) -> list[str]:
        bed = traffic(tmp_path / folder)
        for _ in range(3):
            bed.send(source, [frame[:6] + MAC[source] + frame[12:]])
        return fields(bed, **more)

    assert sent("own", machine, of_users=TYPES) == []
    assert set(found) <= set(sent("unnamed", machine))
    assert set(found) <= set(sent("another", SERVER, of_users=TYPES))


def test_a_program_makes_frames_from_its_own_address(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    bed.send(CLIENT, [OTHER[:6] + MAC[SERVER] + OTHER[12:]])
    assert fields(bed, of_users=TYPES) == ["eth.src"]


def set_in(
    bed: Bed, change: Callable[[bytearray], None], which: Callable[[int], bool], kind: Callable[[bytes], bool]
) -> None:
    """Change the packets of a kind that the client sent whose number fits, at both ports."""
    sent = [each.frame for each in bed.records if each.direction == OUT and kind(each.frame)]
    sent = [frame for frame in sent if frame[26:30] == address(CLIENT)]
    chosen = [frame for number, frame in enumerate(sent) if which(number)]
    assert chosen
    for record in bed.records:
        if record.frame in chosen:
            damaged = bytearray(record.frame)
            change(damaged)
            record.frame = resummed(damaged)


SOCKET = {"ttl": (at(22, 0x41), "ip.ttl"), "tos": (at(15, 0x10), "ip.dsfield"), "df": (at(20, 0x40), "ip.flags.df")}


@pytest.mark.parametrize("name", SOCKET)
def test_a_program_may_set_what_a_socket_has(tmp_path: Path, name: str) -> None:
    change, field = SOCKET[name]

    def found(folder: str, which: Callable[[int], bool], **more: Any) -> list[str]:
        bed = traffic(tmp_path / folder)
        set_in(bed, change, which, is_ip(6))
        return fields(bed, **more)

    programs = {"client": []}
    assert found("all", lambda number: True, of_users=programs) == []
    assert found("from some on", lambda number: number > 2, of_users=programs) == []
    assert found("none", lambda number: True) == [field]
    assert found("another", lambda number: True, of_users={"server": []}) == [field]
    assert found("one", lambda number: number == 2, of_users=programs) == [field]


def test_a_program_sets_it_in_all_fragments_of_a_datagram(tmp_path: Path) -> None:
    for number, (which, expected) in enumerate([(lambda _: True, []), (lambda number: number == 2, ["ip.ttl"])]):
        bed = traffic(tmp_path / str(number))
        set_in(bed, at(22, 0x41), which, is_ip(17))
        assert fields(bed, of_users={"client": []}) == expected


def test_an_answer_to_an_echo_request_has_its_type_of_service(tmp_path: Path) -> None:
    def echo(source: str, target: str, kind: int, tos: int) -> bytes:
        frame = bytearray(icmp(source, target, kind, 0, b"\0\7\0\1" + bytes(56), 0))
        frame[15] = tos
        frame[20] = 0x40 if kind == 8 else 0
        return resummed(frame)

    for number, (tos, expected) in enumerate([(0x10, []), (0x20, ["ip.dsfield"])]):
        bed = traffic(tmp_path / str(number))
        bed.send(CLIENT, [echo(CLIENT, SERVER, 8, 0x10)])
        bed.send(SERVER, [echo(SERVER, CLIENT, 0, tos)])
        assert fields(bed, of_users={"client": []}) == expected


def report(change: Callable[[bytearray], None] = lambda frame: None, *, summed: bool = True) -> bytes:
    """The client's report of 239.1.2.3, as Linux makes it."""
    record = bytes([4, 0, 0, 0, 239, 1, 2, 3])
    message = bytearray(b"\x22\0\0\0\0\0\0\1" + record)
    header = bytearray.fromhex("46c00028000040000102 0000") + address(CLIENT) + bytes([224, 0, 0, 22, 0x94, 4, 0, 0])
    frame = bytearray(bytes.fromhex("01005e000016") + MAC[CLIENT] + b"\x08\0" + header + message)
    change(frame)
    for start, end, place in ((14, 38, 24), (38, 54, 40)) if summed else ():
        frame[place : place + 2] = bytes(2)
        words = sum(int.from_bytes(frame[at : at + 2]) for at in range(start, end, 2))
        frame[place : place + 2] = (0xFFFF - (words % 0xFFFF or 0xFFFF)).to_bytes(2)
    return bytes(frame)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda frame: None, []),
        (at(5, 0x17), ["eth.dst"]),
        (at(15, 0xC0), ["ip.dsfield"]),
        (at(22, 2), ["ip.ttl"]),
        (at(33, 23), ["eth.dst", "ip.dst"]),
        (at(34, 0x44), ["ip.opt"]),
        (at(38, 0x16), ["igmp.type"]),
        (at(45, 2), ["igmp.num_grp_recs"]),
        (at(46, 9), ["igmp.record"]),
        (at(50, 0x80), ["igmp.record"]),
    ],
)
def test_a_report_of_a_group_is_as_linux_makes_it(
    tmp_path: Path, change: Callable[[bytearray], None], found: list[str]
) -> None:
    bed = traffic(tmp_path)
    bed.send(CLIENT, [report(change)])
    assert fields(bed, of_users={"client": []}) == found


def test_a_report_of_a_group_has_its_checksum_and_a_program(tmp_path: Path) -> None:
    bed = traffic(tmp_path / "sum")
    bed.send(CLIENT, [report(at(53, 4), summed=False)])
    assert "igmp.checksum" in fields(bed, of_users={"client": []})
    bed = traffic(tmp_path / "program")
    bed.send(CLIENT, [report()])
    assert {"ip.proto", "ip.dst", "ip.hdr_len"} <= set(fields(bed, of_users={"server": []}))


@pytest.mark.parametrize("timed", [False, True])
def test_a_frame_that_was_on_its_way_is_left_to_the_law_of_its_wire(tmp_path: Path, timed: bool) -> None:
    bed = traffic(tmp_path)
    bed.records.remove([each for each in bed.records if each.direction == IN][-1])
    assert ("frames received by server:eth0" in fields(bed, timed=timed)) is not timed


def test_what_comes_too_often_at_the_end_is_left_to_nothing(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    last = [each for each in bed.records if each.direction == IN][-1]
    bed.records.append(replace(last, at=last.at + 10))
    assert "frames received by server:eth0" in fields(bed, timed=True)


def corrupted(directory: Path, bit: int = 0, kind: Callable[[bytes], bool] = UDP, byte: int = 50) -> Bed:
    """A packet arrives with the lowest bit of a byte flipped; its fate names another `bit`."""
    bed = traffic(directory)
    frame = where(bed, kind)
    wrong = frame[:byte] + bytes([frame[byte] ^ 1]) + frame[byte + 1 :]
    record = next(each for each in bed.records if each.direction == IN and each.frame == frame)
    record.frame = wrong
    comment = fates.corrupted(bit, byte, "client:eth0", "server:eth0")
    bed.records.append(Record(record.at - 100, 2, 0, wrong, comment))
    return bed


def test_a_corrupted_frame_differs_in_the_bit_that_is_named(tmp_path: Path) -> None:
    assert fields(corrupted(tmp_path / "a")) == []
    assert "frames received by server:eth0" in fields(corrupted(tmp_path / "b", bit=1))


@pytest.mark.parametrize(
    "byte", [byte if byte % 6 == 2 else pytest.param(byte, marks=pytest.mark.night) for byte in range(14, 54, 2)]
)
def test_any_byte_of_the_headers_may_be_corrupted(tmp_path: Path, byte: int) -> None:
    assert fields(corrupted(tmp_path, kind=PLAIN, byte=byte)) == []


@pytest.mark.parametrize(("byte", "found"), [(34, []), (41, ["arp.opcode"])])
def test_a_corrupted_question_of_arp_is_answered_as_it_came(tmp_path: Path, byte: int, found: list[str]) -> None:
    """With another target hardware address, which no receiver reads; and for another address, which no machine has."""
    asks = arp(1, CLIENT, SERVER, BROADCAST)
    assert fields(corrupted(tmp_path, kind=lambda frame: frame == asks, byte=byte)) == found


@pytest.mark.parametrize(("heard", "of", "found"), [(1, 1, []), (1, 2, ["eth.dst"]), (0, 1, ["eth.dst"])])
def test_packets_go_to_the_address_that_a_corrupted_packet_of_arp_has(
    tmp_path: Path, heard: int, of: int, found: list[str]
) -> None:
    """`heard`: which bits of the client's MAC address are others in its question; `of`: in the address of a packet."""
    bed = traffic(tmp_path)
    bed.now += 2_000_000_000
    asks = arp(1, CLIENT, SERVER, BROADCAST)
    bed.send(CLIENT, [asks])
    record, place = bed.records[-1], 27
    assert record.direction == IN
    record.frame = asks[:place] + bytes([asks[place] ^ heard]) + asks[place + 1 :]
    if heard:
        comment = fates.corrupted(0, place, "client:eth0", "server:eth0")
        bed.records.append(Record(record.at - 100, 2, 0, record.frame, comment))
    to = record.frame[22:28]
    reply = arp(2, SERVER, CLIENT, to)
    bed.send(SERVER, [reply[:32] + to + reply[38:]])
    (packet,) = bed.datagram(SERVER, (RPC_PORT, 700), bytes(20))
    bed.send(SERVER, [packet[:5] + bytes([packet[5] ^ of]) + packet[6:]])
    assert fields(bed) == found


@pytest.mark.parametrize(("bit", "rows"), [(0, 0), (2, 1)])
def test_an_adapter_does_not_take_what_has_the_address_of_another(tmp_path: Path, bit: int, rows: int) -> None:
    bed = Bed(tmp_path / "run")
    (packet,) = bed.datagram(CLIENT, (700, RPC_PORT), bytes(20))
    bed.send(CLIENT, [packet[:5] + bytes([packet[5] ^ bit]) + packet[6:]])
    run = open_run(bed.write())
    frames = with_places(read_frames([(run.path / "wire" / "lan.pcapng", "wire/lan.pcapng")], run.epoch_ns))
    assert len(not_taken(frames, ports_of(run))) == rows


@pytest.mark.parametrize("missing", [1, 2])
def test_a_frame_may_be_on_its_way_where_others_came_corrupted(tmp_path: Path, missing: int) -> None:
    """What came with other bytes counts as come; and one that was sent a minute before is not on its way."""
    bed = corrupted(tmp_path)
    came = [each for each in bed.records if each.direction == IN and each.interface == 1]
    for record in bed.records:
        record.at += 60_000_000_000 if record.at > came[1].at else 0
    for record in (came[-1], came[0])[:missing]:
        bed.records.remove(record)
    assert ("frames received by server:eth0" in fields(bed, timed=True)) is (missing == 2)


def test_fates_name_a_port_of_their_segment(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    bed.records.append(Record(bed.now, 2, 0, bed.records[0].frame, ring_full("absent:eth0")))
    assert "fate" in fields(bed)


@pytest.mark.parametrize(("port", "known"), [("server:eth0", True), ("client:eth1", False)])
def test_a_fate_may_name_a_port_at_which_no_frame_was_seen(tmp_path: Path, port: str, known: bool) -> None:
    bed = Bed(tmp_path / "run")
    bed.records.append(Record(bed.now, 2, 0, arp(1, SERVER, CLIENT, BROADCAST), by_adapter(port, "not joined")))
    assert ("fate" not in fields(bed)) == known


def test_a_frame_that_ends_in_its_type_is_found(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    bed.send(CLIENT, [MAC[SERVER] + MAC[CLIENT] + b"\x08"])
    assert "eth.type" in fields(bed)


def test_a_reset_has_a_cause(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    bed.send(SERVER, [resummed(bytearray(stream.frame(SERVER, 0x04, 0)))])
    assert fields(bed) == ["tcp.flags.reset"]


@pytest.mark.parametrize(
    ("verb", "bytes_before", "found"),
    [("kill", 0, []), ("restart", 0, []), ("pause", 0, ["tcp.flags.reset"]), ("kill", 5, ["tcp.flags.reset"])],
)
def test_a_kernel_forgets_a_handshake_with_the_program_that_an_event_ended(
    tmp_path: Path, verb: str, bytes_before: int, found: list[str]
) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    if bytes_before:
        stream.write(SERVER, bytes(bytes_before), [bytes_before])
        bed.send(CLIENT, [stream.frame(CLIENT, ACK, 0)])
    frame = bytearray(stream.frame(SERVER, RST, bytes_before))
    frame[18:20] = b"\0\0"
    bed.send(SERVER, [resummed(frame)])
    event = Event.model_validate({"at": "1 s", verb: "web"})
    network = build_network(Topology.model_validate(TOPOLOGY), (event,))
    with patch("sundial.verify.headers.network_of", lambda _: network):
        assert [each for each in fields(bed) if each.startswith("tcp")] == found


@pytest.mark.parametrize(("acknowledged", "found"), [(False, []), (True, ["tcp.flags.reset"])])
def test_a_socket_may_be_closed_before_its_syn_is_answered(
    tmp_path: Path, acknowledged: bool, found: list[str]
) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    bed.send(CLIENT, [stream.frame(CLIENT, SYN, -1, syn=True)])
    bed.send(SERVER, [stream.frame(SERVER, SYN | ACK, -1, syn=True)])
    if acknowledged:
        bed.send(CLIENT, [stream.frame(CLIENT, ACK, 0)])
    frame = bytearray(stream.frame(CLIENT, RST, 0))
    frame[18:20] = b"\0\0"
    bed.send(CLIENT, [resummed(frame)])
    assert [each for each in fields(bed) if each.startswith("tcp")] == found


def test_a_reset_after_the_end_answers_what_still_comes(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    bed.send(SERVER, [stream.frame(SERVER, 0x11, 0)])
    stream.write(CLIENT, b"more", [4])
    frame = bytearray(stream.frame(SERVER, 0x04, 0))
    frame[18:20] = b"\0\0"
    bed.send(SERVER, [resummed(frame)])
    assert fields(bed) == []


@pytest.mark.parametrize(
    ("ttl", "place", "found"), [(255, 0, []), (64, 0, ["tcp.flags.reset"]), (255, 3, ["tcp.flags.reset"])]
)
def test_lwip_acknowledges_what_its_reset_answers(tmp_path: Path, ttl: int, place: int, found: list[str]) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    bed.send(SERVER, [stream.frame(SERVER, 0x11, 0)])
    stream.write(CLIENT, b"more", [4])
    frame = bytearray(stream.frame(SERVER, RST | ACK, place))
    frame[22] = ttl
    bed.send(SERVER, [resummed(frame)])
    assert [each for each in fields(bed) if each == "tcp.flags.reset"] == found


@pytest.mark.parametrize(("later_ns", "found"), [(LAST_ACK_NS, []), (LAST_ACK_NS // 2, ["tcp.flags.reset"])])
def test_lwip_forgets_a_connection_whose_end_has_no_answer(tmp_path: Path, later_ns: int, found: list[str]) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    end = stream.frame(CLIENT, FIN | ACK, 0)
    bed.send(CLIENT, [end])
    stream.write(SERVER, b"unheard", [7])
    bed.now += later_ns
    bed.send(CLIENT, [end])
    stream.sent[CLIENT] += 1
    frame = bytearray(stream.frame(SERVER, RST | ACK, 0))
    frame[22] = 255
    bed.send(SERVER, [resummed(frame)])
    assert [each for each in fields(bed) if each == "tcp.flags.reset"] == found


@pytest.mark.parametrize(("place", "found"), [(1, []), (0, ["tcp.flags.reset"]), (2, ["tcp.flags.reset"])])
def test_a_reset_behind_the_own_end_gives_up_what_was_not_read(tmp_path: Path, place: int, found: list[str]) -> None:
    """A program shuts the connection down and closes it with bytes unread: the number is the one behind its FIN."""
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    stream.write(SERVER, b"unread", [6])
    bed.send(CLIENT, [stream.frame(CLIENT, 0x11, 0)])
    bed.send(CLIENT, [stream.frame(CLIENT, 0x14, place)])
    assert [each for each in fields(bed) if each == "tcp.flags.reset"] == found


@pytest.mark.parametrize(("place", "found"), [(0, []), (9, ["tcp.flags.reset"])])
def test_a_reset_that_came_ends_a_connection(tmp_path: Path, place: int, found: list[str]) -> None:
    """What the wire delivers behind it is answered with a reset; behind one of another number it is not."""
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6}, timestamps=False)
    stream.open()
    late = stream.frame(SERVER, ACK, 0)
    bed.send(SERVER, [stream.frame(SERVER, RST | ACK, place)])
    bed.send(SERVER, [late])
    frame = bytearray(stream.frame(CLIENT, RST, 0))
    frame[18:20] = b"\0\0"
    bed.send(CLIENT, [resummed(frame)])
    assert [each for each in fields(bed) if each == "tcp.flags.reset"] == found


def test_data_stay_in_the_window(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6})
    stream.open()
    bed.send(CLIENT, [stream.frame(CLIENT, ACK | PUSH, place * 1400, bytes(1400)) for place in range(47)])
    assert fields(bed) == ["tcp.window_size"]


@pytest.mark.parametrize(
    ("windows", "found"),
    [
        ([(SERVER, 64240)], []),
        ([(SERVER, 64000)], ["tcp.window_size"]),
        ([(CLIENT, 64240)], ["tcp.window_size"]),
        ([(SERVER, 64240), (SERVER, 63000)], ["tcp.window_size"]),
    ],
)
def test_the_window_of_a_syn_cookie_is_that_of_other_segments(
    tmp_path: Path, windows: list[tuple[str, int]], found: list[str]
) -> None:
    """The answer to a SYN offers 65535; by a cookie its sender offers less by up to one segment, once."""
    bed = traffic(tmp_path)
    stream = Stream(bed, 901, RPC_PORT, {CLIENT: 5, SERVER: 6})
    stream.open()
    for end, window in windows:
        frame = bytearray(stream.frame(end, ACK, 0))
        frame[48:50] = struct.pack(">H", window)
        bed.send(end, [resummed(frame)])
    assert fields(bed) == found


def test_frames_do_not_overtake_each_other(tmp_path: Path) -> None:
    bed = traffic(tmp_path)
    first, second = (bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(xid, 100))[0] for xid in (8, 9))
    for place, (sent, seen) in enumerate(((first, second), (second, first))):
        bed.records.append(Record(bed.now + 1000 * place, 0, OUT, sent))
        bed.records.append(Record(bed.now + 1000 * place + FLIGHT_NS, 1, IN, seen))
    path = bed.write()
    run = open_run(path)
    files = [(path / "wire" / "lan.pcapng", "wire/lan.pcapng")]
    frames = with_places(read_frames(files, run.epoch_ns))
    assert check_order(frames, {"client:eth0": True})["field"].to_list() == ["order of arrival"]
    assert check_order(frames, {"client:eth0": False}).is_empty()


@pytest.mark.parametrize(
    ("dropped", "found"), [(ring_full("client:eth0"), []), (fates.given_up("client:eth0"), ["collision"])]
)
def test_a_frame_that_collided_is_the_next_one_of_its_station(tmp_path: Path, dropped: str, found: list[str]) -> None:
    """Meanwhile its adapter may refuse others, for which it has no room; it gives up none but this one."""
    bed = traffic(tmp_path)
    first = bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(8, 100))[0]
    bed.records.append(Record(bed.now, 2, 0, first, fates.collision("client:eth0", 1, 96)))
    bed.records.append(Record(bed.now + 1, 2, 0, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(9, 100))[0], dropped))
    bed.now += 2
    bed.send(CLIENT, [first])
    assert [each for each in fields(bed) if each == "collision"] == found


def test_a_run_without_mac_addresses_is_bad_input(tmp_path: Path) -> None:
    path = traffic(tmp_path).write()
    file = path / "run.json"
    file.write_text(file.read_text().replace(MAC[CLIENT].hex(":"), "02:53"))
    with pytest.raises(BadInput, match=r"has no MAC address of client:eth0"):
        check_headers(open_run(path), pl.DataFrame(), [], [], Unsent({}, {}, Overflow({}, pl.Series([])), {}))


TOPOLOGY: dict[str, object] = {
    "name": "two",
    "description": "two machines",
    "machines": {
        name: {"image": "linux", "interfaces": {"eth0": {"address": f"{here}/24"}}}
        for name, here in (("client", CLIENT), ("server", SERVER))
    },
    "segments": {"lan": {"kind": "link", "rate": "10 Mbit/s", "ports": ["client:eth0", "server:eth0"]}},
}


def arp_first(directory: Path, asked: int, answered: int, again: int = 0) -> Bed:
    """A question, perhaps another one some ns later, its answer, and a datagram each way; 0: not sent."""
    bed = Bed(directory / "run")
    at_ns = bed.now
    if asked:
        bed.send(CLIENT, [arp(1, CLIENT, SERVER, BROADCAST)])
    if answered:
        bed.now = at_ns + answered
        bed.send(SERVER, [arp(2, SERVER, CLIENT, MAC[CLIENT])])
    if again:
        bed.now = at_ns + again
        bed.send(CLIENT, [arp(1, CLIENT, SERVER, BROADCAST)])
    bed.now = at_ns + 5_000_000_000
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(1, 16)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(1, 16)))
    return bed


def test_a_machine_sends_to_neighbours_of_which_it_has_heard(tmp_path: Path) -> None:
    assert fields(arp_first(tmp_path, 1, 50_000), topology=TOPOLOGY) == []


@pytest.mark.parametrize(("asked", "answered"), [(1, 0), (0, 0), (1, 5_001_000_000)], ids=["no reply", "none", "late"])
def test_a_machine_cannot_send_to_a_neighbour_of_which_it_has_not_heard(
    tmp_path: Path, asked: int, answered: int
) -> None:
    assert "arp.heard" in fields(arp_first(tmp_path, asked, answered), topology=TOPOLOGY)


@pytest.mark.parametrize(("again", "found"), [(2_000_000, ["arp"]), (1_000_000_000, [])])
def test_linux_asks_once_a_second(tmp_path: Path, again: int, found: list[str]) -> None:
    assert fields(arp_first(tmp_path, 1, 50_000, again), topology=TOPOLOGY) == found


@pytest.mark.parametrize("place", [0, 2], ids=["the first", "the second"])
@pytest.mark.parametrize(("before_ns", "found"), [(1_000_000_000, []), (1_000, ["arp"])])
def test_questions_that_an_adapter_kept_back_may_leave_together(
    tmp_path: Path, place: int, before_ns: int, found: list[str]
) -> None:
    """`place`: the row of the one that was handed in so long before the first left."""
    bed = arp_first(tmp_path, 1, 50_000, 2_000_000)
    assert fields(bed, topology=TOPOLOGY, held=[(place, Bed(tmp_path).now - before_ns)]) == found


def connection(directory: Path, *, acked: bool = True, resets: int = 0, push: bool = False) -> Bed:
    """A connection that both ends close, or that the client gives up with data unread."""
    bed = Bed(directory / "run")
    stream = Stream(bed, 900, RPC_PORT, {CLIENT: 1000, SERVER: 77})
    stream.open()
    stream.write(SERVER, bytes(500), [500])
    for _ in range(resets):
        bed.send(CLIENT, [stream.frame(CLIENT, RST | ACK, 0)])
    if resets:
        return bed
    bed.send(CLIENT, [stream.frame(CLIENT, ACK | (PUSH if push else 0), 0)])
    for end in (CLIENT, SERVER):
        bed.send(end, [stream.frame(end, FIN | ACK, stream.sent[end])])
        stream.sent[end] += 1
    if acked:
        bed.send(CLIENT, [stream.frame(CLIENT, ACK, 1)])
    return bed


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({}, []),
        ({"acked": False}, ["tcp.fin"]),
        ({"push": True}, ["tcp.flags"]),
        ({"resets": 1}, []),
        ({"resets": 2}, ["tcp.flags.reset"]),
    ],
)
def test_a_connection_ends_with_acknowledgements_or_one_reset(
    tmp_path: Path, how: dict[str, int], found: list[str]
) -> None:
    bed = connection(tmp_path, **how)  # type: ignore[arg-type]
    assert fields(bed, end_ns=bed.now + AT_ONCE_NS) == found


def test_an_acknowledgement_may_still_come_when_the_run_ends(tmp_path: Path) -> None:
    bed = connection(tmp_path, acked=False)
    assert fields(bed, end_ns=bed.now) == []


@pytest.mark.parametrize(("apart_ns", "found"), [(50_000, []), (2 * AT_ONCE_NS, ["tcp.flags.reset"])])
def test_what_comes_while_a_connection_is_given_up_is_reset(tmp_path: Path, apart_ns: int, found: list[str]) -> None:
    """The reset that answers it leaves before that of the connection's end, but not long before."""
    bed = Bed(tmp_path / "run")
    stream = Stream(bed, 900, RPC_PORT, {CLIENT: 1000, SERVER: 77}, timestamps=False)
    stream.open()
    stream.write(SERVER, bytes(500), [500])
    bed.send(CLIENT, [stream.frame(CLIENT, RST, 0)])
    bed.now += apart_ns
    bed.send(CLIENT, [stream.frame(CLIENT, RST | ACK, 0)])
    assert fields(bed) == found

# SPDX-License-Identifier: Apache-2.0
"""Captures of others: what is right passes, what is wrong is named, and what cannot be judged is refused."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.verify import Verification, verify_pcap
from tests.verify.bed import raw_payload
from tests.verify.foreign import (
    ACK,
    CLIENT,
    PORT,
    SERVER,
    SYN,
    Connection,
    Packet,
    Scene,
    call,
    classic,
    ethernet,
    ip,
    record,
    reply,
    section,
)

Plays = dict[str, Callable[[Scene, int, int], int]]
"""What happens at a client's port, with xids from a number on; answers how many calls that are."""


# ---- TCP: right ----


def several_in_a_segment(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid)) + record(call(xid + 1, 400)) + record(call(xid + 2)))
    made.send(True, record(reply(xid + 1)) + record(reply(xid)) + record(reply(xid + 2, 64)))
    return 3


def marks_in_two_segments(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    for place in (1, 2, 3):
        made.send(False, record(call(xid + place)), place, 5)
        made.send(True, record(reply(xid + place)), place)
    made.send(False, record(call(xid + 4)) + record(call(xid + 5)), 46)
    made.send(True, record(reply(xid + 4)) + record(reply(xid + 5)), 30, 9)
    return 5


def mark_apart(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    for place in range(2):
        made.send(False, record(call(xid + place, 144)), 4)
        made.send(True, record(reply(xid + place, 5000)), 4, 100, 1)
    return 2


def xid_comes_again(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    for size in (144, 144, 400):
        made.send(False, record(call(xid, size)))
        made.send(True, record(reply(xid, size)))
    return 3


def without_its_beginning(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    for place in range(2):
        made.send(False, record(call(xid + place, 3000)))
        made.send(True, record(reply(xid + place, 3000)))
    return 2


def sequence_numbers_wrap(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port, begins=(2**32 - 2000, 2**32 - 3))
    made.open()
    for place in range(2):
        made.send(False, record(call(xid + place, 3000)))
        made.send(True, record(reply(xid + place, 3000)))
    return 2


def sent_again_cut_otherwise(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    whole = record(call(xid, 4000))
    made.send(False, whole)
    made.segment(False, whole[1000:2200], at=1000)
    made.segment(False, whole[2000:3400], at=2000)
    made.segment(False, whole[3300:], at=3300)
    made.send(True, record(reply(xid)))
    made.segment(True, record(reply(xid)), at=0)
    return 1


def out_of_order(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    whole = record(call(xid, 4000)) + record(call(xid + 1))
    for at in (1460, 2920, 0):
        made.segment(False, whole[at : at + 1460], at=at)
    made.at[False] = len(whole)
    made.send(True, record(reply(xid)) + record(reply(xid + 1)))
    return 2


def probes_of_an_idle_connection(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.segment(False, b"\0", ACK, at=-1)
    made.send(False, record(call(xid)))
    made.send(True, record(reply(xid)))
    made.segment(False, b"\0", ACK, at=made.at[False] - 1)
    made.segment(True, b"", ACK, at=made.at[True] - 1)
    made.send(False, record(call(xid + 1)))
    made.send(True, record(reply(xid + 1)))
    return 2


def probe_in_front(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.segment(False, b"\7", ACK, at=-1)
    made.send(False, record(call(xid)))
    made.send(True, record(reply(xid)))
    return 1


def records_in_fragments(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid, 400), 4, 3, 0, 100) + record(call(xid + 1, 48), 48) + record(call(xid + 2), 0))
    made.send(True, record(reply(xid, 64), 1, 1, 1, 1, 1, 1, 1, 1) + record(reply(xid + 1)) + record(reply(xid + 2)))
    return 3


def port_used_again(scene: Scene, port: int, xid: int) -> int:
    """The capture begins within the first of two connections."""
    for place in range(2):
        made = Connection(scene, port, begins=(1000 + 77 * place, 5000 + 10**9 * place))
        if place:
            made.open()
        made.send(False, record(call(xid)))
        made.send(True, record(reply(xid)))
        made.close()
    return 2


def server_calls_back(scene: Scene, port: int, xid: int) -> int:
    """With the number of a call that waits."""
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid)))
    made.send(True, record(call(xid, 48)))
    made.send(False, record(reply(xid)))
    made.send(True, record(reply(xid, 32)))
    return 2


def stamped_before_its_cause(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open(early_ns=1000)
    made.send(False, record(call(xid)))
    made.segment(True, record(reply(xid)), early_ns=1000)
    return 1


def one_port_at_both_ends(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, PORT)
    made.send(True, record(call(xid)))
    made.send(False, record(reply(xid)))
    return 1


def small_segments(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port, mss=1)
    made.open()
    made.send(False, record(call(xid)))
    made.send(True, record(reply(xid)))
    return 1


def denied(scene: Scene, port: int, xid: int) -> int:
    """A version of RPC that the server does not have (RFC 5531 section 9)."""
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid, version=3)))
    made.send(True, record(struct.pack(">6I", xid, 1, 1, 0, 2, 2)))
    return 1


RIGHT_STREAMS: Plays = {
    play.__name__: play
    for play in (
        several_in_a_segment, marks_in_two_segments, mark_apart, xid_comes_again, without_its_beginning,
        sequence_numbers_wrap, sent_again_cut_otherwise, out_of_order, probes_of_an_idle_connection, probe_in_front,
        records_in_fragments, port_used_again, server_calls_back, stamped_before_its_cause, one_port_at_both_ends,
        small_segments, denied,
    )
}  # fmt: skip


# ---- TCP: wrong ----


def begins_within_a_record(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.send(False, record(call(xid, 4000))[1000:])
    made.send(True, record(reply(xid)))
    made.send(False, record(call(xid + 1)))
    made.send(True, record(reply(xid + 1)))
    return 1


def begins_within_a_mark(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.send(False, record(call(xid))[2:] + record(call(xid + 1)))
    made.send(True, record(reply(xid)) + record(reply(xid + 1)))
    return 1


def record_without_bytes(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(b"") + record(call(xid)))
    made.send(True, record(reply(xid)))
    return 1


def mark_of_2_gib(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port, mss=536)
    made.open()
    made.send(False, b"\xff\xff\xff\xff" + call(xid))
    made.close()
    return 1


def first_fragment_of_2_gib(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(True, b"\x7f\xff\xff\xff" + reply(xid))
    made.send(False, record(call(xid)))
    return 1


def bytes_not_captured(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid, 4000)))
    del scene.packets[-2]
    made.send(True, record(reply(xid)))
    return 1


def mark_not_captured(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    for place in range(3):
        made.send(False, record(call(xid + place)))
        if place == 1:
            del scene.packets[-1]
        made.send(True, record(reply(xid + place)))
    return 2


def not_answered(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    for place in range(2):
        made.send(False, record(call(xid + place)))
    made.send(True, record(reply(xid + 1)))
    return 2


def not_asked(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid)))
    made.send(True, record(reply(xid)) + record(reply(xid + 1)))
    return 1


def not_a_record(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid)) + b"GET / HTTP/1.1\r\n\r\n" + record(call(xid + 1)))
    made.send(True, record(reply(xid)) + record(reply(xid + 1)))
    return 2


def ends_within_a_mark(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.send(False, record(call(xid)))
    made.send(True, record(reply(xid)))
    made.send(False, record(call(xid + 1))[:3])
    return 1


def longer_than_the_mss(scene: Scene, port: int, xid: int) -> int:
    made = Connection(scene, port)
    made.open()
    made.segment(False, record(call(xid, 20_000)))
    made.segment(False, record(call(xid + 1, 20_000)))
    made.send(True, record(reply(xid)) + record(reply(xid + 1)))
    return 2


WRONG_STREAMS: dict[Callable[[Scene, int, int], int], list[tuple[str, str, str]]] = {
    begins_within_a_record: [("stream", "whole records", "begins within a record of 10.0.0.1:{port}: 3004 bytes")],
    begins_within_a_mark: [("stream", "whole records", "begins within a record of 10.0.0.1:{port}: 42 bytes")],
    record_without_bytes: [("stream", "whole records", "record without bytes of 10.0.0.1:{port} at byte 0")],
    mark_of_2_gib: [("request.bytes", str(2**31 + 3), "44")],
    first_fragment_of_2_gib: [("reply.bytes", str(2**31 + 7), "28")],
    bytes_not_captured: [("request.bytes", "4004", "2544")],
    mark_not_captured: [
        ("stream", "whole records", "44 bytes of 10.0.0.1:{port} from byte 44 on are not in the capture")
    ],
    not_answered: [("reply.received", "1 complete", "none")],
    not_asked: [("reply without a call", "none", "xid {xid:#010x}")],
    not_a_record: [("stream", "whole records", "18 bytes of 10.0.0.1:{port} from byte 44 on that are not a record")],
    ends_within_a_mark: [("stream", "whole records", "ends within a record of 10.0.0.1:{port}: 3 bytes")],
    longer_than_the_mss: [
        ("segments", "at most 1460 bytes", "2 of up to 20004 bytes from 10.0.0.1:{port}: segmentation offload (the "
         "adapter cuts or joins them)")
    ],
}  # fmt: skip


# ---- UDP ----


def ask(scene: Scene, port: int, xid: int, size: int = 144, back: int = 128, **more: Any) -> int:
    scene.udp((CLIENT, port), (SERVER, PORT), call(xid, size), **more)
    scene.udp((SERVER, PORT), (CLIENT, port), reply(xid, back))
    return 1


def fragments_of_another_port(scene: Scene, port: int, xid: int) -> int:
    made = ask(scene, port, xid, 4000, ident=7)
    scene.now += 60 * 10**9
    scene.udp((CLIENT, 5000), (SERVER, 5000), bytes(5000), ident=7)
    return made + ask(scene, port, xid + 1, 4000)


def fragments_in_reverse(scene: Scene, port: int, xid: int) -> int:
    return ask(scene, port, xid, 8000, reverse=True)


def reply_stamped_first(scene: Scene, port: int, xid: int) -> int:
    scene.udp((CLIENT, port), (SERVER, PORT), call(xid))
    scene.udp((SERVER, PORT), (CLIENT, port), reply(xid), early_ns=1000)
    return 1


def same_port_at_both_ends(scene: Scene, port: int, xid: int) -> int:
    return sum(ask(scene, PORT, xid + place) for place in range(3))


def both_call_at_one_port(scene: Scene, port: int, xid: int) -> int:
    """Each of two servers is the other's client, with the same numbers."""
    scene.udp(("10.0.0.8", PORT), ("10.0.0.9", PORT), call(xid))
    scene.udp(("10.0.0.9", PORT), ("10.0.0.8", PORT), call(xid, 48))
    scene.udp(("10.0.0.9", PORT), ("10.0.0.8", PORT), reply(xid))
    scene.udp(("10.0.0.8", PORT), ("10.0.0.9", PORT), reply(xid, 32))
    return 2


def asked_twice(scene: Scene, port: int, xid: int) -> int:
    for _ in range(2):
        scene.udp((CLIENT, port), (SERVER, PORT), call(xid))
    for _ in range(2):
        scene.udp((SERVER, PORT), (CLIENT, port), reply(xid))
    return 1


def xid_of_another_call(scene: Scene, port: int, xid: int) -> int:
    for procedure in (1, 2, 3):
        scene.udp((CLIENT, port), (SERVER, PORT), call(xid, procedure=procedure))
        scene.udp((SERVER, PORT), (CLIENT, port), reply(xid))
    return 3


def asked_of_all(scene: Scene, port: int, xid: int) -> int:
    for place, group in enumerate(("10.0.0.255", "224.0.0.9", "255.255.255.255")):
        scene.udp((CLIENT, port), (group, PORT), call(xid + place))
        for server in range(2, 2 + place):
            scene.udp((f"10.0.0.{server}", PORT), (CLIENT, port), reply(xid + place, 24 + 8 * server))
    return 3


def fragment_without_a_beginning(scene: Scene, port: int, xid: int) -> int:
    scene.add(ip(CLIENT, SERVER, 17, bytes(80), ident=60_000, offset=1480))
    return ask(scene, port, xid)


RIGHT_DATAGRAMS: Plays = {
    play.__name__: play
    for play in (
        fragments_of_another_port, fragments_in_reverse, reply_stamped_first, same_port_at_both_ends,
        both_call_at_one_port, asked_twice, xid_of_another_call, asked_of_all,
        fragment_without_a_beginning,
    )
}  # fmt: skip


def other_address(scene: Scene, port: int, xid: int) -> int:
    scene.udp((CLIENT, port), (SERVER, PORT), call(xid))
    scene.udp(("10.0.9.9", PORT), (CLIENT, port), reply(xid))
    return 1


def other_port(scene: Scene, port: int, xid: int) -> int:
    scene.udp((CLIENT, port), (SERVER, PORT), call(xid))
    scene.udp((SERVER, 900), (CLIENT, port), reply(xid))
    return 1


def fragment_missing(scene: Scene, port: int, xid: int) -> int:
    return ask(scene, port, xid, 4000, leave_out=1)


def no_answer(scene: Scene, port: int, xid: int) -> int:
    scene.udp((CLIENT, port), (SERVER, PORT), call(xid))
    return 1


WRONG_DATAGRAMS: dict[Callable[[Scene, int, int], int], list[tuple[str, str, str]]] = {
    other_address: [("reply.source", "10.0.0.2:2049", "10.0.9.9:2049")],
    other_port: [("reply.source", "10.0.0.2:2049", "10.0.0.2:900")],
    fragment_missing: [("request.fragments", "0:1480+,1480:1480+,2960:1048", "0:1480+,2960:1048")],
    no_answer: [("reply.received", "1 complete", "none")],
}  # fmt: skip


# ---- all of them in one capture, so that each costs little, each judged by its own frames and xids ----


@cache
def played(transport: str, right: bool) -> dict[str, tuple[int, int, list[dict[str, Any]]]]:
    """By what happened: calls expected and seen, and findings."""
    plays: dict[str, Callable[[Scene, int, int], int]] = {
        ("tcp", True): RIGHT_STREAMS,
        ("udp", True): RIGHT_DATAGRAMS,
        ("tcp", False): {play.__name__: play for play in WRONG_STREAMS},
        ("udp", False): {play.__name__: play for play in WRONG_DATAGRAMS},
    }[transport, right]
    scene, frames, made = Scene(), {}, {}
    for place, (name, play) in enumerate(plays.items()):
        begin = len(scene.packets)
        made[name] = play(scene, 700 + place, 1000 * (place + 1))
        frames[name] = set(range(begin + 1, len(scene.packets) + 1))
    with TemporaryDirectory() as folder:
        result = verify_pcap(classic(Path(folder) / "c.pcap", scene.packets), protocol=f"sunrpc-{transport}", port=PORT)
    assert result.calls == sum(made.values())
    found = {}
    for place, name in enumerate(plays):
        own = [
            each
            for each in result.problems
            if set(each["frames"]) & frames[name]
            or (not each["frames"] and each["call"] and each["call"]["xid"] // 1000 == place + 1)
        ]
        found[name] = (700 + place, 1000 * (place + 1), own)
    assert sum(len(own) for *_, own in found.values()) == result.mismatches == len(result.problems)
    return found


@pytest.mark.parametrize("name", RIGHT_STREAMS)
def test_what_is_right_over_tcp_passes(name: str) -> None:
    assert played("tcp", True)[name][2] == []


@pytest.mark.parametrize("name", RIGHT_DATAGRAMS)
def test_what_is_right_over_udp_passes(name: str) -> None:
    assert played("udp", True)[name][2] == []


@pytest.mark.parametrize(
    ("transport", "play", "expected"),
    [("tcp", *each) for each in WRONG_STREAMS.items()] + [("udp", *each) for each in WRONG_DATAGRAMS.items()],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_named_once(
    transport: str, play: Callable[[Scene, int, int], int], expected: list[tuple[str, str, str]]
) -> None:
    port, xid, own = played(transport, False)[play.__name__]
    said = [(field, words, seen.format(port=port, xid=xid + 1)) for field, words, seen in expected]
    assert [(each["field"], each["expected"], each["seen"]) for each in own] == said


# ---- files ----


def asks(many: int = 3, port: int = PORT, size: int = 144) -> Scene:
    scene = Scene()
    for xid in range(many):
        scene.udp((CLIENT, 701), (SERVER, port), call(xid, size))
        scene.udp((SERVER, port), (CLIENT, 701), reply(xid, 128))
    return scene


def passed(result: Verification) -> tuple[str, int]:
    assert result.problems == []
    return result.verdict, result.calls


def test_blocks_and_sections_of_each_kind_are_read(tmp_path: Path) -> None:
    """A call and its reply in each section: enhanced, obsolete and simple blocks, in either byte order. Simple ones end
    at the snapshot length, and have no time."""
    packets = asks(7).packets
    pairs = [packets[place : place + 2] for place in range(0, len(packets), 2)]
    forms = [(order, kind, 0) for kind in (6, 2, 3) for order in "<>"] + [("<", 3, 70)]
    file = tmp_path / "c.pcapng"
    parts = [section(pair, order, kind, snap=snap) for pair, (order, kind, snap) in zip(pairs, forms, strict=True)]
    file.write_bytes(b"".join(parts))
    assert passed(verify_pcap(file, protocol="sunrpc-udp")) == ("pass", 7)


def test_fragments_in_blocks_without_a_time(tmp_path: Path) -> None:
    file = tmp_path / "c.pcapng"
    file.write_bytes(section(asks(size=4000).packets, kind=3))
    assert passed(verify_pcap(file, protocol="sunrpc-udp")) == ("pass", 3)


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_tap_has_an_interface_for_each_direction(tmp_path: Path, transport: str) -> None:
    scene = asks()
    if transport == "tcp":
        scene = Scene()
        several_in_a_segment(scene, 701, 1)
    back = address_of(SERVER)
    packets = [replace(packet, interface=int(packet.frame[26:30] == back)) for packet in scene.packets]
    file = tmp_path / "c.pcapng"
    file.write_bytes(section(packets, interfaces=2))
    assert passed(verify_pcap(file, protocol=f"sunrpc-{transport}")) == ("pass", 3)


def address_of(text: str) -> bytes:
    return bytes(map(int, text.split(".")))


@pytest.mark.parametrize(
    ("transport", "link", "ahead"),
    [
        ("tcp", 101, b""),
        ("udp", 0, b"\2\0\0\0"),
        ("udp", 113, b"\0\0\0\1\0\6" + bytes(8) + b"\x08\0"),
        ("tcp", 276, b"\x08\0" + bytes(18)),
    ],
)
def test_links_that_are_not_ethernet(tmp_path: Path, link: int, ahead: bytes, transport: str) -> None:
    scene = asks()
    if transport == "tcp":
        scene = Scene()
        marks_in_two_segments(scene, 701, 1)
    file = classic(tmp_path / "c.pcap", scene.packets, link=link, ahead=ahead)
    assert passed(verify_pcap(file, protocol=f"sunrpc-{transport}")) == ("pass", 3 if transport == "udp" else 5)


def test_the_port_mapper_is_found_where_there_is_nothing_else(tmp_path: Path) -> None:
    file = classic(tmp_path / "c.pcap", asks(2, port=111).packets)
    assert passed(verify_pcap(file, protocol="sunrpc-udp")) == ("pass", 2)
    file = classic(tmp_path / "c.pcap", asks(2, port=111).packets + asks(3).packets)
    assert passed(verify_pcap(file, protocol="sunrpc-udp")) == ("pass", 3)


def test_two_servers_are_named(tmp_path: Path) -> None:
    file = classic(tmp_path / "c.pcap", asks(2, port=1048).packets + asks(3).packets)
    with pytest.raises(BadInput, match=r"calls go to 2 ports: \[1048, 2049\]"):
        verify_pcap(file, protocol="sunrpc-udp")


def test_the_mtu_of_each_direction_is_learned(tmp_path: Path) -> None:
    scene = Scene()
    for place, mtus in enumerate([(576, 1500), (1500, 1006), (9000, 296)]):
        client = f"10.0.0.{100 + place}", 701
        scene.udp(client, (SERVER, PORT), call(1, 20_000), mtu=mtus[0])
        scene.udp((SERVER, PORT), client, reply(1, 20_000), mtu=mtus[1])
    file = classic(tmp_path / "c.pcap", scene.packets)
    result = verify_pcap(file, protocol="sunrpc-udp")
    assert passed(result) == ("pass", 3)
    # 296 bytes have room for 272 in a fragment, and 9000 for 8976.
    assert result.remarks == ["MTU 292 to 8996 bytes, learned from the largest packet of each direction"]
    assert verify_pcap(file, protocol="sunrpc-udp", mtu=1500).mismatches == 4


def test_requests_without_any_reply_are_one_finding(tmp_path: Path) -> None:
    requests = asks(5).packets[::2]
    result = verify_pcap(classic(tmp_path / "c.pcap", requests), protocol="sunrpc-udp")
    (problem,) = result.problems
    seen = "none, and no frame from 10.0.0.2:2049: captured in one direction, or never answered"
    assert (problem["field"], problem["expected"], problem["seen"]) == ("replies", "5", seen)


def test_calls_that_a_server_takes_and_never_answers_are_one_finding(tmp_path: Path) -> None:
    scene = Scene()
    made = Connection(scene, 701)
    made.open()
    made.send(False, b"".join(record(call(xid)) for xid in range(100)))
    (problem,) = verify_pcap(classic(tmp_path / "c.pcap", scene.packets), protocol="sunrpc-tcp").problems
    assert (problem["field"], problem["expected"], problem["seen"]) == ("replies", "100", "none from 10.0.0.2:2049")


def test_replies_without_any_request_are_refused(tmp_path: Path) -> None:
    file = classic(tmp_path / "c.pcap", asks(5).packets[1::2])
    with pytest.raises(BadInput, match="holds no call of sunrpc over udp to port 2049, but 5 replies"):
        verify_pcap(file, protocol="sunrpc-udp")


def test_ipv6_is_named(tmp_path: Path) -> None:
    datagram = struct.pack(">HHHH", 701, PORT, 8 + 144, 0) + call(1, 144)
    packet = struct.pack(">IHBB", 6 << 28, len(datagram), 17, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + datagram
    file = classic(tmp_path / "c.pcap", [Packet(10**18, ethernet(packet, 0x86DD))])
    with pytest.raises(BadInput, match=r"to port 2049; IPv6 is not read \(1 packet\)"):
        verify_pcap(file, protocol="sunrpc-udp", port=PORT)
    file = classic(tmp_path / "d.pcap", [*asks().packets, Packet(2 * 10**18, ethernet(packet, 0x86DD))])
    assert "IPv6 is not read: 1 packet to or from port 2049" in (verify_pcap(file, protocol="sunrpc-udp").remarks or [])


@pytest.mark.parametrize(
    ("transport", "snap", "port", "what"),
    [
        ("udp", 49, PORT, "frame 1: is cut to 49 bytes"),
        ("udp", 42, None, "holds no sunrpc over udp; frames are cut to 42 bytes"),
        ("udp", 30, PORT, "frames are cut to 30 bytes"),
        ("tcp", 60, PORT, "frame 4: is cut to 60 bytes"),
    ],
)
def test_frames_that_are_cut_before_their_message_are_named(
    tmp_path: Path, transport: str, snap: int, port: int | None, what: str
) -> None:
    scene = asks()
    if transport == "tcp":
        scene = Scene()
        xid_comes_again(scene, 701, 1)
    file = classic(tmp_path / "c.pcap", scene.packets, snap=snap)
    with pytest.raises(BadInput, match=what):
        verify_pcap(file, protocol=f"sunrpc-{transport}", port=port)


def test_frames_that_are_cut_behind_the_header_are_read(tmp_path: Path) -> None:
    scene = Scene()
    xid_comes_again(scene, 701, 1)
    file = classic(tmp_path / "c.pcap", scene.packets, snap=96)
    assert passed(verify_pcap(file, protocol="sunrpc-tcp")) == ("pass", 3)


@pytest.mark.parametrize(("protocol", "port"), [("sunrpc-tcp", PORT), ("raw-tcp", None)])
def test_connections_without_a_message_are_no_pass(tmp_path: Path, port: int | None, protocol: str) -> None:
    scene = Scene()
    Connection(scene, 700).segment(False, b"", SYN)
    made = Connection(scene, 701)
    made.open()
    made.send(False, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n" * 9)
    made.send(True, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    file = classic(tmp_path / "c.pcap", scene.packets)
    with pytest.raises(BadInput, match=f"holds no (call of )?{protocol[:-4]} over tcp"):
        verify_pcap(file, protocol=protocol, port=port)


def test_raw_messages_share_segments(tmp_path: Path) -> None:
    scene = Scene()
    made = Connection(scene, 701, server_port=7007)
    made.open()
    data = b"".join(raw_payload(number, 100) for number in range(3))
    for back in (False, True):
        made.send(back, data, 150)
    several_in_a_segment(scene, 702, 1)
    file = classic(tmp_path / "c.pcap", scene.packets)
    assert passed(verify_pcap(file, protocol="raw-tcp")) == ("pass", 3)


@pytest.mark.parametrize("program", ["gzip", "zstd", "lz4"])
def test_a_compressed_file_is_named(tmp_path: Path, program: str) -> None:
    whole = classic(tmp_path / "c.pcap", asks().packets).read_bytes()
    begins = {"gzip": gzip.compress(whole), "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\x04\x22\x4d\x18"}
    file = tmp_path / "c.pcap.gz"
    file.write_bytes(begins[program].ljust(24, b"\0"))
    with pytest.raises(BadInput, match=f"is compressed with {program}"):
        verify_pcap(file, protocol="sunrpc-udp")

# SPDX-License-Identifier: Apache-2.0
"""Ladders from sightings and fates made by hand: no run, no file."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Hashable
from dataclasses import replace

import pytest

from sundial.report import ladder_svg, ladder_text, palette
from sundial.report.ladder import FEW, Arrow, Fate, Ladder, Row, Sighting, arrows, in_time, rows
from sundial.report.ladder_frames import Head, read_head, tcp_words
from tests.verify.bed import CLIENT, SERVER, ip_packet, summed, udp_packets

A, B = "client:eth0", "server:eth0"
PARTIES = ("client", "server")


def head(key: Hashable, *, group: str = "", asks: Hashable = None, words: str = "frame") -> Head:
    return Head(key, words, group, asks)


def seen(
    at: int, port: str, key: Hashable, *, sent: bool, number: int = 1, segment: str = "lan", **more: object
) -> Sighting:
    return Sighting(at, segment, port, sent, number, 100, head(key, **more))  # type: ignore[arg-type]


def fate(at: int, kind: str, leaving: Hashable, arriving: Hashable = None, **more: object) -> Fate:
    given = {"sender": A, "receiver": B, **more}
    return Fate(
        at, "lan", 99, 100, leaving, leaving if arriving is None else arriving, head(leaving), kind,
        f"{kind}: words", **given,  # type: ignore[arg-type]
    )  # fmt: skip


def way(sightings: list[Sighting], fates: list[Fate] = [], parties: tuple[str, ...] = PARTIES) -> list[Arrow]:  # noqa: B006
    return arrows(sightings, fates, parties)


def test_a_frame_leaves_one_port_and_reaches_the_other() -> None:
    (arrow,) = way([seen(10, A, "x", sent=True, number=3), seen(25, B, "x", sent=False, number=4)])
    assert (arrow.source, arrow.target, arrow.sent_ns, arrow.arrived_ns) == ("client", "server", 10, 25)
    assert (arrow.transit_ns, arrow.numbers, arrow.plain, arrow.remarks) == (15, (3, 4), True, ())


def test_a_lost_frame_does_not_take_the_arrival_of_its_retransmission() -> None:
    records = [
        seen(10, A, "x", sent=True, asks="call"),
        seen(50, A, "x", sent=True, number=2, asks="call"),
        seen(60, B, "x", sent=False, number=3),
    ]
    first, second = way(records, [fate(20, "lost", "x")])
    assert (first.lost, first.arrived_ns, first.notes, first.again) == (True, None, ("lost: words",), False)
    assert (second.lost, second.arrived_ns, second.notes, second.again) == (False, 60, (), True)


def test_a_frame_whose_fate_is_not_recorded_is_not_called_lost() -> None:
    (arrow,) = way([seen(10, A, "x", sent=True)])
    assert (arrow.lost, arrow.arrived_ns, arrow.target) == (False, None, None)


def test_a_duplicate_is_an_arrow_of_its_own() -> None:
    records = [seen(10, A, "x", sent=True), seen(25, B, "x", sent=False), seen(30, B, "x", sent=False, number=5)]
    first, copy = way(records, [fate(12, "duplicated", "x")])
    assert (first.arrived_ns, first.notes, copy.arrived_ns, copy.notes) == (25, (), 30, ("duplicated: words",))
    assert not copy.again
    (alone,) = way(records)
    assert alone.arrived_ns == 25


def test_a_damaged_frame_arrives_with_other_bytes() -> None:
    records = [seen(10, A, "x", sent=True), seen(25, B, "y", sent=False)]
    (arrow,) = way(records, [fate(12, "corrupted", "x", "y")])
    assert (arrow.arrived_ns, arrow.notes, arrow.lost) == (25, ("corrupted: words",), False)
    (unseen,) = way(records)
    assert unseen.arrived_ns is None


def test_collisions_belong_to_the_attempt_that_succeeded() -> None:
    collisions = [fate(at, "collision", "x", bits=bits) for at, bits in ((1, 96), (3, 512))]
    (arrow,) = way([seen(10, A, "x", sent=True), seen(25, B, "x", sent=False)], collisions)
    assert arrow.notes == ("2 collisions: client:eth0, 96 to 512 bits each",)
    (one,) = way([seen(10, A, "x", sent=True)], collisions[:1])
    assert one.notes == ("collision: words",)


def test_what_an_adapter_refuses_never_left() -> None:
    (arrow,) = way([], [fate(5, "dropped", "x", refused=True, receiver=None)])
    assert (arrow.source, arrow.target, arrow.lost, arrow.sent_ns) == ("client", None, True, 5)
    assert way([], [fate(5, "lost", "x")]) == []


def test_a_copy_towards_another_port_is_the_one_that_is_dropped() -> None:
    records = [seen(10, A, "x", sent=True), seen(25, B, "x", sent=False)]
    dropped = fate(30, "dropped", "x", sender=None, receiver="third:eth0")
    (arrow, other) = way(records, [dropped], ("client", "server", "third"))
    assert (arrow.target, arrow.arrived_ns, arrow.lost) == ("server", 25, False)
    assert (other.target, other.lost) == ("third", True)


def test_what_forwards_has_an_arrow_to_it_and_one_from_it() -> None:
    records = [
        seen(10, A, "x", sent=True),
        seen(20, "box:p0", "x", sent=False),
        seen(22, "box:p1", "x", sent=True, segment="far"),
        seen(30, B, "x", sent=False, segment="far"),
    ]
    ways = way(records, parties=("client", "box", "server"))
    assert [(each.source, each.target, each.segment) for each in ways] == [
        ("client", "box", "lan"), ("box", "server", "far"),
    ]  # fmt: skip


def test_late_and_overtaken_frames_are_named() -> None:
    records = [
        seen(0, A, "a", sent=True), seen(100, B, "a", sent=False),
        seen(10, A, "b", sent=True), seen(30, B, "b", sent=False),
    ]  # fmt: skip
    late, fast = way(records)
    assert (late.delayed_ns, late.overtaken, fast.delayed_ns, fast.overtaken) == (80, True, 0, False)
    assert late.remarks == ("delayed by 0.080 us, overtaken",)
    assert late.plain  # no wire did anything to it


def stretch(count: int) -> list[Arrow]:
    records = []
    for place in range(count):
        records += [
            seen(100 * place, A, place, sent=True, group="fragment"),
            seen(100 * place + 50, B, place, sent=False),
        ]
    return way(records)


def test_many_like_frames_are_summarised_and_none_is_forgotten() -> None:
    ways = stretch(45)
    drawn, hidden = rows(ways, [], everything=False)
    assert [(row.at_ns, row.count) for row in drawn] == [(0, 1), (100, 43), (4400, 1)]
    assert (drawn[1].last_ns, hidden) == (4300, 43)
    everything, none = rows(ways, [], everything=True)
    assert (len(everything), none) == (45, 0)
    assert rows(stretch(FEW), [], everything=False)[1] == 0


def test_a_frame_that_something_happened_to_is_never_summarised() -> None:
    ways = stretch(45)
    ways[20] = Arrow(**{**ways[20].__dict__, "lost": True, "arrived_ns": None, "notes": ("lost",)})
    drawn, hidden = rows(ways, [], everything=False)
    assert [row.count for row in drawn] == [1, 18, 1, 1, 1, 22, 1]
    assert sum(row.count for row in drawn) == 45
    assert hidden == 40


def ladder(ways: list[Arrow], **more: object) -> Ladder:
    drawn, hidden = rows(ways, [Row(0, party="client", event="call begins")], everything=False)
    given = {"parties": PARTIES, **more}
    return Ladder("call 7", "ok", zero_ns=0, rows=tuple(drawn), arrows=tuple(ways), hidden=hidden, **given)  # type: ignore[arg-type]


LOST = way(
    [seen(1000, A, "x", sent=True, words="request"), seen(9000, B, "r", sent=True), seen(9900, A, "r", sent=False)],
    [fate(1500, "lost", "x")],
)


def test_the_drawing_for_a_terminal() -> None:
    assert ladder_text.draw(ladder(LOST), width=60).splitlines() == [
        "call 7",
        "ok",
        "",
        "       time  client          server",
        "   0.000 us  ●               │  call begins",
        "   1.000 us  │───────✕       │  request",
        "             │               │  └ lost: words",
        "   9.000 us  │◀──────────────│  frame +0.900 us",
    ]


def test_an_event_of_no_party_stands_at_its_time() -> None:
    drawn = replace(ladder(LOST), rows=(Row(500, event="lan: timeline: cut"),))
    assert ladder_text.draw(drawn).splitlines()[-1] == "   0.500 us  │               │  lan: timeline: cut"
    assert "lan: timeline: cut" in ladder_svg.draw(drawn)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    text = ladder_text.draw(ladder(LOST), unicode=False)
    assert text.isascii()
    assert "|-------X       |  request" in text


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("parties", [PARTIES, ("client", "a", "server"), ("client", "a", "b", "c", "server")])
def test_no_line_is_wider_than_the_terminal(width: int, parties: tuple[str, ...]) -> None:
    words = "words of which there are many, more than there is room for beside the lifelines of so many parties"
    ways = way([seen(0, A, "x", sent=True, words=words), seen(50, B, "x", sent=False)], [], parties)
    lines = ladder_text.draw(ladder(ways, parties=parties), width=width).splitlines()
    assert max(map(len, lines)) <= max(width, 13 + 10 * (len(parties) - 1) + 23)
    assert " ".join(" ".join(line[13 + 1 :] for line in lines).replace("│", " ").split()).count("lifelines") == 1


def test_the_svg_is_the_same_each_time_and_in_the_colours_of_the_palette() -> None:
    svg = ladder_svg.draw(ladder(LOST))
    assert svg == ladder_svg.draw(ladder(LOST))
    root = ET.fromstring(svg)
    colours = {value for each in root.iter() for name, value in each.attrib.items() if name in ("fill", "stroke")}
    assert {colour for colour in colours if colour.startswith("#")} <= palette.NAMES.keys()
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:2] == ["client", "server"]
    assert {"request", "lost: words", "call begins"} <= set(texts)


def test_words_in_the_svg_do_not_touch() -> None:
    ways = stretch(5) + LOST
    root = ET.fromstring(ladder_svg.draw(ladder(sorted(ways, key=lambda each: each.sent_ns))))
    places: dict[str, list[float]] = {}
    for each in root.iter("{http://www.w3.org/2000/svg}text"):
        places.setdefault(each.attrib["x"], []).append(float(each.attrib["y"]))
    for heights in places.values():
        ordered = sorted(heights)
        assert all(low - high >= 12 for high, low in itertools.pairwise(ordered))


def test_markup_in_words_stays_words() -> None:
    ways = way([seen(0, A, "x", sent=True, words="<script>&"), seen(50, B, "x", sent=False)])
    texts = [
        each.text for each in ET.fromstring(ladder_svg.draw(ladder(ways))).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert any("<script>&" in (text or "") for text in texts)


def test_those_who_do_not_see_it_are_given_the_counts() -> None:
    words = ladder_svg.in_words(ladder(LOST))
    assert words.endswith("2 frames between client, server; 1 lost, 0 sent again")


@pytest.mark.parametrize(
    ("ns", "words"),
    [(0, "0.000 us"), (999_999, "999.999 us"), (1_000_000, "1.000 ms"), (-5, "-0.005 us"), (2 * 10**9, "2.000 s")],
)
def test_times_have_the_unit_that_fits(ns: int, words: str) -> None:
    assert in_time(ns) == words


def test_fragments_know_their_place_and_packet() -> None:
    frames = udp_packets(CLIENT, SERVER, (700, 800), bytes(3000), 77, 1500)
    heads = [read_head(frame) for frame in frames]
    assert [each.words for each in heads] == [
        "UDP, 3000 B, bytes 0-1479 of the packet", "bytes 1480-2959 of the packet", "bytes 2960-3007 of the packet",
    ]  # fmt: skip
    assert len({each.packet for each in heads}) == 1
    assert [each.group for each in heads] == ["", "fragment", "fragment"]
    again = [read_head(frame) for frame in udp_packets(CLIENT, SERVER, (700, 800), bytes(3000), 78, 1500)]
    assert [each.asks for each in again] == [each.asks for each in heads]
    assert all(each.key != other.key for each, other in zip(again, heads, strict=True))


def test_a_segment_is_named_by_its_bytes_and_its_acknowledgement() -> None:
    body = summed(CLIENT, SERVER, 6, bytes.fromhex("02bc0320 00000064 000003e8 5018 ffff 0000 0000") + bytes(40))
    segment = read_head(ip_packet(CLIENT, SERVER, 6, body, 1, 0, False))
    assert segment.tcp is not None
    assert tcp_words(segment.tcp, 100, 1000) == "TCP bytes 0-39, ACK 0"
    assert tcp_words(segment.tcp, 100, 2000) == "TCP bytes 0-39, ACK of the call before"
    assert segment.asks is not None
    ack = summed(CLIENT, SERVER, 6, bytes.fromhex("02bc0320 00000064 000003e8 5010 ffff 0000 0000"))
    bare = read_head(ip_packet(CLIENT, SERVER, 6, ack, 1, 0, False))
    assert (bare.group, bare.asks) == ("acknowledgement", None)


@pytest.mark.parametrize(
    "frame", [b"", bytes(13), bytes(20), bytes(12) + b"\x08\x00" + bytes(19), bytes(12) + b"\x08\x06"]
)
def test_what_is_cut_off_is_still_a_frame(frame: bytes) -> None:
    assert read_head(frame).ports is None
    assert read_head(frame, ethernet=False).words == f"packet, {len(frame)} B"

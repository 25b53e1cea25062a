# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 over TCP without TLS (RFC 9113): both ends of each connection, and what one owes the other.

Each end is judged by its own frames (`http2_side`), with what had come to it from the other. SETTINGS and PING have
their acknowledgements, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sundial.expect.http2 import HEADER, PREFACE, Flag, Frame, Http2Error, Type, frames, read_settings
from sundial.verify.decoders.http2_side import Peer, Side
from sundial.verify.decoders.traffic import (
    SECOND_NS,
    SKEW_NS,
    Connection,
    Exchanged,
    Judged,
    Lane,
    Traffic,
    Wrong,
    named,
)
from sundial.verify.findings import Finding
from sundial.verify.sockets.protocol import Message, Units
from sundial.verify.sockets.stream import Stream

_NEVER = 1 << 62
_PREFACE = re.compile(re.escape(PREFACE))


class Preface:
    """How a connection is recognised: by what its client sends first."""

    unit = "frame"

    def parse(self, stream: Stream, begin: int) -> Message | None:
        known = stream.read(begin, len(PREFACE)) == PREFACE
        return Message(0, begin, begin + len(PREFACE), len(PREFACE), (), False) if known else None

    def find(self, stream: Stream, begin: int) -> int | None:
        return next(stream.search(_PREFACE, begin), None)


@dataclass(frozen=True)
class _Seen:
    """A frame on its way. `server`: from it."""

    frame: Frame
    server: bool
    sent_ns: int
    arrived_ns: int | None
    rows: Sequence[int]


class Http2:
    """The decoder."""

    name = "http2"
    transports: Sequence[str] = ("tcp",)
    ports: Sequence[int] = ()
    units: Units | None = Preface()
    asks: str | None = None
    unproven: Sequence[str] = (
        "http2: bodies, and what headers ask and answer, beyond their form",
        "http2: windows of flow control, and the number of streams at once",
        "http2: that each request is answered, and when",
        "http2: connections with TLS, or that are upgraded from HTTP/1.1",
    )

    def judge(self, traffic: Traffic) -> Judged:
        """All findings about the traffic of its services."""
        found = Judged()
        for connection in traffic.connections:
            _Judge(traffic, connection, found).judge()
        return found


class _Judge:
    """Of one connection."""

    def __init__(self, traffic: Traffic, connection: Connection, found: Judged) -> None:
        self._traffic, self._connection, self._found = traffic, connection, found
        self._skew_ns = 0 if traffic.both_views else SKEW_NS
        self._known_ns = _NEVER
        """Until when all bytes of both directions are known."""

    def judge(self) -> None:
        """All findings about it."""
        lanes = self._connection.lanes
        client = lanes[False]
        begin = client.stream.read(0, len(PREFACE))
        if not client.stream.end and not lanes[True].stream.end:
            return  # refused, or nothing was said
        if not all(lane.opened for lane in lanes.values()) or not PREFACE.startswith(begin) or not begin:
            what = f"{begin!r}" if client.opened else "a connection that had begun before"
            self._gap(client, f"{what} instead of the preface")
            return
        seen = [each for server, lane in lanes.items() for each in self._frames(server, lane)]
        seen = [each for each in seen if each.sent_ns < self._known_ns]
        peers = {False: Peer(), True: Peer()}
        sides = {server: Side(server, peers[not server]) for server in (False, True)}
        opened_ns: dict[int, int] = {}
        ended_ns: dict[int, int | None] = {}
        # What has come to an end, before what it sends at that time.
        moves = [(each.sent_ns, 1, place, each) for place, each in enumerate(seen)]
        moves += [
            (each.arrived_ns - self._skew_ns, 0, place, each)
            for place, each in enumerate(seen)
            if each.arrived_ns is not None
        ]
        for _, sends, _, each in sorted(moves, key=lambda move: move[:3]):
            if not sends:
                _announce(peers[each.server], each)
                continue
            side = sides[each.server]
            for wrong in side.take(each.frame):
                self._wrong(each, wrong)
            if not each.server:
                opened_ns.setdefault(each.frame.stream, each.sent_ns)
            elif each.frame.stream in side.streams and side.streams[each.frame.stream].ended:
                ended_ns.setdefault(each.frame.stream, each.arrived_ns)
            if each.frame.type in (Type.HEADERS, Type.DATA, Type.SETTINGS):
                self._found.counts[f"{Type(each.frame.type).name} frame"] += 1
            else:
                self._found.counts["other frame"] += 1
        self._found.calls += len(sides[False].opened)
        self._found.exchanges += [
            Exchanged("tcp", client.sender, client.receiver, about, opened_ns[number], ended_ns.get(number))
            for number, about in sides[False].asked.items()
        ]
        for kind in (Type.SETTINGS, Type.PING):
            for server in (False, True):
                self._check_acks(kind, [each for each in seen if each.frame.type == kind], server=server)

    def _frames(self, server: bool, lane: Lane) -> Iterator[_Seen]:
        """Of one direction. What cannot be read on is one finding."""
        stream, begin = lane.stream, 0 if server else len(PREFACE)
        data = stream.read(0, stream.end)
        if len(data) <= begin:
            return
        sent_ns = lane.sent_ns(begin + 1)
        for end, frame in frames(data, begin):
            # A tap may have seen what is behind a frame first, if TCP had to send that again.
            sent_ns = max(sent_ns, lane.sent_ns(begin + 1))
            arrived = lane.arrived_ns(end, both_views=self._traffic.both_views)
            came_ns = max(sent_ns, arrived[0]) if arrived else None
            yield _Seen(frame, server, sent_ns, came_ns, lane.rows(begin, end))
            begin = end
        missing = stream.missing(0, stream.end)
        if missing:
            self._known_ns = min(self._known_ns, lane.sent_ns(len(data) + 1))
            self._gap(lane, f"{missing} bytes from byte {len(data)} on are not in the capture", len(data) - 1)
        elif begin < len(data) and not self._traffic.is_cut_off(self._connection, lane):
            self._known_ns = min(self._known_ns, lane.sent_ns(stream.end) + 1)
            size = int.from_bytes(data[begin : begin + 3], "big") + HEADER
            self._gap(lane, f"{len(data) - begin} of {size} bytes of a frame at byte {begin}", begin)

    def _gap(self, lane: Lane, what: str, begin: int = 0) -> None:
        seen = f"{what}, {named(lane.sender)} to {named(lane.receiver)}"
        self._found.findings.append(
            Finding(None, "decoded stream", "whole frames", seen, lane.rows(begin, lane.stream.end))
        )

    def _wrong(self, each: _Seen, wrong: Wrong) -> None:
        lane = self._connection.lanes[each.server]
        seen = f"{wrong.seen}, {named(lane.sender)} to {named(lane.receiver)}"
        self._found.findings.append(Finding(None, f"decoded message {wrong.field}", wrong.expected, seen, each.rows))

    def _check_acks(self, kind: Type, seen: Sequence[_Seen], *, server: bool) -> None:
        """What one end asked for against what the other acknowledged, in order."""
        asked = [each for each in seen if each.server == server and not each.frame.has(Flag.ACK)]
        acks = [each for each in seen if each.server != server and each.frame.has(Flag.ACK)]
        for place, ack in enumerate(acks):
            ask = asked[place] if place < len(asked) else None
            came_ns = None if ask is None else ask.arrived_ns
            if ask is None or came_ns is None or came_ns - self._skew_ns > ack.sent_ns:
                self._wrong(ack, Wrong(f"{kind.name} ACK", f"of one of {kind.name} that had come", str(ack.frame)))
            elif kind == Type.PING and ack.frame.payload != ask.frame.payload:
                self._wrong(ack, Wrong("PING ACK", ask.frame.payload.hex(), ack.frame.payload.hex()))
        if self._known_ns < _NEVER or self._connection.reset:
            return
        ended_ns = self._connection.ended_ns
        for ask in asked[len(acks) :]:
            due_ns = None if ask.arrived_ns is None else ask.arrived_ns + self._slowest(asked, acks)
            over_ns = min(at_ns for at_ns in (ended_ns, self._traffic.until_ns) if at_ns is not None)
            if due_ns is not None and due_ns < over_ns:
                self._wrong(ask, Wrong(f"{kind.name} ACK", f"one, by {due_ns} ns", f"none of {ask.frame}"))

    def _slowest(self, asked: Sequence[_Seen], acks: Sequence[_Seen]) -> int:
        """ns within which an acknowledgement is due: twice the longest that another one took."""
        both = [
            ack.sent_ns - ask.arrived_ns for ask, ack in zip(asked, acks, strict=False) if ask.arrived_ns is not None
        ]
        return 2 * max(both) if both else SECOND_NS


def _announce(peer: Peer, each: _Seen) -> None:
    """What an end may rely on once a frame has come."""
    frame = each.frame
    if frame.type == Type.SETTINGS and not frame.has(Flag.ACK):
        try:
            peer.take(read_settings(frame))
        except Http2Error:
            return  # said where it was sent
    elif frame.type == Type.HEADERS and not each.server:
        peer.opened.add(frame.stream)
    elif frame.type == Type.PUSH_PROMISE and each.server:
        place = 1 if frame.has(Flag.PADDED) else 0
        peer.opened.add(int.from_bytes(frame.payload[place : place + 4], "big"))


DECODER = Http2()

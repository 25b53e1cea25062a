# SPDX-License-Identifier: Apache-2.0
"""Messages in TCP streams of gRPC and RPyC: each field of each kind of HTTP/2 frame and of RPyC message, and whole
ones that are exchanged, repeated, or others. Lengths stay, so that no segment and no time gives them away.

Its own reader of both: RFC 9113 section 4.1, and RPyC's frames and brine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from mutation import protocols
from mutation.capture import Capture, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import other_value, write

GRPC, RPYC = 50051, 18861
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADER = 9
_HTTP2 = ("DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE")
_UNKNOWN = 0x20
"""A type of frame that is none, which a receiver passes over (RFC 9113, 5.5)."""
_KINDS = {0x51: "request", 0x52: "reply", 0x53: "exception"}
_HANDLERS = {3: "GETROOT", 4: "GETATTR", 7: "CALL", 8: "CALLATTR", 15: "DEL", 16: "INSPECT", 2: "CLOSE"}
_SMALL = 0x50
"""Brine's byte for 0."""


@dataclass(frozen=True)
class Message:
    """One in the stream of a sender, with its fields: where they begin in it, and their bytes."""

    kind: str
    begin: int
    end: int
    fields: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Stream:
    """What one end of a connection sent."""

    machine: str
    port: int
    """The server's."""
    from_server: bool
    parts: tuple[Transmission, ...]
    data: bytes

    def put(self, begin: int, octets: bytes) -> None:
        """Other octets, wherever their frames were seen."""
        here = 0
        for each in self.parts:
            first = protocols.payload(each.data)
            size = len(_content(each))
            low, high = max(begin, here), min(begin + len(octets), here + size)
            if low < high:
                old = each.data
                place = first + low - here
                new = old[:place] + octets[low - begin : high - begin] + old[place + high - low :]
                for frame in each.everywhere:
                    frame.data = protocols.with_checksums(old, new)
            here += size


def damages(copy: Copy) -> Damages:
    """All that can be done to the messages of this run."""
    for stream in _streams(copy.captures()):
        messages = list(_messages(stream))
        for kind in dict.fromkeys(each.kind for each in messages):
            own = [each for each in messages if each.kind == kind]
            name = f"{kind} from {stream.machine}"
            for field in dict.fromkeys(item for each in own for item, _, _ in each.fields):
                yield _damage(f"message: {field} of {name}", stream, _field(kind, field))
            if _pairs(stream, own):
                yield _damage(f"message: two exchanged: {name}", stream, _exchange(kind))
                yield _damage(f"message: one in place of another: {name}", stream, _repeat(kind))
            if stream.port == GRPC:
                yield _damage(f"message: a frame of no known type for {name}", stream, _replace(kind))


def _damage(name: str, like: Stream, change: Callable[[Stream, Random], None]) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        found = [each for each in _streams(captures) if _key(each) == _key(like)]
        change(random.choice(found), random)
        write(copy, captures)

    return Damage(name, apply)


def _key(stream: Stream) -> tuple[str, int, bool]:
    return stream.machine, stream.port, stream.from_server


def _content(each: Transmission) -> bytes:
    return each.data[protocols.payload(each.data) : 14 + int.from_bytes(each.data[16:18])]


def _streams(captures: dict[str, Capture]) -> list[Stream]:
    """The first of each machine to or from a server, without what was sent again."""
    found: dict[tuple[str, int, bool], list[Transmission]] = {}
    seen: set[tuple[bytes, bytes]] = set()
    for each in transmissions(list(captures.values())):
        if not protocols.is_ip(each.data) or protocols.kind(each.data) != "TCP data":
            continue
        at = protocols.layer(each.data)
        source, target = (int.from_bytes(each.data[at + place : at + place + 2]) for place in (0, 2))
        port = next((port for port in (GRPC, RPYC) if port in (source, target)), None)
        place = each.data[26:34] + each.data[at : at + 4], each.data[at + 4 : at + 8]
        if port is not None and place not in seen:
            seen.add(place)
            found.setdefault((each.machine, port, source == port), []).append(each)
    return [Stream(*key, tuple(parts), b"".join(map(_content, parts))) for key, parts in found.items()]


def _messages(stream: Stream) -> Iterator[Message]:
    return _of_http2(stream) if stream.port == GRPC else _of_rpyc(stream.data)


def _of_http2(stream: Stream) -> Iterator[Message]:
    data, at = stream.data, 0 if stream.from_server else len(_PREFACE)
    while at + _HEADER <= len(data):
        length, kind = int.from_bytes(data[at : at + 3]), data[at + 3]
        fields = [("length", 0, 3), ("type", 3, 1), ("flags", 4, 1), ("stream", 5, 4)]
        if length:
            fields += [("payload.first", _HEADER, 1), ("payload.last", _HEADER + length - 1, 1)]
        whose = "the connection" if not int.from_bytes(data[at + 5 : at + _HEADER]) else "a stream"
        yield Message(f"{_HTTP2[kind]} of {whose}", at, at + _HEADER + length, tuple(fields))
        at += _HEADER + length


def _of_rpyc(data: bytes) -> Iterator[Message]:
    at = 0
    while at + 5 <= len(data):
        length, compressed = int.from_bytes(data[at : at + 4]), data[at + 4]
        fields = [("length", 0, 4), ("compressed", 4, 1), ("end", 5 + length, 1)]
        kind = "compressed message"
        if not compressed:
            # A tuple of three: kind, number, body. Small integers are one byte, others 16, their digits' count, digits.
            number = at + 7
            wide = data[number] == 0x16
            body = number + (2 + data[number + 1] if wide else 1)
            kind = _KINDS[data[at + 6]]
            if kind == "request":
                kind += f" {_HANDLERS[data[body + 1] - _SMALL]}"
            fields += [("kind", 6, 1), ("number", number - at + 2 * wide, 1), ("body.first", body - at, 1)]
            fields += [("body.middle", (body + at + 5 + length) // 2 - at, 1), ("body.last", 4 + length, 1)]
        yield Message(f"RPyC {kind}", at, at + 6 + length, tuple(fields))
        at += 6 + length


# ---- what is done to them ----


def _of_kind(stream: Stream, kind: str) -> list[Message]:
    return [each for each in _messages(stream) if each.kind == kind]


def _field(kind: str, name: str) -> Callable[[Stream, Random], None]:
    def change(stream: Stream, random: Random) -> None:
        has = [each for each in _of_kind(stream, kind) if any(item == name for item, _, _ in each.fields)]
        chosen = random.choice(has)
        place, size = next((at, size) for item, at, size in chosen.fields if item == name)
        begin = chosen.begin + place
        bits = (1 << 8 * size) - 1
        value = other_value(int.from_bytes(stream.data[begin : begin + size]), bits, random)
        stream.put(begin, value.to_bytes(size))

    return change


def _pairs(stream: Stream, own: Sequence[Message]) -> list[tuple[Message, Message]]:
    """Messages of one length that differ."""
    return [
        (one, other)
        for place, one in enumerate(own)
        for other in own[place + 1 :]
        if one.end - one.begin == other.end - other.begin and _octets(stream, one) != _octets(stream, other)
    ]


def _octets(stream: Stream, each: Message) -> bytes:
    return stream.data[each.begin : each.end]


def _exchange(kind: str) -> Callable[[Stream, Random], None]:
    def change(stream: Stream, random: Random) -> None:
        one, other = random.choice(_pairs(stream, _of_kind(stream, kind)))
        first, second = _octets(stream, one), _octets(stream, other)
        stream.put(one.begin, second)
        stream.put(other.begin, first)

    return change


def _repeat(kind: str) -> Callable[[Stream, Random], None]:
    def change(stream: Stream, random: Random) -> None:
        one, other = random.choice(_pairs(stream, _of_kind(stream, kind)))
        stream.put(other.begin, _octets(stream, one))

    return change


def _replace(kind: str) -> Callable[[Stream, Random], None]:
    """The frame is missing, and something that says nothing has its place."""

    def change(stream: Stream, random: Random) -> None:
        stream.put(random.choice(_of_kind(stream, kind)).begin + 3, bytes((_UNKNOWN,)))

    return change

# SPDX-License-Identifier: Apache-2.0
"""What one end of an HTTP/2 connection sends (RFC 9113), frame by frame: as far as it can be judged by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sundial.expect.hpack import TABLE_SIZE, Form, Header, HpackError, Table, decode
from sundial.expect.http2 import FRAME_SIZE, STREAM_MOST, WINDOW_MOST, Flag, Frame, Http2Error, Setting, Type
from sundial.verify.decoders.traffic import Wrong

_FLAGS = {
    Type.DATA: 0x09, Type.HEADERS: 0x2D, Type.PRIORITY: 0, Type.RST_STREAM: 0, Type.SETTINGS: 1,
    Type.PUSH_PROMISE: 0x0C, Type.PING: 1, Type.GOAWAY: 0, Type.WINDOW_UPDATE: 0, Type.CONTINUATION: 4,
}  # fmt: skip
"""That a type has (section 6); others must not be set."""
_SIZES = {Type.PRIORITY: 5, Type.RST_STREAM: 4, Type.PING: 8, Type.WINDOW_UPDATE: 4}
_OF_CONNECTION = (Type.SETTINGS, Type.PING, Type.GOAWAY)
_OF_EITHER = (Type.WINDOW_UPDATE,)
_GOAWAY_LEAST = 8
_FRAME_MOST = (1 << 24) - 1
_FOR_CONNECTIONS = (b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade")
_REQUEST, _CONNECT = (b":method", b":scheme", b":path"), (b":method", b":authority")
_OF_REQUESTS = (*_REQUEST, b":authority", b":protocol")


@dataclass
class Peer:
    """What the other end has announced, as far as it has arrived."""

    frame_most: int = FRAME_SIZE
    table_most: int = TABLE_SIZE
    opened: set[int] = field(default_factory=set)
    """Its streams."""

    def take(self, settings: Sequence[tuple[int, int]]) -> None:
        """Its SETTINGS. What it has announced before may still be used, until they are acknowledged."""
        for number, value in settings:
            if number == Setting.MAX_FRAME_SIZE:
                self.frame_most = max(self.frame_most, value)
            elif number == Setting.HEADER_TABLE_SIZE:
                self.table_most = max(self.table_most, value)


@dataclass
class _Stream:
    """What an end has sent on one."""

    headers: int = 0
    """Header blocks, without informational responses."""
    ended: bool = False
    reset: bool = False


@dataclass
class Side:
    """One end."""

    server: bool
    peer: Peer = field(default_factory=Peer)
    opened: set[int] = field(default_factory=set)
    streams: dict[int, _Stream] = field(default_factory=dict)
    asked: dict[int, str] = field(default_factory=dict)
    """What requests ask for, by stream."""
    table: Table = field(default_factory=Table)
    frames: int = 0
    block: tuple[Frame, bytearray] | None = None
    """A header block that goes on, with its first frame."""

    def take(self, frame: Frame) -> Iterator[Wrong]:
        """What is wrong with the next frame."""
        self.frames += 1
        if self.frames == 1 and (frame.type != Type.SETTINGS or frame.has(Flag.ACK)):
            yield Wrong("first frame", "SETTINGS", str(frame))
        if len(frame.payload) > self.peer.frame_most:
            yield Wrong("frame size", f"at most {self.peer.frame_most}", str(frame))
        if frame.stream > STREAM_MOST:
            yield Wrong("reserved bit", "0", f"stream 0x{frame.stream:08x}")
        elif self.block is not None and (frame.type != Type.CONTINUATION or frame.stream != self.block[0].stream):
            first, self.block = self.block[0], None
            yield Wrong("header block", f"CONTINUATION of stream {first.stream}", str(frame))
        elif frame.type in _FLAGS:
            yield from self._known(frame, Type(frame.type))

    def _known(self, frame: Frame, kind: Type) -> Iterator[Wrong]:
        if frame.flags & ~_FLAGS[kind]:
            yield Wrong("flags", f"none but 0x{_FLAGS[kind]:02x}", str(frame))
        if kind not in _OF_EITHER and (frame.stream == 0) != (kind in _OF_CONNECTION):
            yield Wrong("stream", "0" if kind in _OF_CONNECTION else "not 0", str(frame))
            return
        if len(frame.payload) != _SIZES.get(kind, len(frame.payload)):
            yield Wrong("frame size", str(_SIZES[kind]), str(frame))
            return
        if kind == Type.SETTINGS:
            yield from _check_settings(frame, server=self.server)
        elif kind == Type.GOAWAY and len(frame.payload) < _GOAWAY_LEAST:
            yield Wrong("frame size", f"at least {_GOAWAY_LEAST}", str(frame))
        elif kind == Type.WINDOW_UPDATE and not int.from_bytes(frame.payload, "big") & WINDOW_MOST:
            yield Wrong("increment", "not 0", str(frame))
        elif kind == Type.CONTINUATION:
            yield from self._continued(frame)
        elif kind not in (Type.PING, Type.GOAWAY, Type.PRIORITY):
            yield from self._of_stream(frame, kind)

    def _of_stream(self, frame: Frame, kind: Type) -> Iterator[Wrong]:
        """Frames that are of a stream: its states (section 5.1)."""
        if kind == Type.WINDOW_UPDATE and frame.stream == 0:
            return
        if kind == Type.HEADERS:
            yield from self._opens(frame)
        known = frame.stream in self.opened or frame.stream in self.peer.opened
        stream = self.streams.setdefault(frame.stream, _Stream())
        if not known:
            yield Wrong("stream", "one that is open", str(frame))
        elif stream.reset:
            yield Wrong("stream", f"no frame behind RST_STREAM of stream {frame.stream}", str(frame))
        elif stream.ended and kind in (Type.DATA, Type.HEADERS):
            yield Wrong("stream", f"none behind END_STREAM of stream {frame.stream}", str(frame))
        elif kind == Type.DATA and not stream.headers:
            yield Wrong("stream", f"HEADERS of stream {frame.stream} first", str(frame))
        stream.reset |= kind == Type.RST_STREAM
        if kind in (Type.DATA, Type.HEADERS, Type.PUSH_PROMISE):
            yield from _check_padding(frame)
        if kind == Type.DATA:
            stream.ended |= frame.has(Flag.END_STREAM)
        if kind == Type.PUSH_PROMISE:
            yield from self._promises(frame)
        if kind in (Type.HEADERS, Type.PUSH_PROMISE):
            yield from self._block(frame)

    def _opens(self, frame: Frame) -> Iterator[Wrong]:
        """HEADERS of a client open a stream: an odd number, above all before (section 5.1.1)."""
        if self.server or frame.stream in self.opened:
            return
        last = max(self.opened, default=-1)
        if frame.stream % 2 == 0 or frame.stream <= last:
            yield Wrong("stream", f"an odd number above {last}", str(frame))
        self.opened.add(frame.stream)

    def _promises(self, frame: Frame) -> Iterator[Wrong]:
        """PUSH_PROMISE of a server reserves a stream: an even number, above all before."""
        place = 1 if frame.has(Flag.PADDED) else 0
        number = int.from_bytes(frame.payload[place : place + 4], "big") & STREAM_MOST
        last = max((each for each in self.opened), default=0)
        if not self.server or number % 2 or number <= last:
            yield Wrong("stream", f"a server's even number above {last}", f"promised stream {number} in {frame}")
        self.opened.add(number)

    def _block(self, frame: Frame) -> Iterator[Wrong]:
        try:
            block = bytearray(frame.content)
        except Http2Error:
            return  # said of its padding
        self.block = (frame, block)
        if frame.has(Flag.END_HEADERS):
            yield from self._ended_block()

    def _continued(self, frame: Frame) -> Iterator[Wrong]:
        if self.block is None:
            yield Wrong("header block", "HEADERS in front of it", str(frame))
            return
        self.block[1].extend(frame.payload)
        if frame.has(Flag.END_HEADERS):
            yield from self._ended_block()

    def _ended_block(self) -> Iterator[Wrong]:
        """A whole header block: HPACK (RFC 7541), and what headers may be (section 8)."""
        assert self.block is not None
        (frame, block), self.block = self.block, None
        headers: list[Header] = []
        try:
            for each in decode(bytes(block), self.table):
                if each.form is not Form.RESIZE:
                    headers.append(each.header)
                elif headers or each.limit > self.peer.table_most:
                    allowed = f"at the beginning of a block, and at most {self.peer.table_most}"
                    yield Wrong("HPACK table size", allowed, f"{each.limit} behind {len(headers)} headers of {frame}")
        except HpackError as error:
            yield Wrong("HPACK", "a header block", f"{error}, in {frame}")
            return
        request = not self.server or frame.type == Type.PUSH_PROMISE
        number = frame.stream
        stream = self.streams.setdefault(number, _Stream())
        if frame.type == Type.PUSH_PROMISE:
            yield from _check_headers(headers, str(frame), request=True, trailers=False)
            return
        trailers = stream.headers > 0
        if request and not trailers:
            known = dict(headers)
            self.asked[number] = _text([b" ".join(known.get(name, b"") for name in (b":method", b":path")).strip()])
        yield from _check_headers(headers, str(frame), request=request, trailers=trailers)
        if trailers and not frame.has(Flag.END_STREAM):
            yield Wrong("stream", "END_STREAM with trailers", str(frame))
        informational = not request and not trailers and dict(headers).get(b":status", b"").startswith(b"1")
        stream.headers += not informational
        stream.ended |= frame.has(Flag.END_STREAM)


def _check_settings(frame: Frame, *, server: bool) -> Iterator[Wrong]:
    """Section 6.5."""
    if len(frame.payload) % 6 or (frame.has(Flag.ACK) and frame.payload):
        yield Wrong("SETTINGS", "items of 6 bytes; none with ACK", str(frame))
        return
    ranges = {
        Setting.ENABLE_PUSH: (0, 0 if server else 1),
        Setting.INITIAL_WINDOW_SIZE: (0, WINDOW_MOST),
        Setting.MAX_FRAME_SIZE: (FRAME_SIZE, _FRAME_MOST),
    }
    for at in range(0, len(frame.payload), 6):
        number, value = int.from_bytes(frame.payload[at : at + 2], "big"), frame.payload[at + 2 : at + 6]
        low, high = ranges.get(Setting(number), (0, 1 << 32)) if number in set(Setting) else (0, 1 << 32)
        if not low <= int.from_bytes(value, "big") <= high:
            yield Wrong(f"{Setting(number).name}", f"{low} to {high}", str(int.from_bytes(value, "big")))


def _check_padding(frame: Frame) -> Iterator[Wrong]:
    """Section 6.1."""
    try:
        content = frame.content
    except Http2Error as error:
        yield Wrong("padding", "less than the frame", str(error))
        return
    if frame.has(Flag.PADDED):
        size = frame.payload[0]
        padding = frame.payload[len(frame.payload) - size :] if size else b""
        if any(padding):
            yield Wrong("padding", "zeros", f"{frame} with {len(content)} bytes of content")


def _check_headers(headers: Sequence[Header], where: str, *, request: bool, trailers: bool) -> Iterator[Wrong]:
    """Section 8.2 and 8.3."""
    pseudo = [name for name, _ in headers if name.startswith(b":")]
    first = [name for name, _ in headers[: len(pseudo)]]
    if first != pseudo:
        yield Wrong("pseudo-headers", "in front of the others", f"{_text(first)}, {where}")
    known = dict(headers)
    if trailers:
        due: tuple[bytes, ...] = ()
    elif request:
        due = _CONNECT if known.get(b":method") == b"CONNECT" and b":protocol" not in known else _REQUEST
    else:
        due = (b":status",)
    allowed = () if trailers else _OF_REQUESTS if request else (b":status",)
    if any(pseudo.count(name) != 1 for name in due) or len(set(pseudo)) < len(pseudo) or set(pseudo) - set(allowed):
        yield Wrong("pseudo-headers", f"{_text(due)}, each once", f"{_text(pseudo)}, {where}")
    status = known.get(b":status", b"200")
    if not request and not (len(status) == 3 and status.isdigit()):
        yield Wrong(":status", "three digits", f"{_text([status])}, {where}")
    for name, value in headers:
        if name != name.lower() or not name:
            yield Wrong("header name", "lower case", f"{_text([name])}, {where}")
        elif name in _FOR_CONNECTIONS or (name == b"te" and value != b"trailers"):
            yield Wrong("header name", "none of a connection", f"{_text([name])}, {where}")


def _text(names: Sequence[bytes]) -> str:
    return ", ".join(name.decode("latin-1") for name in names) or "none"

# SPDX-License-Identifier: Apache-2.0
"""One direction of a connection, checked frame by frame against what its end has to send.

The frames of calls have their order; those of the connection may be anywhere between them, and are kept for others to
check (`verify_control`). One octet that differs is one finding: what follows is read on from where it should begin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sundial.expect import http2
from sundial.expect.hpack import HpackError, Table, decode, headers
from sundial.expect.http2 import FRAME_SIZE, HEADER, Frame, Type

LOOK_AHEAD = 8
"""Frames after the expected one among which one that came instead is looked for: those of two calls."""

NEAR = 64
"""Octets after which a frame is looked for behind some that are none."""
_LENGTHS = {
    Type.WINDOW_UPDATE: range(4, 5), Type.PING: range(8, 9), Type.RST_STREAM: range(4, 5), Type.GOAWAY: range(8, 600),
    Type.SETTINGS: range(0, 121, 6),
}  # fmt: skip
"""Of payloads."""


@dataclass(frozen=True)
class Due:
    """A frame that must come, and the call that it is of, by its place in the connection; None: of none."""

    frame: Frame
    call: int | None


@dataclass(frozen=True)
class Wrong:
    """A finding: of a call, or of none; `begin` and `end` in the stream."""

    call: int | None
    field: str
    expected: str
    seen: str
    begin: int
    end: int


@dataclass(frozen=True)
class Span:
    """A frame that came, of a call or of the connection, and where it is in the stream."""

    begin: int
    end: int
    call: int | None
    frame: Frame
    """The one that was due."""


@dataclass(frozen=True)
class Control:
    """A frame that is due at no particular place."""

    frame: Frame
    begin: int
    end: int
    call: int | None
    """The last call that had begun."""


@dataclass
class Reading:
    """What a direction says."""

    spans: list[Span] = field(default_factory=list)
    """Of what was due, in order."""
    controls: list[Control] = field(default_factory=list)
    wrong: list[Wrong] = field(default_factory=list)
    missing: dict[int, int] = field(default_factory=dict)
    """Frames of a call that did not come."""
    end: int = 0
    """Up to where all octets are frames."""


def name_of(frame: Frame) -> str:
    """The word of a frame's type in findings."""
    return Type(frame.type).name.lower() if frame.type in Type._value2member_map_ else f"type_{frame.type}"


def read(octets: bytes, begin: int, due: Iterable[Due], refused: Collection[int] = ()) -> Reading:
    """All frames from `begin`. `refused`: streams whose headers are due at no particular place."""
    return _Reader(octets, begin, deque(due), refused).read()


class _Reader:
    def __init__(self, octets: bytes, begin: int, due: deque[Due], refused: Collection[int]) -> None:
        self.octets, self.at, self.due, self.refused = octets, begin, due, refused
        self.result = Reading()
        self.table = Table()
        """Of the headers that were due so far, in words."""
        self.skipped: dict[bytes, tuple[int, Due]] = {}
        """What was due before something that came instead, by its octets, with the place of its finding."""
        self.call: int | None = None
        self.last_stream = max((each.frame.stream for each in due), default=0)

    def read(self) -> Reading:
        while self.at < len(self.octets):
            first = self.due[0] if self.due else None
            if first is not None:
                expected = first.frame.octets
                if self.octets.startswith(expected, self.at):
                    self._take(first, len(expected))
                    self.due.popleft()
                    continue
            frame = self._frame()
            if frame is None or not _sane(frame):
                if not self._read_on():
                    self._broken()
                    break
                continue
            refusal = frame.type == Type.HEADERS and frame.stream in self.refused
            if refusal or frame.stream == 0 or frame.type == Type.RST_STREAM or self._further_update(frame):
                self._control(frame)
            elif first is None:
                if not self._late(frame):
                    self._extra(frame)
            else:
                self._other(first, frame)
        self._rest()
        self.result.end = self.at
        return self.result

    # ---- reading on ----

    def _frame(self, at: int | None = None) -> Frame | None:
        at = self.at if at is None else at
        return next((frame for _, frame in http2.frames(self.octets[at : at + HEADER + FRAME_SIZE])), None)

    def _plausible(self, at: int) -> bool:
        """Whether a frame, or the end, can be there."""
        if at == len(self.octets):
            return True
        if at + HEADER > len(self.octets):
            return False
        length, kind = int.from_bytes(self.octets[at : at + 3], "big"), self.octets[at + 3]
        stream = int.from_bytes(self.octets[at + 5 : at + HEADER], "big")
        known = kind in Type._value2member_map_ and length <= FRAME_SIZE
        return known and stream <= self.last_stream + 2 and (stream == 0 or stream % 2 == 1)

    def _goes_on(self, at: int) -> bool:
        """Whether the frame behind the one that is due is there, or one of the connection, or the end."""
        if at >= len(self.octets):
            return at == len(self.octets)
        if len(self.due) > 1 and self.octets.startswith(self.due[1].frame.octets, at):
            return True
        frame = self._frame(at)
        return frame is not None and frame.stream == 0 and frame.type != Type.DATA and _sane(frame)

    def _take(self, due: Due, length: int) -> None:
        self.call = due.call if due.call is not None else self.call
        self.result.spans.append(Span(self.at, self.at + length, due.call, due.frame))
        if due.frame.type == Type.HEADERS:
            _note(due.frame, self.table)
        self.at += length

    def _control(self, frame: Frame) -> None:
        end = self.at + len(frame.octets)
        first = self.due[0] if self.due else None
        if first is not None and not first.frame.stream and first.frame.type == frame.type:
            self._altered(first, frame)
            return
        self.result.controls.append(Control(frame, self.at, end, self.call))
        self.at = end

    def _further_update(self, frame: Frame) -> bool:
        """Whether it is a stream's window update that no call has as its own frame."""
        if frame.type != Type.WINDOW_UPDATE or frame.octets in self.skipped:
            return False
        near = islice(self.due, 1 + LOOK_AHEAD)
        return not any(
            each.frame == frame or (place == 0 and self._same_but(each, frame)) for place, each in enumerate(near)
        )

    # ---- what is not as it is due ----

    def _other(self, first: Due, frame: Frame) -> None:
        """A frame of a stream that is not the next one that is due."""
        octets = frame.octets
        if self._same_but(first, frame) and self._goes_on(self.at + len(first.frame.octets)):
            self._altered(first, frame)
            return
        later = next(
            (place for place, each in enumerate(islice(self.due, 1, 1 + LOOK_AHEAD), 1) if each.frame == frame), None
        )
        if later is not None:
            self._skip(later)
        elif self._late(frame):
            return
        elif self._same_but(first, frame):
            self._altered(first, frame)
        elif self._plausible(self.at + len(octets)) and frame.type in (Type.DATA, Type.HEADERS, Type.WINDOW_UPDATE):
            self._extra(frame)
        else:
            self._altered(first, frame)

    def _same_but(self, first: Due, frame: Frame) -> bool:
        """Whether it is the one that is due, with something in it changed."""
        expected = first.frame
        same_length = len(expected.payload) == len(frame.payload)
        alike = (frame.type, frame.stream) == (expected.type, expected.stream)
        if alike or (same_length and frame.payload == expected.payload):
            return True
        return same_length and (frame.type == expected.type or frame.stream == expected.stream)

    def _altered(self, first: Due, frame: Frame) -> None:
        own, due = self.at + len(frame.octets), self.at + len(first.frame.octets)
        end = due if self._goes_on(due) or not self._plausible(own) else own
        expected, seen = self._differences(first.frame, frame)
        field_name = f"grpc.{name_of(first.frame)}"
        self._wrong(first.call, field_name, expected, seen, end)
        self._take(first, end - self.at)
        self.due.popleft()

    def _skip(self, count: int) -> None:
        """The frames before the one that came: each call's together are one finding, which `_rest` completes."""
        gone = [self.due.popleft() for _ in range(count)]
        known: dict[int | None, int] = {}
        for each in gone:
            if each.call not in known:
                known[each.call] = len(self.result.wrong)
                words = ", ".join(str(one.frame) for one in gone if one.call == each.call)
                come = str(self.due[0].frame)
                name = f"grpc.{name_of(each.frame)}"
                self._wrong(each.call, name, words, f"{come} instead", self.at + HEADER)
            self.skipped[each.frame.octets] = known[each.call], each
            if each.frame.type == Type.HEADERS:
                _note(each.frame, self.table)

    def _late(self, frame: Frame) -> bool:
        """Whether it is one that was skipped: it came after all, in another order."""
        found = self.skipped.pop(frame.octets, None)
        if found is None:
            return False
        place, due = found
        old = self.result.wrong[place]
        if "later" not in old.seen:
            self.result.wrong[place] = Wrong(
                old.call, old.field, old.expected, f"{old.seen}, and these later", old.begin, old.end
            )
        length = len(frame.octets)
        self.result.spans.append(Span(self.at, self.at + length, due.call, due.frame))
        self.at += length
        return True

    def _extra(self, frame: Frame) -> None:
        end = self.at + len(frame.octets)
        due = str(self.due[0].frame) if self.due else "no further frame of a call"
        self._wrong(self.call, f"grpc.{name_of(frame)}", due, str(frame), end)
        self.at = end

    def _read_on(self) -> bool:
        """Behind octets that are no frame, if it shows where they end."""
        if not self.due:
            return False
        first = self.due[0]
        behind = self.at + len(first.frame.octets)
        text = self.octets[self.at : self.at + HEADER].hex()
        if self._goes_on(behind):
            end, field_name, due = behind, f"grpc.{name_of(first.frame)}", str(first.frame)
            self._wrong(first.call, field_name, due, text, end)
            self._take(first, end - self.at)
            self.due.popleft()
            return True
        end = self.octets.find(first.frame.octets, self.at, behind + NEAR)
        if end < 0:
            return False
        self._wrong(self.call, "grpc.frame", "a frame of the connection", text, end)
        self.at = end
        return True

    def _wrong(self, call: int | None, name: str, expected: str, seen: str, end: int) -> None:
        self.result.wrong.append(Wrong(call, name, expected, seen, self.at, end))

    def _broken(self) -> None:
        """The last octets are no whole frame: a stream that was cut, which is another's to judge, or garbage."""
        if self._plausible(self.at) or len(self.octets) - self.at < HEADER:
            return
        text = self.octets[self.at : self.at + HEADER].hex()
        due = str(self.due[0].frame) if self.due else "no further frame"
        self._wrong(self.call, "grpc.frame", due, text, len(self.octets))

    def _rest(self) -> None:
        """What is still due; what never came counts to its call, and has its finding there."""
        for each in self.due:
            if each.call is not None:
                self.result.missing[each.call] = self.result.missing.get(each.call, 0) + 1

    def _differences(self, expected: Frame, seen: Frame) -> tuple[str, str]:
        """In what two frames differ, the first that does."""
        for name in ("stream", "type", "flags"):
            if getattr(expected, name) != getattr(seen, name):
                one, other = getattr(expected, name), getattr(seen, name)
                return f"{name} {one} of {expected}", f"{name} {other}"
        if expected.type == seen.type == Type.HEADERS:
            words = [_headers(frame, self.table) for frame in (expected, seen)]
            if words[0] != words[1]:
                return words[0], words[1]
        place = _first_difference(expected.payload, seen.payload)
        octets = (frame.payload[place : place + 8].hex() or "nothing" for frame in (expected, seen))
        one, other = (
            f"{text} at {place} of {len(frame.payload)}" for text, frame in zip(octets, (expected, seen), strict=True)
        )
        return f"{one}, {expected}", other


def _sane(frame: Frame) -> bool:
    """Whether its type can have its length, and its stream."""
    if frame.type in (Type.SETTINGS, Type.PING, Type.GOAWAY) and frame.stream:
        return False
    return frame.type in Type._value2member_map_ and len(frame.payload) in _LENGTHS.get(
        Type(frame.type), range(FRAME_SIZE + 1)
    )


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _note(frame: Frame, table: Table) -> None:
    """Its headers into the table."""
    list(decode(frame.content, table))


def _headers(frame: Frame, table: Table) -> str:
    """Its headers, read with a copy of the table."""
    copy = Table(table.limit)
    for header in reversed(table.entries):
        copy.add(header)
    try:
        found: Sequence[tuple[bytes, bytes]] = headers(decode(frame.content, copy))
    except (HpackError, http2.Http2Error) as error:
        return f"{error} ({frame.payload.hex()})"
    return ", ".join(f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in found)

# SPDX-License-Identifier: Apache-2.0
"""The two streams of a connection against both machines of `expect_sides`, message by message.

A message that was found right is what the other machine gets, so that the first difference is the one that is named;
what comes behind it is not judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sundial.workloads.rpyc import expect
from sundial.workloads.rpyc.expect import Unlike, Version, box, words
from sundial.workloads.rpyc.expect_brine import (
    COMPRESSED_ABOVE,
    Frame,
    Handler,
    Kind,
    Malformed,
    Message,
    frames,
    unpack,
)
from sundial.workloads.rpyc.expect_sides import (
    Action,
    Calls,
    Client,
    Collect,
    Ended,
    Judged,
    Receive,
    Send,
    Server,
    Side,
    expected,
)


@dataclass(frozen=True)
class Line:
    """A message that was found right, in its stream."""

    begin: int
    end: int
    call: int | None
    needed: int
    """Messages of the other way that must have come before it was sent."""


@dataclass(frozen=True)
class Difference:
    """The first thing that is wrong with a connection."""

    reply: bool
    begin: int
    end: int
    """Of the bytes in the stream where it was found; none where something is missing."""
    call: int | None
    field: str
    expected: str
    seen: str


@dataclass
class Track:
    """One way: what was sent, and the machine that must have sent it."""

    reply: bool
    side: Side
    source: Iterator[Frame]
    over: bool
    """The stream has been ended."""
    action: Action | None = None
    steps: Iterator[Action] = field(default_factory=lambda: iter(()))
    lines: list[Line] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    waiting: Frame | None = None
    skipped: int | None = None
    """A number that a request has which is not sent yet."""
    at: int = 0
    """Bytes that were read."""

    def next(self) -> Frame | None:
        """The next message that was sent, which stays the next one. Raises Malformed."""
        if self.waiting is None:
            self.waiting = next(self.source, None)
        return self.waiting

    def go_on(self, value: Judged | Message | None) -> None:
        """Give the machine what it has asked for."""
        assert isinstance(self.steps, Iterator)
        try:
            self.action = self.steps.send(value)  # type: ignore[attr-defined]
        except StopIteration:
            self.action = None

    def end(self) -> None:
        """Tell the machine that nothing more will come."""
        try:
            self.action = self.steps.throw(Ended())  # type: ignore[attr-defined]
        except StopIteration:
            self.action = None


class Replay:
    """One connection: `run` it, then read what it found."""

    def __init__(
        self,
        version: Version,
        batches: Sequence[Calls],
        data: Mapping[bool, bytes],
        over: Mapping[bool, bool],
        *,
        by_server: bool = False,
    ) -> None:
        """`over`: of the streams that have ended; `by_server`: its end came first."""
        self.version, self._by_server = version, by_server
        self.client, self.server = Client(version, batches), Server(version)
        sides: dict[bool, Client | Server] = {False: self.client, True: self.server}
        self.tracks = {
            reply: Track(reply, side, frames(data[reply]), over[reply], steps=side.run())
            for reply, side in sides.items()
        }
        self._lengths = {reply: len(each) for reply, each in data.items()}
        self.difference: Difference | None = None

    def run(self) -> None:
        """Until all is judged, or something is wrong."""
        for track in self.tracks.values():
            track.go_on(None)
        try:
            while self.difference is None and (self._advance() or self._tell_end()):
                pass
            if self.difference is None:
                self._check_end()
        except Malformed as error:
            self._fail(self._at_fault, "frame", "a message", str(error))

    def forget(self, calls: Collection[int]) -> None:
        """What was found from the first message of one of these calls on, in each stream; nothing, where there is no
        such message."""
        for track in self.tracks.values():
            place = next((place for place, line in enumerate(track.lines) if line.call in calls), None)
            if place is not None:
                track.at = track.lines[place].begin
                del track.lines[place:]
                self.difference = None

    def _advance(self) -> bool:
        """Whether any side could go on."""
        moved = False
        for track in self.tracks.values():
            self._at_fault = track
            while self.difference is None and self._step(track):
                moved = True
        return moved

    def _step(self, track: Track) -> bool:
        action = track.action
        if isinstance(action, Receive):
            there = self.tracks[not track.reply].judged
            if track.side.received < len(there):
                track.side.received += 1
                track.go_on(there[track.side.received - 1])
                return True
            return bool(track.side.garbage) and self._take_collected(track, None)
        if isinstance(action, Collect):
            if not track.side.garbage:
                track.go_on(None)
                return True
            if track.next() is None:
                return False
            if not self._take_collected(track, None):
                held = ", ".join(str(each.reference.object_id) for each in track.side.garbage[:3])
                self._fail(track, "message", f"DEL of {held}", words(self._message(track)))
            return True
        if not isinstance(action, Send) or track.next() is None:
            return False
        if not (track.side.garbage and self._take_collected(track, action)):
            self._judge(track, action)
        return True

    def _message(self, track: Track) -> Message:
        frame = track.next()
        assert frame is not None, "it was asked for"
        try:
            return unpack(frame.data)
        except Malformed as error:
            raise Malformed(f"{error}, in the frame at {frame.begin}") from None

    def _take_collected(self, track: Track, action: Send | None) -> bool:
        """Whether the next message gives back what the collector found, which can be at any place."""
        if track.next() is None:
            return False
        side, message = track.side, self._message(track)
        request = action is not None and action.kind == Kind.REQUEST
        between = request and track.skipped is None and message.number == side.number + 1
        if message.kind != Kind.REQUEST or not (message.number == side.number or between):
            return False
        for proxy in side.garbage:
            body = (int(Handler.DEL), box((proxy, proxy.count), side.boxed))
            if message.body == body:
                break
        else:
            return False
        if between:
            track.skipped = side.number
        side.number = message.number + 1
        side.garbage.remove(proxy)
        side.open[message.number] = side.call
        side.answers[message.number] = None
        self._accept(track, Message(Kind.REQUEST, message.number, body), side.call)
        return True

    def _judge(self, track: Track, action: Send) -> None:
        side, message = track.side, self._message(track)
        request = action.kind == Kind.REQUEST
        if request and track.skipped is not None:
            action = Send(action.kind, action.body, track.skipped, action.call)
        number = side.number if action.number is None else action.number
        handler = message.body[:1] if isinstance(message.body, tuple) else ()
        other = request and message.kind == action.kind and handler != action.body[:1]
        right = None
        try:
            if message.kind == action.kind and not other and message.number == number:
                right = expected(side, action, message)
        except Unlike as unlike:
            self._fail(track, unlike.field, unlike.expected, unlike.seen)
            return
        if right is None:
            alone = message.kind == action.kind and not other
            wanted = words(Message(action.kind, number, "..." if not request else (action.body[0], "...")))
            self._fail(track, "number" if alone else "message", str(number) if alone else wanted,
                       str(message.number) if alone else words(message))  # fmt: skip
            return
        if self._accept(track, right, action.call):
            if request:
                if track.skipped is not None:
                    track.skipped = None
                else:
                    side.number += 1
            side.sent = len(track.lines)
            track.go_on(right)

    def _accept(self, track: Track, right: Message, call: int | None) -> bool:
        """Compare every byte, and keep the message if all are right."""
        frame = track.waiting
        assert frame is not None, "it was judged"
        data = self.version.pack(right)
        if frame.data != data:
            self._fail(track, "bytes", words(right), words(self._message(track)))
            return False
        if frame.compressed != (len(data) > COMPRESSED_ABOVE):
            self._fail(track, "compressed", str(len(data) > COMPRESSED_ABOVE), str(frame.compressed))
            return False
        track.lines.append(Line(frame.begin, frame.end, call, track.side.received))
        track.judged.append(Judged(right, call))
        track.side.sent = len(track.lines)
        track.waiting, track.at = None, frame.end
        return True

    def _tell_end(self) -> bool:
        """Whether the end of a stream can be delivered to a side that waits for it."""
        for track in self.tracks.values():
            other = self.tracks[not track.reply]
            done = other.over and track.side.received == len(other.judged) and other.next() is None
            if done and isinstance(track.action, Receive):
                track.end()
                return True
            # It was ended before it could say all: a server is killed, and its clients say no more.
            unsaid = track.over and track.next() is None and isinstance(track.action, Send | Collect) and other.over
            if unsaid and track.reply:
                track.action = None
                return True
            if unsaid and self._by_server:
                track.end()
                return True
        return False

    def _check_end(self) -> None:
        for track in self.tracks.values():
            self._at_fault = track
            if track.next() is not None:
                self._fail(track, "message", "none", words(self._message(track)))
                return
        for track in self.tracks.values():
            action = track.action
            if isinstance(action, Send):
                number = track.side.number if action.number is None else action.number
                self._fail(track, "message", words(Message(action.kind, number, "...")), "none")
            elif isinstance(action, Collect):
                self._fail(track, "message", f"DEL of {len(track.side.garbage)} references", "none")
            elif track.at != self._lengths[track.reply] and not track.over:
                self._fail(track, "frame", "a whole one", f"{self._lengths[track.reply] - track.at} bytes")
            else:
                continue
            return

    def _fail(self, track: Track, name: str, right: str, seen: str) -> None:
        frame = track.waiting
        begin, end = (track.at, track.at) if frame is None else (frame.begin, frame.end)
        if name == "frame":
            end = self._lengths[track.reply]
        self.difference = Difference(track.reply, begin, end, track.side.call, name, right, seen)


def left(replay: Replay) -> Iterator[tuple[bool, str]]:
    """References that a side has not given back, but for that to the root: whose, and of what."""
    for reply, track in replay.tracks.items():
        for thing, count in track.side.held.values():
            if thing.class_name != expect.SERVICE:
                yield reply, f"{thing.class_name} {count} times"

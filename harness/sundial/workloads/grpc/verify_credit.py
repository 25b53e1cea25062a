# SPDX-License-Identifier: Apache-2.0
"""Window updates: what gRPC's core gives back, and when (its flow_control.cc says how much).

Each write brings the connection's credit to where all that was read is given back, and what streams have been granted
beyond their first window is there, too. A stream is granted what its reader waits for: the prefix of a message, or what
is left of one of which a part has been read. So the place of an update is free, and what all of them come to is not: of
each update the sum so far follows from what had come.

With BDP probes an end may change its windows: it announces that by SETTINGS, and what it gives back from there on has
no sum that is known. Nor has it from a call on that had its time: when an end forgets what it had granted to a stream
that was given up does not show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from sundial.expect import http2
from sundial.expect.http2 import Flag, Type
from sundial.workloads.grpc.expect import PREFIX
from sundial.workloads.grpc.verify_control import Direction, Message
from sundial.workloads.grpc.verify_frames import Control, Span, Wrong, name_of
from sundial.workloads.grpc.verify_names import LATE, Link

_OPEN = 2
"""Streams of which an end may still keep account: the one that is answered, and the next."""


def check_credit(link: Link, here: Direction, there: Direction, joined: int = 0) -> Iterator[Wrong]:
    """Findings about the window updates of `here`, which give back what `there` has sent. `joined`: octets by which the
    first of them opens the connection, too."""
    account = _Account(here, there, -joined)
    last = next((place for place, call in enumerate(link.calls) if call.error == LATE), len(link.calls))
    spans = [span for span in here.reading.spans if span.call is not None]
    place, call = 0, -1
    for each in here.reading.controls:
        while place < len(spans) and spans[place].begin < each.begin:
            place, call = yield from _pass(account, link, spans, place, call)
        if each.frame.type == Type.SETTINGS and not each.frame.has(Flag.ACK):
            return
        # A server may not have answered the call before, nor the one that had its time.
        if (-1 if each.call is None else each.call) + here.reply >= last:
            return
        if each.frame.type != Type.WINDOW_UPDATE:
            continue
        try:
            increment = http2.read_increment(each.frame)
        except http2.Http2Error as error:
            yield _wrong(each, "an increment", str(error))
            return
        wrong = account.stream(each, increment, call) if each.frame.stream else account.connection(each, increment)
        if wrong is not None:
            yield wrong
            return
    if last < len(link.calls):
        return
    while place < len(spans):
        place, call = yield from _pass(account, link, spans, place, call)
    yield from account.settle(call, link, len(here.way.data))


def _pass(
    account: _Account, link: Link, spans: Sequence[Span], place: int, call: int
) -> Generator[Wrong, None, tuple[int, int]]:
    """Over a frame of a call: where the next one begins, the one before is over."""
    span = spans[place]
    if span.call is not None and span.call != call:
        yield from account.settle(call, link, span.begin)
        call = span.call
        if not account.here.reply:
            account.grant(span.frame.stream, PREFIX)
    return place + 1, call


class _Account:
    """What one end has given back so far."""

    def __init__(self, here: Direction, there: Direction, total: int) -> None:
        self.here, self.there = here, there
        self.messages = {message.stream: (number, message) for number, message in enumerate(there.messages)}
        self.streams = [message.stream for message in there.messages]
        self.sums = [0, *accumulate(message.octets for message in there.messages)]
        times = [there.way.arrived_ns(message.begin + http2.HEADER) for message in there.messages]
        self.came: Sequence[int] = [at for at in times if at is not None]
        self.total = total
        self.granted: dict[int, int] = {}
        """Beyond its first window, to each stream that is still looked at, before its message was read."""
        self.left: dict[int, int] = {}
        """The same after a part of it was read."""
        self.opened: dict[int, int] = {}
        """Where the first headers of each stream end, of the other direction."""
        for span in there.reading.spans:
            if span.frame.type == Type.HEADERS:
                self.opened.setdefault(span.frame.stream, span.end)
        self.failed = False

    def grant(self, stream: int, increment: int) -> None:
        """What a stream may be sent beyond its first window."""
        self.granted[stream] = self.granted.get(stream, 0) + increment
        for old in sorted(self.granted)[:-_OPEN]:
            del self.granted[old]
            self.left.pop(old, None)

    def _is_open(self, stream: int, call: int, sent: int) -> bool:
        """Whether it is the stream of a client's last request, or for a server of the last one that had come."""
        if not self.here.reply:
            return stream == 2 * call + 1
        came = self.there.way.arrived_ns(self.opened[stream]) if stream in self.opened else None
        return stream in (2 * call + 1, 2 * call + 3) and came is not None and came <= sent

    def stream(self, each: Control, increment: int, call: int) -> Wrong | None:
        """What the reader of a stream waits for, less what it may be sent anyway. `call`: the last one of which this
        end has sent a frame."""
        stream, sent = each.frame.stream, self.here.way.sent_ns(each.end)
        if not self._is_open(stream, call, sent):
            self.failed = True
            return _wrong(each, f"none for stream {stream}: it is not open", str(increment))
        before = self.granted.get(stream, 0)
        number, message = self.messages.get(stream, (0, None))
        if message is None or stream in self.left or number >= bisect_right(self.came, sent):
            if stream not in self.left and increment + before == PREFIX:
                self.grant(stream, increment)
                return None
            known = [PREFIX - before]
        else:
            waits = self._waits(message, sent)
            now = before - message.octets
            if increment + now in waits:
                self.left[stream] = increment + now
                self.granted.setdefault(stream, before)
                return None
            if increment + before == PREFIX:
                self.grant(stream, increment)
                return None
            known = sorted(wait - now for wait in waits)
        self.failed = True
        return _wrong(each, f"{' or '.join(map(str, known)) or 'none'} for stream {stream}", str(increment))

    def _waits(self, message: Message, sent: int) -> set[int]:
        """What is left of a message, or of its prefix, by the parts of it that had come by then."""
        way = self.there.way
        begin = message.begin + http2.HEADER
        ends = {segment.end for segment in way.segments(message.begin, message.end) if segment.end < message.end}
        found = set()
        for end in {begin, *ends}:
            at = way.arrived_ns(end)
            read = end - begin
            if at is not None and at <= sent and read >= 0:
                found.add(PREFIX - read if read < PREFIX else message.octets - read)
        return found

    def connection(self, each: Control, increment: int) -> Wrong | None:
        """All that was read, and what streams were granted; of the last message it may not yet know."""
        self.total += increment
        came = bisect_right(self.came, self.here.way.sent_ns(each.end))
        allowed = {total for read in range(max(0, came - 1), came + 1) for total in self._totals(read)}
        if self.total in allowed:
            return None
        self.failed = True
        text = " or ".join(map(str, sorted(allowed)))
        return _wrong(each, f"{text} with this one, as had come by then", f"{self.total}")

    def _totals(self, read: int) -> set[int]:
        """What all updates may come to when so many messages have been read."""
        free = []
        for stream, granted in self.granted.items():
            number, message = self.messages.get(stream, (read, None))
            known = message is not None and number < read
            now = self.left.get(stream, granted - message.octets) if known and message is not None else granted
            if now > 0:
                free.append(now)
        return {self.sums[read] + some for some in _sums_of_some(tuple(free))}

    def settle(self, call: int, link: Link, end: int) -> Iterator[Wrong]:
        """When an end has written a call's frames, what it had read before is given back."""
        if self.failed or not 0 <= call < len(link.calls) or not link.calls[call].answered or link.cut:
            return
        read = call + self.here.reply
        if bisect_right(self.streams, 2 * read - 1) < read:
            return  # its other direction lacks a frame, and has a finding
        # A client lets the stream of its request send the prefix of a reply.
        least = self.sums[read] + (0 if self.here.reply else PREFIX)
        if self.total < least:
            self.failed = True
            begin = max(0, end - http2.HEADER)
            update = name_of(http2.window_update(0, 1))
            yield Wrong(call, f"grpc.{update}", f"{least} octets together", f"{self.total}", begin, end)


def _wrong(each: Control, expected: str, seen: str) -> Wrong:
    return Wrong(each.call, f"grpc.{name_of(each.frame)}", expected, seen, each.begin, each.end)


@lru_cache(maxsize=16)
def _sums_of_some(numbers: tuple[int, ...]) -> frozenset[int]:
    """The sums of all choices of some of them: most updates ask for the same ones as the update before."""
    found = {0}
    for each in numbers:
        found |= {total + each for total in found}
    return frozenset(found)

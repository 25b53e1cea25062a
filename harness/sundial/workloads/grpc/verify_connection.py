# SPDX-License-Identifier: Apache-2.0
"""One connection against its calls: what both ends had to send, in bytes and in time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sundial.expect import http2
from sundial.expect.http2 import Flag, Frame, Type
from sundial.verify.findings import Finding
from sundial.verify.sockets.conversations import Conversation, Explained, Way
from sundial.workloads import functions
from sundial.workloads.grpc.expect import PREFIX, Client, Library, Server, octets
from sundial.workloads.grpc.expect_languages import CPP, Language
from sundial.workloads.grpc.verify_control import Direction, Message, check_control, check_windows
from sundial.workloads.grpc.verify_credit import check_credit
from sundial.workloads.grpc.verify_frames import Due, Reading, Wrong, read
from sundial.workloads.grpc.verify_names import BROKEN, LATE, WRONG, Call, Link, begun

OPENING = "grpc_connection"
"""The class of frames that belong to no call."""
_TIMESTAMPS = 12
"""Octets of a segment that its timestamps take."""
_IP_TCP = 40


@dataclass(frozen=True)
class Stretch:
    """The frames of one message with its headers, in a stream."""

    begin: int
    end: int
    frames: int
    whole: bool
    """Its last frame is there."""


@dataclass(frozen=True)
class Ends:
    """What the two machines of a connection are, as far as it shows."""

    client: Library
    server: Library
    language: Language
    """The client's."""
    client_probes: bool
    server_probes: bool
    counted: bool
    mtus: tuple[int, int]
    """Of the client's port and of the server's."""


class Connection:
    """A link, read."""

    def __init__(self, link: Link, ends: Ends) -> None:
        self.link, self.ends = link, ends
        self.conversation: Conversation = link.conversation
        authority = "{}:{}".format(*link.step.server)
        client = Client(ends.client, authority, bdp_probe=ends.client_probes, language=ends.language)
        server = Server(ends.server, bdp_probe=ends.server_probes)
        ways = self.conversation.ways
        self.ways: Mapping[bool, Way] = ways
        answers, refused = begun(ways[True].data)
        refused -= {2 * place + 1 for place, call in enumerate(link.calls) if call.answered or ends.language is not CPP}
        due: dict[bool, list[Due]] = {False: [], True: []}
        openings = {False: client.opening(), True: server.opening()}
        self.first_increment = _joined(openings[False], ways[False].data)
        if self.first_increment is not None:
            del openings[False][1:]
        for reply, frames in openings.items():
            due[reply] += [Due(frame, None) for frame in frames]
        for place, call in enumerate(link.calls):
            if call.function not in functions.BY_NAME:
                continue  # of which its sample has a finding
            stream = 2 * place + 1
            due[False] += [Due(frame, place) for frame in client.call(stream, call.function)]
            # A call that failed may have been answered, or not.
            if call.answered or stream in answers - refused:
                due[True] += [Due(frame, place) for frame in server.call(stream, call.function)]
        begins = {False: len(http2.PREFACE), True: 0}
        self.readings: dict[bool, Reading] = {
            reply: read(ways[reply].data, begins[reply], due[reply], refused if reply else ())
            for reply in (False, True)
        }
        self.stretches = {reply: self._stretches(reply) for reply in (False, True)}
        self.directions = {
            reply: Direction(
                reply,
                ways[reply],
                self.readings[reply],
                begins[reply] + octets(openings[reply]),
                self._messages(reply),
            )
            for reply in (False, True)
        }

    def _stretches(self, reply: bool) -> dict[int, Stretch]:
        found: dict[int, Stretch] = {}
        for span in self.readings[reply].spans:
            if span.call is not None:
                known = found.get(span.call)
                begin, count = (span.begin, 0) if known is None else (known.begin, known.frames)
                whole = (known is not None and known.whole) or span.frame.has(Flag.END_STREAM)
                found[span.call] = Stretch(begin, span.end, count + 1, whole)
        return found

    def _messages(self, reply: bool) -> list[Message]:
        """Those that were sent."""
        return [
            Message(span.frame.stream, len(span.frame.payload), span.begin, span.end)
            for span in self.readings[reply].spans
            if span.frame.type == Type.DATA
        ]

    # ---- findings ----

    def findings(self, *, exact: bool) -> Iterator[Finding]:
        """All that is wrong with its octets and their times; `exact`: samples have the captures' time."""
        way = self.ways[False]
        if way.data and not way.data.startswith(http2.PREFACE):
            seen = way.data[: len(http2.PREFACE)].hex()
            yield Finding(None, "grpc.preface", http2.PREFACE.hex(), seen, way.rows(0, len(http2.PREFACE)))
        for reply in (False, True):
            here, there = self.directions[reply], self.directions[not reply]
            for wrong in self.readings[reply].wrong:
                yield self._finding(wrong, reply)
            for place, count in self.readings[reply].missing.items():
                call = self.link.calls[place]
                if call.answered:
                    name = "grpc.reply" if reply else "grpc.request"
                    yield Finding(call.id, name, "all of its frames", f"{count} missing", self._rows(reply, place))
            for wrong in check_control(self.link, here, there, counted=self.ends.counted):
                yield self._finding(wrong, reply)
            yield from self._check_credit(reply)
            for wrong in check_windows(here, there):
                yield self._finding(wrong, reply)
        yield from self._check_order()
        yield from self._check_segments()
        for place, call in enumerate(self.link.calls):
            yield from self._check_sample(place, call, exact=exact)

    def _check_credit(self, reply: bool) -> Iterator[Finding]:
        first = [] if reply else list(self._check_first_increment())
        yield from first
        if first:
            return  # all sums would be others
        joined = 0 if reply or self.first_increment is None else self.first_increment - PREFIX
        for wrong in check_credit(self.link, self.directions[reply], self.directions[not reply], joined):
            yield self._finding(wrong, reply)

    def _check_first_increment(self) -> Iterator[Finding]:
        """The connection's first window update, where it has what opens the connection in it."""
        if self.first_increment is None:
            return
        updates = (
            each
            for each in self.readings[False].controls
            if each.frame.type == Type.WINDOW_UPDATE and not each.frame.stream
        )
        for each in updates:
            if each.frame.octets != http2.window_update(0, self.first_increment).octets:
                seen = each.frame.payload.hex()
                wrong = Wrong(None, "grpc.window_update", f"{self.first_increment} octets", seen, each.begin, each.end)
                yield self._finding(wrong, False)
            return
        if self.stretches[False] and not self.link.cut:
            rows = self.ways[False].rows(0, len(self.ways[False].data))
            yield Finding(None, "grpc.request.window_update", f"one of {self.first_increment} octets", "none", rows)

    def _finding(self, wrong: Wrong, reply: bool) -> Finding:
        way = self.ways[reply]
        rows = way.rows(wrong.begin, min(max(wrong.end, wrong.begin + 1), len(way.data)))
        call = self.link.calls[wrong.call].id if wrong.call is not None and wrong.call < len(self.link.calls) else None
        side = "reply" if reply else "request"
        return Finding(call, wrong.field.replace("grpc.", f"grpc.{side}."), wrong.expected, wrong.seen, rows)

    def _rows(self, reply: bool, place: int) -> list[int]:
        stretch = self.stretches[reply].get(place)
        return [] if stretch is None else self.ways[reply].rows(stretch.begin, stretch.end)

    def _check_order(self) -> Iterator[Finding]:
        """A reply follows from its request, the next request from the reply, and the first from the settings."""
        settings = self.directions[True].opening
        before_ns, cause = (self.ways[True].arrived_ns(settings) if self.ways[True].data else None), "the settings"
        for place, call in enumerate(self.link.calls):
            request, reply = self.stretches[False].get(place), self.stretches[True].get(place)
            if request is None:
                return
            sent = self.ways[False].sent_ns(request.begin + 1)
            if before_ns is None or sent < before_ns:
                expected = f"after {cause} had come, at {before_ns} ns"
                yield Finding(call.id, "request.sent", expected, f"at {sent} ns", self._rows(False, place))
            if reply is not None:
                came = self.ways[False].arrived_ns(request.end)
                answered = self.ways[True].sent_ns(reply.begin + 1)
                if came is None or answered < came:
                    expected = f"after its request has arrived, at {came} ns"
                    yield Finding(call.id, "reply.sent", expected, f"at {answered} ns", self._rows(True, place))
                before_ns, cause = self.ways[True].arrived_ns(reply.end), "the reply before"
            if not call.answered:
                before_ns, cause = sent, "the call before"

    def _check_segments(self) -> Iterator[Finding]:
        """At least what the largest segments need, at most one more for each further frame: a write may hold any."""
        for reply in (False, True):
            for place, stretch in self.stretches[reply].items():
                seen = len(self.ways[reply].segments(stretch.begin, stretch.end))
                fewest = self.fewest(reply, stretch)
                most = fewest + stretch.frames - 1
                if not fewest <= seen <= most:
                    side = "reply" if reply else "request"
                    rows = self._rows(reply, place)
                    yield Finding(self.link.calls[place].id, f"{side}.packets", f"{fewest} to {most}", str(seen), rows)

    @cached_property
    def segment(self) -> int:
        """Octets that a segment has at most."""
        said = [size for size in self.conversation.mss if size is not None]
        least = min([*said, min(self.ends.mtus) - _IP_TCP])
        return least - (_TIMESTAMPS if self.conversation.timestamps else 0)

    def fewest(self, reply: bool, stretch: Stretch) -> int:
        """Segments of a stretch. The first may have begun with what is not a part of a call."""
        first = self.ways[reply].segments(stretch.begin, stretch.begin + 1)[0]
        length = stretch.end - max(first.begin, 0)
        return max(1, -(-length // self.segment)) if first.end < stretch.end else 1

    def _check_sample(self, place: int, call: Call, *, exact: bool) -> Iterator[Finding]:
        """What a client says of a call, against its frames."""
        stream = 2 * place + 1
        if call.answered and call.xid != stream and (call.numbered or call.xid is not None):
            yield Finding(call.id, "sample.xid", str(stream), str(call.xid))
        if not call.answered and call.xid is not None:
            yield Finding(call.id, "sample.xid", "none of a call that failed", str(call.xid))
        reply = self.stretches[True].get(place)
        came = self.ways[True].arrived_ns(reply.end) if reply is not None and reply.whole else None
        altered = any(wrong.call == place for wrong in self.readings[True].wrong)
        if call.ok or not exact:
            return
        if call.error == WRONG:
            if not altered:
                yield Finding(call.id, "sample.error", "none: its reply is right", WRONG, self._rows(True, place))
        elif came is not None and came < call.start_ns + _time_ns(self.link, call):
            yield Finding(call.id, "sample.error", f"none: its reply had come at {came} ns", str(call.error))
        elif call.error == BROKEN and not self.broke_by(call.end_ns):
            yield Finding(call.id, "sample.error", "none: its connection was there", BROKEN)
        elif call.error not in (BROKEN, LATE):
            yield Finding(call.id, "sample.error", f"{BROKEN} or {LATE}", str(call.error))

    def broke_by(self, at_ns: int) -> bool:
        """Whether the server had ended it, or someone reset it, by then."""
        return self.ways[True].finished or bool(self.conversation.reset_rows)

    # ---- what was seen ----

    def explained(self) -> Iterator[Explained]:
        """All octets with a reason, or with a finding."""
        number = self.conversation.number
        calls = self.link.calls
        if self.ways[False].data.startswith(http2.PREFACE):
            yield Explained(number, False, 0, len(http2.PREFACE), None, OPENING)
        for reply, reading in self.readings.items():
            for span in reading.spans:
                if span.call is None:
                    yield Explained(number, reply, span.begin, span.end, None, OPENING)
                else:
                    yield Explained(number, reply, span.begin, span.end, calls[span.call].id)
            for each in reading.controls:
                call = calls[each.call].id if each.call is not None else None
                named = {} if call is not None else {"name": OPENING}
                yield Explained(number, reply, each.begin, each.end, call, **named)
            for wrong in reading.wrong:
                yield Explained(number, reply, wrong.begin, wrong.end, None, OPENING)

    def again(self) -> dict[bool, dict[int, int]]:
        """Segments that were sent again, by direction and the place of the call that has their last octets; -1: of
        none, but of what opens the connection."""
        found: dict[bool, dict[int, int]] = {}
        for reply, way in self.ways.items():
            begins = [self.stretches[reply][place].begin for place in sorted(self.stretches[reply])]
            places = sorted(self.stretches[reply])
            counts: dict[int, int] = {}
            reach = 0
            for segment in way.sent:
                if segment.end > reach:
                    reach = segment.end
                    continue
                place = bisect_right(begins, segment.end - 1) - 1
                key = places[place] if place >= 0 else -1
                counts[key] = counts.get(key, 0) + 1
            found[reply] = counts
        return found

    def observed(self, again: Mapping[bool, Mapping[int, int]]) -> Iterator[dict[str, Any]]:
        """Rows of `workload.OBSERVED`."""
        for place, call in enumerate(self.link.calls):
            row: dict[str, Any] = {"call": call.id, "transport": "grpc"}
            for reply, way, stamp in ((False, "request", "call"), (True, "reply", "reply")):
                stretch = self.stretches[reply].get(place)
                stream = self.ways[reply]
                seen = 0 if stretch is None else len(stream.segments(stretch.begin, stretch.end))
                row |= {
                    f"{stamp}_first_tx_ns": None if stretch is None else stream.sent_ns(stretch.begin + 1),
                    f"{stamp}_last_rx_ns": None if stretch is None else stream.arrived_ns(stretch.end),
                    f"{way}_packets": seen,
                    f"{way}_packets_expected": 0 if stretch is None else self.fewest(reply, stretch),
                    f"{way}_fragments": 0,
                    f"{way}_fragments_expected": 0,
                    f"{way}_retransmissions": again[reply].get(place, 0),
                }
            yield row

    def served(self) -> dict[str, tuple[int, int]]:
        """By function, how many calls the server executed, at least and at most."""
        found = dict.fromkeys(functions.NAMES, (0, 0))
        replies = {message.stream for message in self.directions[True].messages}
        for place, call in enumerate(self.link.calls):
            request = self.stretches[False].get(place)
            whole = request is not None and request.whole and self.ways[False].arrived_ns(request.end) is not None
            if call.function in found:
                least, most = found[call.function]
                found[call.function] = least + (2 * place + 1 in replies), most + whole
        return found


def _joined(opening: Sequence[Frame], octets: bytes) -> int | None:
    """The increment of the window update that opens a client's connection, where it is not a frame of its own: a
    library that writes its settings together with the first request gives all windows at once, that of the
    prefix of the first reply, too."""
    settings, *updates = opening
    begin = len(http2.PREFACE) + len(settings.octets)
    if not updates or octets.startswith(updates[0].octets, begin) or len(octets) <= begin:
        return None
    return http2.read_increment(updates[0]) + PREFIX


def _time_ns(link: Link, call: Call) -> int:
    """How long a call may last before it has had its time, if it failed for that."""
    limit = int(link.step.options.get("total_timeout_ms") or 25_000) * 1_000_000
    return limit if call.error == LATE else call.end_ns - call.start_ns

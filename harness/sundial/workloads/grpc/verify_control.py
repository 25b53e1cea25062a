# SPDX-License-Identifier: Apache-2.0
"""Frames of a connection that belong to no call: acknowledged settings, window updates, and those that must not be.

What window updates have to say is `verify_credit`'s. DATA keeps within the windows that had arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sundial.expect import http2
from sundial.expect.http2 import Flag, Frame, Type, Windows
from sundial.verify.sockets.conversations import Way
from sundial.workloads.grpc.expect import refusals
from sundial.workloads.grpc.verify_frames import Control, Reading, Wrong, name_of
from sundial.workloads.grpc.verify_names import BROKEN, LATE, Link

_CODES: Mapping[str, frozenset[int]] = {LATE: frozenset((0, 8)), BROKEN: frozenset((0, 7, 8))}
"""Errors of RST_STREAM where a call failed: NO_ERROR, CANCEL, and REFUSED_STREAM of one whose connection broke."""


@dataclass(frozen=True)
class Message:
    """A DATA frame: its stream, its octets, and where it is."""

    stream: int
    octets: int
    begin: int
    end: int


@dataclass(frozen=True)
class Direction:
    """One way of a connection as it was read. `opening`: where what opens it ends."""

    reply: bool
    way: Way
    reading: Reading
    opening: int
    messages: Sequence[Message]
    """Of each DATA frame that was sent."""


def check_control(link: Link, here: Direction, there: Direction, *, counted: bool) -> Iterator[Wrong]:
    """Findings about one direction; `there` is the other. `counted`: what is not a part of a call may be there."""
    yield from _check_settings(link, here, there, counted=counted)
    if counted:
        yield from _check_pings(link, here, there)
    for each in here.reading.controls:
        if each.frame.type == Type.RST_STREAM:
            yield from _check_reset(link, each)
        elif each.frame.type == Type.HEADERS:
            if each.frame not in (known := refusals(each.frame.stream)):
                expected = " or ".join(frame.payload.hex() for frame in known)
                yield _wrong(each, expected, f"{each.frame}, {each.frame.payload.hex()}")
        elif each.frame.type == Type.WINDOW_UPDATE:
            yield from _check_update(each)
        elif each.frame.type == Type.GOAWAY and counted:
            yield from _check_goaway(link, each, here)
        elif each.frame.type != Type.SETTINGS and not (each.frame.type == Type.PING and counted):
            yield _wrong(each, "none: the scenario does not count control frames", str(each.frame))


def _wrong(each: Control, expected: str, seen: str) -> Wrong:
    return Wrong(each.call, f"grpc.{name_of(each.frame)}", expected, seen, each.begin, each.end)


def _check_settings(link: Link, here: Direction, there: Direction, *, counted: bool) -> Iterator[Wrong]:
    """One acknowledgement, after what it acknowledges has come."""
    own = [each for each in here.reading.controls if each.frame.type == Type.SETTINGS]
    acks = [each for each in own if each.frame == http2.SETTINGS_ACK]
    for each in own:
        if each.frame != http2.SETTINGS_ACK and not (counted and not each.frame.has(Flag.ACK)):
            yield _wrong(each, "one acknowledgement", f"{each.frame} {each.frame.payload.hex()}")
    more = len([each for each in there.reading.controls if each.frame.type == Type.SETTINGS]) if counted else 0
    least = 0 if link.cut or not there.way.data else 1
    if not least <= len(acks) <= 1 + more and len(acks) == len(own):
        place = acks[-1].begin if acks else here.opening
        yield Wrong(None, "grpc.settings", "one acknowledgement", str(len(acks)), place, place + http2.HEADER)
    for each in acks[:1]:
        came = there.way.arrived_ns(there.opening) if there.opening else None
        sent = here.way.sent_ns(each.end)
        if came is None or sent < came:
            yield _wrong(each, f"after the settings have come, at {came} ns", f"at {sent} ns")


def _check_pings(link: Link, here: Direction, there: Direction) -> Iterator[Wrong]:
    """Each PING that had come is acknowledged once, in their order; by the end of the last call at the latest."""
    due = deque(
        (there.way.arrived_ns(each.end), each.frame.payload)
        for each in there.reading.controls
        if each.frame.type == Type.PING and not each.frame.has(Flag.ACK)
    )
    for each in here.reading.controls:
        if each.frame.type != Type.PING:
            continue
        if each.frame.flags & ~Flag.ACK:
            yield _wrong(each, "flags 0x00 or 0x01", f"flags 0x{each.frame.flags:02x}")
        if not each.frame.has(Flag.ACK):
            continue
        came, octets = due.popleft() if due else (None, b"")
        if came is None or came > here.way.sent_ns(each.end) or octets != each.frame.payload:
            expected = f"{octets.hex()}, of a PING that has come" if came is not None else "none: no PING had come"
            yield _wrong(each, expected, each.frame.payload.hex())
            return
    last = max((span.begin for span in here.reading.spans if span.call is not None), default=0)
    late = [octets for came, octets in due if came is not None and last and came < here.way.sent_ns(last)]
    if late and not link.cut:
        yield Wrong(None, "grpc.ping", f"an acknowledgement of {late[0].hex()}", "none", last, last + http2.HEADER)


def _check_update(each: Control) -> Iterator[Wrong]:
    """Neither flags nor the reserved bit mean anything: a sender leaves them at 0 (RFC 9113, section 6.9)."""
    if each.frame.flags:
        yield _wrong(each, "flags 0x00: there are none", f"flags 0x{each.frame.flags:02x}")
    if each.frame.payload[:1] > b"\x7f":
        yield _wrong(each, "the reserved bit 0", each.frame.payload.hex())


def _check_goaway(link: Link, each: Control, here: Direction) -> Iterator[Wrong]:
    """It names the last stream of the other end that is answered (RFC 9113, section 6.8); servers open none."""
    answered = [2 * place + 1 for place, call in enumerate(link.calls) if call.answered and here.reply]
    least, last = max(answered, default=0), int.from_bytes(each.frame.payload[:4], "big")
    if not least <= last <= (http2.STREAM_MOST if here.reply else 0):
        yield _wrong(each, f"stream {least}, the last that was answered", f"stream {last}")


def _check_reset(link: Link, each: Control) -> Iterator[Wrong]:
    """Of a call that failed, with the error that says so."""
    place = each.frame.stream // 2
    call = link.calls[place] if each.frame.stream % 2 and place < len(link.calls) else None
    code = int.from_bytes(each.frame.payload, "big")
    allowed = _CODES.get(call.error or "", frozenset()) if call is not None else frozenset()
    if code not in allowed:
        expected = f"none of a call that {'failed so' if call is not None and not call.ok else 'did not fail'}"
        yield Wrong(place if call else None, "grpc.rst_stream", expected, f"error {code}", each.begin, each.end)


def check_windows(here: Direction, there: Direction) -> Iterator[Wrong]:
    """DATA beyond what the other end had allowed by then."""
    windows = Windows()
    opening = [frame for _, frame in http2.frames(there.way.data[: there.opening], _begin(there))]
    grants = sorted(
        (at, number, frame)
        for number, (end, frame) in enumerate(_grants(there, opening))
        if (at := there.way.arrived_ns(end)) is not None
    )
    place = 0
    for each in here.messages:
        sent = here.way.sent_ns(each.end)
        while place < len(grants) and grants[place][0] <= sent:
            _apply(windows, grants[place][2])
            place += 1
        if not windows.send(each.stream, each.octets):
            text = f"{each.octets} octets"
            yield Wrong(None, "grpc.window", "up to what the windows allow", text, each.begin, each.end)
            return
        windows.forget(each.stream)


def _begin(side: Direction) -> int:
    return 0 if side.reply else len(http2.PREFACE)


def _grants(side: Direction, opening: Sequence[Frame]) -> Iterator[tuple[int, Frame]]:
    yield from ((side.opening, frame) for frame in opening)
    yield from ((each.end, each.frame) for each in side.reading.controls)


def _apply(windows: Windows, frame: Frame) -> None:
    if frame.type == Type.SETTINGS:
        with suppress(http2.Http2Error):  # what is not a SETTINGS frame has its finding where it was due
            for number, value in http2.read_settings(frame):
                if number == http2.Setting.INITIAL_WINDOW_SIZE:
                    windows.resize(value)
    elif frame.type == Type.WINDOW_UPDATE and not frame.stream:
        with suppress(http2.Http2Error):  # an increment of 0 has its finding, too
            windows.update(0, http2.read_increment(frame))

# SPDX-License-Identifier: Apache-2.0
"""Calls over a backplane: each field of each kind of call, reply, ring word and record; those that are missing,
doubled, exchanged, moved in time, with the adapter's numbers closed up; what is wrong in a call and its
reply alike."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Literal

from mutation.capture import Capture, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import PLACES, other_value, write
from mutation.stored import Stored, read

Change = Callable[[list[Capture], list[Stored], Random], None]
"""Captures, what they have stored, and what is chosen by."""
Chosen = tuple[str, str]
"""Machine and kind."""


def damages(copy: Copy) -> Damages:
    """All that can be done to what calls over a backplane have stored."""
    stored = read(list(copy.backplanes().values()))
    for kind in {(each.machine, each.kind): None for each in stored}:
        of = f"{kind[1]} from {kind[0]}"
        fields = {name: None for each in stored if _is(each, kind) for name in each.fields}
        for name in fields:
            alone = Random(f"{name} {of}").choice(["sender", "receiver"])
            for place in ("both", alone):
                yield _damage(f"stored: {name} of {of}, {place}", _field(kind, name, place))
        for what, change in PER_KIND.items():
            yield _damage(f"stored: {what}: {of}, both", _one(kind, change))
    for kind in {(each.machine, each.kind): None for each in stored if each.kind.startswith("call")}:
        for what, both in PAIRS.items():
            yield _damage(f"stored: {what}: {kind[1]} from {kind[0]}, both", _with_reply(kind, both))
    if stored:
        for name in {name: None for each in stored for name in each.fields if name in WHOLE}:
            yield _damage(f"stored: {name} of all one higher, both", _all(name))


def _is(each: Stored, kind: Chosen) -> bool:
    return (each.machine, each.kind) == kind


def _damage(name: str, change: Change) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.backplanes()
        every = list(captures.values())
        change(every, read(every), random)
        for capture in every:
            capture.frames.sort(key=lambda frame: frame.at_ns)
        write(copy, captures)

    return Damage(name, apply)


# ---- Fields ----


def _put(each: Stored, offset: int, new: bytes, place: str = "both") -> None:
    """Other bytes there."""
    carrier, at = each.place(offset)
    data = carrier.data
    for frame in PLACES[place](carrier):
        frame.data = data[:at] + new + data[at + len(new) :]


def _get(each: Stored, offset: int, size: int) -> bytes:
    carrier, at = each.place(offset)
    return carrier.data[at : at + size]


def _field(kind: Chosen, name: str, place: str) -> Change:
    def change(_: list[Capture], stored: list[Stored], random: Random) -> None:
        each = random.choice([each for each in stored if _is(each, kind) and name in each.fields])
        offset, size = each.fields[name]
        value = int.from_bytes(_get(each, offset, size), "little")
        _put(each, offset, other_value(value, (1 << 8 * size) - 1, random).to_bytes(size, "little"), place)

    return change


def _all(name: str) -> Change:
    """The same everywhere, so that all agree with one another."""

    def change(_: list[Capture], stored: list[Stored], random: Random) -> None:
        for each in stored:
            if name in each.fields:
                offset, size = each.fields[name]
                value = int.from_bytes(_get(each, offset, size), WHOLE[name]) + 1
                _put(each, offset, (value % (1 << 8 * size)).to_bytes(size, WHOLE[name]))

    return change


WHOLE: Mapping[str, Literal["little", "big"]] = {
    "flag.sequence": "little",
    "record.sequence": "little",
    "xid": "big",
    "data's second word": "big",
}
"""Byte orders."""


# ---- Some packets ----


def _one(kind: Chosen, do: Callable[[list[Capture], list[Stored], Stored, Random], None]) -> Change:
    def change(captures: list[Capture], stored: list[Stored], random: Random) -> None:
        do(captures, stored, random.choice([each for each in stored if _is(each, kind)]), random)

    return change


def _carriers(*some: Stored) -> list[Transmission]:
    return [write.of for each in some for write in each.writes]


def _without(captures: list[Capture], gone: Sequence[Transmission]) -> None:
    frames = {id(frame) for each in gone for frame in each.everywhere}
    for capture in captures:
        capture.frames = [frame for frame in capture.frames if id(frame) not in frames]


def _closed(captures: list[Capture]) -> None:
    """Packets of each way are numbered without a gap."""
    numbers: dict[bytes, int] = {}
    for each in sorted(transmissions(captures), key=lambda each: struct.unpack_from("<I", each.data, 8)):
        way = each.data[4:8]
        data = each.data[:8] + struct.pack("<I", numbers.get(way, _first(each.data))) + each.data[12:]
        numbers[way] = struct.unpack_from("<I", data, 8)[0] + 1
        for frame in each.everywhere:
            frame.data = data


def _first(data: bytes) -> int:
    number: int = struct.unpack_from("<I", data, 8)[0]
    return number


def _missing(captures: list[Capture], _: list[Stored], each: Stored, random: Random) -> None:
    _without(captures, _carriers(each))


def _missing_closed(captures: list[Capture], _: list[Stored], each: Stored, random: Random) -> None:
    _without(captures, _carriers(each))
    _closed(captures)


def _twice(captures: list[Capture], _: list[Stored], each: Stored, random: Random) -> None:
    """Again 20 us later, and numbered as though it had been sent so."""
    frames = {id(frame) for carrier in _carriers(each) for frame in carrier.everywhere}
    last = max(frame.at_ns for carrier in _carriers(each) for frame in carrier.everywhere)
    ways = {carrier.data[4:8] for carrier in _carriers(each)}
    more = len(each.writes)
    for capture in captures:
        again = [replace(frame, at_ns=frame.at_ns + 20_000) for frame in capture.frames if id(frame) in frames]
        for frame in again:
            frame.data = _renumbered(frame.data, more)
        for frame in capture.frames:
            if frame.at_ns > last and frame.data[4:8] in ways:
                frame.data = _renumbered(frame.data, more)
        capture.frames += again


def _renumbered(data: bytes, by: int) -> bytes:
    return data[:8] + struct.pack("<I", _first(data) + by) + data[12:]


def _later(by_ns: int) -> Callable[[list[Capture], list[Stored], Stored, Random], None]:
    def change(_: list[Capture], __: list[Stored], each: Stored, random: Random) -> None:
        for carrier in _carriers(each):
            for frame in carrier.everywhere:
                frame.at_ns += by_ns

    return change


def _last_first(captures: list[Capture], _: list[Stored], each: Stored, random: Random) -> None:
    """What shows the rest to the other side is there before it: the last packet in the place of the first."""
    every = _carriers(each)
    bodies = [carrier.data for carrier in every]
    for carrier, body in zip(every, [bodies[-1], *bodies[:-1]], strict=True):
        _set(carrier, body)


def _set(carrier: Transmission, body: bytes) -> None:
    """Another packet in its place, with the number of that place."""
    data = body[:8] + carrier.data[8:12] + body[12:]
    for frame in carrier.everywhere:
        frame.data, frame.length = data, len(data)


def _exchanged(captures: list[Capture], stored: list[Stored], each: Stored, random: Random) -> None:
    """It and the next of its way, where both have as many packets: each stands where, and when, the other did."""
    own = [other for other in stored if (other.line, other.reply) == (each.line, each.reply)]
    place = next(number for number, other in enumerate(own) if other is each)
    others = [*own[place + 1 :], *own[:place]]
    same = next((other for other in others if len(other.writes) == len(each.writes)), None)
    if same is not None:
        one, two = _carriers(each), _carriers(same)
        bodies = [carrier.data for carrier in one], [carrier.data for carrier in two]
        for carrier, body in zip((*one, *two), (*bodies[1], *bodies[0]), strict=True):
            _set(carrier, body)


PER_KIND: dict[str, Callable[[list[Capture], list[Stored], Stored, Random], None]] = {
    "missing": _missing,
    "missing, numbers closed": _missing_closed,
    "twice": _twice,
    "1 us later": _later(1_000),
    "1 ms earlier": _later(-1_000_000),
    "last packet first": _last_first,
    "exchanged with the next": _exchanged,
}


# ---- A call and its reply ----


def _with_reply(kind: Chosen, do: Callable[[list[Capture], Stored, Stored, Random], None]) -> Change:
    def change(captures: list[Capture], stored: list[Stored], random: Random) -> None:
        call = random.choice([each for each in stored if _is(each, kind)])
        reply = stored[next(place for place, each in enumerate(stored) if each is call) + 1 :]
        do(captures, call, next(each for each in reply if each.line == call.line and "reply" in each.kind), random)

    return change


def _both_missing(captures: list[Capture], call: Stored, reply: Stored, random: Random) -> None:
    _without(captures, _carriers(call, reply))
    _closed(captures)


def _same_byte(captures: list[Capture], call: Stored, reply: Stored, random: Random) -> None:
    """The same wrong byte of the data there and back, as though a client had sent and got it."""
    least = min(call.data[1] - call.data[0], reply.data[1] - reply.data[0])
    if least > 0:
        place, bit = random.randrange(least), 1 << random.randrange(8)
        for each in (call, reply):
            offset = each.data[0] + place
            _put(each, offset, bytes([_get(each, offset, 1)[0] ^ bit]))


def _same_number(captures: list[Capture], call: Stored, reply: Stored, random: Random) -> None:
    """The number that says which call it is."""
    for each in (call, reply):
        for name in ("flag.sequence", "xid"):
            if name in each.fields:
                offset, size = each.fields[name]
                value = int.from_bytes(_get(each, offset, size), WHOLE[name]) + 1
                _put(each, offset, value.to_bytes(size, WHOLE[name]))


def _together_later(captures: list[Capture], call: Stored, reply: Stored, random: Random) -> None:
    for carrier in _carriers(call, reply):
        for frame in carrier.everywhere:
            frame.at_ns += 2_000


PAIRS: Mapping[str, Callable[[list[Capture], Stored, Stored, Random], None]] = {
    "call and reply missing, numbers closed": _both_missing,
    "the same wrong byte in call and reply": _same_byte,
    "the same wrong number in call and reply": _same_number,
    "call and reply 2 us later": _together_later,
}

# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane: each field of each kind of packet, each field of a kernels' message, data; packets that are
missing, doubled, moved, exchanged; times; whole captures."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from mutation.capture import Capture, Frame, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import PLACES, other_value, write
from mutation.stamps import ALL_FRAMES, SHIFTS_NS
from mutation.traffic import PER_KIND
from sundial.segments.vmmc.wire import (
    AU,
    CONTROL,
    DU,
    FIELDS,
    HEADER,
    LAST,
    MESSAGE_BYTES,
    MESSAGE_FIELDS,
    MESSAGES,
    NACK,
    NOTIFY,
    REASONS,
)

Edit = Callable[[bytes, Random], bytes]
Change = Callable[[Mapping[str, Capture], Random], None]
_KINDS = {AU: "AU", DU: "DU", CONTROL: "message", NACK: "NACK"}


def damages(copy: Copy) -> Damages:
    """All that can be done to the packets of this run."""
    every = transmissions(list(copy.backplanes().values()))
    for machine, kind in {(each.machine, kind_of(each.data)): None for each in every if each.received}:
        of = f"{kind} from {machine}"
        for field, edit in _edits(kind).items():
            alone = Random(f"{field} {of}").choice(["sender", "receiver"])
            for place in ("both", alone):
                yield _damage(f"packet: {field} of {of}, {place}", _edited(machine, kind, place, edit))
        for place in PLACES:
            for what, change in PER_KIND.items():
                yield _damage(f"packet: {what}: {of}, {place}", _moved(machine, kind, place, change))
            for words, shift_ns in SHIFTS_NS.items():
                yield _damage(f"packet: {words}: {of}, {place}", _shifted(machine, kind, place, shift_ns))
            yield _damage(f"packet: exchanged with the next: {of}, {place}", _exchanged(machine, kind, place))
    if every:
        for what, whole in WHOLE.items():
            yield _damage(f"backplane: {what}", whole)
        for what, times in ALL_FRAMES.items():
            yield _damage(f"backplane: {what}", _timed(times))


def kind_of(data: bytes) -> str:
    """What a packet is, for choosing one of each."""
    if len(data) < HEADER:
        return "none"
    kind = _KINDS.get(data[1], "other")
    if data[1] == AU:
        kind += f" ({REASONS.get(data[3], 'other')})"
    elif data[1] == CONTROL and len(data) == HEADER + MESSAGE_BYTES:
        kind = MESSAGES.get(data[HEADER], kind)
    elif data[1] == DU and data[FIELDS["flags"].offset] & LAST:
        kind += ", last"
    return kind + (", notifying" if data[FIELDS["flags"].offset] & NOTIFY else "")


def _damage(name: str, change: Change) -> Damage:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.backplanes()
        change(captures, random)
        for capture in captures.values():
            capture.frames.sort(key=lambda frame: frame.at_ns)
        write(copy, captures)

    return Damage(name, apply)


# ---- One packet ----


def _number(at: int, size: int) -> Edit:
    """Another value of the little-endian number there."""

    def edit(data: bytes, random: Random) -> bytes:
        value = int.from_bytes(data[at : at + size], "little")
        other = other_value(value, (1 << 8 * size) - 1, random)
        return data[:at] + other.to_bytes(size, "little") + data[at + size :]

    return edit


def _byte(place: Callable[[int], int]) -> Edit:
    """One bit of a byte of the data, by their number."""

    def edit(data: bytes, random: Random) -> bytes:
        at = HEADER + place(len(data) - HEADER)
        return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]

    return edit


def _without_end(data: bytes, random: Random) -> bytes:
    """The last word is missing, and the length says so."""
    short = data[: max(len(data) - 8, HEADER)]
    return short[:24] + struct.pack("<I", len(short) - HEADER) + short[28:]


def _edits(kind: str) -> dict[str, Edit]:
    found = {name: _number(at, size) for name, (at, size) in FIELDS.items()}
    if kind.partition(",")[0] in MESSAGES.values():
        found |= {f"message.{name}": _number(HEADER + at, size) for name, (at, size) in MESSAGE_FIELDS.items()}
    elif kind.startswith(("AU", "DU")):
        found |= {
            "first byte": _byte(lambda _: 0),
            "middle byte": _byte(lambda size: size // 2),
            "last byte": _byte(lambda size: size - 1),
            "length, and the data": _without_end,
        }
    return found


def _chosen(captures: Mapping[str, Capture], machine: str, kind: str, random: Random) -> Transmission:
    every = transmissions(list(captures.values()))
    return random.choice(
        [each for each in every if (each.machine, kind_of(each.data)) == (machine, kind) and each.received]
    )


def _set(frames: Sequence[Frame], data: bytes) -> None:
    for frame in frames:
        frame.data, frame.length = data, len(data)


def _edited(machine: str, kind: str, place: str, edit: Edit) -> Change:
    def change(captures: Mapping[str, Capture], random: Random) -> None:
        chosen = _chosen(captures, machine, kind, random)
        _set(PLACES[place](chosen), edit(chosen.data, random))

    return change


def _moved(
    machine: str, kind: str, place: str, do: Callable[[Sequence[Capture], Sequence[Frame], Random], None]
) -> Change:
    def change(captures: Mapping[str, Capture], random: Random) -> None:
        do(list(captures.values()), PLACES[place](_chosen(captures, machine, kind, random)), random)

    return change


def _shifted(machine: str, kind: str, place: str, shift_ns: int) -> Change:
    def change(captures: Mapping[str, Capture], random: Random) -> None:
        sign = random.choice([1, -1])
        for frame in PLACES[place](_chosen(captures, machine, kind, random)):
            frame.at_ns += sign * shift_ns

    return change


def _exchanged(machine: str, kind: str, place: str) -> Change:
    """A packet and the next from the same machine: each stands where, and when, the other did."""

    def change(captures: Mapping[str, Capture], random: Random) -> None:
        chosen = _chosen(captures, machine, kind, random)
        own = [each for each in transmissions(list(captures.values())) if each.machine == machine and each.received]
        at = next(number for number, each in enumerate(own) if each.data == chosen.data)
        if len(own) > 1:
            other = own[at + 1 if at + 1 < len(own) else at - 1]
            data = chosen.data
            _set(PLACES[place](chosen), other.data)
            _set(PLACES[place](other), data)

    return change


# ---- Whole captures ----


def _frames(captures: Mapping[str, Capture]) -> Iterator[Frame]:
    return (frame for capture in captures.values() for frame in capture.frames)


def _all_data(edit: Callable[[bytes], bytes]) -> Change:
    def change(captures: Mapping[str, Capture], random: Random) -> None:
        for frame in _frames(captures):
            if frame.data[1] in (AU, DU):
                frame.data = frame.data[:HEADER] + edit(frame.data[HEADER:])

    return change


def _all_fields(field: str, by: int) -> Change:
    """The same everywhere, so that all agree with one another."""
    at, size = FIELDS[field]

    def change(captures: Mapping[str, Capture], random: Random) -> None:
        for frame in _frames(captures):
            value = int.from_bytes(frame.data[at : at + size], "little") + by
            frame.data = frame.data[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + frame.data[at + size :]

    return change


def _kept(keep: Callable[[int, int, Frame], bool]) -> Change:
    """By number, how many there are, and the frame."""

    def change(captures: Mapping[str, Capture], random: Random) -> None:
        for capture in captures.values():
            many = len(capture.frames)
            capture.frames = [frame for place, frame in enumerate(capture.frames) if keep(place, many, frame)]

    return change


def _timed(times: Callable[[list[Capture], list[Transmission]], None]) -> Change:
    def change(captures: Mapping[str, Capture], random: Random) -> None:
        every = list(captures.values())
        times(every, transmissions(every))

    return change


def _again(captures: Mapping[str, Capture], random: Random) -> None:
    """A packet that was never sent, with the next number of its way, a second after the last."""
    for capture in captures.values():
        every = [each for each in transmissions([capture]) if each.received and each.data[1] in (AU, DU)]
        if not every:
            continue
        last = every[-1]
        way = last.data[4:8]
        number = max(struct.unpack_from("<I", frame.data, 8)[0] for frame in capture.frames if frame.data[4:8] == way)
        data = last.data[:8] + struct.pack("<I", number + 1) + last.data[12:]
        capture.frames += [replace(frame, at_ns=frame.at_ns + 10**9, data=data) for frame in last.everywhere]


WHOLE: dict[str, Change] = {
    "all data zeroed": _all_data(lambda data: bytes(len(data))),
    "all data turned around": _all_data(lambda data: data[::-1]),
    "all exports one higher": _all_fields("export", 1),
    "all generations one higher": _all_fields("generation", 1),
    "all sequences one higher": _all_fields("sequence", 1),
    "first record missing": _kept(lambda place, _, __: place > 0),
    "last record missing": _kept(lambda place, many, _: place + 1 < many),
    "second half missing": _kept(lambda place, many, _: place < many // 2),
    "no records": _kept(lambda *_: False),
    "nothing received": _kept(lambda _, __, frame: frame.direction != 1),
    "no messages of kernels": _kept(lambda _, __, frame: frame.data[1] != CONTROL),
    "no data": _kept(lambda _, __, frame: frame.data[1] not in (AU, DU)),
    "one more packet": _again,
}

# SPDX-License-Identifier: Apache-2.0
"""The times of frames: of one at some of its ports, of all, and of every second one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mutation import protocols
from mutation.capture import Capture, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import PLACES, write

SHIFTS_NS = {"1 ns": 1, "1 us": 1_000, "1 ms": 1_000_000, "1 s": 1_000_000_000}


def damages(copy: Copy) -> Damages:
    """Each kind of frame earlier or later, and whole captures."""
    kinds = {(each.machine, protocols.kind(each.data)): None for each in transmissions(list(copy.captures().values()))}
    for machine, kind in kinds:
        for place in PLACES:
            for words, shift_ns in SHIFTS_NS.items():
                name = f"time: {kind} from {machine} {words}, {place}"
                yield Damage(name, _move(machine, kind, place, shift_ns))
    for name, change in {**ALL_FRAMES, **RECORDS}.items():
        yield Damage(f"time: {name}", _every(change))


def _move(machine: str, kind: str, place: str, shift_ns: int) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        chosen = random.choice(
            [
                each
                for each in transmissions(list(captures.values()))
                if (each.machine, protocols.kind(each.data)) == (machine, kind) and each.received
            ]
        )
        sign = random.choice([1, -1])
        for frame in PLACES[place](chosen):
            frame.at_ns += sign * shift_ns
        write(copy, captures)

    return apply


def _every(change: Callable[[list[Capture], list[Transmission]], None]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        change(list(captures.values()), transmissions(list(captures.values())))
        write(copy, captures)

    return apply


def _no_time_on_the_wire(_: list[Capture], every: list[Transmission]) -> None:
    for each in every:
        for frame in each.received:
            frame.at_ns = max(sent.at_ns for sent in each.sent if sent.at_ns <= frame.at_ns) + 1


def _twice_as_fast(_: list[Capture], every: list[Transmission]) -> None:
    for each in every:
        for frame in each.received:
            before = max(sent.at_ns for sent in each.sent if sent.at_ns <= frame.at_ns)
            frame.at_ns = before + (frame.at_ns - before) // 2


def _every_second_early(_: list[Capture], every: list[Transmission]) -> None:
    for each in every[1::2]:
        for frame in each.everywhere:
            frame.at_ns -= 1_000


def _all_received_early(_: list[Capture], every: list[Transmission]) -> None:
    for each in every:
        for frame in each.received:
            frame.at_ns -= 1_000


def _shift(shift_ns: int) -> Callable[[list[Capture], list[Transmission]], None]:
    def change(captures: list[Capture], _: list[Transmission]) -> None:
        for capture in captures:
            for frame in capture.frames:
                frame.at_ns += shift_ns

    return change


def _fates_later(captures: list[Capture], _: list[Transmission]) -> None:
    for capture in captures:
        for frame in capture.frames:
            frame.at_ns += 1_000 * capture.is_fate(frame)


ALL_FRAMES = {
    "received 1 ns after it was sent, all frames": _no_time_on_the_wire,
    "half of the time on the wire, all frames": _twice_as_fast,
    "received 1 us early, all frames": _all_received_early,
    "every second frame 1 us early at both ports": _every_second_early,
    "all frames 12 us later": _shift(12_000),
    "all frames 1 s later": _shift(1_000_000_000),
    "all frames 1 us earlier": _shift(-1_000),
}
RECORDS = {"fates 1 us later": _fates_later}

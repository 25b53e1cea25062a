# SPDX-License-Identifier: Apache-2.0
"""Each field of each kind of frame, at its sender's port, at its receivers' or at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from mutation import protocols
from mutation.capture import Capture, Frame, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages

PLACES: dict[str, Callable[[Transmission], tuple[Frame, ...]]] = {
    "sender": lambda each: each.sent,
    "receiver": lambda each: each.received,
    "both": lambda each: each.everywhere,
}


def damages(copy: Copy) -> Damages:
    """Each field at all ports with the checksums made right, and at the sender's or the receivers' alone."""
    named = {
        (each.machine, protocols.kind(each.data), field.name): None
        for each in transmissions(list(copy.captures().values()))
        for field in protocols.fields(each.data)
    }
    for machine, kind, field in named:
        name = f"{field} of {kind} from {machine}"
        alone = Random(name).choice(["sender", "receiver"])
        for place in ("both", alone):
            yield Damage(f"header: {name}, {place}", _change(machine, kind, field, place))


def _change(machine: str, kind: str, field: str, place: str) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        every = transmissions(list(captures.values()))
        chosen = random.choice([each for each in every if _has(each, machine, kind, field)])
        change_frames(chosen, field, random, place, every)
        write(copy, captures)

    return apply


def _has(each: Transmission, machine: str, kind: str, field: str) -> bool:
    if (each.machine, protocols.kind(each.data)) != (machine, kind):
        return False
    return bool(each.received) and any(item.name == field for item in protocols.fields(each.data))


def change_frames(chosen: Transmission, name: str, random: Random, place: str, every: Sequence[Transmission]) -> None:
    """Give a field of a frame another value at some of its ports; its checksums follow unless they are meant."""
    old = chosen.data
    field = next(item for item in protocols.fields(old) if item.name == name)
    new = field.put(old, other_value(field.get(old), field.bits, random))
    if name not in protocols.CHECKSUMS:

        def first(change: int) -> None:
            for each in every:
                if protocols.is_ip(each.data) and _heads(each.data, old):
                    for frame in PLACES[place](each):
                        frame.data = protocols.add_to_checksum(frame.data, change)

        new = protocols.with_checksums(old, new, first)
    for frame in PLACES[place](chosen):
        frame.data = new


def _heads(data: bytes, later: bytes) -> bool:
    same = protocols.datagram(data) == protocols.datagram(later)
    return same and protocols.is_fragment(data) and not protocols.fragment_offset(data)


def other_value(value: int, bits: int, random: Random) -> int:
    """One bit flipped, or one more."""
    places = [place for place in range(bits.bit_length()) if bits >> place & 1]
    flipped = value ^ 1 << random.choice(places)
    return random.choice([flipped, (value + (bits & -bits)) & bits])


def write(copy: Copy, captures: dict[str, Capture]) -> None:
    """Captures that may have changed."""
    for name, capture in captures.items():
        copy.write(name, capture.to_bytes())

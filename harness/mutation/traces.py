# SPDX-License-Identifier: Apache-2.0
"""Stamps of traced functions moved, missing, too many, and of something else; and what the trace is said to be of."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from mutation.damage import Copy, Damage, Damages

_HEADER = 16
_ENTRY, _EXIT, _HALT = range(3)
_STAMP = np.dtype(
    [("ns", "<u8"), ("page_table", "<u8"), ("thread", "<u8"), ("argument", "<u8"), ("point", "<u4"), ("kind", "<u4")]
)
"""harness/clock/README.md."""
_KINDS = ("entry", "exit")

Stamps = np.ndarray[Any, Any]
Change = Callable[[Stamps, int, Random], Stamps]
"""Of a stamp by its place."""


def damages(copy: Copy) -> Damages:
    """All that can be done to traces of this run."""
    for name in copy.names:
        if not name.endswith("/trace.bin"):
            continue
        folder = name.removesuffix("trace.bin")
        points = [each["name"] for each in copy.json(f"{folder}points.json")["points"]]
        stamps = _read(copy, name)
        of = {
            (int(kind), int(point)): None
            for kind, point in zip(stamps["kind"].tolist(), stamps["point"].tolist(), strict=True)
        }
        for kind, point in sorted(of):
            words = "HLT" if kind == _HALT else f"{_KINDS[kind]} of {points[point]}"
            for what, change in CHANGES.items():
                yield Damage(f"{name}: {words}: {what}", _one(name, (kind, point), change))
        for what, whole in WHOLE.items():
            yield Damage(f"{name}: {what}", _all(name, whole))
        for what, said in POINTS.items():
            yield Damage(f"{folder}points.json: {what}", _points(f"{folder}points.json", said))


def _read(copy: Copy, name: str) -> Stamps:
    return np.frombuffer(copy.read(name), _STAMP, offset=_HEADER)


def _all(name: str, change: Callable[[Stamps, Random], Stamps]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        head = copy.read(name)[:_HEADER]
        copy.write(name, head + change(_read(copy, name).copy(), random).tobytes())

    return apply


def _one(name: str, of: tuple[int, int], change: Change) -> Callable[[Copy, Random], None]:
    def chosen(stamps: Stamps, random: Random) -> Stamps:
        places = np.flatnonzero((stamps["kind"] == of[0]) & (stamps["point"] == of[1]))
        return change(stamps, random.choice(places.tolist()), random)

    return _all(name, chosen)


def _moved(by_ns: int) -> Change:
    def change(stamps: Stamps, place: int, random: Random) -> Stamps:
        stamps["ns"][place] += by_ns
        return stamps

    return change


def _removed(stamps: Stamps, place: int, random: Random) -> Stamps:
    return np.delete(stamps, place)


def _doubled(stamps: Stamps, place: int, random: Random) -> Stamps:
    return np.insert(stamps, place, stamps[place])


def _of_another(field: str) -> Change:
    """The field as another stamp has it."""

    def change(stamps: Stamps, place: int, random: Random) -> Stamps:
        others = np.unique(stamps[field][(stamps["kind"] != _HALT) & (stamps[field] != stamps[field][place])])
        if len(others):
            stamps[field][place] = random.choice(others.tolist())
        return stamps

    return change


def _turned(stamps: Stamps, place: int, random: Random) -> Stamps:
    stamps["kind"][place] = {_ENTRY: _EXIT, _EXIT: _ENTRY, _HALT: _ENTRY}[int(stamps["kind"][place])]
    return stamps


CHANGES: dict[str, Change] = {
    "1 ns later": _moved(1),
    "8 ns later": _moved(8),
    "removed": _removed,
    "doubled": _doubled,
    "of another function": _of_another("point"),
    "of another thread": _of_another("thread"),
    "of another program": _of_another("page_table"),
    "with another argument": _of_another("argument"),
    "of another kind": _turned,
}


def _byte(stamps: Stamps, random: Random) -> Stamps:
    data = bytearray(stamps.tobytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return np.frombuffer(bytes(data), _STAMP)


def _later(by_ns: int) -> Callable[[Stamps, Random], Stamps]:
    def change(stamps: Stamps, random: Random) -> Stamps:
        stamps["ns"] += by_ns
        return stamps

    return change


def _exchanged(stamps: Stamps, random: Random) -> Stamps:
    place = random.randrange(len(stamps) - 1)
    stamps[[place, place + 1]] = stamps[[place + 1, place]]
    return stamps


WHOLE: dict[str, Callable[[Stamps, Random], Stamps]] = {
    "a bit of a stamp": _byte,
    "all 1 us later": _later(1000),
    "all 1 h later": _later(3_600_000_000_000),
    "two stamps exchanged": _exchanged,
    "without the last tenth": lambda stamps, random: stamps[: len(stamps) * 9 // 10],
    "without the first tenth": lambda stamps, random: stamps[len(stamps) // 10 :],
    "without any stamp": lambda stamps, random: stamps[:0],
    "without HLT": lambda stamps, random: stamps[stamps["kind"] != _HALT],
}


def _points(name: str, change: Callable[[list[dict[str, Any]], Random], None]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        document = copy.json(name)
        change(document["points"], random)
        copy.write(name, json.dumps(document, indent=1).encode() + b"\n")

    return apply


def _swap(points: list[dict[str, Any]], random: Random) -> None:
    one, other = random.sample(range(len(points)), 2)
    points[one]["name"], points[other]["name"] = points[other]["name"], points[one]["name"]


def _change_name(points: list[dict[str, Any]], random: Random) -> None:
    random.choice(points)["name"] += "_x"


def _without_role(points: list[dict[str, Any]], random: Random) -> None:
    random.choice([each for each in points if each["role"] is not None])["role"] = None


def _with_role(points: list[dict[str, Any]], random: Random) -> None:
    random.choice([each for each in points if each["role"] is None])["role"] = "transmit"


def _other_stamps(points: list[dict[str, Any]], random: Random) -> None:
    random.choice([each for each in points if each["stamps"] != "exit"])["stamps"] = "exit"


def _other_program(points: list[dict[str, Any]], random: Random) -> None:
    chosen = random.choice(points)
    chosen["program"] = "bin/other" if chosen["program"] is None else None


def _one_less(points: list[dict[str, Any]], random: Random) -> None:
    points.pop()


def _one_more(points: list[dict[str, Any]], random: Random) -> None:
    points.append(dict(random.choice(points)))


def _other_address(points: list[dict[str, Any]], random: Random) -> None:
    random.choice(points)["address"] = "1234"


POINTS: dict[str, Callable[[list[dict[str, Any]], Random], None]] = {
    "two names exchanged": _swap,
    "another name": _change_name,
    "a role missing": _without_role,
    "a role too many": _with_role,
    "exits instead of entries": _other_stamps,
    "another program": _other_program,
    "a function less": _one_less,
    "a function twice": _one_more,
    "another address": _other_address,
}

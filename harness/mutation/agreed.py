# SPDX-License-Identifier: Apache-2.0
"""What all ports and counters agree on: frames that are nowhere, with their counts put right; both sides of an exchange
changed alike; servers without a count; calls that are said to have failed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from mutation import protocols
from mutation.capture import OUT, Capture, Frame, Transmission, transmissions
from mutation.damage import Copy, Damage, Damages
from mutation.headers import PLACES, write

COUNTERS = "wire/counters.json"
MS = 1_000_000
PORT_MAPPER = 111
_MBCF, _MBCF_ACK = 0x88B6, 0x00

Choose = Callable[[Sequence[Transmission], Random], Sequence[Transmission]]


def damages(copy: Copy) -> Damages:
    """All that can be done to this run."""
    captures = copy.captures()
    every = transmissions(list(captures.values()))
    for what, choose in GONE.items():
        if choose(every, Random(what)):
            yield Damage(f"agreed: {what} nowhere", _gone(choose))
    for what, choose in TWICE.items():
        if choose(every, Random(what)):
            yield Damage(f"agreed: {what} twice", _twice(choose))
    if any(_is_arp(each, 2) for each in every):
        yield Damage("agreed: ARP reply 2 ms later, everywhere", _later(_first(_is_arp, 2)))
    if any(_is_port_mapper(each) for each in every):
        for what, place, side in (("xid", 8, "question"), ("xid", 8, "answer"), ("port", 0, "question")):
            yield Damage(f"agreed: another {what} of a port mapper's {side}", _port_mapper(place, side))
    for what, (choose_one, change) in CHANGED.items():
        if any(choose_one(each) for each in every):
            yield Damage(f"agreed: {what}, everywhere", _changed(choose_one, change))
    for name in copy.names:
        if name.endswith("/samples.jsonl"):
            lines = [json.loads(line) for line in copy.read(name).splitlines()]
            records = [line for line in lines if isinstance(line, dict)]
            for app in dict.fromkeys(line["app"] for line in records if line["type"] == "counters"):
                yield Damage(f"agreed: {name}: no counts of {app}", _no_counts(name, app), samples=True)
            if copy.json("run.json")["clock"] == "virtual" and _first_transport(records) == "udp":
                yield Damage(f"agreed: {name}: the first call timed out", _timed_out(name), samples=True)


# ---- Frames that are nowhere ----


def _is_arp(each: Transmission, operation: int | None = None) -> bool:
    if protocols.ethertype(each.data) != protocols.ARP:
        return False
    return operation is None or int.from_bytes(each.data[20:22]) == operation


def _is_tcp(each: Transmission, kind: str) -> bool:
    return protocols.kind(each.data) == kind


def _is_mbcf(each: Transmission) -> bool:
    return protocols.ethertype(each.data) == _MBCF


def _first(fits: Callable[..., bool], *what: object) -> Choose:
    return lambda every, random: [each for each in every if each.received and fits(each, *what)][:1]


def _last(fits: Callable[..., bool], *what: object) -> Choose:
    return lambda every, random: [each for each in every if each.received and fits(each, *what)][-1:]


def _all(fits: Callable[..., bool], *what: object) -> Choose:
    return lambda every, random: [each for each in every if fits(each, *what)]


GONE: dict[str, Choose] = {
    "ARP reply": _first(_is_arp, 2),
    "all ARP replies": _all(_is_arp, 2),
    "all ARP": _all(_is_arp),
    "last TCP ACK": _last(_is_tcp, "TCP ACK"),
    "last ACK of MBCF": _last(lambda each: _is_mbcf(each) and each.data[14] == _MBCF_ACK),
    "first ACK of MBCF": _first(lambda each: _is_mbcf(each) and each.data[14] == _MBCF_ACK),
}


TWICE: dict[str, Choose] = {
    "ARP request": _first(_is_arp, 1),
    "TCP RST": _last(_is_tcp, "TCP RST"),
}


def _gone(choose: Choose) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        frames = [frame for each in choose(transmissions(list(captures.values())), random) for frame in each.everywhere]
        _remove(copy, captures, frames)

    return apply


def _remove(copy: Copy, captures: dict[str, Capture], frames: Sequence[Frame]) -> None:
    """Frames out of captures and counters."""
    gone = set(map(id, frames))
    _count(copy, captures, gone, -1)
    for capture in captures.values():
        capture.frames = [each for each in capture.frames if id(each) not in gone]
    write(copy, captures)


def _twice(choose: Choose) -> Callable[[Copy, Random], None]:
    """Once more after 3 ms, and counted."""

    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        frames = [frame for each in choose(transmissions(list(captures.values())), random) for frame in each.everywhere]
        again = set(map(id, frames))
        _count(copy, captures, again, 1)
        for capture in captures.values():
            copies = [replace(each, at_ns=each.at_ns + 3 * MS) for each in capture.frames if id(each) in again]
            capture.frames = sorted([*capture.frames, *copies], key=lambda each: each.at_ns)
        write(copy, captures)

    return apply


def _count(copy: Copy, captures: dict[str, Capture], frames: set[int], by: int) -> None:
    """So many more of these frames (by id) in the fabric's counters."""
    counters = copy.json(COUNTERS)
    for name, capture in captures.items():
        segment = counters["segments"][name.removeprefix("wire/").removesuffix(".pcapng")]
        for frame in (each for each in capture.frames if id(each) in frames and not capture.is_fate(each)):
            port = segment["ports"][capture.interfaces[frame.interface]]
            way = "tx" if frame.direction == OUT else "rx"
            port[f"{way}_frames"] += by
            port[f"{way}_bytes"] += by * frame.length
            port["offered_frames"] += by * (frame.direction == OUT)
    copy.write_json(COUNTERS, counters)


# ---- Frames that are changed everywhere ----


def _later(choose: Choose) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        frames = {
            id(frame) for each in choose(transmissions(list(captures.values())), random) for frame in each.everywhere
        }
        for capture in captures.values():
            for frame in capture.frames:
                frame.at_ns += 2 * MS * (id(frame) in frames)
            capture.frames.sort(key=lambda each: each.at_ns)
        write(copy, captures)

    return apply


def _is_port_mapper(each: Transmission, side: str | None = None) -> bool:
    if protocols.kind(each.data) != "UDP" or not each.received:
        return False
    at = protocols.layer(each.data)
    ports = [int.from_bytes(each.data[at + place : at + place + 2]) for place in (2, 0)]
    return PORT_MAPPER in ports if side is None else ports[("question", "answer").index(side)] == PORT_MAPPER


def _port_mapper(place: int, side: str) -> Callable[[Copy, Random], None]:
    """`place` behind the beginning of the UDP header."""
    return _changed(
        lambda each: _is_port_mapper(each, side), lambda data: _one_more(data, protocols.layer(data) + place)
    )


def _one_more(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _flag(flag: int) -> Callable[[bytes], bytes]:
    return lambda data: _with(data, protocols.layer(data) + 13, data[protocols.layer(data) + 13] ^ flag)


def _no_window(data: bytes) -> bytes:
    at = protocols.layer(data) + 14
    return data[:at] + bytes(2) + data[at + 2 :]


def _with(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


CHANGED: dict[str, tuple[Callable[[Transmission], bool], Callable[[bytes], bytes]]] = {
    "PSH of a TCP ACK": (lambda each: _is_tcp(each, "TCP ACK"), _flag(8)),
    "window 0 of a TCP ACK": (lambda each: _is_tcp(each, "TCP ACK"), _no_window),
}


def _changed(fits: Callable[[Transmission], bool], change: Callable[[bytes], bytes]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        captures = copy.captures()
        chosen = random.choice([each for each in transmissions(list(captures.values())) if fits(each)])
        data = protocols.with_checksums(chosen.data, change(chosen.data))
        for frame in PLACES["both"](chosen):
            frame.data = data
        write(copy, captures)

    return apply


# ---- Samples ----


def _first_transport(records: Sequence[dict[str, Any]]) -> str | None:
    return next((line["transport"] for line in records if line["type"] == "batch"), None)


def _no_counts(name: str, app: str) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        lines = copy.read(name).splitlines()
        values = [json.loads(line) for line in lines]
        kept = [
            line
            for line, value in zip(lines, values, strict=True)
            if not (isinstance(value, dict) and (value["type"], value.get("app")) == ("counters", app))
        ]
        copy.write(name, b"".join(line + b"\n" for line in kept))

    return apply


def _timed_out(name: str) -> Callable[[Copy, Random], None]:
    """In a run whose scenario lets calls fail."""

    def apply(copy: Copy, random: Random) -> None:
        lines = copy.read(name).splitlines()
        place = next(place for place, line in enumerate(lines) if line.startswith(b"["))
        value = json.loads(lines[place])
        value[3], value[6] = 0, "RPC: Timed out"
        lines[place] = json.dumps(value, separators=(",", ":")).encode()
        copy.write(name, b"".join(line + b"\n" for line in lines))
        document = copy.json("run.json")
        document["scenario"].setdefault("expect", {})["failures"] = "allowed"
        copy.write_json("run.json", document)

    return apply

# SPDX-License-Identifier: Apache-2.0
"""Whether wires keep their rates: in virtual time from the captures of guests, in real time at the receiving station.

In virtual time a guest sends a datagram of 40 fragments at once, so frames wait in its adapter and must follow one
another on the wire without a hole: preamble, FCS and inter-frame gap counted, and nothing else.
"""

from __future__ import annotations

import struct
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import carriers, guests
from benchmarks.context import Cannot, Context
from benchmarks.experiments import echo
from benchmarks.figure import Figure, Outcome, Unmeasured, below
from benchmarks.generator import fly
from sundial.errors import SundialError
from sundial.observe.pcap import open_capture

VIRTUAL, REAL = "shaping in virtual time", "shaping in real time"
RATES = {"10 Mbit/s": 10_000_000, "100 Mbit/s": 100_000_000}
KINDS: tuple[str, ...] = ("hub", "link", "switch")
DATAGRAM_BYTES = 58_000
TRAIN_LEAST = 30
"""Fragments of one datagram that must be found in the capture."""

FRAME_LEAST, FCS, PREAMBLE, GAP = 60, 4, 8, 12
LONGEST = 1514

Seen = tuple[int, int]
"""Time in ns, length without FCS."""


def measure(context: Context) -> Iterator[Outcome]:
    """Exact to a byte time in virtual time; within 1 % in real time."""
    for rate in RATES:
        for kind in KINDS:
            try:
                yield _virtual(context, kind, rate)
            except (Cannot, SundialError) as error:
                yield Unmeasured(VIRTUAL, f"{kind}, {rate}", str(error))
    turns = context.in_turns({rate: partial(_real, context, bits) for rate, bits in RATES.items()})
    for rate, errors in turns.found.items():
        yield Figure(REAL, f"link, {rate}: off by", "%", tuple(map(abs, errors)), below(1.0))
    yield from turns.unmeasured(REAL)


def _virtual(context: Context, kind: str, rate: str) -> Outcome:
    """The largest error of any frame in any train. Once: every repeat would give the same bytes."""
    context.say(f"shaping in virtual time, {kind}, {rate}")
    with tempfile.TemporaryDirectory(dir=context.folder) as name:
        folder = Path(name)
        calls = context.pick(2, 10)
        experiment = echo(folder, kind=kind, rate=rate, calls=calls, sizes=[DATAGRAM_BYTES], udp_message_size="60000")
        guests.timed(experiment, folder, keep=True)
        trains = list(_trains(folder / "wire" / "lan.pcapng"))
    frames = sum(map(len, trains))
    worst = max((_error_bytes(train, RATES[rate]) for train in trains), default=None)
    if worst is None:
        raise Cannot("the capture holds no train of fragments")
    unit, note = "byte times", f"{frames} frames in {len(trains)} trains"
    return Figure(VIRTUAL, f"{kind}, {rate}: largest error", unit, (worst,), below(1.0), note, anywhere=True)


def _error_bytes(train: list[Seen], rate_bps: int) -> float:
    """The largest difference of a frame's time from where the frames before it put it, in byte times.

    A sending port stamps starts and a receiving one ends. All frames but the last, which is left out, are equally long,
    so in both cases each is as late as those before it are long.
    """
    sent, worst = 0, 0
    start = train[0][0]
    for (at, _), (_, before) in zip(train[1:-1], train, strict=False):
        sent += wire_ns(before, rate_bps)
        worst = max(worst, abs(at - start - sent))
    return worst / (8e9 / rate_bps)


def wire_ns(frame_bytes: int, rate_bps: int) -> int:
    """What a frame takes of the wire with all that belongs to it."""
    return (max(frame_bytes, FRAME_LEAST) + FCS + PREAMBLE + GAP) * 8 * 10**9 // rate_bps


def _trains(path: Path) -> Iterator[list[Seen]]:
    """Fragments of one datagram as one port saw them, in order, for each port and datagram."""
    capture = open_capture(path)
    try:
        for interface in capture.interfaces[:2]:
            trains: dict[bytes, list[Seen]] = defaultdict(list)
            for block in interface.each():
                packet = capture.packet(block)
                if packet[12:14] != b"\x08\x00" or packet[23] != 17:
                    continue
                high, low = struct.unpack_from("<II", capture.data, block[0] + 12)
                trains[packet[26:30] + packet[18:20]].append((high << 32 | low, len(packet)))
            yield from (train for train in trains.values() if len(train) >= TRAIN_LEAST)
    finally:
        capture.close()


def _real(context: Context, rate_bps: int) -> float:
    """How much more or less than the rate arrives, in per cent, with every place of the sender's adapter full."""
    seconds = context.pick(1, 4)
    frame_bits = (LONGEST + FCS + PREAMBLE + GAP) * 8
    with (
        tempfile.TemporaryDirectory(dir=context.folder) as folder,
        carriers.fabric_link(Path(folder), rate_bps=rate_bps) as stations,
    ):
        flight = fly(stations, size=LONGEST, count=seconds * rate_bps // frame_bits, window=64)
    return (flight.frames_per_second * frame_bits / rate_bps - 1) * 100

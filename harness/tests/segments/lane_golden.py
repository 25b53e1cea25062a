# SPDX-License-Identifier: Apache-2.0
"""What two clients of an emulated LAN say until both send directly, message by message, after af-lane-0021 and the
times of a network of cells; nothing of `sundial`, and nothing of a capture but when each machine had a frame to send.

OC-3c lines, propagation 25 ns, 10 us for a cell in the switch, 50 us in a server, 2 ms to set up a channel. n cells
that are alone take n cell times to the switch and one more on the line behind it. A server's line is OC-3c, too.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

from mutation import capture as pcapng
from tests.segments.lane_tape import BROADCAST, BUS, READY_IND, SERVER, atm, control, mac
from tests.segments.pdus import IN, OUT

CELL_NS = Fraction(331_250, 117)
"""424 bits at 149.76 Mbit/s."""
PROPAGATION_NS, LATENCY_NS, SERVICE_NS, SETUP_NS = 25, 10_000, 50_000, 2_000_000
CONFIGURATION, CONTROL, TO_BUS, FROM_BUS, DIRECT = 17, 33, 35, 36, 64
CONFIGURE, JOIN, ARP, FLUSH, RESPONSE = 1, 2, 6, 7, 0x100
MESSAGES = 2 * 6 + 3 + 2 * 5 + 2 * 2 + 2 * 5
"""Joins, a broadcast, two frames by the BUS with LE_ARP, READY_IND of both, two flushes. What follows goes directly."""
ERF, CELL_HEADER, CELL, TRAILER = 16, 4, 48, 8


@dataclass(frozen=True, order=True)
class Line:
    """A PDU at a port: its stamp in ns since the run began."""

    at_ns: int
    port: int
    direction: int
    vci: int
    sdu: bytes


@dataclass(frozen=True)
class Sent:
    """A frame as it left a machine."""

    at_ns: int
    port: int
    octets: bytes


def check_golden(run: Path) -> None:
    """All of a run over two-hosts-lane in which the client asks for the server's address, then its port, then calls."""
    assert lines(run, epoch_ns(run)) == golden_of(run)


def golden_of(run: Path) -> list[Line]:
    """What must be said there, by when its machines sent their frames."""
    frames = sent(run, epoch_ns(run))
    expected = golden(frames)
    assert len(expected) == MESSAGES + 2 * (len(frames) - 3)
    return expected


def epoch_ns(run: Path) -> int:
    """Zero of the run since 1970."""
    return int(json.loads((run / "run.json").read_text())["epoch_ns"])


def lines(run: Path, zero_ns: int) -> list[Line]:
    """All PDUs of a run, by the trailer's length without pad and trailer."""
    capture = pcapng.read((run / "wire" / "atm" / "elan.pdus.pcapng").read_bytes())
    found = []
    for frame in capture.frames:
        assert not capture.is_fate(frame), frame.comment
        pdu = frame.data[ERF + CELL_HEADER :]
        (size,) = struct.unpack_from(">H", pdu, len(pdu) - 6)
        vci = int.from_bytes(frame.data[ERF : ERF + CELL_HEADER]) >> 4
        found.append(Line(frame.at_ns - zero_ns, frame.interface, frame.direction, vci, pdu[:size]))
    return sorted(found)


def sent(run: Path, zero_ns: int) -> list[Sent]:
    """The frames that left the machines."""
    capture = pcapng.read((run / "wire" / "elan.pcapng").read_bytes())
    return [
        Sent(frame.at_ns - zero_ns, frame.interface, frame.data) for frame in capture.frames if frame.direction == OUT
    ]


def golden(frames: Sequence[Sent]) -> list[Line]:
    """All messages until the last of the frames has arrived. The first frame is the client's ARP request, the second
    its answer, the third the client's first packet, the fourth the answer to that; then all go directly."""
    return sorted(line for at, *rest in _records(frames) for line in [Line(ceil(at), *rest)])


Records = Iterator[tuple[Fraction, int, int, int, bytes]]


def _ps(at: Fraction) -> Fraction:
    """What is handed over is handed over at a whole ps."""
    return Fraction(ceil(at * 1000), 1000)


def _through(cells: int) -> Fraction:
    """From the first bit at one end to the last at the other."""
    return (cells + 1) * CELL_NS + LATENCY_NS + 2 * PROPAGATION_NS


def _asked(cells: int) -> Fraction:
    """To a server, whose line has no length, and back or to all."""
    return 2 * ((cells + 1) * CELL_NS + LATENCY_NS + PROPAGATION_NS) + SERVICE_NS


def _cells(sdu: bytes) -> int:
    return -(-(len(sdu) + TRAILER) // CELL)


def _data(frame: Sent) -> bytes:
    return struct.pack(">H", frame.port + 1) + frame.octets.ljust(60, b"\0")


def _records(frames: Sequence[Sent]) -> Records:
    yield from _joined(0, Fraction(0), 10)
    # Its cells and those of the first alternate, and its answer follows that of the first: after 13 cell times.
    yield from _joined(1, Fraction(1000), 13)

    question, answer, first, reply, *others = frames
    # Clients do not ask about a group; the BUS sends it to all.
    start = Fraction(question.at_ns)
    yield start, 0, OUT, TO_BUS, _data(question)
    yield from _to_all(start + _asked(2), _data(question))

    # LE_ARP in three cells and the frame behind it. The LES answers in three cells, two before the frame is with the
    # BUS, on the one line that they have: its copies are a cell later.
    server, named = _resolved(answer, 1)
    yield from server
    yield from _to_all(_handed(answer) + 3 * CELL_NS + _asked(2) + CELL_NS, _data(answer))
    # Three cells behind three: no copy waits.
    client, found = _resolved(first, 0)
    yield from client
    yield from _to_all(_handed(first) + 3 * CELL_NS + _asked(3), _data(first))

    # The server's channel is there first. READY_IND, and behind it the flush of the old path.
    ready = named + SETUP_NS
    yield ready, 1, OUT, DIRECT, READY_IND
    heard = _ps(ready + _through(1))
    yield heard, 0, IN, DIRECT + 1, READY_IND
    flush, answered = _flushed(ready + CELL_NS, 1)
    yield from flush
    # The client has sent by the BUS as well; now that the channel is there it flushes that at once.
    flush, _ = _flushed(heard, 0)
    yield from flush
    # Its own call is complete 2 ms after its LE_ARP_RESPONSE.
    yield found + SETUP_NS, 0, OUT, DIRECT + 1, READY_IND
    yield found + SETUP_NS + _through(1), 1, IN, DIRECT, READY_IND

    # What the server had to say meanwhile waited for the answer to its flush.
    yield from _directly(answered, reply)
    free = [Fraction(0)] * 2
    for frame in others:
        # What was handed over with the frame before begins when that ends, at a part of a ns.
        start = free[frame.port] if ceil(free[frame.port]) == frame.at_ns else Fraction(frame.at_ns)
        free[frame.port] = start + _cells(_data(frame)) * CELL_NS
        yield from _directly(start, frame)


def _joined(port: int, begin: Fraction, cells: int) -> Records:
    """Configuration, join and the address of the BUS. `cells`: after so many cell times of the run the first answer is
    here."""
    own, lan = mac(port), {"type": 1, "size": 1}
    named = {**lan, "name": b"elan"}
    # Alone it would be 8: four to the server, four back.
    configured = _ps(cells * CELL_NS + _asked(3) - 8 * CELL_NS)
    yield begin, port, OUT, CONFIGURATION, control(CONFIGURE, 1, 0, own, **lan)
    response = control(CONFIGURE + RESPONSE, 1, 0, own, to=SERVER, **named)
    yield configured, port, IN, CONFIGURATION, response
    joined = _ps(configured + _asked(3))
    yield configured, port, OUT, CONTROL, control(JOIN, 2, 0, own, **named)
    yield joined, port, IN, CONTROL, control(JOIN + RESPONSE, 2, port + 1, own, **named)
    every = {"target": b"\0\1" + BROADCAST}
    yield joined, port, OUT, CONTROL, control(ARP, 3, port + 1, own, **every)
    yield joined + _asked(3), port, IN, CONTROL, control(ARP + RESPONSE, 3, port + 1, own, to=BUS, **every)


def _handed(frame: Sent) -> Fraction:
    """When its machine had it: in whole ns, and three cells before it left."""
    return Fraction(frame.at_ns - ceil(3 * CELL_NS))


def _resolved(frame: Sent, port: int) -> tuple[Records, Fraction]:
    """LE_ARP for the other client, the frame behind it; and when the answer is here."""
    at, peer = _handed(frame), mac(1 - port)
    found = _ps(at + _asked(3))
    lan = {"target": b"\0\1" + peer}

    def records() -> Records:
        yield at, port, OUT, CONTROL, control(ARP, 4, port + 1, mac(port), **lan)
        yield at + 3 * CELL_NS, port, OUT, TO_BUS, _data(frame)
        yield found, port, IN, CONTROL, control(ARP + RESPONSE, 4, port + 1, mac(port), to=atm(peer), **lan)

    return records(), found


def _to_all(at: Fraction, sdu: bytes) -> Records:
    for port in (0, 1):
        yield at, port, IN, FROM_BUS, sdu


def _flushed(at: Fraction, port: int) -> tuple[Records, Fraction]:
    """By the BUS to the other client, which answers over the LES; and when that is here."""
    request = control(FLUSH, 5, port + 1, mac(port), lan=bytes(8), to=atm(mac(1 - port)))
    response = request[:4] + struct.pack(">H", FLUSH + RESPONSE) + request[6:]
    there = _ps(at + _asked(3))
    back = _ps(there + _asked(3))

    def records() -> Records:
        yield at, port, OUT, TO_BUS, request
        yield from _to_all(there, request)
        yield there, 1 - port, OUT, CONTROL, response
        yield back, port, IN, CONTROL, response

    return records(), back


def _directly(at: Fraction, frame: Sent) -> Records:
    sdu, other = _data(frame), 1 - frame.port
    yield at, frame.port, OUT, DIRECT + other, sdu
    yield at + _through(_cells(sdu)), other, IN, DIRECT + frame.port, sdu

# SPDX-License-Identifier: Apache-2.0
"""A capture from a guest's record of its loopback (harness/schemas/README.md, "nodes/NAME/loopback.bin").

The guest passes on its kernel's blocks unchanged (guest-apps/runner/capture.c). Frames have stamps of the kernel's
clock. Each block follows a reading of that clock and of the TSC, from which the run's time is computed.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sundial import EPOCH_NS
from sundial.errors import GuestFault
from sundial.whole import whole

LOOPBACK = "loopback.bin"
"""File in a node's folder, until the end of the run."""

MAGIC = b"SDLLOOP1"
_HEADER = struct.Struct("<8s6Q")
_BLOCK = struct.Struct("<6IQ")
"""tpacket_block_desc (linux/if_packet.h): version, -, status, frames, where the first is, length, sequence number."""
_FRAME = struct.Struct("<6I2H")
"""tpacket3_hdr: next, s, ns, captured, length, status, where the frame begins."""
_KIND_AT = 48 + 10
"""sll_pkttype of the sockaddr_ll behind a tpacket3_hdr."""
_OUTGOING = 4
_SECOND_NS = 10**9
UNEVEN_NS = 20
"""Error of the kernel's clock between two ticks, in ns."""
_WAYS = {True: (0, 2), False: (1, 1)}
"""By whether it is sent: the interface of the capture, and the direction of epb_flags."""
_ETHERNET = 1


@dataclass(frozen=True)
class Block:
    """One block with its readings. `frames` begin at byte `begin` of the stream; `complete`: it is not cut off."""

    begin: int
    clocks: tuple[int, int, int]
    """The TSC, the kernel's clock, and the TSC again."""
    packets: int
    dropped: int
    complete: bool


def convert(stream: mmap.mmap | bytes, *, interface: str, zero_ns: int) -> Iterator[bytes]:
    """The capture, piece by piece. A cut end is left out. Raises ValueError for malformed data."""
    blocks = list(_blocks(stream))
    yield _begin(interface)
    clocks = clocks_of([each.clocks for each in blocks] or [(0, 0, 0)])
    last = EPOCH_NS
    for block in blocks:
        for at, sent, octets in _frames(stream, block.begin) if block.complete else ():
            last = EPOCH_NS - zero_ns + at + clocks.ahead_ns(at)
            yield _frame(last, sent, octets)
    yield _statistics(last, sum(each.packets for each in blocks), sum(each.dropped for each in blocks))


@dataclass(frozen=True)
class Clocks:
    """How far the TSC is ahead of the kernel's clock: by a straight line through two readings. Each counts evenly, but
    what a count is the kernel has measured, to a kHz."""

    begin: tuple[int, int]
    """The kernel's clock, and how far the TSC was ahead; likewise `end`."""
    end: tuple[int, int]

    def ahead_ns(self, clock_ns: int) -> int:
        """TSC's lead at a reading of the kernel's clock."""
        (one, here), (other, there) = self.begin, self.end
        return here if one == other else here + (there - here) * (clock_ns - one) // (other - one)


def clocks_of(readings: Sequence[tuple[int, int, int]]) -> Clocks:
    """From readings of the TSC, the clock and the TSC again: the first and the last of those that were not interrupted,
    each half-way. Raises ValueError where others are not on that line: the clocks do not run evenly."""
    shortest = min(after - before for before, _, after in readings)
    known = [(clock, (before + after) // 2 - clock) for before, clock, after in readings if after - before == shortest]
    clocks = Clocks(known[0], known[-1])
    if any(abs(clocks.ahead_ns(clock) - ahead) > UNEVEN_NS for clock, ahead in known):
        raise ValueError("its kernel's clock and its TSC do not run evenly")
    return clocks


def collect_loopbacks(folder: Path) -> None:
    """Write wire/SEGMENT.pcapng for each machine with a captured loopback, in place of its guest's record.

    Raises GuestFault, with the machine, for a malformed record.
    """
    document = json.loads((folder / "run.json").read_text())
    for name, node in document["nodes"].items():
        raw = folder / "nodes" / name / LOOPBACK
        if not raw.is_file():
            continue
        inside = [each for each in node["interfaces"] if each["device"] == "lo"]
        for each in inside:
            _write(
                raw, folder / "wire" / f"{each['segment']}.pcapng", name, f"{name}:{each['device']}", node["zero_ns"]
            )
        raw.unlink()


def _write(raw: Path, target: Path, machine: str, interface: str, zero_ns: int) -> None:
    try:
        with whole(target) as beside, beside.open("wb") as file:
            if not raw.stat().st_size:
                file.writelines(convert(b"", interface=interface, zero_ns=zero_ns))
                return
            with raw.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as stream:
                file.writelines(convert(stream, interface=interface, zero_ns=zero_ns))
    except ValueError as error:
        raise GuestFault(f"the record of its loopback is malformed: {error}", machine=machine) from None


def _blocks(stream: mmap.mmap | bytes) -> Iterator[Block]:
    at, number = 0, None
    while len(stream) - at >= _HEADER.size:
        magic, before, clock, after, packets, dropped, length = _HEADER.unpack_from(stream, at)
        begin = at + _HEADER.size
        if magic != MAGIC or not before <= after:
            raise ValueError(f"no block at byte {at}")
        complete = begin + length <= len(stream)
        yield Block(begin, (before, clock, after), packets, dropped, complete)
        if not complete:
            return
        sequence = _BLOCK.unpack_from(stream, begin)[-1]
        if number is not None and sequence != number + 1:
            raise ValueError(f"block {sequence} behind block {number}")
        at, number = begin + length, sequence


def _frames(stream: mmap.mmap | bytes, block: int) -> Iterator[tuple[int, bool, bytes]]:
    """Time, direction and octets of each frame."""
    _, _, _, count, first, length, _ = _BLOCK.unpack_from(stream, block)
    at, end = block + first, block + length
    for _ in range(count):
        if at + _KIND_AT >= end:
            raise ValueError(f"a frame at byte {at}, behind its block")
        step, seconds, rest, captured, whole, _, begin, _ = _FRAME.unpack_from(stream, at)
        if captured != whole or at + begin + captured > end:
            raise ValueError(f"a frame at byte {at} that is not whole")
        sent = stream[at + _KIND_AT] == _OUTGOING
        yield seconds * _SECOND_NS + rest, sent, stream[at + begin : at + begin + captured]
        at += step


def _begin(interface: str) -> bytes:
    name = interface.encode()
    options = _option(2, name) + _option(9, b"\x09") + _option(0, b"")
    section = _whole(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    return section + len(_WAYS) * _whole(1, struct.pack("<HHI", _ETHERNET, 0, 0) + options)


def _frame(at_ns: int, sent: bool, octets: bytes) -> bytes:
    number, way = _WAYS[sent]
    fixed = struct.pack("<IIIII", number, at_ns >> 32, at_ns & 0xFFFFFFFF, len(octets), len(octets))
    return _whole(6, fixed + _padded(octets) + _option(2, struct.pack("<I", way)) + _option(0, b""))


def _statistics(at_ns: int, received: int, dropped: int) -> bytes:
    """isb_ifrecv and isb_ifdrop: what the kernel counted."""
    options = _option(4, struct.pack("<Q", received)) + _option(5, struct.pack("<Q", dropped)) + _option(0, b"")
    return _whole(5, struct.pack("<III", 0, at_ns >> 32, at_ns & 0xFFFFFFFF) + options)


def _whole(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _padded(octets: bytes) -> bytes:
    return octets + bytes(-len(octets) % 4)

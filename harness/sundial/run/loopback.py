# SPDX-License-Identifier: Apache-2.0
"""What a guest wrote of its loopback as a capture (harness/schemas/README.md, "nodes/NAME/loopback.bin").

The guest hands over its kernel's blocks as they are (guest-apps/runner/capture.c). Frames are stamped by the kernel's
clock; in front of each block both that clock and the TSC were read, which is what the run's time is made of.
"""

from __future__ import annotations

import json
import mmap
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sundial import EPOCH_NS
from sundial.errors import GuestFault

LOOPBACK = "loopback.bin"
"""Of a node's folder, until the run is over."""

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
_WAYS = {True: (0, 2), False: (1, 1)}
"""By whether it is sent: the interface of the capture, and the direction of epb_flags."""
_ETHERNET = 1


@dataclass(frozen=True)
class Block:
    """One block, with what stands in front of it. `frames` begin at `begin` of the stream; `complete`: all of it is
    there."""

    begin: int
    clock_ns: int
    tsc: int
    packets: int
    dropped: int
    complete: bool


def convert(stream: mmap.mmap | bytes, *, interface: str, zero_ns: int) -> Iterator[bytes]:
    """The capture, piece by piece. A cut end is left out. Raises ValueError for what no guest writes."""
    blocks = list(_blocks(stream))
    yield _begin(interface)
    clocks, counters = [each.clock_ns for each in blocks], [each.tsc for each in blocks]
    last = EPOCH_NS
    for block in blocks:
        if not block.complete:
            continue
        frames = list(_frames(stream, block.begin))
        stamps = run_times([clock for clock, _, _ in frames], clocks, counters, zero_ns)
        for stamp, (_, sent, octets) in zip(stamps, frames, strict=True):
            last = EPOCH_NS + stamp
            yield _frame(last, sent, octets)
    yield _statistics(last, sum(each.packets for each in blocks), sum(each.dropped for each in blocks))


def run_times(stamps: Sequence[int], clocks: Sequence[int], counters: Sequence[int], zero_ns: int) -> list[int]:
    """Stamps of the kernel's clock on the run's axis. Between two readings of both the clocks run evenly; before the
    first and after the last at the same speed, a ns for each count."""
    found = []
    for stamp in stamps:
        after = bisect_right(clocks, stamp)
        one, other = max(after - 1, 0), min(after, len(clocks) - 1)
        ahead = counters[one] - clocks[one]
        if one != other:
            more = counters[other] - clocks[other] - ahead
            ahead += more * (stamp - clocks[one]) // (clocks[other] - clocks[one])
        found.append(stamp + ahead - zero_ns)
    return found


def collect_loopbacks(folder: Path) -> None:
    """Write wire/SEGMENT.pcapng for each machine whose loopback was captured, in place of what its guest wrote.

    Raises GuestFault, with the machine, for what no guest writes.
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
        with target.open("wb") as file:
            if not raw.stat().st_size:
                file.writelines(convert(b"", interface=interface, zero_ns=zero_ns))
                return
            with raw.open("rb") as source, mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) as stream:
                file.writelines(convert(stream, interface=interface, zero_ns=zero_ns))
    except ValueError as error:
        raise GuestFault(f"what it wrote of its loopback: {error}", machine=machine) from None


def _blocks(stream: mmap.mmap | bytes) -> Iterator[Block]:
    at, number = 0, None
    while len(stream) - at >= _HEADER.size:
        magic, before, clock, after, packets, dropped, length = _HEADER.unpack_from(stream, at)
        begin = at + _HEADER.size
        if magic != MAGIC or not before <= after:
            raise ValueError(f"no block at byte {at}")
        complete = begin + length <= len(stream)
        yield Block(begin, clock, (before + after) // 2, packets, dropped, complete)
        if not complete:
            return
        sequence = _BLOCK.unpack_from(stream, begin)[-1]
        if number is not None and sequence != number + 1:
            raise ValueError(f"block {sequence} behind block {number}")
        at, number = begin + length, sequence


def _frames(stream: mmap.mmap | bytes, block: int) -> Iterator[tuple[int, bool, bytes]]:
    """When, whether it is sent or received, and the octets."""
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

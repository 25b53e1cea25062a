# SPDX-License-Identifier: Apache-2.0
"""One port's point of view of a capture, as a capture of its own (draft-ietf-opsawg-pcapng).

A capture of a segment has each frame once a port. Wireshark analyses TCP and RPC over all of them, and takes the second
record of a frame for a retransmission. A view has the records of one port alone. Each gets two options:

* `epb_packetid`: the number of the frame in the whole capture, in Wireshark `frame.packet_id`;
* a comment: what became of a frame that the port sent, or what the wire did to one that it received.

A frame that never left the port as a whole has no record: its collisions are comments on the attempt that succeeded;
a frame that was given up, or refused by the adapter, is in the whole capture alone.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from mmap import mmap

from sundial.observe.erf import ERF_HEADER, ERF_LINK
from sundial.observe.fates import record_of
from sundial.observe.pcap import interface_name
from sundial.observe.pcapng import BYTE_ORDER, ENHANCED, INTERFACE, SECTION
from sundial.seams.fate import Collision, Corrupted, GivenUp

_LEAST = 12
_COMMENT, _FLAGS, _PACKET_ID = 1, 2, 5
_OUTBOUND = 2
_FATE = ":fate"


@dataclass
class PortView:
    """The view of `port`, piece by piece: a capture that grows is given as it grows."""

    port: str
    ports: list[str] = field(default_factory=list)
    """The ports that the capture has, in their order."""
    links: list[int] = field(default_factory=list)
    """Their link types."""
    _order: str = "<"
    _interfaces: int = 0
    _chosen: int | None = None
    _fate: int | None = None
    _erf: bool = False
    _number: int = 0
    _sent: dict[int, int] = field(default_factory=dict)
    """By hash of octets: the number of the latest such frame that the port sent."""
    _due_sent: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By hash of octets: comments for the next such frame that the port sends."""
    _due_received: dict[int, list[list[str]]] = field(default_factory=dict)
    """By hash of octets: comments for the next such frame that the port receives, the one after it, and so on."""
    _comments: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By number of a frame of the port that has not been written."""

    def take(self, data: bytes | mmap) -> tuple[list[bytes], int]:
        """Blocks of the view for what follows in the capture, and how many bytes of `data` were whole blocks.

        A comment reaches a frame only if what became of it is in the same `data`. Raises ValueError for bytes that are
        not blocks of pcapng.
        """
        places: list[tuple[int, int, int]] = []
        at = 0
        for begin, end, kind in self._blocks(data):
            at = end
            if kind == SECTION:
                places.append((begin, end, 0))
            elif kind == INTERFACE:
                if self._describe(data[begin:end]):
                    places.append((begin, end, 0))
            elif kind == ENHANCED:
                self._number += 1
                if self._look(data, begin):
                    places.append((begin, end, self._number))
        found = [self._frame(data[begin:end], number) if number else data[begin:end] for begin, end, number in places]
        self._comments.clear()
        self._sent.clear()
        return found, at

    def _blocks(self, data: bytes | mmap) -> Iterator[tuple[int, int, int]]:
        at, length = 0, len(data)
        while at + _LEAST <= length:
            (kind,) = struct.unpack_from(f"{self._order}I", data, at)
            if kind == SECTION:
                self._order = "<" if struct.unpack_from("<I", data, at + 8) == (BYTE_ORDER,) else ">"
                self._interfaces, self._chosen, self._fate = 0, None, None
            (total,) = struct.unpack_from(f"{self._order}I", data, at + 4)
            if total % 4 or total < _LEAST:
                raise ValueError(f"impossible block length {total}")
            if at + total > length:
                return
            yield at, at + total, kind
            at += total

    def _describe(self, block: bytes) -> bool:
        """Note an interface; whether it is the port. A loopback has two of one name: the first has frames as sent."""
        name, place = interface_name(block, self._order), self._interfaces
        self._interfaces += 1
        if name.endswith(_FATE):
            self._fate = place
            return False
        if name not in self.ports:
            self.ports.append(name)
            self.links.append(struct.unpack_from(f"{self._order}H", block, 8)[0])
        if name != self.port or self._chosen is not None:
            return False
        self._chosen = place
        self._erf = struct.unpack_from(f"{self._order}H", block, 8) == (ERF_LINK,)
        return True

    def _look(self, data: bytes | mmap, begin: int) -> bool:
        """Note a frame; whether it is the port's."""
        interface, _, _, captured = struct.unpack_from(f"{self._order}IIII", data, begin + 8)
        if interface not in (self._chosen, self._fate):
            return False
        octets = data[begin + 28 : begin + 28 + captured]
        (total,) = struct.unpack_from(f"{self._order}I", data, begin + 4)
        options = dict(self._options(data[begin + 28 + (captured + 3) // 4 * 4 : begin + total - 4]))
        if interface == self._fate:
            self._note_fate(octets, options.get(_COMMENT, b"").decode(errors="replace"))
            return False
        key = self._key(octets)
        (flags,) = struct.unpack(f"{self._order}I", options.get(_FLAGS, bytes(4)))
        if flags & 3 == _OUTBOUND:
            self._sent[key] = self._number
            due = self._due_sent.pop(key, [])
        else:
            due = self._due_received[key].pop(0) if self._due_received.get(key) else []
        if due:
            self._comments[self._number] += due
        return True

    def _note_fate(self, octets: bytes, comment: str) -> None:
        arriving = self._key(octets)
        leaving = arriving
        record = record_of(comment)
        if isinstance(record, Corrupted) and record.byte < len(octets):
            before = bytearray(octets)
            before[record.byte] ^= 1 << record.bit
            leaving = self._key(bytes(before))
        if isinstance(record, Collision):
            if record.adapter == self.port:
                self._due_sent[leaving].append(comment)
        elif isinstance(record, GivenUp):
            self._due_sent.pop(leaving, None)
        elif leaving in self._sent:
            self._comments[self._sent[leaving]].append(comment)
        elif isinstance(record, Corrupted):
            self._due_received.setdefault(arriving, []).append([comment])
        elif record is not None and record.fate == "duplicated":
            self._due_received.setdefault(arriving, []).extend(([], [comment]))

    def _key(self, octets: bytes) -> int:
        # The header of ERF has a time stamp and flags, which differ between the records of one PDU.
        return hash(octets[ERF_HEADER:] if self._erf else octets)

    def _options(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while at + 4 <= len(data):
            code, length = struct.unpack_from(f"{self._order}HH", data, at)
            if code == 0:
                break
            yield code, data[at + 4 : at + 4 + length]
            at += 4 + (length + 3) // 4 * 4

    def _frame(self, block: bytes, number: int) -> bytes:
        """The block of a frame, as interface 0 and with the view's options."""
        (captured,) = struct.unpack_from(f"{self._order}I", block, 20)
        body = 28 + (captured + 3) // 4 * 4
        options = [
            *self._options(block[body:-4]),
            (_PACKET_ID, struct.pack(f"{self._order}Q", number)),
            *((_COMMENT, comment.encode()) for comment in self._comments.get(number, ())),
        ]
        head, data = block[12:28], block[28:body]
        tail = b"".join(
            struct.pack(f"{self._order}HH", code, len(value)) + value + bytes(-len(value) % 4)
            for code, value in options
        ) + bytes(4)
        total = struct.pack(f"{self._order}I", 12 + 4 + len(head) + len(data) + len(tail))
        return b"".join((block[:4], total, bytes(4), head, data, tail, total))

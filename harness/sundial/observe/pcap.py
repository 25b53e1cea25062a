# SPDX-License-Identifier: Apache-2.0
"""Capture files as blocks: which frame was seen at which interface, and where it is in the file.

Reads pcapng (draft-ietf-opsawg-pcapng: sections of blocks, each with its length in front and behind) and classic pcap
(us and ns, both byte orders). Nothing here looks into a packet; that is tshark's work. What it is needed for: a capture
of a segment holds one frame once for each port, and a dissector that saw them all would take them for retransmissions.
So each interface is given to it as a capture of its own; frames keep the numbers that they have in the original.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.observe.octets import Octets
from sundial.observe.pcapng import (
    ALLOWED,
    BYTE_ORDER,
    INTERFACE,
    SECTION,
    SIMPLE,
    SIMPLE_HEAD,
    bad_file,
    read_blocks,
)

_OPTION_END, _IF_NAME, _IF_TSRESOL, _IF_TSOFFSET = 0, 2, 9, 14
_CLASSIC = {0xA1B2C3D4: 6, 0xA1B23C4D: 9}
"""Magic of a classic file to the digits of its time stamps."""
ETHERNET_LINK = 1
"""LINKTYPE_ETHERNET."""

BLOCK = np.dtype([("offset", "<i8"), *((name, "<u4") for name in ("total", "captured", "original", "head", "number"))])
"""Of a frame: where its block is in the file and how long it is, bytes captured and on the wire, bytes of the
block in front of the packet, frame number."""
Block = tuple[int, int, int, int, int, int]
_PACK = struct.Struct("<qIIIII").pack
_OFFSET, _CAPTURED, _HEAD = 0, 2, 4
_CLASSIC_HEAD = 16
_AT_ONCE = 1 << 13
"""Frames, read one after another, until the memory in which they were read is given back."""
_AT_ONCE_BYTES = 16 << 20
_NO_SNAP = (1 << 32) - 1
_COMPRESSED = {
    b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz",
}  # fmt: skip
"""What files begin with that such a program has compressed."""


@dataclass
class Interface:
    """One interface of a capture. `blocks`: an array of BLOCK."""

    name: str
    link_type: int
    description: bytes
    """The interface's own block as it stands in the file."""
    order: str = "<"
    """struct's sign of the byte order of its section: < or >."""
    blocks: NDArray[np.void] = field(default_factory=lambda: np.empty(0, BLOCK))

    def each(self) -> Iterator[Block]:
        """The blocks one by one."""
        for first in range(0, len(self.blocks), _AT_ONCE):
            yield from self.blocks[first : first + _AT_ONCE].tolist()


@dataclass
class Capture:
    """An open capture file; frames are numbered from 1 as Wireshark does."""

    path: Path
    classic: bool
    interfaces: list[Interface]
    data: mmap.mmap

    @property
    def frames(self) -> int:
        """Frames at all interfaces."""
        return sum(len(interface.blocks) for interface in self.interfaces)

    def close(self) -> None:
        """Close the file."""
        self.data.close()

    def forget(self) -> None:
        """Give back the memory in which the file has been read so far; it is read again where it is needed."""
        self.data.madvise(mmap.MADV_DONTNEED)

    def packet(self, block: Block) -> bytes:
        """The captured bytes of one frame."""
        start = block[_OFFSET] + block[_HEAD]
        return self.data[start : start + block[_CAPTURED]]

    def octets(self, interface: Interface) -> Octets:
        """The captured bytes of all frames of one interface."""
        data = np.memmap(self.path, np.uint8, "r")
        blocks = interface.blocks
        return Octets(data, blocks["offset"] + blocks["head"], blocks["captured"].astype(np.int64))

    def simple(self, interface: Interface) -> NDArray[np.bool_]:
        """Which of its frames are in blocks without time and options."""
        found: NDArray[np.bool_] = interface.blocks["head"] == SIMPLE_HEAD
        return found

    def ticks(self, interface: Interface) -> NDArray[np.int64] | None:
        """Time stamps of its frames, in units of the interface's clock; None if a block has none."""
        data = np.memmap(self.path, np.uint8, "r")
        heads = Octets(data, interface.blocks["offset"], interface.blocks["total"].astype(np.int64)).matrix(0, 20)
        words: NDArray[np.int64] = np.ascontiguousarray(heads).view(f"{interface.order}u4").astype(np.int64)
        if self.classic:
            words[:, 0] *= self.clock(interface)[0]
            return words[:, 0] + words[:, 1]
        if self.simple(interface).any():
            return None
        words[:, 3] <<= 32
        return words[:, 3] + words[:, 4]

    def clock(self, interface: Interface) -> tuple[int, int]:
        """Ticks a second of an interface's clock, and the second in which they begin."""
        if self.classic:
            (magic,) = struct.unpack_from(f"{interface.order}I", self.data)
            return 10 ** _CLASSIC[magic], 0
        resolution = _option(interface.description, interface.order, _IF_TSRESOL) or b"\x06"
        base, exponent = (2, resolution[0] & 0x7F) if resolution[0] & 0x80 else (10, resolution[0])
        offset = _option(interface.description, interface.order, _IF_TSOFFSET)
        return base**exponent, struct.unpack(f"{interface.order}q", offset)[0] if len(offset) == 8 else 0

    def parts(self, interface: Interface, snap: int | None = None) -> Iterator[bytes]:
        """The frames of one interface as a capture of their own, piece by piece, as interface 0.

        With `snap`, frames on Ethernet that carry no TCP are cut to so many bytes (their original length stays in the
        record): a dissector that only needs headers has less to read.
        """
        if self.classic:
            yield self.data[:24]
            yield from (self.data[offset : offset + total] for offset, total, *_ in interface.each())
            return
        yield struct.pack(f"{interface.order}IIIHHqI", SECTION, 28, BYTE_ORDER, 1, 0, -1, 28)
        yield interface.description
        yield from self._blocks(interface, snap if interface.link_type == ETHERNET_LINK else None)

    def _blocks(self, interface: Interface, snap: int | None) -> Iterator[bytes]:
        data = self.data
        zero = bytes(4)
        ends = struct.Struct(f"{interface.order}I")
        for place, (offset, total, captured, _, size, _) in enumerate(interface.each()):
            if place % _AT_ONCE == 0:
                self.forget()
            head = data[offset : offset + size]
            if size == SIMPLE_HEAD:
                yield data[offset : offset + total]
            elif (
                snap is None
                or captured <= snap
                or data[offset + 40 : offset + 42] + data[offset + 51 : offset + 52] == (b"\x08\x00\x06")
            ):
                yield head[:8] + zero + data[offset + 12 : offset + total]
            else:
                options = data[offset + 28 + (captured + 3) // 4 * 4 : offset + total - 4]
                length = ends.pack(32 + snap + len(options))
                packet = data[offset + 28 : offset + 28 + snap]
                yield b"".join(
                    (head[:4], length, zero, head[12:20], ends.pack(snap), head[24:28], packet, options, length)
                )


def open_capture(path: Path) -> Capture:
    """Read the blocks of a capture. Raises BadInput, with the byte offset, where the file is not complete."""
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise BadInput("does not exist", file=str(path), allowed=ALLOWED) from None
    except (OSError, ValueError) as error:
        reason = "the file is empty" if isinstance(error, ValueError) else str(error.strerror)
        raise BadInput(reason, file=str(path), allowed=ALLOWED) from None
    try:
        if len(data) >= 24:
            for order in "<>":
                (magic,) = struct.unpack_from(f"{order}I", data)
                if magic in _CLASSIC:
                    return _open_classic(path, data, order)
            if struct.unpack_from("<I", data) == (SECTION,):
                return _open_pcapng(path, data)
        for begin, program in _COMPRESSED.items():
            if data[: len(begin)] == begin:
                raise BadInput(f"is compressed with {program}", file=str(path), allowed=f"{ALLOWED}, decompressed")
        raise bad_file(path, 0, "neither pcapng nor pcap")
    except BadInput:
        data.close()
        raise


def _open_classic(path: Path, data: mmap.mmap, order: str) -> Capture:
    link_type = struct.unpack_from(f"{order}I", data, 20)[0] & 0x0FFFFFFF
    blocks, number = bytearray(), 0
    header = struct.Struct(f"{order}IIII")
    offset, end, forget = 24, len(data), _AT_ONCE_BYTES
    while offset < end:
        if offset >= forget:
            data.madvise(mmap.MADV_DONTNEED)
            forget = offset + _AT_ONCE_BYTES
        if end - offset < header.size:
            raise bad_file(path, offset, "truncated record header")
        _, _, captured, original = header.unpack_from(data, offset)
        total = header.size + captured
        if offset + total > end:
            raise bad_file(path, offset, "truncated frame")
        number += 1
        blocks += _PACK(offset, total, captured, original, _CLASSIC_HEAD, number)
        offset += total
    return Capture(path, True, [Interface("", link_type, b"", order, np.frombuffer(blocks, BLOCK))], data)


def _open_pcapng(path: Path, data: mmap.mmap) -> Capture:
    interfaces: list[Interface] = []
    snaps: list[int] = []
    blocks: dict[int, list[NDArray[np.void]]] = {}
    for found in read_blocks(path, data):
        order = found.order
        described = found.kind == INTERFACE
        for offset, total in zip(found.offset[described].tolist(), found.total[described].tolist(), strict=True):
            block = data[offset : offset + total]
            link_type, _, snap = struct.unpack_from(f"{order}HHI", block, 8)
            interfaces.append(Interface(interface_name(block, order), link_type, block, order))
            snaps.append(snap or _NO_SNAP)
        frames = np.empty(int(found.frames.sum()), BLOCK)
        for name in frames.dtype.names or ():
            frames[name] = getattr(found, name)[found.frames]
        owner = found.interface[found.frames]
        # A simple block has no length of its own: what is behind the snapshot length is padding.
        simple = found.kind[found.frames] == SIMPLE
        frames["captured"][simple] = np.minimum(frames["captured"], np.array(snaps, np.uint32)[owner])[simple]
        for each in np.unique(owner).tolist():
            blocks.setdefault(each, []).append(frames[owner == each])
    for each, parts in blocks.items():
        interfaces[each].blocks = np.concatenate(parts)
    return Capture(path, False, interfaces, data)


def interface_name(block: bytes, order: str) -> str:
    """The if_name option of an interface block, empty if it has none."""
    return _option(block, order, _IF_NAME).decode(errors="replace")


def _option(block: bytes, order: str, wanted: int) -> bytes:
    """The first such option of an interface block, empty if it has none."""
    offset = 16
    while offset + 4 <= len(block) - 4:
        code, length = struct.unpack_from(f"{order}HH", block, offset)
        if code == _OPTION_END:
            break
        if code == wanted:
            return block[offset + 4 : offset + 4 + length]
        offset += 4 + (length + 3) // 4 * 4
    return b""

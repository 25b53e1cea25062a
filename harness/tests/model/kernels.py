# SPDX-License-Identifier: Apache-2.0
"""Kernels and archives made by hand, from their formats: ELF, Linux's boot protocol, cpio."""

from __future__ import annotations

import struct

ENTRY = 0x100000
"""Where the kernel is loaded and begins."""
UD2 = b"\x0f\x0b"
"""An instruction that is none: without a table of interrupts the machine resets, and so ends."""


def note(kind: int = 18, name: bytes = b"Xen\0") -> bytes:
    return struct.pack("<III", len(name), 8, kind) + name + struct.pack("<Q", ENTRY)


def elf(code: bytes = UD2, notes: bytes | None = None, *, bits: int = 2, machine: int = 62) -> bytes:
    """An executable with one segment of code and one of notes; None: the one that a PVH kernel has."""
    notes = note() if notes is None else notes
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", bytes([0x7F, *b"ELF", bits, 1, 1]), 2, machine, 1, ENTRY, 64, 0, 0, 64, 56, 2, 0, 0, 0
    )
    code_at = 64 + 2 * 56
    notes_at = code_at + len(code)
    load = struct.pack("<IIQQQQQQ", 1, 5, code_at, ENTRY, ENTRY, len(code), len(code), 4096)
    found = struct.pack("<IIQQQQQQ", 4, 4, notes_at, 0, 0, len(notes), len(notes), 4)
    return header + load + found + code + notes


def bz_image(
    *, setup_sectors: int = 2, blocks: int = 64, flags: int = 1, release: str = "6.7.8-own (me@here) #1"
) -> bytes:
    """A bzImage whose parts are empty, of the length that its header says."""
    image = bytearray((setup_sectors + 1) * 512 + 16 * blocks)
    image[0x1F1] = setup_sectors
    struct.pack_into("<I", image, 0x1F4, blocks)
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, 0x20F)
    image[0x211] = flags
    struct.pack_into("<H", image, 0x20E, 0x200)
    words = b"6.7.8-own (me@here) #1\0"
    image[0x400 : 0x400 + len(words)] = words
    return bytes(image)


def newc(entries: dict[str, tuple[int, bytes]]) -> bytes:
    """An archive of modes and contents by path, as in Linux's buffer-format.rst."""

    def padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    archive = b""
    for name, (mode, data) in [*entries.items(), ("TRAILER!!!", (0, b""))]:
        fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name.encode()) + 1, 0]
        header = b"070701" + b"".join(b"%08x" % field for field in fields)
        archive += padded(header + name.encode() + b"\0") + padded(data)
    return archive


FILE, FOLDER, LINK = 0o100644, 0o040755, 0o120777

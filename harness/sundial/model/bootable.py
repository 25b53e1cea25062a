# SPDX-License-Identifier: Apache-2.0
"""Checks that QEMU can start a file as a kernel, and that a kernel can unpack a file as an initrd.

Pure: an open file in, the reason of a refusal out. QEMU itself reports a wrong file only after the start, in a log, and
describes only the last format that it tried.
"""

from __future__ import annotations

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable
from typing import BinaryIO, Protocol

KERNEL_ALLOWED = "an ELF file for x86-64 with a PVH note, or a bzImage"
INITRD_ALLOWED = "a cpio archive (newc), plain or compressed with gzip, bzip2, lzma, xz, lzo, lz4 -l or zstd"
PLAIN_ALLOWED = "a cpio archive (newc) that is not compressed"

_ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_NOTE = struct.Struct("<III")
_ELF64_LITTLE = b"\x7fELF\x02\x01\x01"
_X86_64 = 62
_SEGMENT_LOAD, _SEGMENT_NOTE = 1, 4
_PVH_NOTE = 18
"""XEN_ELFNOTE_PHYS32_ENTRY: the kernel's entry point without a boot loader."""
_NOTES_MOST = 1 << 16

# The setup header: Documentation/arch/x86/boot.rst of Linux.
_SETUP_SECTORS, _SYSTEM_SIZE, _SETUP_MAGIC, _VERSION_AT, _LOAD_FLAGS = 0x1F1, 0x1F4, 0x202, 0x20E, 0x211
_SECTOR = 512

_CPIO = b"070701"
_ODD_CPIO = {b"070702": "with checksums", b"070707": "of the old kind", b"\xc7\x71": "of the oldest kind"}
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x5d\x00\x00": "lzma",
    b"\xfd7zXZ\x00": "xz",
    b"\x89LZO": "lzo",
    b"\x02\x21\x4c\x18": "lz4",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""Compressions that Linux unpacks, by their first bytes."""
_LZ4_FRAME = b"\x04\x22\x4d\x18"


class Unpacker(Protocol):
    """Decompressors of the standard library; each stops at the end of the compressed data."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


UNPACKERS: dict[str, Callable[[], Unpacker]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bzip2": bz2.BZ2Decompressor,
    "lzma": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE),
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}
DAMAGES = (zlib.error, lzma.LZMAError, OSError, EOFError)
"""Their exceptions."""


def kernel_fault(file: BinaryIO, size: int) -> str | None:
    """The reason why QEMU does not start the file of `size` bytes; None: it does."""
    head = _at(file, 0, 1024)
    if head.startswith(b"\x7fELF"):
        return _elf_fault(file, head, size)
    if head[_SETUP_MAGIC : _SETUP_MAGIC + 4] != b"HdrS":
        return "is neither an ELF file nor a bzImage"
    (blocks,) = struct.unpack_from("<I", head, _SYSTEM_SIZE)
    whole = ((head[_SETUP_SECTORS] or 4) + 1) * _SECTOR + 16 * blocks
    # The last paragraph of 16 bytes may be incomplete.
    if size <= whole - 16:
        return f"is a bzImage of {whole} bytes that is cut off at {size}"
    return None if head[_LOAD_FLAGS] & 1 else "is a zImage, which QEMU does not start"


def kernel_release(data: bytes) -> str | None:
    """The release of a Linux kernel (uname -r), if its file has it uncompressed."""
    if data[_SETUP_MAGIC : _SETUP_MAGIC + 4] == b"HdrS":
        (at,) = struct.unpack_from("<H", data, _VERSION_AT)
        words = data[at + _SECTOR : at + _SECTOR + 256].split(b"\0")[0].split() if at else []
        return words[0].decode("ascii", "replace") if words else None
    found = re.search(rb"Linux version ([0-9][!-~]{0,63}) ", data)
    return found[1].decode() if found else None


def initrd_fault(file: BinaryIO, *, compressed: bool) -> str | None:
    """The reason why the kernel does not unpack the file; None: it does. `compressed`: it unpacks compressed files."""
    head = _at(file, 0, 1 << 16)
    if head.startswith(_CPIO):
        return None
    for magic, how in _ODD_CPIO.items():
        if head.startswith(magic):
            return f"is a cpio archive {how}, which cpio -H newc does not write"
    if head.startswith(_LZ4_FRAME):
        return "is lz4 in its frame format, which no kernel unpacks"
    packed = compression(head)
    if packed is None:
        return "is neither a cpio archive nor compressed in a format that Linux unpacks"
    if not compressed:
        return f"is compressed ({packed}), which the image's kernel does not unpack"
    return None if packed not in UNPACKERS else _inside_fault(packed, head)


def compression(head: bytes) -> str | None:
    """Compression of data that begins with `head`; None: not one that Linux unpacks."""
    return next((how for magic, how in _COMPRESSED.items() if head.startswith(magic)), None)


def _inside_fault(packed: str, head: bytes) -> str | None:
    try:
        inside = UNPACKERS[packed]().decompress(head, len(_CPIO))
    except DAMAGES as error:
        return f"is damaged ({packed}): {error}"
    # A bzip2 block may be longer than what was read.
    return f"is {packed} of something that is not a cpio archive" if inside and not inside.startswith(_CPIO) else None


def _elf_fault(file: BinaryIO, head: bytes, size: int) -> str | None:
    if len(head) < _ELF_HEADER.size:
        return "is an ELF file that is cut off"
    ident, _, machine, _, _, segments_at, _, _, _, segment_bytes, count, *_ = _ELF_HEADER.unpack_from(head)
    if not ident.startswith(_ELF64_LITTLE) or machine != _X86_64:
        return "is an ELF file for another processor"
    table = _at(file, segments_at, count * _SEGMENT.size)
    if segment_bytes != _SEGMENT.size or len(table) < count * _SEGMENT.size:
        return "is an ELF file that is cut off"
    has_note = False
    for kind, _, offset, _, _, length, _, _ in _SEGMENT.iter_unpack(table):
        if kind in (_SEGMENT_LOAD, _SEGMENT_NOTE) and offset + length > size:
            return "is an ELF file that is cut off"
        has_note |= kind == _SEGMENT_NOTE and _holds_pvh_note(_at(file, offset, min(length, _NOTES_MOST)))
    return None if has_note else "is an ELF file without a PVH note (of Linux: CONFIG_PVH=y)"


def _holds_pvh_note(notes: bytes) -> bool:
    place = 0
    while place + _NOTE.size <= len(notes):
        name_size, value_size, kind = _NOTE.unpack_from(notes, place)
        name_at = place + _NOTE.size
        if kind == _PVH_NOTE and notes[name_at : name_at + name_size] == b"Xen\0":
            return True
        place = name_at + _aligned(name_size) + _aligned(value_size)
    return False


def _aligned(size: int) -> int:
    return (size + 3) & ~3


def _at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Up to `size` bytes from `offset`: fewer at the end of the file, none at an invalid offset."""
    if offset >= 1 << 63:
        return b""
    file.seek(offset)
    return file.read(size)

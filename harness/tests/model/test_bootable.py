# SPDX-License-Identifier: Apache-2.0
"""Which files QEMU starts as kernels, and which kernels unpack."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import pytest

from sundial.model.bootable import initrd_fault, kernel_fault, kernel_release
from tests.model.kernels import FILE, bz_image, elf, newc, note

ARCHIVE = newc({"init": (FILE, b"#!/bin/sh\n")})
OTHER_NOTES = note(kind=1) + note(name=b"GNU\0")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (elf(), None),
        (elf(notes=OTHER_NOTES + note()), None),
        (bz_image(), None),
        (bz_image() + b"signature", None),
        (bz_image()[:-15], None),
        (b"", "is neither an ELF file nor a bzImage"),
        (b"#!/bin/sh\n" * 100, "is neither an ELF file nor a bzImage"),
        (gzip.compress(elf(), mtime=0), "is neither an ELF file nor a bzImage"),
        (elf(notes=b""), "is an ELF file without a PVH note (of Linux: CONFIG_PVH=y)"),
        (elf(notes=OTHER_NOTES), "is an ELF file without a PVH note (of Linux: CONFIG_PVH=y)"),
        (elf(notes=note()[:7]), "is an ELF file without a PVH note (of Linux: CONFIG_PVH=y)"),
        (elf(machine=183), "is an ELF file for another processor"),
        (elf(bits=1, machine=3), "is an ELF file for another processor"),
        (elf()[:-1], "is an ELF file that is cut off"),
        (elf()[:100], "is an ELF file that is cut off"),
        (elf()[:20], "is an ELF file that is cut off"),
        (bz_image(flags=0), "is a zImage, which QEMU does not start"),
        (bz_image()[:-16], "is a bzImage of 2560 bytes that is cut off at 2544"),
        (bz_image()[:0x210], "is a bzImage of 2560 bytes that is cut off at 528"),
    ],
)
def test_kernels(data: bytes, fault: str | None) -> None:
    assert kernel_fault(io.BytesIO(data), len(data)) == fault


def test_junk_in_a_kernels_header_is_a_fault_and_no_crash() -> None:
    whole = elf()
    for place in range(64, 64 + 2 * 56):
        for byte in (0x00, 0x7F, 0xFF):
            data = whole[:place] + bytes([byte]) + whole[place + 1 :]
            kernel_fault(io.BytesIO(data), len(data))
    for place in range(16, 64):
        data = whole[:place] + b"\xff" + whole[place + 1 :]
        kernel_fault(io.BytesIO(data), len(data))


def test_what_a_kernel_calls_itself() -> None:
    assert kernel_release(bz_image()) == "6.7.8-own"
    assert kernel_release(elf(code=b"\0Linux version 6.1.2-mine (gcc) #1\0")) == "6.1.2-mine"
    assert kernel_release(elf(code=b"\0Linux version %s (%s@%s)\0")) is None
    assert kernel_release(elf()) is None


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (ARCHIVE, None),
        (gzip.compress(ARCHIVE, mtime=0), None),
        (bz2.compress(ARCHIVE), None),
        (lzma.compress(ARCHIVE), None),
        (lzma.compress(ARCHIVE, lzma.FORMAT_ALONE), None),
        (b"\x02\x21\x4c\x18 lz4", None),
        (b"\x28\xb5\x2f\xfd zstd", None),
        (gzip.compress(b"text", mtime=0), "is gzip of something that is not a cpio archive"),
        (
            gzip.compress(ARCHIVE, mtime=0)[:2] + b"xxxxxxxxxxxxxxxxxxxx",
            "is damaged (gzip): Error -3 while decompressing data: ",
        ),
        (b"\x04\x22\x4d\x18", "is lz4 in its frame format, which no kernel unpacks"),
        (b"070707", "is a cpio archive of the old kind, which cpio -H newc does not write"),
        (b"", "is neither a cpio archive nor compressed in a format that Linux unpacks"),
        (b"PK\x03\x04", "is neither a cpio archive nor compressed in a format that Linux unpacks"),
    ],
)
def test_initrds(data: bytes, fault: str | None) -> None:
    found = initrd_fault(io.BytesIO(data), compressed=True)
    assert found == fault or (fault is not None and fault.endswith(": ") and str(found).startswith(fault))


def test_a_kernel_that_unpacks_nothing_wants_the_archive_itself() -> None:
    assert initrd_fault(io.BytesIO(ARCHIVE), compressed=False) is None
    fault = initrd_fault(io.BytesIO(gzip.compress(ARCHIVE, mtime=0)), compressed=False)
    assert fault == "is compressed (gzip), which the image's kernel does not unpack"

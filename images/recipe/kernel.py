# SPDX-License-Identifier: Apache-2.0
"""The uncompressed kernel inside a bzImage, so that no guest spends its time on decompressing it.

Layout: the setup header in Documentation/x86/boot.rst of the kernel.
"""

import struct

from recipe import unpacking
from recipe.elf import Elf, is_elf
from recipe.errors import RecipeError

_SETUP_SECTS = 0x1F1
_HEADER_MAGIC = 0x202
_PAYLOAD = 0x248
_SECTOR = 512


def extract_vmlinux(image: bytes) -> bytes:
    """The ELF kernel of a bzImage; checked to have the PVH entry that QEMU starts it by."""
    if struct.unpack_from("<I", image, _HEADER_MAGIC)[0] != 0x53726448:  # "HdrS"
        raise RecipeError("kernel: not a bzImage")
    sectors = image[_SETUP_SECTS] or 4
    offset, length = struct.unpack_from("<II", image, _PAYLOAD)
    start = (sectors + 1) * _SECTOR + offset
    payload = image[start : start + length]
    # The kernel's build appends the decoded length to the payload.
    (expected,) = struct.unpack_from("<I", payload, length - 4)
    vmlinux = unpacking.unpack(payload[:-4], "kernel")
    if len(vmlinux) != expected:
        raise RecipeError(f"kernel: decoded {len(vmlinux)} bytes, expected {expected}")
    if not is_elf(vmlinux) or not Elf(vmlinux).has_pvh_entry():
        raise RecipeError("kernel: has no PVH entry (CONFIG_PVH)")
    return vmlinux

# SPDX-License-Identifier: Apache-2.0
"""Kernels and modules as distributions compress them: LZ4, Zstandard, xz or gzip, recognized by their first bytes."""

import gzip
import lzma
import subprocess

from recipe import lz4
from recipe.errors import HostLacks, RecipeError


def unpack(data: bytes, what: str) -> bytes:
    """`data` uncompressed, or as it is where it is an ELF file. Raises RecipeError, which names it `what`."""
    for magic, program in _PROGRAMS.items():
        if data.startswith(magic):
            try:
                return program(data)
            except (lzma.LZMAError, OSError, EOFError) as error:
                raise RecipeError(f"{what}: cannot be uncompressed: {error}") from error
    raise RecipeError(f"{what}: not compressed by LZ4, Zstandard, xz or gzip (it begins with {data[:4].hex()})")


def _zstd(data: bytes) -> bytes:
    try:
        done = subprocess.run(["zstd", "-dcq"], input=data, capture_output=True, check=False)
    except FileNotFoundError:
        raise HostLacks("packages missing on this host: zstd") from None
    if done.returncode != 0:
        raise RecipeError(f"zstd: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


_PROGRAMS = {
    b"\x7fELF": bytes,
    b"\x02\x21\x4c\x18": lz4.decompress,
    b"\x28\xb5\x2f\xfd": _zstd,
    b"\xfd7zXZ\x00": lzma.decompress,
    b"\x1f\x8b": gzip.decompress,
}

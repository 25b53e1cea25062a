# SPDX-License-Identifier: Apache-2.0
"""LZ4 in its legacy frame (the bzImage's and the runner's extras), by the lz4 tool."""

import subprocess

from recipe.errors import HostLacks, RecipeError


def _run(arguments: list[str], data: bytes) -> bytes:
    try:
        done = subprocess.run(["lz4", *arguments, "-c"], input=data, capture_output=True, check=False)
    except FileNotFoundError:
        raise HostLacks("packages missing on this host: lz4") from None
    if done.returncode != 0:
        raise RecipeError(f"lz4: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def compress(data: bytes) -> bytes:
    return _run(["-l", "-9"], data)


def decompress(data: bytes) -> bytes:
    return _run(["-d"], data)

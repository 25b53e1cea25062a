# SPDX-License-Identifier: Apache-2.0
"""What a kernel's configuration says of it."""

import re

from recipe.errors import RecipeError

_UNPACKERS = {name.upper(): name for name in ("gzip", "bzip2", "lzma", "xz", "lzo", "lz4", "zstd")}


def unpacks(config: str) -> list[str]:
    """How an initrd may be compressed for a kernel with this configuration."""
    return [_UNPACKERS[name] for name in re.findall(r"^CONFIG_RD_(\w+)=y$", config, re.MULTILINE) if name in _UNPACKERS]


def hz(config: str) -> int:
    """Ticks a second of a kernel with this configuration."""
    found = re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)
    if found is None:
        raise RecipeError("the kernel's configuration has no CONFIG_HZ")
    return int(found[1])

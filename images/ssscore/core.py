# SPDX-License-Identifier: Apache-2.0
"""What both recipes say of SSS-CORE, from its sources."""

import re
from pathlib import Path

from recipe.errors import RecipeError
from recipe.image import CHECKOUT

SOURCES = CHECKOUT / "guest-apps/sss-core"
KERNEL = "ssscore"
"""The kernel's file as make leaves it."""


def release() -> str:
    """What the kernel calls itself in its hello."""
    text = (SOURCES / "kernel/main.c").read_text()
    found = re.search(r'#define SSS_VERSION\s+"([^"]+)"', text)
    if found is None:
        raise RecipeError("guest-apps/sss-core/kernel/main.c defines no SSS_VERSION")
    return f"sss-core {found[1]}"


def tasks() -> list[str]:
    """The programs in its archive: one for each source of the folder, as the Makefile has it."""
    return sorted(path.stem for path in (SOURCES / "tasks").glob("*.c"))


def programs(made: Path) -> dict[str, tuple[bytes, bytes]]:
    """Kernel and tasks from what make left: as the image has them, and with their symbols."""
    paths = {KERNEL: made / KERNEL, **{name: made / "bin" / name for name in tasks()}}
    return {
        name: (path.read_bytes(), (made / "symbols" / path.relative_to(made)).read_bytes())
        for name, path in paths.items()
    }

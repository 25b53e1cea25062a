# SPDX-License-Identifier: Apache-2.0
"""What both recipes say of SSS-CORE, from its sources."""

import re

from recipe.errors import RecipeError
from recipe.image import CHECKOUT

SOURCES = CHECKOUT / "guest-apps/sss-core"


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

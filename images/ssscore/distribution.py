# SPDX-License-Identifier: Apache-2.0
"""The SSS-CORE image: the kernel of guest-apps/sss-core with lwIP, and an archive of its tasks."""

import re

from recipe import sources
from recipe.errors import RecipeError
from recipe.image import CHECKOUT, Contents, Workspace, run_make

SOURCES = CHECKOUT / "guest-apps/sss-core"
LWIP_PACKAGE = "lwip"

DEVELOPMENT_FILES = [
    ("/usr/bin/rpcgen", "rpcsvc-proto"),
    ("/usr/bin/gcc", "gcc"),
    ("/usr/bin/make", "make"),
    ("/usr/bin/objcopy", "binutils"),
    ("/usr/bin/patch", "patch"),
    ("/usr/bin/xz", "xz-utils"),
]


def make(workspace: Workspace) -> Contents:
    description = sources.download(LWIP_PACKAGE, workspace.cache)
    lwip, made = workspace.scratch / "lwip", workspace.scratch / "made"
    sources.unpack(description, lwip)
    run_make(SOURCES, OUT=made, LWIP=lwip)
    return Contents(
        kernel=(made / "ssscore").read_bytes(),
        initrd=(made / "tasks.cpio").read_bytes(),
        kernel_release=_release(),
        cmdline="",
        packages=[
            {"name": LWIP_PACKAGE, "source": name, "sha256": digest}
            for name, digest in sources.listed_files(description.read_text()).items()
        ],
        facts={"tasks": sorted(task.name for task in (made / "bin").iterdir())},
    )


def _release() -> str:
    """What the kernel calls itself in its hello."""
    text = (SOURCES / "kernel/main.c").read_text()
    found = re.search(r'#define SSS_VERSION\s+"([^"]+)"', text)
    if found is None:
        raise RecipeError("guest-apps/sss-core/kernel/main.c defines no SSS_VERSION")
    return f"sss-core {found[1]}"

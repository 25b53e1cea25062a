# SPDX-License-Identifier: Apache-2.0
"""The recipe `distribution`: guest-apps/sss-core by the host's compiler, with the distribution's source of lwIP."""

from recipe import sources
from recipe.image import Contents, Workspace, run_make
from ssscore import core

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
    run_make(core.SOURCES, OUT=made, LWIP=lwip)
    return Contents(
        kernel=(made / "ssscore").read_bytes(),
        initrd=(made / "tasks.cpio").read_bytes(),
        kernel_release=core.release(),
        cmdline="",
        packages=[
            {"name": LWIP_PACKAGE, "source": name, "sha256": digest}
            for name, digest in sources.listed_files(description.read_text()).items()
        ],
        facts={"tasks": core.tasks()},
    )

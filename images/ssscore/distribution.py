# SPDX-License-Identifier: Apache-2.0
"""The recipe `distribution`: guest-apps/sss-core by the host's compiler, with the distribution's source of lwIP."""

from recipe import sources, symbols
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
    programs = core.programs(made)
    return Contents(
        kernel=programs[core.KERNEL][0],
        initrd=(made / "tasks.cpio").read_bytes(),
        kernel_release=core.release(),
        cmdline="",
        packages=[
            {"name": LWIP_PACKAGE, "source": name, "sha256": digest}
            for name, digest in sources.listed_files(description.read_text()).items()
        ],
        facts={"tasks": core.tasks(), "programs": symbols.digests(programs)},
        beside={symbols.FILE: symbols.document(programs, {name: name for name in core.tasks()}, core.KERNEL)},
    )

# SPDX-License-Identifier: Apache-2.0
"""The recipe `buildroot`: kernel and root from a Buildroot release, all static."""

from linux.tuned import COMMAND_LINE
from recipe import buildroot, kernel_config, release
from recipe.image import Contents, Workspace

DEVELOPMENT_FILES = buildroot.DEVELOPMENT_FILES


def make(workspace: Workspace) -> Contents:
    built = buildroot.build(workspace)
    folder = built.images / "linux"
    kernel = (folder / "kernel").read_bytes()
    config = (folder / "config").read_text()
    return Contents(
        kernel=kernel,
        initrd=(folder / "initrd").read_bytes(),
        kernel_release=release.kernel_release(kernel),
        cmdline=COMMAND_LINE,
        packages=release.package_list(built.info),
        facts=built.facts | {"hz": kernel_config.hz(config), "unpacks": kernel_config.unpacks(config)},
        compiler=built.compiler,
        beside=built.beside,
    )

# SPDX-License-Identifier: Apache-2.0
"""The recipe `buildroot`: the package sss-core, from the same build as the image linux."""

from recipe import buildroot, release
from recipe.image import Contents, Workspace
from ssscore import core

DEVELOPMENT_FILES = buildroot.DEVELOPMENT_FILES


def make(workspace: Workspace) -> Contents:
    built = buildroot.build(workspace)
    folder = built.images / "ssscore"
    return Contents(
        kernel=(folder / "kernel").read_bytes(),
        initrd=(folder / "initrd").read_bytes(),
        kernel_release=core.release(),
        cmdline="",
        packages=release.package_list(built.info, ["sss-core"]),
        facts={**built.facts, "tasks": core.tasks()},
        compiler=built.compiler,
        beside=built.beside,
    )

# SPDX-License-Identifier: Apache-2.0
"""Modules of an image's kernel in a root, beside those of the image: their files, and their lines in what modprobe
reads. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping

from sundial.machines.tree import BadTree, Tree, file, place

MODULES_DEP = "modules.dep"


def add_modules(tree: Tree, files: Mapping[str, bytes], dep: str, replacing: Collection[str] = ()) -> None:
    """Add modules (`NAME.ko`) with their lines of modules.dep to where the image has its own, which stay, except
    those of `replacing`. Raises BadTree."""
    indices = sorted(path for path in tree if _is_index(path))
    if len(indices) != 1:
        raise BadTree(f"the image has {len(indices)} kernels with modules, and modules need one")
    folder = posixpath.dirname(indices[0])
    index = tree[indices[0]].read().decode()
    known = {line.partition(":")[0] for line in index.splitlines()}
    for name, data in files.items():
        where = place(tree, f"{folder}/{name}")
        if where not in tree or name.removesuffix(".ko") in replacing:
            tree[where] = file(data)
    lines = [line for line in dep.splitlines() if line.partition(":")[0] not in known]
    tree[indices[0]] = file((index + "".join(f"{line}\n" for line in lines)).encode())


def _is_index(path: str) -> bool:
    """lib/modules/RELEASE/modules.dep, wherever /lib leads to."""
    parts = path.split("/")
    return parts[-1] == MODULES_DEP and parts[-4:-2] == ["lib", "modules"]

# SPDX-License-Identifier: Apache-2.0
"""Modules of a kernel in a tree."""

import pytest

from sundial.machines.rootmodules import add_modules
from sundial.machines.tree import BadTree, Tree, file, folder, link


def test_modules_are_added_through_links_and_those_of_the_image_stay() -> None:
    tree: Tree = {"usr/lib/modules/6.1/modules.dep": file(b"a.ko:\n"), "usr/lib/modules/6.1/a.ko": file(b"old")}
    tree |= {"lib": link("usr/lib"), "usr": folder(), "usr/lib": folder()}
    add_modules(tree, {"a.ko": b"new", "b.ko": b"b"}, "a.ko: x.ko\nb.ko: a.ko\n")
    assert tree["usr/lib/modules/6.1/modules.dep"].read() == b"a.ko:\nb.ko: a.ko\n"
    assert tree["usr/lib/modules/6.1/a.ko"].read() == b"old"
    assert tree["usr/lib/modules/6.1/b.ko"].read() == b"b"


def test_a_module_of_the_image_can_be_replaced() -> None:
    tree: Tree = {"lib": folder(), "lib/modules": folder(), "lib/modules/6.1": folder()}
    tree |= {f"lib/modules/6.1/{name}": file(b"old") for name in ("modules.dep", "a.ko", "b.ko")}
    add_modules(tree, {"a.ko": b"new", "b.ko": b"new"}, "", replacing=["a"])
    assert [tree[f"lib/modules/6.1/{name}.ko"].read() for name in "ab"] == [b"new", b"old"]


@pytest.mark.parametrize("releases", [[], ["6.1", "6.2"]])
def test_modules_need_one_kernel(releases: list[str]) -> None:
    tree: Tree = {f"lib/modules/{each}/modules.dep": file(b"") for each in releases}
    with pytest.raises(BadTree, match=f"{len(releases)} kernels with modules"):
        add_modules(tree, {}, "")

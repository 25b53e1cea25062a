# SPDX-License-Identifier: Apache-2.0
"""The copies of this folder's tests, one for all of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kinds.tree import Tree, copy_checkout

PRETENDED_RECIPE = """#!/bin/sh
name=$(basename "$PWD")
recipe=own
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --recipe) recipe=$2 ;; esac
    shift
done
mkdir -p "$out" && cd "$out" && echo kernel > kernel && echo initrd > initrd
sum() { sha256sum "$1" | cut -d' ' -f1; }
echo '{"version": 1, "name": "'"$name"'", "recipe": "'"$recipe"'", "kernel_release": "6.1-toy", "cmdline": "quiet",
 "sha256": {"kernel": "'"$(sum kernel)"'", "initrd": "'"$(sum initrd)"'"}}' > manifest.json
"""
"""Instead of images/*/build: an image without the minute that compiling takes."""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """For tests without machines: images are built of a few words, plugin and fabric are only there."""
    made = copy_checkout(tmp_path_factory.mktemp("tree") / "sundial")
    for build in (made.root / "images").glob("*/build"):
        build.write_text(PRETENDED_RECIPE)
    fabric = made.root / "harness" / "fabric" / "target" / "release" / "sundial-fabric"
    fabric.parent.mkdir(parents=True)
    fabric.write_text("fabric\n")
    assert made.sundial("images", "build", "toy").stdout.startswith("toy  own  kernel ")
    return made


@pytest.fixture
def out(tree: Tree, request: pytest.FixtureRequest) -> Path:
    """A run directory that does not exist yet."""
    folder: Path = tree.root / "captures" / request.node.name
    folder.parent.mkdir(exist_ok=True)
    return folder

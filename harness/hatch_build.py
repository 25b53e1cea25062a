# SPDX-License-Identifier: Apache-2.0
"""What makes a wheel run without a checkout: the programs, built here, and the files that come with Sundial.

They are laid into `sundial/tree` as they are in a checkout; `sundial/model/catalog.py` finds them there.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDERS = (
    "topologies",
    "images",
    "guest-apps",
    "buildroot-configs",
    "harness/scenarios",
    "harness/schemas",
    "harness/wireshark",
    "harness/clock",
    "LICENSE",
)
"""With the sources of the plugin and of the guests' programs, which its licence and the recipes of images ask for."""
PROGRAMS = (
    "harness/clock/build/sundial-clock.so",
    "harness/confine/build/sundial-confine",
    "harness/fabric/target/release/sundial-fabric",
)
LEAVINGS = {"build", "out", "target", "tests", "__pycache__"}
"""Folders of which nothing is packed."""


class Tree(BuildHookInterface):
    """Called by hatchling."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root).parent
        build(root)
        commit = root / ".sundial" / "commit"
        commit.parent.mkdir(exist_ok=True)
        commit.write_text(commit_of(root))
        included = {str(root / name): f"sundial/tree/{name}" for name in (*packed(root), *PROGRAMS)}
        build_data["force_include"].update(included | {str(commit): "sundial/tree/commit"})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"


def build(root: Path) -> None:
    """Raises CalledProcessError."""
    harness = root / "harness"
    for command in (
        ["make", "-s", "-C", "clock"],
        ["make", "-s", "-C", "confine"],
        ["./fabric/cargo.sh", "build", "--quiet", "--release", "--locked", "--manifest-path", "fabric/Cargo.toml"],
    ):
        subprocess.run(command, cwd=harness, check=True)


def packed(root: Path) -> Iterator[str]:
    """Names of files relative to `root`, without what builds and tools leave there."""
    for name in FOLDERS:
        if (root / name).is_file():
            yield name
        for folder, folders, files in os.walk(root / name):
            folders[:] = sorted(each for each in folders if each not in LEAVINGS and not each.startswith("."))
            yield from (str((Path(folder) / each).relative_to(root)) for each in sorted(files) if each[0] != ".")


def commit_of(root: Path) -> str:
    """SUNDIAL_COMMIT, else git's; empty where `root` is not a repository."""
    if named := os.environ.get("SUNDIAL_COMMIT"):
        return named
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if (root / ".git").exists() else ""

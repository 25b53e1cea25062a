# SPDX-License-Identifier: Apache-2.0
"""A copy of the checkout in which faults are planted: its last commit, and what was built of it."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planted.faults import Fault

BUILT = (
    ".sundial",
    "images/out",
    "harness/fabric/target",
    "harness/clock/build",
    "harness/confine/build",
    "guest-apps/sss-core/build",
)
"""Folders of builds, copied where they are there: what builds write into must not be shared."""
VENV = ".venv"
STAMP = ".sundial/setup/python"
"""Of harness/setup.sh: what the environment was made for."""
_PATHS = "lib/python*/site-packages"


class Scratch:
    """One copy; commands run in it as in the checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """The copy with a fault in it, and afterwards without: make and cargo see both as changes of the file."""
        path = self.root / fault.file
        sound = path.read_text()
        path.write_text(fault.planted(sound))
        try:
            yield
        finally:
            _wait_for_another_second(path.stat().st_mtime)
            path.write_text(sound)


def _wait_for_another_second(before: float) -> None:
    """Python compares whole seconds and sizes, and would take the faulty module for the sound one."""
    while int(time.time()) <= int(before):
        time.sleep(0.05)


def make_scratch(checkout: Path, root: Path) -> Scratch:
    """A copy at `root`, which does not exist yet."""
    subprocess.run(["git", "clone", "-q", str(checkout), str(root)], check=True)
    _keep_times(checkout, root)
    for folder in BUILT:
        if (checkout / folder).is_dir():
            (root / folder).parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cp", "-a", "--reflink=auto", str(checkout / folder), str(root / folder)], check=True)
    _copy_venv(checkout, root)
    return Scratch(root)


def _keep_times(checkout: Path, root: Path) -> None:
    """Files that are the same have the same times, so that nothing is built again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        here, there = checkout / name, root / name
        if here.is_file() and not there.is_symlink() and filecmp.cmp(here, there, shallow=False):
            status = here.stat()
            os.utime(there, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_venv(checkout: Path, root: Path) -> None:
    """The Python environment as links to the same files; `sundial` is imported from the copy, and set-up takes it for
    the copy's own."""
    shutil.copytree(checkout / VENV, root / VENV, symlinks=True, copy_function=_link)
    for path in (*(root / VENV).glob(f"{_PATHS}/*.pth"), root / STAMP):
        if path.is_file():
            text = path.read_text().replace(str(checkout), str(root))
            path.unlink()
            path.write_text(text)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)

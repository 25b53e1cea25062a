# SPDX-License-Identifier: Apache-2.0
"""`sundial --version`: Sundial, the commit that it was built from, and the parts that a run uses."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from sundial import __version__
from sundial.machines.connection import qemu_version
from sundial.machines.seals import Book
from sundial.model.catalog import COMMIT, ROOT
from sundial.run.places import Places, tool_version

TOOL_S = 2.0
PLACES = Places()
PLUGIN_NUMBER = re.compile(rb"sundial-clock (\d+\.\d+\.\d+)\0")
UNKNOWN = "not found"


def text() -> str:
    """The versions, a line each. Programs that take long to answer are asked once."""
    programs = Book(PLACES.programs)
    with ThreadPoolExecutor() as pool:
        parts: dict[str, Future[str | None]] = {
            "fabric": pool.submit(_fabric, PLACES.fabric),
            "plugin": pool.submit(_plugin, PLACES.plugin),
            "QEMU": pool.submit(qemu_version, programs),
            "tshark": pool.submit(tool_version, "tshark", programs),
            "libvirt": pool.submit(_libvirt),
        }
        commit = _commit(ROOT)
        lines = [f"{name:<8} {found.result() or UNKNOWN}" for name, found in parts.items()]
    return "\n".join([f"sundial  {__version__}{f' ({commit})' if commit else ''}", *lines])


def _fabric(path: Path) -> str | None:
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.split()[-1] if done.returncode == 0 else None


def _plugin(path: Path) -> str | None:
    try:
        found = PLUGIN_NUMBER.search(path.read_bytes())
    except OSError:
        return None
    return found[1].decode() if found else None


def _libvirt() -> str | None:
    try:
        number = int(import_module("libvirt").getVersion())
    except ImportError:
        return None
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"


def _commit(root: Path) -> str | None:
    """That of an installed package stands in a file; `-dirty` behind that of a checkout with changes."""
    try:
        return (root / COMMIT).read_text().strip() or None
    except OSError:
        pass
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None

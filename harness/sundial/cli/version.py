# SPDX-License-Identifier: Apache-2.0
"""`sundial --version`: Sundial, the commit that it was built from, and the parts that a run uses."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import click

from sundial import __version__
from sundial.model.catalog import COMMIT, FABRIC, PLUGIN, ROOT

TOOL_S = 2.0
NUMBER = re.compile(r"\d+\.\d+\.\d+")
PLUGIN_NUMBER = re.compile(rb"sundial-clock (\d+\.\d+\.\d+)\0")
UNKNOWN = "not found"


def show(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    """The option's callback."""
    if asked and not ctx.resilient_parsing:
        click.echo(text())
        ctx.exit()


def text() -> str:
    """The versions, a line each."""
    with ThreadPoolExecutor() as pool:
        parts = {
            "fabric": pool.submit(_program, [str(ROOT / FABRIC), "--version"]),
            "plugin": pool.submit(_plugin, ROOT / PLUGIN),
            "QEMU": pool.submit(_program, ["qemu-system-x86_64", "--version"]),
            "tshark": pool.submit(_program, ["tshark", "--version"]),
            "libvirt": pool.submit(_libvirt),
        }
        commit = _commit(ROOT)
        lines = [f"{name:<8} {found.result() or UNKNOWN}" for name, found in parts.items()]
    return "\n".join([f"sundial  {__version__}{f' ({commit})' if commit else ''}", *lines])


def _program(command: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = NUMBER.search(done.stdout)
    return found[0] if found else None


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

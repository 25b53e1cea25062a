# SPDX-License-Identifier: Apache-2.0
"""The private, short folder of one harness process: libvirt's root, sockets, jobs. Gone when the process is.

Paths of unix sockets end at 107 bytes, and libvirt puts its own beneath this folder, so the names are short.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

from sundial.errors import HostLacks
from sundial.machines import reaper

LONGEST_BASE = 40
OWNER = "owner.json"


def default_base(environment: dict[str, str] | None = None, user: int | None = None) -> Path:
    """Where runtime folders live: `$XDG_RUNTIME_DIR/sundial` if short enough, else `/tmp/sundial-UID`.

    Root always gets the second: libvirt opens its embedded driver there as another user (see `connection`), and
    root's own runtime folder cannot be entered by others.
    """
    variables = dict(os.environ) if environment is None else environment
    uid = os.geteuid() if user is None else user
    own = variables.get("XDG_RUNTIME_DIR", "")
    if uid != 0 and own and len(own) + len("/sundial") <= LONGEST_BASE and Path(own).is_dir():
        return Path(own) / "sundial"
    return Path(f"/tmp/sundial-{uid}")


class RuntimeFolder:
    """One process's folder; `token` is what its processes carry in their command lines."""

    def __init__(self, base: Path | None = None) -> None:
        parent = default_base() if base is None else base
        _prepare_base(parent)
        for stale in stale_folders(parent):
            clear(stale)
        while True:
            path = parent / secrets.token_hex(3)
            try:
                path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700)
            except FileExistsError:
                continue
            break
        self.path = path
        self.token = f"sundial-{secrets.token_hex(6)}"
        started = reaper.start_time(os.getpid())
        record = {"pid": os.getpid(), "started": started, "token": self.token, **_here()}
        (path / OWNER).touch(mode=0o600)
        (path / OWNER).write_text(json.dumps(record) + "\n")

    def folder(self, name: str) -> Path:
        """A new folder inside, for one run; no other user may look into it."""
        path = self.path / name
        path.mkdir(mode=0o700)
        return path

    def is_alone(self) -> bool:
        """Whether no other process has such a folder, and so machines perhaps."""
        parent = self.path.parent
        others = {path for path in parent.iterdir() if path != self.path and (path / OWNER).exists()}
        return others <= set(stale_folders(parent))

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def stale_folders(parent: Path) -> list[Path]:
    """Folders whose process is gone and whose guard was killed too (or the host lost power)."""
    stale = []
    for path in sorted(parent.iterdir()):
        try:
            owner = json.loads((path / OWNER).read_text())
            pid, started, boot, pids = int(owner["pid"]), owner["started"], owner["boot"], owner["pids"]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        here = _here()
        # Of another container that shares this folder but not its processes nothing is known.
        if boot != here["boot"] or (pids == here["pids"] and reaper.start_time(pid) != started):
            stale.append(path)
    return stale


def _here() -> dict[str, str | int]:
    """Where process numbers have a meaning: the host's boot and the namespace that counts them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"boot": boot, "pids": Path("/proc/self/ns/pid").stat().st_ino}


def clear(path: Path) -> None:
    """End what still runs for a stale folder and take it away."""
    token = json.loads((path / OWNER).read_text()).get("token", "")
    if token.startswith("sundial-"):
        reaper.end_all(token)
    shutil.rmtree(path, ignore_errors=True)


def _prepare_base(parent: Path) -> None:
    """Make the parent folder; refuse one that another user could have put there."""
    root = os.geteuid() == 0
    parent.mkdir(mode=0o711 if root else 0o700, parents=True, exist_ok=True)
    status = parent.lstat()
    if parent.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise HostLacks(
            f"{parent} belongs to another user or can be written by others",
            hint=f"remove {parent}, or set XDG_RUNTIME_DIR to a folder of your own",
        )

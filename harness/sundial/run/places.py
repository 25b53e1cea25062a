# SPDX-License-Identifier: Apache-2.0
"""Programs and folders of Sundial on this host."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from sundial.errors import HostLacks
from sundial.machines.connection import EMULATOR
from sundial.machines.seals import Book
from sundial.model.catalog import CONFINE, FABRIC, INSTALLED, OUT, PLUGIN, ROOT, WRITTEN

TOOL_S = 10.0


@dataclass(frozen=True)
class Places:
    """Folders and programs: of a checkout or an installed package."""

    checkout: Path = ROOT
    state: Path = WRITTEN.state
    captures: Path = WRITTEN.captures

    @classmethod
    def beneath(cls, folder: Path) -> Self:
        """All in one folder, as in a checkout."""
        return cls(folder, folder, folder / "captures")

    @property
    def private(self) -> Path:
        """Folder of disposable files of this host."""
        return self.state / ".sundial"

    @property
    def libvirt_cache(self) -> Path:
        """libvirt's cache of QEMU's capabilities, shared between runs."""
        return self.private / "capabilities"

    @property
    def programs(self) -> Path:
        """Cache of programs' versions and digests, renewed when a program changes."""
        return self.private / "programs.json"

    @property
    def emulators(self) -> Path:
        """Digests of emulators, which are read again when they have changed."""
        return self.private / "emulators.json"

    @property
    def certificates(self) -> Path:
        """What was found when emulators were certified for virtual time, by their digests."""
        return self.private / "certificates.json"

    @property
    def trials(self) -> Path:
        """The runs of a certification, which are kept if it failed."""
        return self.private / "trials"

    @property
    def kvm(self) -> Path:
        """Cache of whether a guest boots under KVM here, valid until the host's next boot."""
        return self.private / "kvm.json"

    @property
    def store(self) -> Path:
        """Results of sweeps by the keys of their runs; may be removed."""
        return self.private / "store"

    @property
    def up(self) -> Path:
        """One folder for each topology that is up."""
        return self.private / "up"

    @property
    def built(self) -> Path:
        """Images that were built here, RECIPE/NAME."""
        return self.state / OUT

    @property
    def snapshots(self) -> Path:
        return self.state / OUT / "snapshots"

    @property
    def plugin(self) -> Path:
        return self.checkout / PLUGIN

    @property
    def fabric(self) -> Path:
        return self.checkout / FABRIC

    @property
    def confine(self) -> Path:
        """The program that starts QEMU with the rights of one machine."""
        return self.checkout / CONFINE

    def check(self) -> None:
        """Raises HostLacks for a program that is not built."""
        programs = (self.plugin, "make -C harness/clock"), (self.confine, "make setup"), (self.fabric, "make setup")
        for path, hint in programs:
            if not path.is_file():
                mend = "install the package again" if INSTALLED else hint
                raise HostLacks(f"{path.relative_to(self.checkout)} is not built", hint=mend)


def emulator() -> Path:
    """QEMU. Raises HostLacks."""
    found = shutil.which(EMULATOR)
    if found is None:
        raise HostLacks(f"{EMULATOR} is not installed", hint="apt-get install qemu-system-x86")
    return Path(found)


def tool_version(name: str, programs: Book) -> str | None:
    """The version that a program of PATH says, kept in `programs`; None where it says none."""
    path = shutil.which(name)
    try:
        return None if path is None else programs.value(Path(path), _version)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _version(program: Path) -> str:
    """What a program says. Raises OSError, TimeoutExpired, ValueError: none of these is to be remembered."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=TOOL_S, check=False)
    found = re.search(r"\d+\.\d+\.\d+", said.stdout)
    if found is None:
        raise ValueError(f"{program} does not say its version")
    return found[0]

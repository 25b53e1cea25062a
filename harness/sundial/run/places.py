# SPDX-License-Identifier: Apache-2.0
"""Folders and files of a checkout."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from sundial.errors import HostLacks
from sundial.machines.connection import EMULATOR
from sundial.model.catalog import ROOT


@dataclass(frozen=True)
class Places:
    """The folders and programs of one checkout."""

    checkout: Path = ROOT

    @property
    def captures(self) -> Path:
        return self.checkout / "captures"

    @property
    def private(self) -> Path:
        """Folder of disposable files of this host."""
        return self.checkout / ".sundial"

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
    def up(self) -> Path:
        """One folder for each topology that is up."""
        return self.private / "up"

    @property
    def snapshots(self) -> Path:
        return self.checkout / "images" / "out" / "snapshots"

    @property
    def plugin(self) -> Path:
        return self.checkout / "harness" / "clock" / "build" / "sundial-clock.so"

    @property
    def fabric(self) -> Path:
        return self.checkout / "harness" / "fabric" / "target" / "release" / "sundial-fabric"

    @property
    def confine(self) -> Path:
        """The program that starts QEMU with the rights of one machine."""
        return self.checkout / "harness" / "confine" / "build" / "sundial-confine"

    def check(self) -> None:
        """Raises HostLacks for a program that is not built."""
        programs = (self.plugin, "make -C harness/clock"), (self.confine, "make setup"), (self.fabric, "make setup")
        for path, hint in programs:
            if not path.is_file():
                raise HostLacks(f"{path.relative_to(self.checkout)} is not built", hint=hint)


def emulator() -> Path:
    """QEMU. Raises HostLacks."""
    found = shutil.which(EMULATOR)
    if found is None:
        raise HostLacks(f"{EMULATOR} is not installed", hint="apt-get install qemu-system-x86")
    return Path(found)

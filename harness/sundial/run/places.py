# SPDX-License-Identifier: Apache-2.0
"""Where things are in a checkout."""

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
        """What belongs to this host and is not worth keeping."""
        return self.checkout / ".sundial"

    @property
    def libvirt_cache(self) -> Path:
        """What libvirt has learnt about QEMU, shared between runs."""
        return self.private / "capabilities"

    @property
    def programs(self) -> Path:
        """Versions and digests of programs, which are asked and read again when they have changed."""
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
        """Whether a guest boots under KVM here, since the host's last boot."""
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
        """What starts QEMU with the rights of one machine."""
        return self.checkout / "harness" / "confine" / "build" / "sundial-confine"

    def check(self) -> None:
        """Raises HostLacks for what was not built."""
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

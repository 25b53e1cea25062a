# SPDX-License-Identifier: Apache-2.0
"""Paths that fabric, domains and run share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sundial.model.network import Nic


@dataclass(frozen=True)
class RunPaths:
    """Folders and files of one run, all absolute. `sockets` must be short: a unix socket's path has 107 bytes."""

    capture: Path
    """Folder for captures and counters (`wire/`)."""
    sockets: Path
    """Folder for sockets and job files, gone after the run."""
    shm: Path
    """The shared memory of a virtual run."""

    @property
    def control(self) -> Path:
        """The fabric's control socket."""
        return self.sockets / "fabric.sock"

    def fabric_end(self, nic: Nic) -> Path:
        """The fabric's frame socket for one interface."""
        return self.sockets / f"f-{nic.machine}-{nic.index}.sock"

    def machine_end(self, nic: Nic) -> Path:
        """QEMU's frame socket for one interface."""
        return self.sockets / f"q-{nic.machine}-{nic.index}.sock"


DRY = RunPaths(capture=Path("/run/wire"), sockets=Path("/run/sockets"), shm=Path("/dev/shm/sundial"))
"""Paths of a plan that is printed or compared, and not run."""

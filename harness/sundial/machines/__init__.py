# SPDX-License-Identifier: Apache-2.0
"""Machines: libvirt, images, snapshots, consoles, and the guard that cleans up after a killed harness.

What to use from here: `open_hypervisor` (a Hypervisor), `RuntimeFolder` and `Guard` around everything that is started,
`Images`, `SnapshotStore`, `save_state` and `load_state`, `tail`, `last_words` and `PanicWatch`, `attach` and
`run_command`.
"""

from sundial.machines.command import CommandResult, run_command
from sundial.machines.connection import LibvirtHypervisor, open_hypervisor
from sundial.machines.console import PanicWatch, last_words, tail
from sundial.machines.guard import Guard
from sundial.machines.hypervisor import Happening, Hypervisor, LifecycleEvent, Machine, MachineState, MonitorError
from sundial.machines.images import Image, Images, ImageStatus
from sundial.machines.migration import MigrationFailed, load_state, save_state
from sundial.machines.runtime import RuntimeFolder
from sundial.machines.snapshots import Snapshot, SnapshotKey, SnapshotStore
from sundial.machines.terminal import attach
from sundial.plan.request import EMBEDDED

__all__ = [
    "EMBEDDED",
    "CommandResult",
    "Guard",
    "Happening",
    "Hypervisor",
    "Image",
    "ImageStatus",
    "Images",
    "LibvirtHypervisor",
    "LifecycleEvent",
    "Machine",
    "MachineState",
    "MigrationFailed",
    "MonitorError",
    "PanicWatch",
    "RuntimeFolder",
    "Snapshot",
    "SnapshotKey",
    "SnapshotStore",
    "attach",
    "last_words",
    "load_state",
    "open_hypervisor",
    "run_command",
    "save_state",
    "tail",
]

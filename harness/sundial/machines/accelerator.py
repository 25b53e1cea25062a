# SPDX-License-Identifier: Apache-2.0
"""What runs a guest's instructions under the real clock: KVM where a guest truly boots under it, else TCG."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from sundial.errors import HostLacks
from sundial.machines.connection import EMULATOR
from sundial.model.catalog import OUT
from sundial.model.images import ImageKinds
from sundial.model.topology import Accelerator, Clock

Chosen = Literal["tcg", "kvm"]

KVM = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROBE_S = 10.0
END_S = 2.0


def probe_kernels(checkout: Path, state: Path) -> list[Path]:
    """Where kernels are, once built, that a probe may boot: Linux, which ends the machine where it finds no root."""
    linux = [kind for kind in ImageKinds(checkout / "images").values() if kind.platform == "linux"]
    return [
        place / OUT / recipe / kind.name / "kernel"
        for place in dict.fromkeys((state, checkout))
        for kind in linux
        for recipe in kind.recipes
    ]


def boot_command(accelerator: Chosen, kernel: Path) -> list[str]:
    """Boots `kernel` without a root: it gives up and reboots, upon which QEMU ends with 0."""
    machine = ["-M", "q35", "-m", "256", "-nodefaults", "-display", "none", "-no-reboot"]
    return [EMULATOR, "-accel", accelerator, *machine, "-kernel", str(kernel), "-append", "quiet panic=-1"]


def choose(clock: Clock, asked: Accelerator, works: Callable[[], bool]) -> Chosen:
    """`works` is called only where KVM is an option. Raises HostLacks where KVM is asked for and does not work."""
    if clock == "virtual" or asked == "tcg":
        return "tcg"
    if works():
        return "kvm"
    if asked == "kvm":
        raise HostLacks("no guest boots under KVM here", hint="--set accelerator=tcg, or leave accelerator out")
    return "tcg"


def runs_kvm(
    kernel: Path,
    cache: Path,
    *,
    device: Path = KVM,
    boot_id: Path = BOOT_ID,
    boots: Callable[[Path], bool] | None = None,
) -> bool:
    """Whether `kernel` boots under KVM within PROBE_S, for the device can exist and hang.

    Tried once in each boot of the host; the answer is kept in `cache`.
    """
    if not device.exists():
        return False
    boot = boot_id.read_text().strip()
    kept = _read(cache)
    if kept.get("boot_id") == boot:
        return bool(kept.get("runs"))
    runs = (boots or _boots)(kernel)
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps({"boot_id": boot, "runs": runs}) + "\n")
    return runs


def _boots(kernel: Path) -> bool:
    nowhere = subprocess.DEVNULL
    try:
        process = subprocess.Popen(boot_command("kvm", kernel), stdin=nowhere, stdout=nowhere, stderr=nowhere)
    except OSError:
        return False
    try:
        return process.wait(PROBE_S) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        # It may be stuck in the kernel, and is then not waited for.
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        return False


def _read(cache: Path) -> dict[str, object]:
    try:
        kept = json.loads(cache.read_text())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}

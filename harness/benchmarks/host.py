# SPDX-License-Identifier: Apache-2.0
"""The host that the figures belong to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def host_line() -> str:
    """CPU, cores, memory, kernel, QEMU, load: without these no figure means anything."""
    return f"{host_name()}, load {' '.join(f'{value:.2f}' for value in os.getloadavg())}"


def host_name() -> str:
    """What does not change while it is this host."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        _cpu(),
        f"{os.cpu_count()} cores",
        f"{memory:.0f} GiB",
        f"Linux {os.uname().release}",
        _qemu(),
    ]
    return ", ".join(parts)


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return os.uname().machine


def _qemu() -> str:
    try:
        said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "no QEMU"
    return said.splitlines()[0].replace("emulator version ", "")

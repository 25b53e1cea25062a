# SPDX-License-Identifier: Apache-2.0
"""The CPU of a machine that stands, from what QEMU's monitor prints. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sundial.errors import RunFailed

REGISTERS = "info registers"
_HALTED = re.compile(r"\bHLT=([01])\b")
_PROGRAM = re.compile(r"\b[RE]IP=([0-9a-f]+)\b")
_RING = re.compile(r"\bCPL=([0-3])\b")


@dataclass(frozen=True)
class Cpu:
    """Where a CPU is."""

    pc: int
    halted: bool
    ring: int
    """0: in the kernel."""

    def __str__(self) -> str:
        where = "kernel" if self.ring == 0 else "program"
        return f"{'halted' if self.halted else 'running'}, {where}, pc {self.pc:#x}"


def read_cpu(registers: str) -> Cpu:
    """The CPU as `info registers` prints it. Raises RunFailed."""
    found = [pattern.search(registers) for pattern in (_PROGRAM, _HALTED, _RING)]
    if None in found:
        raise RunFailed("QEMU's monitor does not print the registers as expected")
    pc, halted, ring = (match[1] for match in found if match is not None)
    return Cpu(int(pc, 16), halted == "1", int(ring))

# SPDX-License-Identifier: Apache-2.0
"""QEMU's gdb stub at a machine that stands, and symbols for it from the tables that images keep."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from sundial.errors import BadInput, RunFailed
from sundial.machines.functions import image_tables, kernel_table
from sundial.machines.images import Images
from sundial.machines.recipes import asked
from sundial.plan.points import Table
from sundial.plan.request import Standing
from sundial.replay.recorded import Recorded, recipe_of
from sundial.replay.stand import monitor
from sundial.run.places import Places

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_EXECUTABLE, _X86_64 = 2, 62
_SYMBOLS, _STRINGS, _NO_BITS = 2, 3, 8
_ALLOCATED_CODE = 6
_GLOBAL_FUNCTION = 0x12
_STEPS = "maintenance packet Qqemu.sstep=1"
"""Interrupts and timers come while it steps, as they do without it."""


def serve(recorded: Recorded, standing: Standing, machine: str) -> list[str]:
    """Start the stub; the commands of gdb that attach to it and read symbols. Raises RunFailed.

    The first attachment has QEMU stop the machine, which stands anyway.
    """
    socket = standing.sockets / f"g-{machine}.sock"
    said = monitor(standing, machine, f"gdbserver unix:{socket},server=on,wait=off")
    if not socket.is_socket():
        raise RunFailed(f"QEMU does not serve gdb: {said.strip()}", machine=machine)
    files = [
        path for name, table in _tables(recorded, standing, machine).items() if (path := _write(standing, name, table))
    ]
    symbols = [f"add-symbol-file {path}" for path in files]
    return [f"target remote {socket}", _STEPS, *symbols]


class Resumed:
    """True once a debugger that has stopped a machine lets it run."""

    def __init__(self, standing: Standing, machine: str) -> None:
        self._standing = standing
        self._machine = machine
        self._was_stopped = False

    def __call__(self) -> bool:
        runs = bool(self._standing.qmp(self._machine, "query-status")["running"])
        self._was_stopped = self._was_stopped or not runs
        return self._was_stopped and runs


def _tables(recorded: Recorded, standing: Standing, machine: str) -> Mapping[str, Table]:
    """By name: the kernel's and those of programs. Empty for images that keep none."""
    places = Places()
    images = Images(places.checkout, asked(places.state, recipe_of(recorded.document)), places.state)
    image = images.current(recorded.experiment.network.node(machine).image, lambda _: None)
    try:
        tables = None if image is None else image_tables(image)
    except BadInput:
        return {}
    if tables is None:
        return {}
    application = next(iter(tables.applications))
    kernel = tables.kernel or kernel_table(standing.kernel_functions(machine, application))
    return {"kernel": kernel, **tables.programs}


def _write(standing: Standing, name: str, table: Table) -> Path | None:
    path = standing.sockets / f"symbols-{name}"
    functions = [(place.address, place.size, function) for function, at in table.functions.items() for place in at]
    if not functions:
        return None
    path.write_bytes(symbol_file(functions))
    return path


def symbol_file(functions: Sequence[tuple[int, int, str]]) -> bytes:
    """An ELF file for x86-64 that has these functions (address, bytes, name) and no code. At least one."""
    functions = sorted(functions)
    first, last = functions[0][0], max(address + size for address, size, _ in functions)
    names, symbols = bytearray(b"\0"), bytearray(_SYMBOL.size)
    for address, size, name in functions:
        symbols += _SYMBOL.pack(len(names), _GLOBAL_FUNCTION, 0, 1, address, size)
        names += name.encode() + b"\0"
    sections = b"\0.text\0.symtab\0.strtab\0"
    at = [_HEADER.size, _HEADER.size + len(symbols), _HEADER.size + len(symbols) + len(names)]
    strings = bytes(names) + sections
    table = _HEADER.size + len(symbols) + len(strings)

    def section(name: bytes, kind: int, *fields: int) -> bytes:
        return _SECTION.pack(sections.index(name), kind, *fields)

    headers = (
        bytes(_SECTION.size)
        + section(b".text\0", _NO_BITS, _ALLOCATED_CODE, first, 0, last - first, 0, 0, 16, 0)
        + section(b".symtab\0", _SYMBOLS, 0, 0, at[0], len(symbols), 3, 1, 8, _SYMBOL.size)
        + section(b".strtab\0", _STRINGS, 0, 0, at[1], len(names), 0, 0, 1, 0)
        + section(b".strtab\0", _STRINGS, 0, 0, at[2], len(sections), 0, 0, 1, 0)
    )
    magic = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header = _HEADER.pack(magic, _EXECUTABLE, _X86_64, 1, first, 0, table, 0, 64, 0, 0, _SECTION.size, 5, 4)
    return header + symbols + strings + headers

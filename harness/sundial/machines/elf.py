# SPDX-License-Identifier: Apache-2.0
"""The little of ELF (System V ABI, and its GNU symbol versions) that the programs of a root are checked by.

Pure: bytes in, values out. Offsets in a file come from the file, so each access is checked.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

AMD64 = 62
MACHINES = {3: "i386", 20: "powerpc", 21: "ppc64", 22: "s390x", 40: "arm", 183: "arm64", 243: "riscv64", 258: "loong64"}
HEADER_BYTES = 64
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRINGS, _SONAME, _DEFINED, _DEFINED_COUNT, _ASKED, _ASKED_COUNT, _RUN_PATH, _R_PATH = (
    *(1, 5, 14, 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF, 29, 15),
)
_EXECUTABLE, _SHARED = 2, 3
_RUNS = 1
_STEPS_MOST = 10_000


class BadElf(ValueError):
    """The file is cut off or damaged."""


@dataclass(frozen=True)
class Program:
    """What a program or library asks for, and what it gives."""

    interpreter: str | None
    needed: tuple[str, ...]
    paths: tuple[str, ...]
    """Folders in which it looks for libraries first."""
    asked: dict[str, frozenset[str]]
    """Symbol versions by library."""
    defined: frozenset[str]
    """Symbol versions that it gives."""


def architecture(head: bytes) -> str | None:
    """The processor of an ELF file that begins with `head`; None: it is not an ELF file."""
    if len(head) < 20 or not head.startswith(b"\x7fELF"):
        return None
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    if machine == AMD64 and head[4] == 2:
        return "amd64"
    return MACHINES.get(machine, "x32" if machine == AMD64 else f"ELF machine {machine}")


def read_program(data: bytes) -> Program:
    """What a file for AMD64 says of itself. Raises BadElf."""
    try:
        return _Reader(data).program()
    except (struct.error, ValueError, OverflowError) as error:
        raise BadElf("is cut off or damaged") from error


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        _, kind, _, _, entry, table, _, _, _, size, count, *_ = _HEADER.unpack_from(data)
        self._segments = [_SEGMENT.unpack_from(data, table + number * size) for number in range(count)]
        self._check(kind, entry, size)

    def _check(self, kind: int, entry: int, size: int) -> None:
        """What Linux asks of a file before it executes or maps it (fs/binfmt_elf.c)."""
        loads = [each for each in self._segments if each[0] == _LOAD]
        code = [(begin, begin + memory) for _, flags, _, begin, _, _, memory, _ in loads if flags & _RUNS]
        right = kind in (_EXECUTABLE, _SHARED) and size == _SEGMENT.size and bool(loads)
        whole = all(offset + length <= len(self._data) for _, _, offset, _, _, length, _, _ in loads)
        if not right or not whole or (entry and not any(begin <= entry < end for begin, end in code)):
            raise BadElf("is cut off or damaged")

    def program(self) -> Program:
        interpreter, dynamic = None, b""
        for kind, _, offset, _, _, length, _, _ in self._segments:
            if kind == _INTERPRETER:
                interpreter = self._text(offset)
            elif kind == _DYNAMIC:
                dynamic = self._data[offset : offset + length]
        tags: dict[int, list[int]] = {}
        for at in range(0, len(dynamic) - 15, 16):
            tag, value = struct.unpack_from("<QQ", dynamic, at)
            if tag == 0:
                break
            tags.setdefault(tag, []).append(value)
        if _STRINGS not in tags:
            return Program(interpreter, (), (), {}, frozenset())
        strings = self._place(tags[_STRINGS][0])

        def texts(*names: int) -> tuple[str, ...]:
            return tuple(self._text(strings + value) for name in names for value in tags.get(name, ()))

        paths = tuple(part for text in texts(_RUN_PATH, _R_PATH) for part in text.split(":") if part)
        asked = self._asked(tags, strings)
        return Program(interpreter, texts(_NEEDED), paths, asked, self._defined(tags, strings))

    def _asked(self, tags: dict[int, list[int]], strings: int) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        at = self._place(tags[_ASKED][0]) if _ASKED in tags else 0
        for _ in range(min(tags.get(_ASKED_COUNT, [0])[0], _STEPS_MOST)):
            _, count, file, first, following = struct.unpack_from("<HHIII", self._data, at)
            names, each = set(), at + first
            for _ in range(count):
                _, flags, _, name, step = struct.unpack_from("<IHHII", self._data, each)
                if not flags & 2:  # a weak one may be missing
                    names.add(self._text(strings + name))
                each += step
            found[self._text(strings + file)] = frozenset(names)
            at += following
        return found

    def _defined(self, tags: dict[int, list[int]], strings: int) -> frozenset[str]:
        names = set()
        at = self._place(tags[_DEFINED][0]) if _DEFINED in tags else 0
        for _ in range(min(tags.get(_DEFINED_COUNT, [0])[0], _STEPS_MOST)):
            _, _, _, _, _, first, following = struct.unpack_from("<HHHHIII", self._data, at)
            (name,) = struct.unpack_from("<I", self._data, at + first)
            names.add(self._text(strings + name))
            at += following
        return frozenset(names)

    def _place(self, address: int) -> int:
        """The offset in the file of an address."""
        for kind, _, offset, begin, _, length, _, _ in self._segments:
            if kind == _LOAD and begin <= address < begin + length:
                return int(offset + address - begin)
        raise BadElf("has an address that is in none of its segments")

    def _text(self, offset: int) -> str:
        return self._data[offset : self._data.index(b"\0", offset)].decode()

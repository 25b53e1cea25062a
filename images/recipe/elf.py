# SPDX-License-Identifier: Apache-2.0
"""The little of ELF64 (System V ABI, AMD64) that the recipe asks for: sections, dynamic tags, functions."""

import struct
from dataclasses import dataclass
from functools import cached_property

_SHT_SYMTAB, _SHT_DYNAMIC, _SHT_DYNSYM = 2, 6, 11
_STT_FUNC = 2
_SYMBOL = struct.Struct("<IBBHQQ")
_DT_NULL, _DT_NEEDED, _DT_SONAME = 0, 1, 14
_PT_INTERP = 3
_NOTE_HEADER = struct.Struct("<III")
_XEN_ELFNOTE_PHYS32_ENTRY = 18
_SHT_NOTE = 7


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True, order=True)
class Function:
    """Where a function is in memory, `size` in bytes."""

    address: int
    size: int
    name: str
    code: bytes = b""


def is_elf(data: bytes) -> bool:
    return data[:4] == b"\x7fELF" and data[4:6] == b"\x02\x01"


class Elf:
    """A read-only view of one ELF64 little-endian file."""

    def __init__(self, data: bytes) -> None:
        if not is_elf(data):
            raise ValueError("not a little-endian ELF64 file")
        self._data = data

    @cached_property
    def sections(self) -> list[Section]:
        (table,) = struct.unpack_from("<Q", self._data, 40)
        size, count, names_index = struct.unpack_from("<HHH", self._data, 58)
        raw = []
        for index in range(count):
            name, kind, _, *rest = struct.unpack_from("<IIQQQQI", self._data, table + index * size)
            raw.append((name, kind, *rest))
        names = raw[names_index][3] if raw else 0
        return [
            Section(self._text(names + name), kind, *rest) for name, kind, *rest in raw
        ]

    def section(self, name: str) -> bytes:
        """Contents of the section, empty where there is none."""
        for section in self.sections:
            if section.name == name:
                return self._data[section.offset : section.offset + section.size]
        return b""

    @cached_property
    def interpreter(self) -> str | None:
        (table,) = struct.unpack_from("<Q", self._data, 32)
        size, count = struct.unpack_from("<HH", self._data, 54)
        for index in range(count):
            (kind,) = struct.unpack_from("<I", self._data, table + index * size)
            if kind == _PT_INTERP:
                (offset,) = struct.unpack_from("<Q", self._data, table + index * size + 8)
                return self._text(offset)
        return None

    @property
    def needed(self) -> list[str]:
        return self._dynamic(_DT_NEEDED)

    @property
    def soname(self) -> str | None:
        names = self._dynamic(_DT_SONAME)
        return names[0] if names else None

    @property
    def functions(self) -> list[Function]:
        """Those that the symbol table names with their size, by address; empty where it was stripped."""
        found = []
        for section in self.sections:
            if section.kind != _SHT_SYMTAB:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, info, _, place, address, size = _SYMBOL.unpack_from(self._data, at)
                if info & 15 == _STT_FUNC and 0 < place < len(self.sections) and size:
                    within = self.sections[place]
                    begin = within.offset + address - within.address
                    code = self._data[begin : begin + size]
                    found.append(Function(address, size, self._text(strings + name), code))
        return sorted(found)

    def imports(self, wanted: str) -> bool:
        """Whether a symbol of this name is another's."""
        for section in self.sections:
            if section.kind != _SHT_DYNSYM:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, _SYMBOL.size):
                name, _, _, place, _, _ = _SYMBOL.unpack_from(self._data, at)
                if place == 0 and self._text(strings + name) == wanted:
                    return True
        return False

    def has_pvh_entry(self) -> bool:
        """Whether there is a note that lets QEMU start this kernel directly (Xen's PVH entry)."""
        for section in self.sections:
            if section.kind == _SHT_NOTE and self._has_note(section, _XEN_ELFNOTE_PHYS32_ENTRY):
                return True
        return False

    def _has_note(self, section: Section, note: int) -> bool:
        at, end = section.offset, section.offset + section.size
        while at + _NOTE_HEADER.size <= end:
            name_size, value_size, kind = _NOTE_HEADER.unpack_from(self._data, at)
            at += _NOTE_HEADER.size
            if kind == note and self._data[at : at + name_size] == b"Xen\0":
                return True
            at += -(-name_size // 4) * 4 + -(-value_size // 4) * 4
        return False

    def _dynamic(self, tag: int) -> list[str]:
        texts = []
        for section in self.sections:
            if section.kind != _SHT_DYNAMIC:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, 16):
                entry, value = struct.unpack_from("<QQ", self._data, at)
                if entry == _DT_NULL:
                    break
                if entry == tag:
                    texts.append(self._text(strings + value))
        return texts

    def _text(self, offset: int) -> str:
        return self._data[offset : self._data.index(b"\0", offset)].decode()

# SPDX-License-Identifier: Apache-2.0
"""symbols.json: where the functions of an image's programs are, for traces of guests that have no symbols themselves.

A program is linked twice, stripped for the image and with its symbols for this table; what is executed must be the
same. The table names the digest of `.text`, and the manifest of the image has the digest of the program that is in it.
Programs that are linked to the same addresses are told apart by the CRC-32 of each function's code.
"""

import hashlib
import json
import zlib
from collections.abc import Mapping

from recipe.elf import Elf
from recipe.errors import RecipeError

FILE = "symbols.json"
VERSION = 2
_SAME = (".text", ".rodata", ".data")


def text_sha256(program: bytes) -> str:
    """The digest of a program's code."""
    return hashlib.sha256(Elf(program).section(".text")).hexdigest()


def digests(programs: Mapping[str, tuple[bytes, bytes]]) -> dict[str, str]:
    """Of the programs as the image has them, for its manifest."""
    return {name: text_sha256(stripped) for name, (stripped, _) in programs.items()}


def document(
    programs: Mapping[str, tuple[bytes, bytes]], applications: Mapping[str, str], kernel: str | None = None
) -> bytes:
    """`programs`: by name, as the image has it and with its symbols; `applications`: the program that each is in;
    `kernel`: the program that is the kernel, where that does not say itself where its functions are.

    Raises RecipeError where the two are not the same code.
    """
    tables = {}
    for name, (stripped, linked) in programs.items():
        mine, theirs = Elf(stripped), Elf(linked)
        for section in _SAME:
            if mine.section(section) != theirs.section(section):
                raise RecipeError(f"{name}: its {section} is another one when it is linked with symbols")
        functions = [
            [f"{each.address:x}", f"{each.size:x}", f"{zlib.crc32(each.code):x}", each.name] for each in theirs.functions
        ]
        if not functions:
            raise RecipeError(f"{name}: linked with symbols, it names no function")
        tables[name] = {"text_sha256": text_sha256(linked), "functions": functions}
    symbol_tables = {"version": VERSION, "applications": dict(applications), "kernel": kernel, "programs": tables}
    return (json.dumps(symbol_tables, separators=(",", ":")) + "\n").encode()

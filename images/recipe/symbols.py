# SPDX-License-Identifier: Apache-2.0
"""symbols.json: where the functions of an image's programs are, for traces of guests that have no symbols themselves.

A program is linked twice, stripped for the image and with its symbols for this table; what is executed must be the
same. The table names the digest of `.text`, and the manifest of the image has the digest of the program that is in it.
"""

import hashlib
import json
from collections.abc import Mapping

from recipe.elf import Elf
from recipe.errors import RecipeError

FILE = "symbols.json"
_SAME = (".text", ".rodata", ".data")


def text_sha256(program: bytes) -> str:
    """The digest of a program's code."""
    return hashlib.sha256(Elf(program).section(".text")).hexdigest()


def document(programs: Mapping[str, tuple[bytes, bytes]], applications: Mapping[str, str]) -> bytes:
    """`programs`: by name, as the image has it and with its symbols; `applications`: the program that each is in.

    Raises RecipeError where the two are not the same code.
    """
    tables = {}
    for name, (stripped, linked) in programs.items():
        mine, theirs = Elf(stripped), Elf(linked)
        for section in _SAME:
            if mine.section(section) != theirs.section(section):
                raise RecipeError(f"{name}: its {section} is another one when it is linked with symbols")
        functions = [[f"{each.address:x}", f"{each.size:x}", each.name] for each in theirs.functions]
        if not functions:
            raise RecipeError(f"{name}: linked with symbols, it names no function")
        tables[name] = {"text_sha256": text_sha256(linked), "functions": functions}
    told = {"version": 1, "applications": dict(applications), "programs": tables}
    return (json.dumps(told, separators=(",", ":")) + "\n").encode()

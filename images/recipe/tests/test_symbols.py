# SPDX-License-Identifier: Apache-2.0
"""Functions of programs: found in the linker's table, and only for code that is the same."""

import json
import subprocess
from pathlib import Path

import pytest

from recipe import symbols
from recipe.elf import Elf
from recipe.errors import RecipeError

SOURCE = """\
int twice(int value) { return 2 * value; }
static int __attribute__((noinline)) hidden(int value) { return value + %d; }
void _start(void) { __asm__ volatile("" :: "r"(hidden(twice(1)))); for (;;) ; }
"""


def linked(folder: Path, *options: str, added: int = 1) -> bytes:
    (folder / "a.c").write_text(SOURCE % added)
    command = [
        "gcc",
        "-O1",
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
        *options,
        "-o",
        "a",
        "a.c",
    ]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / "a").read_bytes()


def test_a_program_says_where_its_functions_are(tmp_path: Path) -> None:
    whole, stripped = linked(tmp_path), linked(tmp_path, "-s")
    assert Elf(stripped).functions == []
    told = json.loads(symbols.document({"a": (stripped, whole)}, {"app": "a"}))
    assert told["applications"] == {"app": "a"}
    assert told["programs"]["a"]["text_sha256"] == symbols.text_sha256(stripped)
    functions = told["programs"]["a"]["functions"]
    assert {name for _, _, name in functions} == {"twice", "hidden", "_start"}
    (tmp_path / "whole").write_bytes(whole)
    printed = subprocess.run(["nm", "-S", tmp_path / "whole"], capture_output=True, text=True, check=True)
    lines = (line.split() for line in printed.stdout.splitlines())
    by_nm = sorted((int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4)
    assert [(int(address, 16), int(size, 16)) for address, size, _ in functions] == by_nm


def test_other_code_is_refused(tmp_path: Path) -> None:
    stripped, other = linked(tmp_path, "-s"), linked(tmp_path, added=2)
    with pytest.raises(
        RecipeError,
        match=r"^a: its \.text is another one when it is linked with symbols",
    ):
        symbols.document({"a": (stripped, other)}, {})


def test_a_program_without_functions_is_refused(tmp_path: Path) -> None:
    stripped = linked(tmp_path, "-s")
    with pytest.raises(RecipeError, match="a: linked with symbols, it names no function"):
        symbols.document({"a": (stripped, stripped)}, {})

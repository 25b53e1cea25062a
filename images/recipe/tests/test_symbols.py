# SPDX-License-Identifier: Apache-2.0
"""Functions of programs: found in the linker's table, and only for code that is the same."""

import json
import subprocess
import zlib
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
    document = json.loads(symbols.document({"a": (stripped, whole)}, {"app": "a"}))
    assert document["applications"] == {"app": "a"}
    assert document["programs"]["a"]["text_sha256"] == symbols.text_sha256(stripped)
    functions = document["programs"]["a"]["functions"]
    assert {name for *_, name in functions} == {"twice", "hidden", "_start"}
    assert document["kernel"] is None
    (tmp_path / "whole").write_bytes(whole)
    printed = subprocess.run(["nm", "-S", tmp_path / "whole"], capture_output=True, text=True, check=True)
    lines = (line.split() for line in printed.stdout.splitlines())
    by_nm = sorted((int(words[0], 16), int(words[1], 16)) for words in lines if len(words) == 4)
    assert [(int(address, 16), int(size, 16)) for address, size, *_ in functions] == by_nm


def test_functions_are_known_by_their_code(tmp_path: Path) -> None:
    def codes(added: int) -> dict[str, str]:
        whole = linked(tmp_path, added=added)
        document = json.loads(symbols.document({"a": (whole, whole)}, {}, "a"))
        assert document["kernel"] == "a"
        return {name: crc for _, _, crc, name in document["programs"]["a"]["functions"]}

    one, other = codes(1), codes(2)
    assert [name for name in one if one[name] != other[name]] == ["hidden"]
    code = next(each.code for each in Elf(linked(tmp_path)).functions if each.name == "twice")
    assert int(one["twice"], 16) == zlib.crc32(code)
    disassembled = subprocess.run(
        ["objdump", "-d", "--disassemble=twice", tmp_path / "a"], capture_output=True, text=True, check=True
    )
    printed = [line.split("\t")[1] for line in disassembled.stdout.splitlines() if line.count("\t") >= 1]
    assert bytes.fromhex("".join(printed).replace(" ", "")) == code


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

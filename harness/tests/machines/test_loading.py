# SPDX-License-Identifier: Apache-2.0
"""Programs that lack something in their root, made by the host's compiler."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from sundial.machines.elf import BadElf, architecture, read_program
from sundial.machines.loading import elsewhere, missing, packages_of, programs_of
from sundial.machines.tree import Tree, file, link, with_folders

LOADER = "/lib64/ld-test.so"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that needs version TWO of a library that needs another one, and the library without TWO."""
    folder = tmp_path_factory.mktemp("made")
    if shutil.which("gcc") is None:
        pytest.skip("no compiler")
    (folder / "one.c").write_text("int deep(void); int two(void) { return deep(); } int one(void) { return 1; }\n")
    (folder / "deep.c").write_text("int deep(void) { return 2; }\n")
    (folder / "main.c").write_text("int two(void); int main(void) { return two(); }\n")
    (folder / "new.map").write_text("ONE { one; };\nTWO { two; } ONE;\n")
    (folder / "old.map").write_text("ONE { one; two; };\n")

    def gcc(*words: str) -> None:
        subprocess.run(["gcc", "-nostdlib", "-fno-stack-protector", *words], cwd=folder, check=True)

    shared = ["-shared", "-fPIC"]
    gcc(*shared, "-Wl,-soname,libdeep-1.so.2", "-o", "libdeep-1.so.2", "deep.c")
    for version in ("new", "old"):
        script = f"-Wl,--version-script,{version}.map"
        gcc(*shared, "-Wl,-soname,libone.so.1", script, "-o", f"{version}.so", "one.c", "libdeep-1.so.2")
    words = ["-Wl,-e,main", f"-Wl,--dynamic-linker,{LOADER}", "-Wl,-rpath-link,.", "-o"]
    gcc(*words, "program", "main.c", "new.so")
    gcc(*words, "beside", "main.c", "new.so", "-Wl,-rpath,$ORIGIN/../private")
    return folder


@pytest.fixture
def whole(made: Path) -> Tree:
    tree: Tree = {
        "usr/bin/program": file((made / "program").read_bytes(), 0o755),
        "lib": link("usr/lib"),
        LOADER.strip("/"): file(b"loader", 0o755),
        "usr/lib/libone.so.1": link("libone.so.1.0"),
        "usr/lib/libone.so.1.0": file((made / "new.so").read_bytes()),
        "usr/lib/x86_64-linux-gnu/libdeep-1.so.2": file((made / "libdeep-1.so.2").read_bytes()),
    }
    with_folders(tree)
    return tree


def said(tree: Tree) -> list[str]:
    return [str(each) for each in missing(tree, programs_of(tree))]


def test_a_program_that_has_all_lacks_nothing(whole: Tree) -> None:
    assert programs_of(whole) == ["usr/bin/program"]
    assert said(whole) == []


@pytest.mark.parametrize(
    ("gone", "line"),
    [
        (LOADER.strip("/"), f"/usr/bin/program needs the loader {LOADER}"),
        ("usr/lib/libone.so.1.0", "/usr/bin/program needs the library libone.so.1"),
        ("usr/lib/x86_64-linux-gnu/libdeep-1.so.2", "/usr/bin/program needs the library libdeep-1.so.2"),
    ],
)
def test_what_is_missing_is_named(whole: Tree, gone: str, line: str) -> None:
    del whole[gone]
    assert said(whole) == [line]


def test_a_library_without_the_symbol_version_is_too_old(whole: Tree, made: Path) -> None:
    whole["usr/lib/libone.so.1.0"] = file((made / "old.so").read_bytes())
    assert said(whole) == ["/usr/bin/program needs TWO of libone.so.1, and the root has an older one"]


def test_libraries_are_found_by_the_programs_own_folders_and_by_configuration(whole: Tree, made: Path) -> None:
    library = whole.pop("usr/lib/libone.so.1")
    del whole["usr/lib/libone.so.1.0"]
    whole["usr/bin/program"] = file((made / "beside").read_bytes(), 0o755)
    whole["usr/private/libone.so.1"] = file((made / "new.so").read_bytes())
    with_folders(whole)
    assert library.is_link
    assert said(whole) == []
    whole["usr/lib/x86_64-linux-gnu/../away"] = whole.pop("usr/lib/x86_64-linux-gnu/libdeep-1.so.2")
    assert said(whole) == ["/usr/bin/program needs the library libdeep-1.so.2"]
    whole["opt/deep/libdeep-1.so.2"] = whole["usr/lib/x86_64-linux-gnu/../away"]
    whole["etc/ld.so.conf.d/deep.conf"] = file(b"# deep\n/opt/deep\n")
    assert said(whole) == []


@pytest.mark.parametrize(
    ("at", "value", "what"),
    [
        (16, struct.pack("<H", 1), "it is cut off or damaged"),  # an object file
        (24, struct.pack("<Q", 1 << 40), "it is cut off or damaged"),  # entry
        (54, struct.pack("<H", 55), "it is cut off or damaged"),  # size of a segment's line
        (32, struct.pack("<Q", 1 << 60), "it is cut off or damaged"),  # where these are
        (0, b"\0garbage", "it is neither an ELF file nor a script"),
    ],
)
def test_garbage_is_named(whole: Tree, at: int, value: bytes, what: str) -> None:
    program = bytearray(whole["usr/bin/program"].read())
    program[at : at + len(value)] = value
    whole["usr/bin/program"] = file(bytes(program), 0o755)
    assert said(whole) == [f"/usr/bin/program cannot be executed: {what}"]
    assert [each.damaged for each in missing(whole, programs_of(whole))] == [True]


def test_a_program_that_is_cut_off_is_named(whole: Tree) -> None:
    program = whole["usr/bin/program"].read()
    whole["usr/bin/program"] = file(program[:4000], 0o755)
    assert said(whole) == ["/usr/bin/program cannot be executed: it is cut off or damaged"]


def test_programs_in_other_folders_are_found_among_some(whole: Tree) -> None:
    whole["opt/app"] = whole["usr/bin/program"]
    whole["opt/data"] = file(whole["usr/bin/program"].read())
    whole["opt/text"] = file(b"text", 0o755)
    whole["opt/other"] = file(b"\x7fELF", 0o755)
    mine = {id(whole[f"opt/{name}"]) for name in ("app", "data", "text")}
    assert elsewhere(whole, mine) == ["opt/app"]


def test_a_program_for_another_processor_is_named(whole: Tree) -> None:
    program = bytearray(whole["usr/bin/program"].read())
    struct.pack_into("<H", program, 18, 183)
    whole["usr/bin/program"] = file(bytes(program), 0o755)
    whole["usr/bin/script"] = file(b"#!/bin/sh\n", 0o755)
    assert said(whole) == ["/usr/bin/program is for arm64, and machines are amd64"]
    assert architecture(b"\x7fELF\x02\x02" + bytes(12) + b"\0\x16") == "s390x"
    assert architecture(b"text") is None


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_program_is_read_or_refused(made: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray((made / "program").read_bytes())
    for _ in range(20):
        data[chance.randrange(16, 4096)] = chance.randrange(256)
    try:
        read_program(bytes(data[: chance.randrange(64, len(data))]))
    except BadElf as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_names_that_debian_gives_to_packages_of_libraries() -> None:
    assert packages_of("libssl.so.3")[0] == "libssl3"
    assert packages_of("libevent-2.1.so.7")[0] == "libevent-2.1-7"
    assert packages_of("libgcc_s.so.1")[0] == "libgcc-s1"
    assert packages_of("libc.so.6") == ["libc6"]
    assert packages_of("libz.so.1") == ["zlib1g"]
    assert packages_of("ld-musl-x86_64.so.1") == packages_of("libc.musl-x86_64.so.1") == ["musl"]


def test_a_script_without_its_interpreter_is_named() -> None:
    tree: Tree = {
        "bin/one": file(b"#!/usr/bin/perl -w\n", 0o755),
        "bin/two": file(b"#! /bin/sh\n", 0o755),
        "bin/three": file(b"#!/opt/perl\n", 0o755),
        "bin/four": file(b"#!", 0o755),
        "bin/five": file(b"#!/" + b"x" * 200, 0o755),
        "opt/perl": file(b"", 0o755),
    }
    with_folders(tree)
    assert [str(each) for each in missing(tree, programs_of(tree))] == ["/bin/one needs the program /usr/bin/perl"]
    assert "perl" in packages_of("perl")

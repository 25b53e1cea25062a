# SPDX-License-Identifier: Apache-2.0
"""Archives of programs as the kernel reads them (kernel/initrd.c), on the host and under sanitizers: several archives,
damage at every byte. test_kernel.py boots one archive with all of this in it."""

import re
import subprocess
from pathlib import Path

import conftest
import machine
import pytest

HEADER = 110


@pytest.fixture(scope="session")
def reader() -> Path:
    return conftest.made("check/initrd")


def files_of(reader: Path, folder: Path, archive: bytes) -> tuple[dict[str, bytes], str]:
    """The files of an archive, and what the kernel says about it."""
    path = folder / "archive"
    path.write_bytes(archive)
    return _files(_output(reader, path))


def _output(reader: Path, *arguments: Path | str) -> str:
    done = subprocess.run([reader, *arguments], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _files(output: str) -> tuple[dict[str, bytes], str]:
    found = re.findall(r"^file (\S+) (\d+) (\w*)$", output, re.MULTILINE)
    files = {name: bytes.fromhex(data) for name, _, data in found}
    assert [int(size) for _, size, _ in found] == [len(data) for data in files.values()]
    return files, re.sub(r"^file .*\n", "", output, flags=re.MULTILINE)


def test_files_are_found_by_their_names_without_folders(reader: Path, tmp_path: Path) -> None:
    archive = machine.newc({"a/folder/good": b"1", "plain": b"22", "empty": b""})
    assert files_of(reader, tmp_path, archive)[0] == {"good": b"1", "plain": b"22", "empty": b""}


@pytest.mark.parametrize("zeros", [0, 4, 512 + 4])
def test_a_second_archive_adds_files_and_its_files_win(reader: Path, tmp_path: Path, zeros: int) -> None:
    first = machine.newc({"first": b"1", "changed": b"old"})
    second = machine.newc({"own": b"2", "bin/changed": b"new"})
    files, said = files_of(reader, tmp_path, first + bytes(zeros) + second + bytes(3))
    assert files == {"first": b"1", "changed": b"new", "own": b"2"}
    assert said == ""


def test_behind_damage_nothing_is_read_and_its_place_is_named(reader: Path, tmp_path: Path) -> None:
    whole = machine.newc({"first": b"1"})
    files, said = files_of(reader, tmp_path, whole + b"garbage" + machine.newc({"own": b"2"}))
    assert files.keys() == {"first"}
    assert said == f"initrd: damaged at byte {len(whole)}\n"


def test_an_archive_cut_at_any_byte_has_the_files_before_the_cut(reader: Path, tmp_path: Path) -> None:
    contents = {"one": b"1", "two": bytes(range(9)), "three": b"", "four": b"last"}
    path = tmp_path / "archive"
    path.write_bytes(machine.newc(contents))
    _, *cuts = re.split(r"^cut \d+\n", _output(reader, path, "--cuts"), flags=re.MULTILINE)
    assert len(cuts) == path.stat().st_size
    for cut, output in enumerate(cuts):
        expected, begin = dict[str, bytes](), 0
        for name, data in contents.items():
            end = begin + (HEADER + len(name) + 1 + 3) // 4 * 4 + len(data)
            if cut < end:
                break
            expected[name] = data
            begin = (end + 3) // 4 * 4
        # Padding behind the last file may be missing.
        damage = f"initrd: damaged at byte {begin}\n" if cut > begin else ""
        assert _files(output) == (expected, damage), cut


def test_folders_and_links_are_not_programs(reader: Path, tmp_path: Path) -> None:
    # As machine.newc writes the mode: 8 is a file, 4 a folder, a a link.
    folder = machine.newc({"good": b""}).replace(b"000081ed", b"000041ed")
    link = machine.newc({"good": b"x"}).replace(b"000081ed", b"0000a1ed")
    assert files_of(reader, tmp_path, machine.newc({"good": b"1"}) + folder + link)[0] == {"good": b"1"}


@pytest.mark.parametrize(("count", "said"), [(128, ""), (129, "PANIC: the initrd has more than 128 files\n")])
def test_more_files_than_there_is_room_for_stop_the_kernel(reader: Path, tmp_path: Path, count: int, said: str) -> None:
    archive = machine.newc({f"task-{number}": b"" for number in range(count)})
    assert files_of(reader, tmp_path, archive)[1] == said


@pytest.mark.parametrize("field", range(1, 14))
def test_a_field_that_is_not_hexadecimal_or_too_large_is_damage(reader: Path, tmp_path: Path, field: int) -> None:
    """Of those that the kernel reads: mode (2), length (7) and length of the name (12); it ignores the others."""
    at = 6 + 8 * (field - 1)
    for value in (b"0000000g", b"ffffffff"):
        archive = machine.newc({"good": b"1"})
        files, said = files_of(reader, tmp_path, archive[:at] + value + archive[at + 8 :])
        damaged = field in (7, 12) or (field == 2 and value == b"0000000g")
        assert said == ("initrd: damaged at byte 0\n" if damaged else ""), value
        assert ("good" in files) == (not damaged and field != 2), value

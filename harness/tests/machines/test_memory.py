# SPDX-License-Identifier: Apache-2.0
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.machines.memory import PAGE, allocate, copy_without_zeros, memory_sha256

PIECE = 256 * PAGE


def written(path: Path, pages: dict[int, bytes], size: int) -> Path:
    """A file of holes but for the given pages."""
    with path.open("wb") as file:
        file.truncate(size)
        for number, content in pages.items():
            os.pwrite(file.fileno(), content, number * PAGE)
    return path


@settings(max_examples=settings.default.max_examples // 8)  # it waits for the disk
@given(pages=st.dictionaries(st.integers(0, 700), st.sampled_from([b"x", b"y" * PAGE, bytes(PAGE)]), max_size=20))
def test_a_copy_has_the_content_and_the_digest_of_the_original(
    pages: dict[int, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("memory")
    source = written(folder / "source", pages, 3 * PIECE)
    copy_without_zeros(source, folder / "copy")
    assert (folder / "copy").read_bytes() == source.read_bytes()
    assert memory_sha256(folder / "copy") == memory_sha256(source)


def test_pages_of_zeros_take_no_space_in_the_copy(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(2 * PIECE) + b"end" + bytes(PIECE - 3))
    copy_without_zeros(source, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_blocks * 512 <= 2 * PAGE


@pytest.mark.parametrize("at", [0, PAGE - 1, PIECE, 3 * PIECE - 1])
def test_a_flipped_bit_and_a_moved_piece_change_the_digest(tmp_path: Path, at: int) -> None:
    before = bytearray(3 * PIECE)
    before[5] = 1
    after = bytearray(before)
    after[at] ^= 128
    moved = before[PIECE:] + before[:PIECE]
    longer = before + bytes(PAGE)
    digests = set()
    for number, content in enumerate((before, after, moved, longer)):
        (tmp_path / str(number)).write_bytes(content)
        digests.add(memory_sha256(tmp_path / str(number)))
    assert len(digests) == 4


def test_holes_and_written_zeros_are_the_same_memory(tmp_path: Path) -> None:
    holes = written(tmp_path / "holes", {300: b"x"}, 2 * PIECE)
    (tmp_path / "zeros").write_bytes(holes.read_bytes())
    assert memory_sha256(holes) == memory_sha256(tmp_path / "zeros")


def test_space_is_taken_beforehand(tmp_path: Path) -> None:
    allocate(tmp_path / "memory", 10 * PAGE)
    status = (tmp_path / "memory").stat()
    assert status.st_size == 10 * PAGE <= status.st_blocks * 512
    assert stat.S_ISREG(status.st_mode)
    with pytest.raises(FileExistsError):
        allocate(tmp_path / "memory", PAGE)

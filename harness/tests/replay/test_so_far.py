# SPDX-License-Identifier: Apache-2.0
"""What a run that stands has written is compared with the beginning of what the recorded run wrote."""

from pathlib import Path

import pytest

from sundial.replay.so_far import first_difference, first_other_byte

NAMES = ("wire/lan.pcapng", "nodes/client/console.log", "nodes/client/samples.jsonl")


def _run(folder: Path, content: bytes) -> Path:
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("written", [b"", b"ab", b"abcdef"])
def test_a_beginning_is_equal_so_far(tmp_path: Path, written: bytes) -> None:
    assert first_difference(_run(tmp_path / "run", b"abcdef"), _run(tmp_path / "again", written)) is None


@pytest.mark.parametrize(("written", "place"), [(b"x", 0), (b"abx", 2), (b"abcdefg", 6)])
@pytest.mark.parametrize("name", NAMES)
def test_the_first_other_byte_is_named(tmp_path: Path, name: str, written: bytes, place: int) -> None:
    run, again = _run(tmp_path / "run", b"abcdef"), _run(tmp_path / "again", b"abc")
    (again / name).write_bytes(written)
    assert first_difference(run, again) == f"{name}: byte {place}"


def test_captures_come_first_and_a_file_that_the_run_lacks_is_named(tmp_path: Path) -> None:
    run, again = _run(tmp_path / "run", b"abc"), _run(tmp_path / "again", b"x")
    assert first_difference(run, again) == "wire/lan.pcapng: byte 0"
    (run / "wire/lan.pcapng").unlink()
    assert first_difference(run, again) == "wire/lan.pcapng: the recorded run does not have it"


def test_a_byte_in_a_later_piece_has_its_place_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(bytes(3 << 20))
    (tmp_path / "again").write_bytes(bytes((2 << 20) + 5) + b"x")
    assert first_other_byte(tmp_path / "run", tmp_path / "again") == (2 << 20) + 5

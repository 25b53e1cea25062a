# SPDX-License-Identifier: Apache-2.0
"""`run --twice`: the first difference of two run directories."""

import shutil
import struct
from pathlib import Path

import pytest

from sundial.cli.twice import compared, first_difference, hogs


def _block(kind: int, body: bytes) -> bytes:
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


FRAMES = [b"one ", b"two ", b"tree"]


def _run(folder: Path) -> Path:
    for name in ("wire", "nodes/client/programs"):
        (folder / name).mkdir(parents=True)
    blocks = [_block(0x0A0D0D0A, b"head"), *(_block(6, frame) for frame in FRAMES)]
    (folder / "wire/lan.pcapng").write_bytes(b"".join(blocks))
    (folder / "nodes/client/samples.jsonl").write_bytes(b"{}\n")
    (folder / "nodes/client/programs/get.stdout").write_bytes(b"hello")
    (folder / "run.json").write_bytes(b"another each time")
    return folder


def test_equal_runs_have_no_difference_whatever_run_json_says(tmp_path: Path) -> None:
    one, other = _run(tmp_path / "one"), _run(tmp_path / "other")
    (other / "run.json").write_bytes(b"{}")
    assert first_difference(one, other) is None
    assert compared(one) == ["nodes/client/programs/get.stdout", "nodes/client/samples.jsonl", "wire/lan.pcapng"]


@pytest.mark.parametrize(
    ("name", "before", "after", "difference"),
    [
        ("wire/lan.pcapng", b"two", b"tvo", "wire/lan.pcapng: frame 2"),
        ("wire/lan.pcapng", b"tree", b"tref", "wire/lan.pcapng: frame 3"),
        ("nodes/client/programs/get.stdout", b"hello", b"hell", "nodes/client/programs/get.stdout: byte 4"),
        ("nodes/client/samples.jsonl", b"{}", b"[]", "nodes/client/samples.jsonl: byte 0"),
    ],
)
def test_the_first_difference_is_named(tmp_path: Path, name: str, before: bytes, after: bytes, difference: str) -> None:
    one, other = _run(tmp_path / "one"), _run(tmp_path / "other")
    (other / name).write_bytes((other / name).read_bytes().replace(before, after))
    assert first_difference(one, other) == difference


def test_a_file_that_one_run_lacks_is_a_difference(tmp_path: Path) -> None:
    one, other = _run(tmp_path / "one"), _run(tmp_path / "other")
    shutil.rmtree(other / "wire")
    assert first_difference(one, other) == f"{other / 'wire/lan.pcapng'}: does not exist"


def test_busy_loops_end_with_the_run() -> None:
    with pytest.raises(KeyboardInterrupt), hogs(1):
        raise KeyboardInterrupt

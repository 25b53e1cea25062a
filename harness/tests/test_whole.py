# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from sundial.whole import whole


def test_what_was_written_takes_its_place(tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    path.write_text("old")
    with whole(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old"
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"verify.json": "new"}


@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_what_was_there_before(tmp_path: Path, there: bool) -> None:
    path = tmp_path / "verify.json"
    if there:
        path.write_text("old")

    def write() -> None:
        with whole(path) as beside:
            beside.write_text("half of the n")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == ({"verify.json": "old"} if there else {})

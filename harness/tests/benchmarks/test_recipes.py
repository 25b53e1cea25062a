# SPDX-License-Identifier: Apache-2.0
"""What the benchmark of recipes reads from the programs that it runs, and from snapshots."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.context import Cannot
from benchmarks.recipes import calls, ready_s, snapshot_bytes
from sundial.machines.images import Image


def test_the_programs_of_the_image_are_understood() -> None:
    line = "virtual 1.416 s = 177 M instructions, processor 1.10 s, wall 2.38 s, memory MiB {'VmRSS': 194}\n"
    assert ready_s(line) == 1.416
    assert calls("udp 0 B: 22840 instructions\ntcp 1024 B: 28959 instructions\n") == {
        "udp 0 B": 22840.0,
        "tcp 1024 B": 28959.0,
    }


@pytest.mark.parametrize("read", [ready_s, calls])
@pytest.mark.parametrize("junk", ["", "no ready frame", "virtual time", "udp 0 B"])
def test_what_they_do_not_say_is_no_figure(read: object, junk: str) -> None:
    assert callable(read)
    with pytest.raises(Cannot, match=r"^measure-(boot|calls) says "):
        read(junk)


def test_a_snapshot_is_found_by_its_image(tmp_path: Path) -> None:
    image = Image("linux", tmp_path, tmp_path, "aa", "bb", {})

    def snapshot(name: str, kernel: str, size: int) -> None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").write_bytes(b"x" * size)
        key = {"kernel_sha256": kernel, "initrd_sha256": "bb"}
        (tmp_path / name / "meta.json").write_text(json.dumps({"key": key}))

    with pytest.raises(Cannot, match="no snapshot"):
        snapshot_bytes(tmp_path, image)
    snapshot("other", "cc", 1 << 20)
    snapshot("small", "aa", 1 << 12)
    snapshot("large", "aa", 1 << 16)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "meta.json").write_text("[")
    assert snapshot_bytes(tmp_path, image) == 1 << 16

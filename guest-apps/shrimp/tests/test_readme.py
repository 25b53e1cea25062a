# SPDX-License-Identifier: Apache-2.0
"""The walk of README.md, as a newcomer would type it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from rig import SHRIMP

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_walk(tmp_path: Path) -> None:
    walk = (SHRIMP / "README.md").read_text().split("## A service in ten minutes")[1].split("\n## ")[0]
    blocks = BLOCK.findall(walk)
    assert [kind for kind, _ in blocks] == ["c", "console", "c", "c", "console", "c"]
    (tmp_path / "calc.x").write_text(blocks[0][1])
    (tmp_path / "procedures.c").write_text(blocks[2][1])
    (tmp_path / "walk.c").write_text(blocks[3][1])
    (tmp_path / "shrimp").symlink_to(SHRIMP)
    for kind, block in blocks:
        if kind != "console":
            continue
        expected = "".join(line + "\n" for line in block.splitlines() if not line.startswith("$ "))
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        done = subprocess.run(
            " && ".join(commands), shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=6000, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")

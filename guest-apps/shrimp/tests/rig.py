# SPDX-License-Identifier: Apache-2.0
"""Runs the generator and the compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SHRIMP = Path(__file__).resolve().parents[1]
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Werror"]


def shrimpgen(file: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SHRIMP / "shrimpgen"), "--out", str(out), file.name]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=600, check=False)


def compiled(out: Path, output: str, *sources: Path | str, flags: tuple[str, ...] = ()) -> Path:
    command = ["gcc", *FLAGS, *flags, f"-I{SHRIMP}", f"-I{out}", "-o", str(out / output)]
    done = subprocess.run(
        [*command, *map(str, sources), str(SHRIMP / "shrimp.c")],
        capture_output=True,
        text=True,
        timeout=6000,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / output

# SPDX-License-Identifier: Apache-2.0
"""What a call can come to beside its results."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rig import SHRIMP, compiled, shrimpgen

INTERFACE = """
struct inner { int before; int some<2>; };
program EDGES { version FIRST {
    int SILENT(void) = 0;
    void TEXT(in string in_text<8>, out string back<8>) = 1;
    void NESTED(inner value) = 2;
    hyper BITS(hyper base, out hyper values[3]) = 3;
    void FAR(void) = 9;
    int add(int a, int b) = 10;
} = 1; } = 0x20000002;
"""


def test_the_edges(tmp_path: Path) -> None:
    (tmp_path / "edges.x").write_text(INTERFACE)
    assert shrimpgen(tmp_path / "edges.x", tmp_path).returncode == 0
    sources = [SHRIMP / "tests" / "edges.c", *tmp_path.glob("edges_shrimp_*.c")]
    program = compiled(tmp_path, "edges", *sources, flags=("-O1", "-fsanitize=address,undefined"))
    done = subprocess.run([program], capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")

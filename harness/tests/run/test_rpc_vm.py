# SPDX-License-Identifier: Apache-2.0
"""An interface of the user's own from its .x to a verified run: two procedures, over UDP and TCP."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from sundial.cli.main import sundial
from sundial.observe import open_run, read_frames
from tests.run.live import require_guests
from tests.run.served import passed

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]
CALC = """\
const NAME_MOST = 20;
struct point { int x; int y; };
program CALC {
    version FIRST {
        int ADD(int a, int b) = 1;
        string GREET(string name<NAME_MOST>, point where) = 2;
    } = 1;
} = 0x20000001;
"""
HEAD = 40
"""Bytes of a call in front of its arguments."""


def test_an_interface_runs_as_it_is_written_and_damage_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_guests()
    monkeypatch.chdir(tmp_path)
    Path("calc.x").write_text(CALC)
    made = CliRunner().invoke(sundial, ["rpc", "new", "calc.x"])
    assert made.exit_code == 0, made.output
    subprocess.run(["make", "-s", "-C", "calc"], check=True)
    out = tmp_path / "out"
    said = passed(tmp_path / "calc" / "calc.yaml", out)
    assert (
        "check    pass: check: 40 calls, 3440 bytes of XDR, 40 calls compared with values that clients printed" in said
    )
    assert "pass: check ADD_1: 20 calls" in said
    damaged(out, tmp_path / "damaged")
    result = CliRunner().invoke(sundial, ["rpc", "verify", "calc.x", str(tmp_path / "damaged"), "--json"])
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding.startswith(f"ADD_1 argument b at byte {HEAD + 4} of wire/lan.pcapng frame ")
    assert finding.endswith(": expected 2, as its client says, seen 3")


def damaged(run: Path, copy: Path) -> None:
    """A copy in which one bit of an argument of a call over UDP is another one, as its sender's port showed it."""
    shutil.copytree(run, copy)
    found = open_run(copy)
    frames = read_frames(found.capture_files, found.epoch_ns)
    calls = frames.filter(pl.col("target_port") == 20_000, pl.col("protocol") == 17, pl.col("direction") == 2)
    place = calls["octets_begin"][0] + 14 + calls["ip_length"][0] - 1
    capture = copy / "wire" / "lan.pcapng"
    data = bytearray(capture.read_bytes())
    data[place] ^= 1
    capture.write_bytes(data)

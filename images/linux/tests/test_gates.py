# SPDX-License-Identifier: Apache-2.0
"""The clock's gates divide the guest's time at any instruction, and the guest must not see it."""

import json
from pathlib import Path

import pytest
from testing.guest import ICOUNT, Guest

pytestmark = [pytest.mark.vm, pytest.mark.night]

PLUGIN = Path(__file__).resolve().parents[3] / "harness/clock/build/sundial-clock.so"
WAIT = {"version": 1, "wait": True}
UUID = "00000000-0000-4000-8000-000000000001"


def boot(folder: Path, image: Path, jitter: str) -> dict:
    """What the clock reports when the guest is ready: its instructions, its time, its gates."""
    report = folder / "report.json"
    plugin = f"file={PLUGIN},mode=boot,shift=3,report={report}{jitter}"
    with Guest(
        folder,
        image,
        WAIT,
        extra=(*ICOUNT, "-seed", "1", "-uuid", UUID, "-plugin", plugin),
    ) as guest:
        guest.start((folder / "l", folder / "r"))
        guest.wait_until(report.exists, "not ready")
    return json.loads(report.read_text())


def test_a_boot_cut_into_pieces_is_the_same_boot(image: Path, tmp_path: Path) -> None:
    whole = boot(tmp_path / "whole", image, "")
    pieces = boot(tmp_path / "pieces", image, ",jitter=1500")
    assert pieces["gates"] > 1000 * whole["gates"]
    assert pieces["max_overshoot_ns"] < 8
    for figure in ("instructions", "zero_ns", "status"):
        assert pieces[figure] == whole[figure]

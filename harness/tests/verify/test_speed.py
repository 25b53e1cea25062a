# SPDX-License-Identifier: Apache-2.0
"""100,000 calls of sizes up to 8 KiB are verified within a minute of one core, tshark included."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from sundial.verify import verify_run
from tests.verify.bed import RPC_PORT, Bed

CALLS = 100_000
SIZES = range(16, 8193, 512)
LIMIT_S = 60


def measure(directory: Path, calls: int = CALLS) -> tuple[float, int]:
    """CPU seconds (tshark's too) to verify `calls` Sun RPC echoes over UDP, and the frames they take."""
    bed = Bed(directory / "run")
    xid = 0
    for size in SIZES:
        bed.batch("echo-client", "udp", size, RPC_PORT, 700)
        for _ in range(calls // len(SIZES)):
            xid += 1
            bed.udp_call(size, xid)
    path = bed.write()
    del bed
    before = sum(os.times()[:4])
    result = verify_run(path)
    assert (result.verdict, result.calls) == ("pass", xid)
    return sum(os.times()[:4]) - before, result.frames


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_calls_in_a_minute(tmp_path: Path) -> None:
    seconds, frames = measure(tmp_path)
    assert seconds < LIMIT_S, f"{frames} frames took {seconds:.1f} s of processor time"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        spent, seen = measure(Path(scratch))
    sys.stdout.write(f"{CALLS} calls, {seen} frames: {spent:.1f} s of processor time\n")

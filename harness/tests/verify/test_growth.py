# SPDX-License-Identifier: Apache-2.0
"""Verification takes time in proportion to the calls of a run. How much, `benchmarks verification` measures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.verify import verify_run
from tests.growth import NEAR_LINEAR, growth
from tests.verify.bed import RPC_PORT, Bed
from tests.verify.mbcf_bed import MbcfBed

SIZES = (16, 1024, 4096, 8192)


def over_udp(directory: Path, calls: int) -> Path:
    """Echoes of 1 to 6 packets a way."""
    bed = Bed(directory / f"udp-{calls}")
    xid = 0
    for size in SIZES:
        bed.batch("echo-client", "udp", size, RPC_PORT, 700)
        for _ in range(calls // len(SIZES)):
            xid += 1
            bed.udp_call(size, xid)
    return bed.write()


def over_mbcf(directory: Path, calls: int) -> Path:
    """Echoes of a request, its reply and an ACK."""
    bed = MbcfBed(directory / f"mbcf-{calls}")
    bed.open()
    bed.batch("mbcf3", 16)
    for xid in range(1, calls + 1):
        bed.call("mbcf3", xid, 16)
    return bed.write()


@pytest.mark.night
@pytest.mark.timeout(900)
@pytest.mark.parametrize("make", [over_udp, over_mbcf])
def test_time_grows_with_the_number_of_calls(make: Callable[[Path, int], Path], tmp_path: Path) -> None:
    def work(calls: int) -> Callable[[], None]:
        run = make(tmp_path, calls)
        return lambda: _verify(run, calls)

    assert growth(work, small=500) < NEAR_LINEAR


def _verify(run: Path, calls: int) -> None:
    result = verify_run(run)
    assert (result.verdict, result.calls) == ("pass", calls)

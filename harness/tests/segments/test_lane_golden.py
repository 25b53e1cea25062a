# SPDX-License-Identifier: Apache-2.0
"""The stored run over LAN emulation against what must be said there, message by message."""

from __future__ import annotations

from pathlib import Path

from mutation import runs
from tests.segments.lane_golden import check_golden


def test_join_first_and_second_call(tmp_path: Path) -> None:
    check_golden(runs.recorded("lane-virtual", tmp_path))

# SPDX-License-Identifier: Apache-2.0
"""Paths of a run that never happens."""

from pathlib import Path

import pytest

from sundial.plan.paths import RunPaths


@pytest.fixture
def paths() -> RunPaths:
    return RunPaths(capture=Path("/run/wire"), sockets=Path("/run/s"), shm=Path("/dev/shm/sundial-x"))

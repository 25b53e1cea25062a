# SPDX-License-Identifier: Apache-2.0
"""The certification of this host's emulator, with booted guests: it passes, and a clock that lies does not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sundial.model.images import FOLDER
from sundial.run.places import Places
from tests.run.live import END_S, require_guests, sundial

pytestmark = [pytest.mark.vm, pytest.mark.night, pytest.mark.alone, pytest.mark.timeout(1800)]

SHORTEN = "    countdown->left = (uint16_t)instructions;\n"
LIE = "    static unsigned looks;\n    if (++looks % 100 == 0)\n        budget->extra--; // an instruction that is not accounted\n"
"""In one of a hundred looks."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests("linux", "ssscore")


def test_this_emulator_is_certified() -> None:
    done = sundial("doctor", "--certify", seconds=2 * END_S)
    assert done.returncode == 0, done.stderr
    assert "keeps virtual time (certified)" in done.stdout

# SPDX-License-Identifier: Apache-2.0
"""A stored run over LAN emulation with captures and counters that no damage of `mutation` makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import runs
from mutation.damage import Copy
from sundial.errors import BadInput
from sundial.verify import verify_run

PDUS, CELLS = (f"wire/atm/elan.{kind}.pcapng" for kind in ("pdus", "cells"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.recorded("lane-virtual", tmp_path_factory.mktemp("lane"))


@pytest.mark.parametrize("name", [PDUS, CELLS])
def test_a_capture_of_other_interfaces_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    copy = Copy(run, tmp_path / "run")
    copy.write(name, copy.read(name).replace(b"elan:fate", b"alan:fate"))
    copy.seal(samples=False)
    with pytest.raises(BadInput, match=r"interfaces client:eth0, server:eth0, alan:fate; allowed: .* elan:fate"):
        verify_run(copy.path)


def test_a_channel_that_nobody_used_is_not_counted(run: Path, tmp_path: Path) -> None:
    copy = Copy(run, tmp_path / "run")
    counters = copy.json("wire/counters.json")
    counters["segments"]["elan"]["channels"]["client:eth0 0.66"] = {"cells_in": 0, "cells_out": 0, "dropped": {}}
    copy.write_json("wire/counters.json", counters)
    copy.seal(samples=False)
    assert [problem["field"] for problem in verify_run(copy.path).problems] == ["elan client:eth0 0.66"]

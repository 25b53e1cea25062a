# SPDX-License-Identifier: Apache-2.0
"""Every scenario that is shipped, once, with booted guests and as small as it gets.

Found by listing the folders, so that a new file is tested without being named here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.model.catalog import names
from sundial.model.load import load_experiments
from tests.run.live import LiveRun, require_nodes

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900)]

WHOLE = {"mbcf-operations", "shrimp-rpc-sweep", "sss-mixed", "sss-rpc-sweep", "vmmc-operations"}
"""Small enough to be run as they are."""


def smallest(scenario: str) -> Iterator[str]:
    """The least and the greatest size, one call of each, one series, one second."""
    for number, workload in enumerate(load_experiments(scenario)[0].scenario.workloads):
        written = workload.model_dump(exclude_none=True)
        if "sizes" in written:
            sizes = sorted(written["sizes"])
            yield f"workloads.{number}.sizes={sizes[0]},{sizes[-1]}"
        for field, least in (("calls", "1"), ("series", "1"), ("duration", "1 s")):
            if field in written:
                yield f"workloads.{number}.{field}={least}"


@pytest.mark.parametrize("scenario", names("scenario"))
def test_a_scenario_runs_and_verifies(tmp_path: Path, scenario: str) -> None:
    for experiment in load_experiments(scenario):
        require_nodes(experiment.network)
    sets = [] if scenario in WHOLE else [word for change in smallest(scenario) for word in ("--set", change)]
    status, output = LiveRun(Path(scenario), tmp_path / "run", *sets).end()
    assert status == 0, output
    assert output.count("verdict  pass") == len(load_experiments(scenario))

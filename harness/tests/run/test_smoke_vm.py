# SPDX-License-Identifier: Apache-2.0
"""Every shipped scenario with booted guests, as small as it gets, checked against recorded digests.

Scenarios are found by listing the folder: a new file is tested without being named here.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sundial.model.catalog import names
from sundial.model.load import load_experiments
from tests.run import stock
from tests.run.digests import different, digests, find, key, load
from tests.run.live import LiveRun, night, require_nodes
from tests.run.smallest import PACKAGED, options, run_first_variant, variants

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]


def require(scenario: str) -> None:
    if scenario in PACKAGED and shutil.which("apt-get") is None:
        pytest.skip("apt-get is not here")
    for experiment in load_experiments(scenario):
        require_nodes(experiment.network)


@pytest.mark.parametrize("scenario", [night(name) if name in PACKAGED else name for name in names("scenario")])
def test_first_variant_verifies_and_repeats_to_the_byte(
    tmp_path: Path, scenario: str, record_property: pytest.RecordProperty
) -> None:
    require(scenario)
    # `make run`; how the others' reports are made is seen of recorded runs, and of all scenarios at night.
    run = run_first_variant(scenario, tmp_path / "one", report=scenario == "quickstart")
    actual = digests(run)
    how, recorded = find(load().get(scenario, []), key(json.loads((run / "run.json").read_text())), actual)
    record_property("digests", how)
    expected = recorded or digests(run_first_variant(scenario, tmp_path / "two"))
    assert different(expected, actual) == []
    if scenario in stock.WORKLOADS and scenario not in stock.AT_NIGHT:
        assert stock.wrong(run) == []


@pytest.mark.night
@pytest.mark.parametrize("scenario", names("scenario"))
def test_every_variant_verifies_and_has_a_report(tmp_path: Path, scenario: str) -> None:
    require(scenario)
    status, output = LiveRun(Path(scenario), tmp_path / "run", *options(scenario), report=True).end()
    assert status == 0, output
    assert output.count("verdict  pass") == output.count("report   ") == variants(scenario)
    if scenario in stock.WORKLOADS:
        runs = sorted(path.parent for path in tmp_path.glob("run*/verify.json"))
        assert len(runs) == variants(scenario)
        assert [line for run in runs for line in stock.wrong(run)] == []

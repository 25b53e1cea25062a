# SPDX-License-Identifier: Apache-2.0
"""Every scenario and every topology that is shipped, once, with booted guests and as small as it gets.

Found by listing the folders, so that a new file is tested without being named here.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.model.catalog import names
from sundial.model.images import IMAGES
from sundial.model.load import load_experiments, load_topology
from sundial.model.network import build_network
from sundial.run.places import Places
from tests.run.live import LiveRun, require_guests, sundial, up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(400)]

RUN_S = 300.0
WHOLE = {"mbcf-operations", "sss-mixed", "sss-rpc-sweep"}
"""Small enough to be run as they are."""


@pytest.fixture(autouse=True)
def guests() -> None:
    require_guests()
    for image in IMAGES:
        if not (Places().checkout / "images" / "out" / image / "manifest.json").is_file():
            pytest.skip(f"images/out/{image} is not built")


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
    sets = [] if scenario in WHOLE else [word for change in smallest(scenario) for word in ("--set", change)]
    status, output = LiveRun(Path(scenario), tmp_path / "run", *sets).end(RUN_S)
    assert status == 0, output
    assert output.count("verdict  pass") == len(load_experiments(scenario))


@pytest.mark.parametrize("topology", names("topology"))
def test_a_topology_comes_up_and_answers(tmp_path: Path, topology: str) -> None:
    network = build_network(load_topology(topology))
    # A file of its own, lest it be up already under its name.
    file = tmp_path / f"smoke-{topology}.yaml"
    file.write_text((Places().checkout / "topologies" / f"{topology}.yaml").read_text())
    addresses = [str(nic.address.ip) for nic in network.nics() if nic.address is not None]
    with up(file) as kept:
        for node in network.nodes:
            image = IMAGES[node.image]
            own = {str(nic.address.ip) for nic in node.nics if nic.address is not None}
            command = ("ping", "-c", "3", "-W", "30", next(address for address in addresses if address not in own))
            if not own or not image.streams_commands:
                command = image.greeting
            done = sundial("exec", "--topology", kept["topology"], "--timeout", "2 min", node.name, "--", *command)
            assert done.returncode == 0, (node.name, done.stdout, done.stderr)
    final = Path(kept["final"])
    try:
        assert json.loads((final / "run.json").read_text())["status"] == "complete"
        assert {path.stem for path in (final / "wire").glob("*.pcapng")} == set(network.segments)
    finally:
        shutil.rmtree(final, ignore_errors=True)

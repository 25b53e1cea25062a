# SPDX-License-Identifier: Apache-2.0
"""Every topology that is shipped comes up with booted guests, and they answer.

Found by listing the folder, so that a new file is tested without being named here. Those that a scenario uses come up
in test_smoke_vm, too.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sundial.model.catalog import FOLDERS, names
from sundial.model.images import IMAGES
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.run.places import Places
from tests.run.live import night, require_nodes, sundial, up

pytestmark = [pytest.mark.vm, pytest.mark.timeout(900), pytest.mark.spread]


_TOPOLOGIES = [YAML(typ="safe", pure=True).load(path)["topology"] for path in FOLDERS["scenario"].glob("*.yaml")]
USED = {each for each in _TOPOLOGIES if isinstance(each, str)}
"""By a scenario; one may have its topology inside."""


@pytest.mark.parametrize("topology", [night(name) if name in USED else name for name in names("topology")])
def test_a_topology_comes_up_and_answers(tmp_path: Path, topology: str) -> None:
    network = build_network(load_topology(topology))
    require_nodes(network)
    # A file of its own, lest it be up already under its name.
    file = tmp_path / f"smoke-{topology}.yaml"
    shipped = Places().checkout / "topologies" / topology
    file.write_text(shipped.with_suffix(".yaml").read_text())
    if shipped.is_dir():  # what it lays into machines
        shutil.copytree(shipped, tmp_path / topology)
    addresses = [str(nic.address.ip) for nic in network.nics() if nic.address is not None]
    # Under virtual time guests are restored; `exec` and daemons' tests bring them up under the real clock.
    with up(file, "--clock", "virtual") as kept:
        for node in network.nodes:
            image = IMAGES[node.image]
            own = {str(nic.address.ip) for nic in node.nics if nic.address is not None}
            command = (
                "ping",
                "-c",
                "3",
                "-W",
                "30",
                next((address for address in addresses if address not in own), "127.0.0.1"),
            )
            if not own or not image.streams_commands:
                command = image.greeting
            done = sundial("exec", "--topology", kept["topology"], "--timeout", "2 min", node.name, "--", *command)
            assert done.returncode == 0, (node.name, done.stdout, done.stderr)
    final = Path(kept["final"])
    try:
        assert json.loads((final / "run.json").read_text())["status"] == "complete"
        assert {path.stem for path in (final / "wire").glob("*.pcapng")} == set(network.captured)
    finally:
        shutil.rmtree(final, ignore_errors=True)

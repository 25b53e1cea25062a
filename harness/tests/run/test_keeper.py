# SPDX-License-Identifier: Apache-2.0
"""What is known of topologies that are up, without any machine."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sundial.errors import BadInput, RunFailed
from sundial.machines.command import Gathered
from sundial.machines.foreground import Foreground
from sundial.model import catalog
from sundial.model.load import load_topology
from sundial.model.network import build_network
from sundial.plan.request import Kept, KeptMachine, UpRequest
from sundial.run import keeper
from sundial.run.places import Places
from sundial.run.upfolder import (
    KeeperRecord,
    UpFolder,
    all_up,
    kept_from_json,
    request_from_json,
    request_to_json,
)

MACHINES = (
    KeptMachine("client", "linux", "10.0.0.1", "/run/c.sock"),
    KeptMachine("node", "ssscore", "10.0.0.2", "/run/d.sock"),
)
KEPT = Kept("lab", "real", Path("/captures/.up-lab-1-001.partial"), Path("/captures/up-lab-1-001"), 1, MACHINES)
NOTHING = Foreground(None)
HOLD = """
import sys
from pathlib import Path
from sundial.run.upfolder import UpFolder
assert UpFolder(Path(sys.argv[1]), "lab").take()
print("taken", flush=True)
sys.stdin.read()
"""


def record(pid: int = 1) -> KeeperRecord:
    kept = dataclasses.replace(KEPT, pid=pid)
    return KeeperRecord("/nonexistent/keeper.sock", kept, dict.fromkeys(("client", "node"), "/nonexistent/e.sock"))


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = UpFolder(tmp_path, "lab")
    assert folder.take()
    folder.write(record())
    assert UpFolder(tmp_path, "lab").read() == record()
    assert list(all_up(tmp_path)) == [record()]
    assert kept_from_json(json.loads(json.dumps(KEPT.to_json()))) == KEPT
    folder.let_go()
    assert list(all_up(tmp_path)) == []


def test_the_keepers_request_survives_its_way_through_json(tmp_path: Path) -> None:
    for name in catalog.names("topology"):
        topology = load_topology(name)
        request = UpRequest(topology, build_network(topology), "real", 7, "embedded")
        document = json.loads(json.dumps(request_to_json(request, Places.beneath(tmp_path))))
        assert request_from_json(document) == (request, Places.beneath(tmp_path))


def test_only_one_can_keep_a_topology(tmp_path: Path) -> None:
    first = UpFolder(tmp_path, "lab")
    assert first.take()
    assert not UpFolder(tmp_path, "lab").take()
    assert UpFolder(tmp_path, "other").take()
    first.let_go()
    assert UpFolder(tmp_path, "lab").take()


def test_what_a_dead_keeper_left_is_nothing(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        UpFolder(tmp_path, "lab").write(record(holder.pid))
        assert [found.kept.pid for found in all_up(tmp_path)] == [holder.pid]
        holder.kill()
    assert list(all_up(tmp_path)) == []
    assert not (tmp_path / "lab").exists()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places.beneath(tmp_path)


def test_a_folder_that_is_about_to_be_taken_stays(tmp_path: Path) -> None:
    """Another command may look between the start of a keeper and its lock."""
    folder = UpFolder(tmp_path, "pair")
    folder.make()
    (folder.path / "keeper.log").touch()
    assert list(all_up(tmp_path)) == []
    assert folder.read() is None
    assert (folder.path / "keeper.log").exists()
    folder.make()
    assert list(folder.path.iterdir()) == []


def test_with_nothing_up_there_is_nothing_to_use(places: Places) -> None:
    assert keeper.list_(places) == []
    assert keeper.down(None, places) == []
    with pytest.raises(BadInput, match="nothing is up"):
        keeper.exec_("client", ["true"], NOTHING, Gathered(), None, places)
    with pytest.raises(BadInput, match="nothing is up"):
        keeper.down("lab", places)


def test_the_wrong_name_lists_the_right_ones(places: Places) -> None:
    folders = [UpFolder(places.up, name) for name in ("lab", "wan")]
    for folder in folders:
        assert folder.take()
        kept = dataclasses.replace(KEPT, topology=folder.topology, machines=MACHINES[:1])
        folder.write(KeeperRecord("/nonexistent", kept, {"client": "/nonexistent"}))
    with pytest.raises(BadInput, match="several topologies are up; allowed: lab, wan"):
        keeper.exec_("client", ["true"], NOTHING, Gathered(), None, places)
    with pytest.raises(BadInput, match="office is not up; allowed: lab, wan"):
        keeper.console("client", "office", places)
    with pytest.raises(BadInput, match="lab has no machine 'absent'; allowed: client"):
        keeper.exec_("absent", ["true"], NOTHING, Gathered(), "lab", places)
    for folder in folders:
        folder.let_go()


def test_a_monitor_has_neither_a_terminal_nor_input(places: Places) -> None:
    folder = UpFolder(places.up, "lab")
    assert folder.take()
    folder.write(record())
    reading, writing = os.pipe()
    try:
        with pytest.raises(BadInput, match="--terminal: image ssscore does not support --terminal"):
            keeper.exec_("node", ["tasks"], Foreground(reading, terminal=True), Gathered(), None, places)
        with pytest.raises(RunFailed, match="node: it takes no commands"):
            keeper.exec_("node", ["tasks"], Foreground(reading), Gathered(), None, places)
        os.write(writing, b"x")
        with pytest.raises(BadInput, match="image ssscore does not support standard input"):
            keeper.exec_("node", ["tasks"], Foreground(reading), Gathered(), None, places)
    finally:
        os.close(reading)
        os.close(writing)
        folder.let_go()

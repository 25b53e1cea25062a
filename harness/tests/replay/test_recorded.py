# SPDX-License-Identifier: Apache-2.0
"""Runs that cannot be made again are refused, with what they are."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import sundial
from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.replay.recorded import check_same, read_recorded, recipe_of
from tests.verify.bed import OUT, Record, capture

CAPTURE = capture(["server:eth0", "client:eth0"], [Record(0, 0, OUT, bytes(60))])
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run directory as `sundial run quickstart` leaves it, with one frame."""
    (experiment,) = load_experiments("quickstart")
    document = {
        "version": 1,
        "status": "complete",
        "error": None,
        "scenario": experiment.scenario_json(),
        "topology": experiment.topology_json(),
        "seed": 1,
        "clock": "virtual",
        "versions": {"sundial": sundial.__version__, "qemu": "7.2.22"},
        "images": {"linux": {"sha256": {"kernel": "0", "initrd": "0"}, "recipe": "distribution", "hz": 250}},
        "time": {"virtual_ns": 10**9, "wall_s": 1.0},
        "captures": {"wire/lan.pcapng": sha256(CAPTURE).hexdigest()},
        "nodes": {},
    }
    (tmp_path / "wire").mkdir()
    (tmp_path / "wire" / "lan.pcapng").write_bytes(CAPTURE)
    (tmp_path / "run.json").write_text(json.dumps(document))
    return tmp_path


def test_a_complete_run_is_taken(folder: Path) -> None:
    recorded = read_recorded(folder)
    assert {name: len(frames.at_ns) for name, frames in recorded.segments.items()} == {"lan": 1}
    assert recorded.end_ns == 10**9
    assert recorded.experiment.scenario.name == "quickstart"
    recorded.check_machine("server")
    with pytest.raises(BadInput, match="--gdb: the run has no machine 'printer'; allowed: client, server"):
        recorded.check_machine("printer")


def test_a_run_that_failed_and_came_to_its_end_is_taken(folder: Path) -> None:
    run = json.loads((folder / "run.json").read_text())
    run.update(status="failed", error={"message": "client: its job failed: status 1", "end_ns": 7})
    (folder / "run.json").write_text(json.dumps(run))
    recorded = read_recorded(folder)
    assert (recorded.end_ns, recorded.failure) == (7, "client: its job failed: status 1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.update(clock="real"), "the run was made under the real clock; allowed: runs of"),
        (lambda run: run.update(scenario=None), "the run is a topology that was kept up: what was done by hand is not"),
        (lambda run: run.update(status="failed"), "the run is failed, and was cut short; allowed: runs of a scenario"),
        (lambda run: run.update(time={}), "the run has no length; allowed"),
        (lambda run: run.update(topology={}), r"run.json: topology: "),
        (lambda run: run.pop("seed"), r"run.json: seed, clock: has no seed or clock"),
        (lambda run: run["captures"].update({"wire/lan.pcapng": "0"}), "is not the capture that the run wrote"),
        (lambda run: run["captures"].update({"wire/x.pcapng": "0"}), "is not there any more; allowed: runs with their"),
    ],
)
def test_another_run_is_refused(folder: Path, change: Change, message: str) -> None:
    run = json.loads((folder / "run.json").read_text())
    change(run)
    (folder / "run.json").write_text(json.dumps(run))
    with pytest.raises(BadInput, match=message):
        read_recorded(folder)


class _Hypervisor:
    def versions(self) -> dict[str, str]:
        return {"qemu": "10.0.3", "libvirt": "9"}


class _Session:
    hypervisor = _Hypervisor()


def test_another_qemu_is_refused(folder: Path) -> None:
    session: Any = _Session()
    with pytest.raises(
        BadInput, match=r"the run was made with qemu 7\.2\.22, here is 10\.0\.3; allowed: qemu 7\.2\.22"
    ):
        check_same(read_recorded(folder), session)


@pytest.mark.parametrize(
    ("recipes", "found"),
    [(["tuned", "tuned"], "tuned"), (["tuned", "distribution"], None), (["own"], None), ([None], None), ([], None)],
)
def test_the_recipe_is_that_of_all_images(recipes: list[str | None], found: str | None) -> None:
    images = {str(place): {"recipe": recipe} for place, recipe in enumerate(recipes)}
    assert recipe_of({"images": images}) == found

# SPDX-License-Identifier: Apache-2.0
"""The states of a topology that is brought up, and the ways between them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sundial.model.load import load_experiments
from sundial.run.bringup import BringUp, State
from sundial.run.interrupts import Interrupts
from sundial.run.runner import order_of
from tests.run.stage import Stage


@pytest.fixture
def bring_up(stage: Stage) -> BringUp:
    return BringUp(order_of(stage.request(), ()), stage.session, Interrupts(), stage.words.say)


def test_it_begins_off_with_a_directory_of_its_own(bring_up: BringUp, stage: Stage) -> None:
    assert bring_up.state is State.OFF
    assert stage.partial() == bring_up.folder.path
    assert bring_up.rig.machines == {}


def test_off_paused_running_done(bring_up: BringUp, stage: Stage) -> None:
    bring_up.transition(State.PAUSED)
    assert json.loads((bring_up.folder.path / "run.json").read_text())["status"] == "interrupted"
    assert sorted(bring_up.rig.machines) == ["client", "server"]
    bring_up.transition(State.RUNNING)
    bring_up.transition(State.DONE)
    final, error, _ = bring_up.conclude(None, 7, collect=False)
    assert error is None
    assert json.loads((final / "run.json").read_text())["time"]["virtual_ns"] == 7
    assert stage.leftovers() == []


@pytest.mark.parametrize("reached", [[], [State.PAUSED], [State.PAUSED, State.RUNNING]])
def test_done_is_reached_from_everywhere_and_twice(bring_up: BringUp, stage: Stage, reached: list[State]) -> None:
    for state in reached:
        bring_up.transition(state)
    for _ in range(2):
        bring_up.transition(State.DONE)
        assert bring_up.state is State.DONE
    bring_up.conclude(None, None, collect=False)
    assert stage.leftovers() == []


@pytest.mark.parametrize(
    ("reached", "target"),
    [
        ([], State.RUNNING),
        ([], State.OFF),
        ([State.PAUSED], State.PAUSED),
        ([State.PAUSED, State.RUNNING], State.PAUSED),
        ([State.DONE], State.PAUSED),
        ([State.DONE], State.RUNNING),
    ],
)
def test_other_ways_do_not_exist(bring_up: BringUp, reached: list[State], target: State) -> None:
    for state in reached:
        bring_up.transition(state)
    with pytest.raises(ValueError, match=f"no transition from {bring_up.state.value} to {target.value}"):
        bring_up.transition(target)
    bring_up.transition(State.DONE)


OWN = """\
description: Two hosts, one with a file of its own
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}, files: {/x: {from: file}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
segments:
  lan: {kind: hub, rate: 10 Mbit/s, cable_delay: 25 ns, ports: ["client:eth0", "server:eth0"]}
"""


def test_what_is_booted_is_what_was_there_when_the_run_began(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before\n")
    (tmp_path / "own.yaml").write_text(OWN)
    (experiment,) = load_experiments("quickstart", topology=str(tmp_path / "own.yaml"), clock="real")
    request = replace(stage.request(), experiment=experiment)
    bring_up = BringUp(order_of(request, ()), stage.session, Interrupts(), stage.words.say)
    (tmp_path / "file").write_text("after\n")
    bring_up.transition(State.PAUSED)
    document = json.loads((bring_up.folder.path / "run.json").read_text())
    (booted,) = document["boots"].values()
    assert booted["files"]["/x"]["sha256"] == hashlib.sha256(b"before\n").hexdigest()
    domains = {name: (bring_up.folder.node(name) / "domain.xml").read_text() for name in ("client", "server")}
    (copy,) = re.findall(r"<initrd>(.*)</initrd>", domains["client"])
    assert Path(copy).name == booted["initrd"] == hashlib.sha256(Path(copy).read_bytes()).hexdigest()
    assert b"before\n" in Path(copy).read_bytes()
    assert copy not in domains["server"]
    policy = (stage.session.runtime.path / "0" / "policy-client").read_text()
    assert f"read {copy}\n" in policy
    assert f"write {Path(copy).parent}\n" not in policy
    bring_up.transition(State.DONE)
    bring_up.conclude(None, None, collect=False)
    assert stage.leftovers() == []

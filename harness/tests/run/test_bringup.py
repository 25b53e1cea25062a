# SPDX-License-Identifier: Apache-2.0
"""The states of a topology that is brought up, and the ways between them."""

from __future__ import annotations

import json

import pytest

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

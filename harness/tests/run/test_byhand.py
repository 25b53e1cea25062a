# SPDX-License-Identifier: Apache-2.0
"""Changes by hand, without a fabric: what is sent to it, what is in force, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sundial.errors import BadInput, RunFailed
from sundial.model.load import load_live
from sundial.model.network import build_network
from sundial.model.recorded import recorded_events
from sundial.model.topology import Clock
from sundial.run.byhand import ByHand, shown


class Fabric:
    """Changes at once, or `late_ns` later."""

    def __init__(self) -> None:
        self.now_ns, self.late_ns = 1_000, 0
        self.changes: list[tuple[str, Mapping[str, Any]]] = []

    def change(self, segment: str, change: Mapping[str, Any]) -> int:
        self.changes.append((segment, change))
        return self.now_ns + self.late_ns


@pytest.fixture(name="made")
def _made() -> tuple[ByHand, Fabric]:
    topology = load_live("two-hosts-wan")
    return ByHand(topology, build_network(topology)), Fabric()


def test_what_is_not_named_stays(made: tuple[ByHand, Fabric]) -> None:
    by_hand, fabric = made
    by_hand.apply({"impair": "wan", "from": "client:eth0", "loss": "30 %"}, 1_000, fabric.change)
    segment, change = fabric.changes[0]
    assert segment == "wan"
    assert change["note"] == "timeline: impair wan, from client:eth0, loss 30 %"
    assert change["impairments"]["0"] == {**change["impairments"]["1"], "loss": 0.3}
    assert shown(by_hand.states()["wan"])["impairments"]["client:eth0"]["loss"] == "30 %"


def test_an_event_is_recorded_at_the_instant_of_the_fabric(made: tuple[ByHand, Fabric]) -> None:
    by_hand, fabric = made
    fabric.late_ns = 500_000
    assert by_hand.apply({"cut": "server:eth0"}, 1_000, fabric.change).at == 501_000
    # The fabric was asked at an instant before the last change took place.
    fabric.now_ns = 600_000
    by_hand.apply({"heal": "wan"}, 2_000, fabric.change)
    assert fabric.changes[1][1]["at_ns"] == 501_001
    written = by_hand.to_json()
    assert [(event["at"], *event.keys() - {"at"}) for event in written] == [("501 us", "cut"), ("1.1 ms", "heal")]
    assert [event.at for event in recorded_events({"scenario": None, "timeline": written})] == [501_000, 1_100_000]
    assert not by_hand.states()["wan"].cut


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ({"cut": "server:eth0"}, "server:eth0 is cut already at 2 us"),
        ({"heal": "client:eth0"}, "nothing is cut there at 2 us"),
        ({"impair": "lan", "loss": "1 %"}, "there is no segment 'lan'"),
        ({"impair": "wan"}, "nothing changes"),
        ({"impair": "wan", "gap": 5}, "gap"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    made: tuple[ByHand, Fabric], event: Mapping[str, Any], what: str
) -> None:
    by_hand, fabric = made
    by_hand.apply({"cut": "server:eth0"}, 1_000, fabric.change)
    with pytest.raises(BadInput, match=what):
        by_hand.apply(event, 2_000, fabric.change)
    assert len(fabric.changes) == len(by_hand.to_json()) == 1


def test_a_change_that_the_fabric_did_not_make_is_not_recorded(made: tuple[ByHand, Fabric]) -> None:
    by_hand, _ = made

    def gone(segment: str, change: Mapping[str, Any]) -> int:
        raise RunFailed(f"does not change {segment}", machine="fabric")

    with pytest.raises(RunFailed):
        by_hand.apply({"cut": "wan"}, 1_000, gone)
    assert by_hand.to_json() == []


def test_virtual_time_may_have_run_ahead_by_days(made: tuple[ByHand, Fabric]) -> None:
    by_hand, fabric = made
    fabric.now_ns = 123_761_292_782_901
    by_hand.apply({"cut": "wan"}, fabric.now_ns, fabric.change)
    assert [event.at for event in recorded_events({"scenario": None, "timeline": by_hand.to_json()})] == [fabric.now_ns]


def test_a_machine_loses_its_power_on_its_segment(made: tuple[ByHand, Fabric]) -> None:
    by_hand, fabric = made
    event = by_hand.apply({"power_off": "server"}, 1_000, fabric.change)
    assert fabric.changes[0][0] == "wan"
    assert fabric.changes[0][1]["off"] == [1]
    assert event.words == "power_off server"
    assert shown(by_hand.states()["wan"])["off"] == ["server:eth0"]
    with pytest.raises(BadInput, match="'server' is off already"):
        by_hand.apply({"power_off": "server"}, 2_000, fabric.change)
    with pytest.raises(BadInput, match="there is no machine 'wan'"):
        by_hand.apply({"power_off": "wan"}, 2_000, fabric.change)


def test_a_machine_that_is_off_boots_again(made: tuple[ByHand, Fabric]) -> None:
    by_hand, fabric = made
    with pytest.raises(BadInput, match="'server' is not off"):
        by_hand.apply({"power_on": "server"}, 1_000, fabric.change)
    by_hand.apply({"power_off": "server"}, 1_000, fabric.change)
    event = by_hand.apply({"power_on": "server"}, 2_000, fabric.change)
    assert event.words == "power_on server"
    assert "off" not in fabric.changes[-1][1]
    assert shown(by_hand.states()["wan"])["off"] == []
    with pytest.raises(BadInput, match="power_on lasts to the end"):
        by_hand.apply({"power_on": "server", "for": "1 s"}, 3_000, fabric.change)
    by_hand.apply({"power_off": "server"}, 3_000, fabric.change)
    assert shown(by_hand.states()["wan"])["off"] == ["server:eth0"]


@pytest.mark.parametrize(
    ("topology", "clock", "machine", "what"),
    [
        ("two-hosts-wan", "virtual", "server", "the other machines would wait for it"),
        ("two-hosts-10base-t", "real", "server", "'lan' is a hub"),
        ("two-hosts-netem", "real", "netem", "is on 2 segments"),
    ],
)
def test_a_machine_that_cannot_lose_its_power_by_hand_is_refused(
    topology: str, clock: Clock, machine: str, what: str
) -> None:
    loaded = load_live(topology, clock=clock)
    fabric = Fabric()
    with pytest.raises(BadInput, match=what):
        ByHand(loaded, build_network(loaded)).apply({"power_off": machine}, 1_000, fabric.change)
    assert not fabric.changes

# SPDX-License-Identifier: Apache-2.0
"""Events of a scenario: the states that follow from them, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments
from sundial.model.recorded import recorded_experiment
from sundial.model.timeline import State

SCENARIO = """\
description: events
topology: {topology}
deadline: 10 s
linger: 1 s
timeline:
{events}
workloads: [{{app: raw, transports: [udp], server: server, sizes: [64], calls: 1}}]
"""

LINK = """\
description: one link
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}}}
segments:
  wan: {kind: link, rate: 10 Mbit/s, ports: ["client:eth0", "server:eth0"],
        impairments: {both: {delay: 1 ms}, "client:eth0": {loss: 1 %}}}
"""
KINDS = """\
description: other kinds
machines:
  client: {interfaces: {eth0: {address: 10.0.0.1/24}, eth1: {address: 10.1.0.1/24}}}
  server: {interfaces: {eth0: {address: 10.0.0.2/24}, eth1: {address: 10.1.0.2/24}}}
segments:
  half: {kind: hub, rate: 10 Mbit/s, ports: ["client:eth0", "server:eth0"]}
  wan: {kind: link, rate: 10 Mbit/s, ports: ["client:eth1", "server:eth1"]}
"""


def experiment(folder: Path, events: str, topology: str = LINK) -> Any:
    (folder / "net.yaml").write_text(topology)
    lines = "".join(f"  - {{{event}}}\n" for event in events.splitlines())
    path = folder / "events.yaml"
    path.write_text(SCENARIO.format(topology="net.yaml", events=lines))
    return load_experiments(str(path))[0]


def states(folder: Path, events: str) -> tuple[State, ...]:
    found: tuple[State, ...] = experiment(folder, events).network.segments["wan"].timeline
    return found


def test_an_event_is_in_force_for_its_time(tmp_path: Path) -> None:
    first, second = states(tmp_path, "at: 2 s, for: 500 ms, cut: 'client:eth0'")
    assert (first.at_ns, first.note, first.cut) == (2 * 10**9, "cut client:eth0", frozenset(("client:eth0",)))
    assert (second.at_ns, second.note, second.cut) == (2_500_000_000, "end of cut client:eth0", frozenset())
    assert first.blocks("client:eth0", "server:eth0") == first.blocks("server:eth0", "client:eth0") == "cut"


def test_fields_that_are_named_change_and_others_stay(tmp_path: Path) -> None:
    events = "at: 1 s, impair: wan, from: 'client:eth0', delay: 5 ms\nat: 2 s, impair: wan, reset: true"
    first, second = states(tmp_path, events)
    one, other = first.impairments["client:eth0"], first.impairments["server:eth0"]
    assert (one.delay, f"{one.loss}", other.delay, other.loss) == (5_000_000, "0.01", 1_000_000, None)
    assert first.note == "impair wan, from client:eth0, delay 5 ms"
    assert second.impairments["client:eth0"].delay == 1_000_000
    assert second.note == "impair wan, reset true"


def test_the_later_of_two_models_of_loss_is_in_force(tmp_path: Path) -> None:
    (state,) = states(tmp_path, "at: 1 s, impair: wan, gemodel: {p: 1 %, r: 10 %}")
    assert state.impairments["client:eth0"].loss is None


def test_heal_ends_cuts_and_partitions(tmp_path: Path) -> None:
    events = (
        "at: 1 s, segment: wan, partition: [[client], [server]]\n"
        "at: 2 s, cut: wan\nat: 3 s, heal: 'server:eth0'\nat: 4 s, heal: wan"
    )
    found = states(tmp_path, events)
    assert [state.blocks("client:eth0", "server:eth0") for state in found] == ["partition", "cut", "cut", None]
    assert found[2].cut == {"client:eth0"}
    assert found[3] == State(4 * 10**9, "heal wan", impairments=found[3].impairments)


def test_events_of_one_instant_make_one_state(tmp_path: Path) -> None:
    (state,) = states(tmp_path, "at: 1 s, cut: wan\nat: 1 s, impair: wan, delay: 3 ms")
    assert state.note == "cut wan; impair wan, delay 3 ms"


def test_a_cut_that_follows_another_at_once_is_no_contradiction(tmp_path: Path) -> None:
    found = states(tmp_path, "at: 1 s, for: 1 s, cut: wan\nat: 2 s, for: 1 s, cut: wan")
    assert [bool(state.cut) for state in found] == [True, True, False]


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    run = experiment(tmp_path, "at: 2 s, for: 500 ms, impair: wan, from: 'client:eth0', loss: 5 %\nat: 4 s, cut: wan")
    document = {
        "scenario": run.scenario_json(), "topology": run.topology_json(), "seed": 1, "clock": "virtual",
    }  # fmt: skip
    assert document["scenario"]["timeline"][0] == {
        "at": "2 s", "for": "500 ms", "impair": "wan", "from": "client:eth0", "loss": "5 %",
    }  # fmt: skip
    again = recorded_experiment(document)
    assert again.network.segments["wan"].timeline == run.network.segments["wan"].timeline


def test_a_scenario_without_events_is_recorded_as_before(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(LINK)
    path = tmp_path / "plain.yaml"
    path.write_text(SCENARIO.format(topology="net.yaml", events="  []"))
    assert "timeline" not in load_experiments(str(path))[0].scenario_json()


@pytest.mark.parametrize(
    ("events", "field", "what"),
    [
        ("at: 1 s", "timeline.0", "exactly one thing"),
        ("at: 1 s, cut: wan, heal: wan", "timeline.0", "exactly one thing"),
        ("cut: wan", "timeline.0", "at is missing"),
        ("at: 11 s, cut: wan", "timeline.0.at", "over by 11 s"),
        ("at: 1.5 ns, cut: wan", "timeline.0.at", "whole number of ns"),
        ("at: 1, cut: wan", "timeline.0.at", "no unit"),
        ("at: 1 s, for: 0 ns, cut: wan", "timeline.0.for", "out of range"),
        ("at: 1 s, cut: lan", "timeline.0.cut", "no segment 'lan'"),
        ("at: 1 s, cut: 'client:eth7'", "timeline.0.cut", "not a port of this topology"),
        ("at: 1 s, impair: wan", "timeline.0.impair", "nothing changes"),
        ("at: 1 s, impair: wan, from: 'x:eth0', loss: 1 %", "timeline.0.from", "not a port of 'wan'"),
        ("at: 1 s, cut: wan, loss: 1 %", "timeline.0.loss", "cut has no loss"),
        ("at: 1 s, impair: wan, jitter: 1 ms\nat: 1 s, impair: wan, delay: 2 ms", None, None),
        (
            "at: 1 s, impair: wan, loss: 1 %\nat: 1 s, impair: wan, from: 'client:eth0', loss: 2 %",
            "timeline.1.at", "already set",
        ),
        ("at: 1 s, cut: wan\nat: 1 s, heal: wan", "timeline.1.at", "already set"),
        ("at: 1 s, impair: wan, distribution: normal", "timeline.0.distribution", "no effect without jitter"),
        ("at: 1 s, impair: wan, reset: false", "timeline.0.reset", "false has no effect"),
        ("at: 1 s, heal: wan", "timeline.0.heal", "nothing is cut"),
        ("at: 1 s, cut: wan\nat: 2 s, cut: 'client:eth0'", "timeline.1.cut", "cut already"),
        ("at: 1 s, for: 1 s, heal: wan", "timeline.0.for", "not for a time"),
        ("at: 1 s, partition: [[client], [server]]", "timeline.0.segment", "segment is missing"),
        ("at: 1 s, segment: wan, partition: [[client]]", "timeline.0.partition", "two groups or more"),
        ("at: 1 s, segment: wan, partition: [[client], [server, client]]", "timeline.0.partition.1.1", "in two groups"),
        ("at: 1 s, segment: wan, partition: [[client], [printer]]", "timeline.0.partition.1.0", "no port of segment"),
        (
            "at: 1 s, segment: wan, partition: [[client], [server]]\n"
            "at: 2 s, segment: wan, partition: [[server], [client]]",
            "timeline.1.partition", "partitioned already",
        ),
    ],
)  # fmt: skip
def test_an_event_that_cannot_be_is_refused(tmp_path: Path, events: str, field: str | None, what: str | None) -> None:
    if field is None or what is None:
        experiment(tmp_path, events)
        return
    with pytest.raises(BadInput) as caught:
        experiment(tmp_path, events)
    assert (caught.value.problems[0].field, what in caught.value.problems[0].what) == (field, True)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize(
    "event", ["impair: half, loss: 1 %", "cut: half", "segment: half, partition: [[client], [server]]"]
)
def test_a_kind_that_cannot_change_is_refused_by_name(tmp_path: Path, event: str) -> None:
    with pytest.raises(BadInput) as caught:
        experiment(tmp_path, f"at: 1 s, {event}", KINDS)
    (problem,) = caught.value.problems
    assert "kind hub does not support" in problem.what
    assert "the law of its wire stays the same" in problem.what
    assert problem.allowed is not None
    assert "of wan" in problem.allowed


@pytest.mark.parametrize(
    ("event", "instead"),
    [("impair: half, loss: 1 %", "a topology with a link"), ("cut: half", "a topology with a switch or a link")],
)
def test_a_topology_in_which_nothing_can_change_is_refused_by_what_to_take(
    tmp_path: Path, event: str, instead: str
) -> None:
    with pytest.raises(BadInput) as caught:
        experiment(tmp_path, f"at: 1 s, {event}", KINDS.replace("kind: link", "kind: hub"))
    assert [problem.allowed for problem in caught.value.problems] == [instead]


def test_a_machine_in_no_group_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as caught:
        experiment(tmp_path, "at: 1 s, segment: wan, partition: [[client], [client]]")
    assert "'server' is in no group" in [problem.what for problem in caught.value.problems]

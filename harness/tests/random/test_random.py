# SPDX-License-Identifier: Apache-2.0
"""Random cases load, reach every kind of segment, workload and impairment, and are drawn again from the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from sundial.errors import BadInput
from sundial.model.impairments import Impairments
from sundial.model.scenario import KINDS, Scenario
from sundial.model.topology import SEGMENT_KINDS, Topology
from sundial.segments.netem.verify_tc import read_arguments
from tests.random.campaign import Origin, Verdict, draw, first_valid, line, reason, shrink, summary
from tests.random.cases import IMAGES_DRAWN, Case, TooLong, load
from tests.random.fields import LEFT_OUT, NEAR
from tests.random.networks import tc
from tests.random.workloads import NOT_DRAWN

MANY, LOADED = 400, 40
IMAGES = tuple(IMAGES_DRAWN)
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def drawn() -> list[Case]:
    """Cases that were drawn, whether they load or not."""
    cases = (draw(Origin(1, number, 0, IMAGES).content, IMAGES) for number in range(MANY))
    return [case for case in cases if case is not None]


@pytest.fixture(scope="module")
def words(drawn: list[Case]) -> Counter[str]:
    """How many cases have a field, as OWNER.FIELD, or OWNER.FIELD=VALUE for words."""
    found: Counter[str] = Counter()
    for case in drawn:
        found.update(set(_words(case.topology, "topology")) | set(_words(case.scenario, "scenario")))
    return found


def _words(data: Any, owner: str) -> Iterator[str]:
    if isinstance(data, dict):
        for name, value in data.items():
            yield name
            yield from _words(value, name)
    elif isinstance(data, list):
        for each in data:
            yield from _words(each, owner)
    elif isinstance(data, str | bool):
        yield f"{owner}={data}"


def fields_of(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields) - set(LEFT_OUT)


def test_more_than_half_of_the_cases_load(drawn: list[Case], tmp_path: Path) -> None:
    refused: Counter[str] = Counter()
    for case in drawn[:LOADED]:
        try:
            load(case, tmp_path)
        except (BadInput, TooLong) as error:
            refused[reason(str(error))] += 1
    assert refused.total() < LOADED / 2, refused


@pytest.mark.parametrize("kind", [name for name, kind in SEGMENT_KINDS.items() if kind.model is not None])
def test_each_kind_of_segment_is_drawn_with_all_its_fields(words: Counter[str], kind: str) -> None:
    model = SEGMENT_KINDS[kind].model
    assert model is not None
    assert words[f"kind={kind}"] > MANY / 100
    assert fields_of(model) - set(words) == set()


@pytest.mark.parametrize("app", [app for app in KINDS if app not in NOT_DRAWN])
def test_each_kind_of_workload_is_drawn_with_all_its_fields(words: Counter[str], app: str) -> None:
    assert words[f"app={app}"] > 0
    assert fields_of(KINDS[app].model) - set(words) == set()
    for transport in KINDS[app].transports:
        named = transport.name in words or any(
            words[f"{name}={transport.name}"] for name in ("transports", "operations")
        )
        assert named or transport.name in KINDS


def test_all_other_fields_are_drawn(words: Counter[str]) -> None:
    assert fields_of(Topology) | fields_of(Scenario) | fields_of(Impairments) <= set(words)


@pytest.mark.parametrize(
    "word",
    ["clock=real", "role=bridge", "loopback=captured", "encapsulation=lane", "encapsulation=routed", "failures=allowed",
     "retransmissions=allowed", "discard=epd", "when_full=drop", "distribution=pareto", "image=ssscore"],
)  # fmt: skip
def test_each_way_is_drawn(words: Counter[str], word: str) -> None:
    assert words[word] > 0


def test_limits_begin_at_one(drawn: list[Case]) -> None:
    texts = " ".join(case.text for case in drawn)
    for name in ("limit", "queue_frames", "cells", "ring_frames"):
        assert f'"{name}": 1,' in texts or f'"{name}": 1}}' in texts, name


def test_ranges_are_those_of_fields() -> None:
    """A name in NEAR without a field would narrow nothing."""
    from sundial.model.devices import Bridge
    from sundial.model.segment import Adapter
    from sundial.model.topology import MachineAdapter
    from sundial.segments.atm.model_parts import Contract, Lane, Queue

    models: list[type[BaseModel]] = [Bridge, Adapter, MachineAdapter, Contract, Lane, Queue, Impairments]
    models += [kind.model for kind in SEGMENT_KINDS.values() if kind.model] + [kind.model for kind in KINDS.values()]
    assert {f"{model.__name__}.{name}" for model in models for name in model.model_fields} >= set(NEAR)


def test_words_of_tc_are_those_that_its_reader_knows(drawn: list[Case]) -> None:
    lines = [
        interface["netem"]
        for case in drawn
        for machine in case.topology["machines"].values()
        for interface in machine["interfaces"].values()
        if "netem" in interface
    ]
    assert len(lines) > MANY / 50
    unknown = [each for each in lines if "gemodel" not in each and read_arguments(each) is None]
    assert unknown == []


def test_impairments_become_a_tc_command_line() -> None:
    given = {
        "delay": "20 ms", "jitter": "5 ms", "delay_correlation": "25 %", "distribution": "normal", "loss": "1 %",
        "loss_correlation": "25 %", "reorder": "10 %", "gap": 3, "rate": "2 Mbit/s", "packet_overhead": 20,
        "cell_size": 100, "limit": 100,
    }  # fmt: skip
    assert tc(given) == (
        "delay 20000us 5000us 25% distribution normal loss 1% 25% reorder 10% gap 3 rate 2000000bit 20 100 0 limit 100"
    )


def test_a_number_gives_the_same_case_again(tmp_path: Path) -> None:
    first = first_valid(5, 3, IMAGES, tmp_path, Counter())
    assert first == first_valid(5, 3, IMAGES, tmp_path, Counter())
    assert first != first_valid(6, 3, IMAGES, tmp_path, Counter())
    assert draw(first[1].content, IMAGES) == first[0]


def test_the_smallest_case_with_a_fault_is_found() -> None:
    def wrong(case: Case) -> bool:
        segments = case.topology["segments"].values()
        return any("loss" in each for one in segments for each in one.get("impairments", {}).values())

    first = next(origin for number in range(99) if wrong(_case(origin := Origin(1, number, 0, IMAGES))))
    smallest = shrink(first.content, IMAGES, wrong)
    assert smallest is not None
    assert wrong(smallest)
    (segment,) = smallest.topology["segments"].values()
    assert (segment["kind"], len(smallest.scenario["workloads"])) == ("link", 1)
    assert [set(each) for each in segment["impairments"].values()] == [{"loss"}]


def test_a_case_without_the_fault_is_not_shrunk() -> None:
    assert shrink(Origin(1, 1, 0, IMAGES).content, IMAGES, lambda case: False) is None


def _case(origin: Origin) -> Case:
    case = draw(origin.content, origin.images)
    assert case is not None
    return case


def test_alarms_of_one_kind_differ_in_numbers_only() -> None:
    def kind(status: int, finding: str) -> str:
        return Verdict(status, 1, finding, 1.0, {}).kind

    assert kind(1, "reply of call 3: expected 4, seen 5") == kind(1, "reply of call 77: expected 1, seen 0")
    assert kind(1, "reply of call 3: expected 4, seen 5") != kind(4, "reply of call 3: expected 4, seen 5")
    assert kind(1, "reply: expected 4, seen 5") != kind(1, "request: expected 4, seen 5")


def test_the_figure_counts_alarms_and_runs_without_end_apart(tmp_path: Path) -> None:
    verdicts = [Verdict(0, 0, "", 1.0, {})] * 6 + [Verdict(1, 2, "a: expected 1, seen 2", 2.0, {})] * 3
    done = [(tmp_path / str(number), each) for number, each in enumerate([*verdicts, Verdict(4, 0, "gone", 1.0, {})])]
    assert list(summary(done))[-1] == "10 runs: 300.0 false alarms per 1,000, 1 runs that did not end"
    assert [line(*each) for each in done[5:7]] == ["5 pass 1 s", "6 ALARM 2 s a: expected 1, seen 2"]


def test_reasons_of_refusals_have_no_names() -> None:
    first = "/tmp/x/scenario.yaml:6: workloads.0.clients: 'a' and 'b' have no route; allowed: other machines"
    assert reason(first) == "workloads....clients: ... and ... have no route"


def test_files_hold_what_was_drawn(tmp_path: Path) -> None:
    case, _ = first_valid(1, 1, IMAGES, tmp_path, Counter())
    assert json.loads((tmp_path / "topology.yaml").read_text()) == case.topology
    assert json.loads((tmp_path / "scenario.yaml").read_text()) == case.scenario

# SPDX-License-Identifier: Apache-2.0
"""What santos18 asks to be run: scenarios that the model takes, with every function of every system in them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sundial.model.load import load_experiments
from sundial.papers.santos18 import experiments, other_systems
from sundial.papers.santos18.paper import Place
from sundial.papers.santos18.reproduce import KIND
from sundial.papers.santos18.results import Case
from sundial.reproduce.runs import Spec
from sundial.workloads.functions import NAMES

EXTENT = KIND.paper().scales["smoke"].model_copy(update={"beside_calls": 3})


def specs(place: Place) -> dict[str, Spec]:
    return {spec.name: spec for spec in experiments._calls_specs(place, EXTENT)}


@pytest.mark.parametrize("place", experiments.TOPOLOGIES)
def test_the_model_takes_what_is_asked(tmp_path: Path, place: Place) -> None:
    path = tmp_path / "asked.yaml"
    slopes = [experiments._slope_spec(system, "2 ms", EXTENT) for system in experiments.SYSTEMS]
    for spec in [*specs(place).values(), *(slopes if place == "remote" else [])]:
        written = {"description": spec.about, "topology": spec.topology, "workloads": spec.workloads}
        path.write_text(json.dumps(written))
        (experiment,) = load_experiments(str(path), overrides=list(spec.settings))
        assert {each.clients for each in experiment.workloads} == {("server" if place == "local" else "client",)}


@pytest.mark.parametrize("place", experiments.TOPOLOGIES)
def test_each_system_is_called_with_each_function(place: Place) -> None:
    workloads = [each for spec in specs(place).values() for each in spec.workloads]
    called = Counter(
        (each["app"], tuple(each.get("transports", each.get("languages", ()))))
        for each in workloads
        if each["functions"] in ("all", list(NAMES))
    )
    others = {
        (system.workload["app"], tuple(system.workload.get("transports", system.workload.get("languages", ()))))
        for system in other_systems.SYSTEMS.values()
        if place in system.places
    }
    assert called == Counter([("grpc", ()), ("rpyc", ()), *others])
    papers = [specs(place)[f"{system}-{place}"].workloads for system in experiments.SYSTEMS]
    assert all(each["calls"] == EXTENT.calls for group in papers for each in group)
    assert sum(each["calls"] == EXTENT.beside_calls for each in workloads) == len(workloads) - len(papers)


def test_a_step_says_whose_calls_they_are() -> None:
    assert other_systems.system_of("echo-client", "tcp") == "sunrpc-tcp"
    assert other_systems.system_of("raw-client", "tcp") == "raw-tcp"
    assert other_systems.system_of("grpc-client", "grpc") is None
    assert experiments._case("dce", "local", "void", {}) == Case("dce", "local", "void")
    options = {"tcp_nodelay": True, "container": "tuple", "distance": "zip"}
    assert experiments._case("rpyc", "local", "void", options) == Case("rpyc", "local", "void", nodelay=True)
    distance = Case("rpyc", "local", "distance", "tuple", "zip", nodelay=True)
    assert experiments._case("rpyc", "local", "distance", options) == distance


def test_context_switches_are_those_of_both_ends() -> None:
    batch = {"procedure": "void", "warmup": 1, "context_switches": 20}
    counters = {"context_switches": {"void": 33, "int": 5}}
    assert experiments.switched(batch, counters, 11) == 20 / 10 + 33 / 11
    assert experiments.switched(batch, {}, 11) is None
    assert experiments.switched({"procedure": "void", "warmup": 1}, counters, 11) is None

# SPDX-License-Identifier: Apache-2.0
"""An experiment read from run.json, which `Experiment.scenario_json` and `topology_json` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sundial.errors import BadInput
from sundial.model.check import check_topology
from sundial.model.experiment import Experiment, resolve_workloads
from sundial.model.invalid import Invalid
from sundial.model.network import Network, build_network
from sundial.model.scenario import Scenario
from sundial.model.timeline import Event, Happened, check_timeline
from sundial.model.topology import Topology

_EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event])
_HAPPENED: TypeAdapter[list[Happened]] = TypeAdapter(list[Happened])
_OF_THE_RUN = ("scale", "variant")
"""Fields of a recorded scenario that say how it was made; a scenario does not have them."""


def recorded_network(document: Mapping[str, Any]) -> Network:
    """The topology of run.json with all derived values, and what happened to it. Raises BadInput."""
    return _network(_topology(document), recorded_events(document))


def recorded_events(document: Mapping[str, Any]) -> list[Event]:
    """The events of run.json: of its scenario, or of a topology that was up. Raises BadInput."""
    scenario = document.get("scenario")
    written = document if scenario is None else scenario
    events = written.get("timeline", ()) if isinstance(written, Mapping) else ()
    try:
        return [*(_EVENTS if scenario is not None else _HAPPENED).validate_python(list(events))]
    except (ValidationError, TypeError) as error:
        what = _words(error) if isinstance(error, ValidationError) else "is not a list of events"
        raise BadInput(what, field="timeline") from None


def recorded_experiment(document: Mapping[str, Any]) -> Experiment:
    """The experiment of run.json, which must have a scenario. Raises BadInput."""
    topology, written = _topology(document), document.get("scenario")
    if not isinstance(written, Mapping):
        raise BadInput("has no scenario", field="scenario")
    plain = {name: value for name, value in written.items() if name not in _OF_THE_RUN}
    workloads = plain.get("workloads")
    if isinstance(workloads, list):
        plain["workloads"] = [with_numbers(each) for each in workloads]
    try:
        scenario = Scenario.model_validate(plain)
    except ValidationError as error:
        raise BadInput(_words(error), field="scenario") from None
    seed, clock = document.get("seed"), document.get("clock")
    if not isinstance(seed, int) or clock not in ("virtual", "real"):
        raise BadInput("has no seed or clock", field="seed, clock")
    network = _network(topology, scenario.timeline)
    _refuse("scenario", resolve_workloads(scenario, network)[1])
    scale, variant = written.get("scale"), written.get("variant")
    return Experiment(scenario, topology, network, seed, clock, scale, str(variant or ""))


def _topology(document: Mapping[str, Any]) -> Topology:
    try:
        return Topology.model_validate(document.get("topology"))
    except ValidationError as error:
        raise BadInput(_words(error), field="topology") from None


def _network(topology: Topology, events: Sequence[Event]) -> Network:
    _refuse("topology", check_topology(topology))
    _refuse("timeline", check_timeline(events, topology, None))
    return build_network(topology, events)


def _refuse(field: str, findings: Sequence[Invalid]) -> None:
    """Raises BadInput for findings with which a run could not have begun."""
    for each in findings[:1]:
        raise BadInput(each.what, field=".".join(map(str, (field, *each.path))), allowed=each.allowed)


def with_numbers(workload: Any) -> Any:
    """`calls` by size, with numbers as keys again: JSON has only names."""
    if not isinstance(workload, dict) or not isinstance(workload.get("calls"), dict):
        return workload
    by_size = {int(size) if size.isdecimal() else size: calls for size, calls in workload["calls"].items()}
    return {**workload, "calls": by_size}


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"

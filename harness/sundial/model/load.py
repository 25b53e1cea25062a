# SPDX-License-Identifier: Apache-2.0
"""Validated experiments, ready for planning, from names on the command line.

files -> scale -> vary -> --set -> validate -> cross-check -> resolve
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

from sundial.errors import BadInput
from sundial.model import catalog
from sundial.model.amount_events import check_amounts
from sundial.model.check import check_clock, check_topology
from sundial.model.clock_events import check_clocks
from sundial.model.experiment import Experiment, check_traces, resolve_workloads
from sundial.model.hostcheck import check_program, make_check_absolute
from sundial.model.hostfiles import check_host_files, make_absolute
from sundial.model.invalid import Invalid
from sundial.model.machine_events import check_power
from sundial.model.network import build_network
from sundial.model.overrides import (
    SET,
    Override,
    apply_scale,
    apply_to_scenario,
    apply_to_topology,
    is_for_topology,
    parse_override,
    variants,
)
from sundial.model.scenario import SEED_MOST, Scenario
from sundial.model.source import ModelT, Origin, Source, validate
from sundial.model.timeline import check_timeline
from sundial.model.topology import Clock, Topology


def load_topology(reference: str, overrides: Sequence[str] = (), clock: Clock | None = None) -> Topology:
    """A topology by name or path, with `KEY=VALUE` overrides, under `clock` or else its own. Raises BadInput."""
    source = _written(reference, overrides)
    return _topology(source, lambda topology: clock or topology.clock)


def load_live(reference: str, overrides: Sequence[str] = (), clock: Clock | None = None) -> Topology:
    """As load_topology(), for machines that stay up: the default is the real clock, unless a segment supports virtual
    time only."""
    source = _written(reference, overrides)
    return _topology(source, lambda topology: clock or ("virtual" if topology.virtual_only else "real"))


def load_experiments(
    scenario: str,
    *,
    topology: str | None = None,
    overrides: Sequence[str] = (),
    scale: str | None = None,
    seed: int | None = None,
    clock: Clock | None = None,
) -> list[Experiment]:
    """The runs of a scenario: one, or one for each entry of its `vary`.

    Options override `--set`, which overrides the files. Raises BadInput.
    """
    written = catalog.find("scenario", scenario)
    parsed = [parse_override(text) for text in overrides]
    topology = topology or _choice(parsed, "topology")
    scale = scale or _choice(parsed, "scale")
    parsed = [override for override in parsed if override.key not in ("topology", "scale")]
    scale = apply_scale(written, scale)
    wires = catalog.find("topology", topology) if topology else _own_topology(written)
    experiments = []
    chosen = [] if seed is None else [Override("seed", seed, Origin("--seed", None))]
    for changes in variants(written, [*parsed, *chosen]):
        experiments.append(
            _experiment(copy.deepcopy(written), copy.deepcopy(wires), changes, parsed, scale, seed, clock)
        )
    return experiments


def _experiment(
    written: Source,
    wires: Source,
    changes: Sequence[Override],
    overrides: Sequence[Override],
    scale: str | None,
    seed: int | None,
    clock: Clock | None,
) -> Experiment:
    for override in [*changes, *overrides]:
        if override.key == "seed":
            written.put(("seed",), override.value, override.origin)
        elif is_for_topology(override):
            apply_to_topology(wires, [override])
        else:
            apply_to_scenario(written, [override])
    written.data["topology"] = wires.name
    topology = _topology(wires, lambda topology: clock or topology.clock)
    make_check_absolute(written, SET)
    scenario = _named(written, Scenario)
    _refuse(written, list(check_program(scenario)))
    if seed is not None and not 0 <= seed <= SEED_MOST:
        raise BadInput(f"{seed} is out of range", field="seed", allowed=f"a whole number from 0 to {SEED_MOST}")
    end_ns = scenario.deadline + scenario.linger
    _refuse(written, check_timeline(scenario.timeline, topology, end_ns))
    network = build_network(topology, scenario.timeline)
    workloads, findings = resolve_workloads(scenario, network)
    _refuse(written, findings or list(check_traces(workloads, network, topology.clock)))
    _refuse(written, list(check_power(scenario.timeline, workloads, network, topology.clock)))
    _refuse(written, list(check_clocks(scenario.timeline, topology, workloads)))
    _refuse(written, list(check_amounts(scenario.timeline, topology, network, workloads)))
    return Experiment(
        scenario=scenario.model_copy(update={"workloads": workloads}),
        topology=topology,
        network=network,
        seed=scenario.seed if seed is None else seed,
        clock=topology.clock,
        scale=scale,
        variant=", ".join(f"{override.key}={override.value}" for override in changes),
    )


def _written(reference: str, overrides: Sequence[str]) -> Source:
    source = catalog.find("topology", reference)
    parsed = [parse_override(text) for text in overrides]
    for override in parsed:
        if not is_for_topology(override):
            allowed = "clock, accelerator, defaults.*, hosts.*, machines.*, devices.*, segments.*, mtu"
            raise BadInput("is not a field of a topology", file=SET, field=override.key, allowed=allowed)
    apply_to_topology(source, parsed)
    return source


def _topology(source: Source, clock: Callable[[Topology], Clock]) -> Topology:
    """`clock`: the clock of the run."""
    make_absolute(source, SET)
    topology = _named(source, Topology)
    topology = topology.model_copy(update={"clock": clock(topology)})
    _refuse(source, [*check_topology(topology), *check_clock(topology, topology.clock)])
    _refuse(source, list(check_host_files(topology)))
    return topology


def _refuse(source: Source, findings: Sequence[Invalid]) -> None:
    problems = [source.problem(found.path, found.what, found.allowed) for found in findings]
    if problems:
        raise BadInput.many(sorted(problems, key=lambda problem: problem.line or 0))


def _named(source: Source, model: type[ModelT]) -> ModelT:
    if source.data.get("name", source.name) != source.name:
        problem = source.problem(("name",), f"{source.data['name']!r} differs from the file's name", source.name)
        raise BadInput.many([problem])
    source.data["name"] = source.name
    return validate(source, model)


def _choice(overrides: Sequence[Override], key: str) -> str | None:
    for override in reversed(overrides):
        if override.key == key:
            return str(override.value)
    return None


def _own_topology(scenario: Source) -> Source:
    reference = scenario.data.get("topology")
    if isinstance(reference, dict):
        return scenario.inner("topology")
    if not isinstance(reference, str):
        what = "topology is missing" if reference is None else f"{reference!r} is not a topology"
        raise BadInput.many([scenario.problem(("topology",), what, ", ".join(catalog.names("topology")))])
    try:
        return catalog.find("topology", reference, Path(scenario.file).parent)
    except BadInput as error:
        if error.problems[0].file is not None:
            raise
        problem = scenario.problem(("topology",), error.problems[0].what, error.problems[0].allowed)
        raise BadInput.many([problem]) from error

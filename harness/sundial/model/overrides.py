# SPDX-License-Identifier: Apache-2.0
"""`--set KEY=VALUE`, `scale:` and `vary:`: changes to the files' values before validation.

A changed value keeps its origin, so an error in it is reported at `--set` (or at the line in `scale:`) with the
key that the user wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from sundial.errors import BadInput
from sundial.model.scenario import KINDS, Scale, Scenario
from sundial.model.source import FieldPath, Origin, Source, load_yaml, plain_scalar
from sundial.model.topology import Topology

SET = "--set"
CHOICES = ("topology", "scale", "clock", "seed")
"""Keys that are also options of the command line."""
_FIXED = frozenset(CHOICES) - {"seed"}
"""Of these, what all runs of a command share."""

MOST_RUNS = 256
"""Of one command that varies fields in a matrix."""
MATRIX_ALLOWED = "{KEY: [VALUE, ...], ...}"
EXCLUDE_ALLOWED = "- {KEY: VALUE, ...}"

_WORKLOADS = {app: frozenset(kind.model.model_fields) for app, kind in KINDS.items()}
_WORKLOAD_FIELDS = frozenset.union(*_WORKLOADS.values()) - {"app"}
_TOPOLOGY_FIELDS = frozenset(Topology.model_fields) - {"name", "description"}
_SCENARIO_FIELDS = frozenset(Scenario.model_fields) - {"name", "description", "scale", "vary", *CHOICES}


@dataclass(frozen=True)
class Override:
    """One change: a key as the user wrote it, its value as plain data, and its origin."""

    key: str
    value: Any
    origin: Origin

    @property
    def path(self) -> FieldPath:
        return tuple(self.key.split("."))


def parse_override(text: str, where: str = SET, example: str = "sizes=16:8192:16") -> Override:
    """`KEY=VALUE` from the command line, after `where`; the value is one YAML value. Raises BadInput."""
    key, equals, value = text.partition("=")
    key = key.strip()
    origin = Origin(where, None, key)
    if not equals or not key or not value.strip():
        raise BadInput(f"{text!r} is not KEY=VALUE", file=where, allowed=f"KEY=VALUE, such as {example}")
    try:
        node = load_yaml(value, where)
    except BadInput as error:
        raise BadInput(f"{value!r} {error.problems[0].what}", file=where, field=key) from error
    if isinstance(node, dict | list):
        return Override(key, _plain(node, origin), origin)
    return Override(key, plain_scalar(node, origin), origin)


def is_for_topology(override: Override) -> bool:
    """True if the key is a field of the topology."""
    return override.path[0] in _TOPOLOGY_FIELDS or override.key == "mtu"


def apply_to_topology(topology: Source, overrides: Iterable[Override]) -> None:
    """Change the topology's data; `mtu` reaches every interface. Raises BadInput."""
    for override in overrides:
        if override.key == "mtu":
            _set_mtu(topology, override)
        else:
            _refuse_new_names(topology, override)
            topology.put(override.path, override.value, override.origin)


def apply_to_scenario(scenario: Source, overrides: Iterable[Override]) -> None:
    """Change the scenario's data; a workload's field without a path reaches every workload that has it.

    Raises BadInput.
    """
    for override in overrides:
        path = override.path
        if path[0] in _SCENARIO_FIELDS:
            scenario.put(path, override.value, override.origin)
        elif path[0] in _WORKLOAD_FIELDS:
            _set_in_workloads(scenario, path, override)
        else:
            known = sorted({*_SCENARIO_FIELDS, *_WORKLOAD_FIELDS, *_TOPOLOGY_FIELDS, *CHOICES, "mtu"})
            origin = override.origin
            raise BadInput(
                "unknown key", file=origin.file, line=origin.line, field=override.key, allowed=", ".join(known)
            )


def apply_scale(scenario: Source, asked: str | None) -> str | None:
    """Put the fields of one scale into the workloads (and `deadline` into the scenario); returns its name.

    Malformed scales are left to validation. Raises BadInput for a scale that the scenario lacks.
    """
    scales = scenario.data.get("scale")
    if not isinstance(scales, dict) or not scales:
        if asked is not None:
            raise BadInput(f"scenario {scenario.name!r} has no scales", field="scale", allowed="leave it out")
        return None
    name = scenario.data.get("default_scale") if asked is None else asked
    if name not in list(scales):
        allowed = ", ".join(map(str, scales))
        if asked is not None:
            raise BadInput(f"there is no scale {name!r}", field="scale", allowed=allowed)
        if name is None:
            raise BadInput.many([scenario.problem(("scale",), "default_scale is missing", allowed)])
        raise BadInput.many([scenario.problem(("default_scale",), f"there is no scale {name!r}", allowed)])
    name = str(name)
    chosen = scales[name]
    for field in chosen if isinstance(chosen, dict) else {}:
        if field in Scale.model_fields:
            origin = replace(scenario.origin(("scale", name, field)), label=f"scale.{name}.{field}")
            if field in Scenario.model_fields:
                scenario.put((field,), chosen[field], origin)
            else:
                _set_in_workloads(scenario, (field,), Override(field, chosen[field], origin))
    return name


def variants(scenario: Source, overrides: Iterable[Override]) -> list[list[Override]]:
    """The overrides of each run of `vary:`; without `vary:`, one run without overrides.

    A key that the command line sets is not varied. Raises BadInput.
    """
    listed = scenario.data.get("vary", [])
    fixed = {override.key for override in overrides}
    if isinstance(listed, dict):
        return _of_matrix(scenario, listed, fixed)
    entries = listed if isinstance(listed, list) else ()
    wrong = [number for number, entry in enumerate(entries) if not isinstance(entry, dict)]
    if wrong or not isinstance(listed, list):
        what = "is not a mapping" if wrong else "is not a list of mappings"
        raise BadInput.many([scenario.problem(("vary", *wrong[:1]), what, "- {KEY: VALUE, ...}")])
    runs: list[list[Override]] = []
    for number, entry in enumerate(listed):
        run = [
            Override(str(key), value, scenario.origin(("vary", number, key)))
            for key, value in entry.items()
            if key not in fixed
        ]
        for override in run:
            if override.key in _FIXED:
                raise BadInput.many([scenario.problem(("vary", number, override.key), "cannot be varied")])
        if [(o.key, o.value) for o in run] not in [[(o.key, o.value) for o in known] for known in runs]:
            runs.append(run)
    return runs or [[]]


def matrix_values(scenario: Source) -> dict[str, list[Any]]:
    """The fields of `vary: {matrix: ...}` with their values, in the order of the file; none without it.

    Raises BadInput for another form, and for more than MOST_RUNS runs.
    """
    listed = scenario.data.get("vary")
    if not isinstance(listed, dict):
        return {}
    if "matrix" not in listed:
        what = "is neither a list of mappings nor a matrix"
        raise BadInput.many(
            [scenario.problem(("vary",), what, f"- {{KEY: VALUE, ...}}, or {{matrix: {MATRIX_ALLOWED}}}")]
        )
    for name in listed:
        if name not in ("matrix", "exclude"):
            raise BadInput.many([scenario.problem(("vary", name), "unknown field", "matrix, exclude")])
    matrix = listed["matrix"]
    if not isinstance(matrix, dict) or not matrix:
        raise BadInput.many([scenario.problem(("vary", "matrix"), "is not a mapping of lists", MATRIX_ALLOWED)])
    for key, values in matrix.items():
        if not isinstance(values, list) or not values:
            raise BadInput.many([scenario.problem(("vary", "matrix", key), "is not a list of values", MATRIX_ALLOWED)])
        if key in _FIXED:
            raise BadInput.many([scenario.problem(("vary", "matrix", key), "cannot be varied")])
    count = prod(map(len, matrix.values()))
    if count > MOST_RUNS:
        raise BadInput.many([scenario.problem(("vary", "matrix"), f"{count} runs", f"up to {MOST_RUNS}")])
    return matrix


def excluded(scenario: Source) -> list[dict[str, Any]]:
    """What `exclude` leaves out. Raises BadInput for another form, and for what leaves out nothing."""
    matrix, listed = matrix_values(scenario), scenario.data.get("vary")
    entries = listed.get("exclude", []) if isinstance(listed, dict) else []
    if not isinstance(entries, list):
        raise BadInput.many([scenario.problem(("vary", "exclude"), "is not a list of mappings", EXCLUDE_ALLOWED)])
    for number, entry in enumerate(entries):
        path = ("vary", "exclude", number)
        if not isinstance(entry, dict) or not entry:
            raise BadInput.many([scenario.problem(path, "is not a mapping", EXCLUDE_ALLOWED)])
        for key, value in entry.items():
            if value not in matrix.get(key, []):
                allowed = ", ".join(map(str, matrix)) if key not in matrix else ", ".join(map(str, matrix[key]))
                what = "is not a field of matrix" if key not in matrix else f"{value!r} is not a value of it"
                raise BadInput.many([scenario.problem((*path, key), what, allowed)])
    return entries


def leaves_out(entry: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Whether an entry of `exclude` leaves out the run with these values."""
    return all(key in run and run[key] == value for key, value in entry.items())


def _of_matrix(scenario: Source, listed: dict[str, Any], fixed: set[str]) -> list[list[Override]]:
    """A run for each combination, the last field the fastest. A key that the command line sets is not varied, and is
    not looked at by `exclude`."""
    matrix, without = matrix_values(scenario), excluded(scenario)
    keys = [key for key in matrix if key not in fixed]
    runs = []
    for places in product(*(range(len(matrix[key])) for key in keys)):
        values = {key: matrix[key][place] for key, place in zip(keys, places, strict=True)}
        if not any(leaves_out(entry, values) for entry in without):
            runs.append(
                [
                    Override(str(key), values[key], scenario.origin(("vary", "matrix", key, place)))
                    for key, place in zip(keys, places, strict=True)
                ]
            )
    if not runs:
        raise BadInput.many([scenario.problem(("vary", "exclude"), "leaves out every run", "fewer entries")])
    return runs


def _plain(node: Any, origin: Origin) -> Any:
    if isinstance(node, dict):
        return {str(key) if isinstance(key, str) else key: _plain(value, origin) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value, origin) for value in node]
    return plain_scalar(node, origin)


def _refuse_new_names(topology: Source, override: Override) -> None:
    """Raises BadInput for a new name in `hosts`, `machines` and the like: a typing error must not add one."""
    path = override.path
    parts = topology.data.get(str(path[0]))
    named = path[0] in ("hosts", "machines", "devices", "segments") and len(path) > 1
    if named and isinstance(parts, dict) and path[1] not in parts:
        raise BadInput(
            f"there is no {str(path[0])[:-1]} {path[1]!r} in topology {topology.name!r}",
            file=override.origin.file,
            line=override.origin.line,
            field=override.key,
            allowed=", ".join(str(name) for name in parts),
        )


def _set_mtu(topology: Source, override: Override) -> None:
    topology.put(("defaults", "mtu"), override.value, override.origin)
    machines = topology.data.get("machines")
    for machine in machines.values() if isinstance(machines, dict) else []:
        interfaces = machine.get("interfaces") if isinstance(machine, dict) else None
        for interface in interfaces.values() if isinstance(interfaces, dict) else []:
            if isinstance(interface, dict):
                interface.pop("mtu", None)


def _set_in_workloads(scenario: Source, path: FieldPath, override: Override) -> None:
    reached = False
    workloads = scenario.data.get("workloads")
    for number, workload in enumerate(workloads if isinstance(workloads, list) else []):
        if isinstance(workload, dict) and path[0] in _WORKLOADS.get(str(workload.get("app")), ()):
            scenario.put(("workloads", number, *path), override.value, override.origin)
            reached = True
    if not reached and override.origin.file == SET:
        raise BadInput(f"no workload of scenario {scenario.name!r} has this field", file=SET, field=override.key)

# SPDX-License-Identifier: Apache-2.0
"""A sweep from a file or from the command line, with its fields' names in full."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from sundial.errors import BadInput
from sundial.model import catalog
from sundial.model.impairments import Impairments
from sundial.model.load import load_experiments
from sundial.model.overrides import SET, parse_override
from sundial.model.source import Origin, Source, read, validate
from sundial.model.sweep import Sweep
from sundial.model.topology import Topology
from sundial.reproduce.matrix import parse_axis, written
from sundial.units import split

FOLDER = catalog.FOLDERS["scenario"] / "sweeps"
"""The sweeps that come with Sundial."""
METRICS = {"p50": "p50(rtt_us)"}
"""Of a sweep that names none."""


def names() -> list[str]:
    """Names of the shipped sweeps."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def is_sweep(reference: str) -> bool:
    """True if a name or a file is a sweep and not a scenario. Raises BadInput for a file that cannot be read."""
    if _is_file(reference):
        return "scenario" in read(Path(reference), reference).data
    return reference in names() and reference not in catalog.names("scenario")


def from_file(reference: str) -> Source:
    """The data of a sweep's file; files that it names begin at its folder. Raises BadInput."""
    path = Path(reference) if _is_file(reference) else FOLDER / f"{reference}.yaml"
    if not _is_file(reference) and reference not in names():
        raise BadInput(f"there is no sweep {reference!r}", allowed=", ".join([*names(), "or a path to a file"]))
    source = read(path, reference if _is_file(reference) else catalog.shown(path))
    for field in ("scenario", "topology"):
        value = source.data.get(field)
        if isinstance(value, str) and _is_file(value):
            source.data[field] = str((path.parent / value).absolute())
    source.data.setdefault("name", path.stem)
    return source


def from_options(scenario: str, topology: str | None, settings: Sequence[str], seeds: str | None) -> Source:
    """A grid of all settings that have several values. Raises BadInput."""
    given = str(Path(scenario).absolute()) if _is_file(scenario) else scenario
    data: dict[str, Any] = {"name": Path(scenario).stem, "scenario": given, "set": {}, "axes": {}}
    if topology is not None:
        data["topology"] = str(Path(topology).absolute()) if _is_file(topology) else topology
    for text in settings:
        key, values = text.partition("=")[0].strip(), _values(text)
        if key in data["set"] or any(axis["key"] == key for axis in data["axes"].values()):
            raise BadInput("is there twice", file=SET, field=key, allowed="each field once")
        if len(values) == 1:
            data["set"][key] = values[0]
        else:
            data["axes"][_axis_name(key, data["axes"])] = {"key": key, "values": values}
    if seeds is not None:
        data["seeds"] = seeds
    return Source(data["name"], SET, data, {(): Origin(SET, None), ("seeds",): Origin("--seeds", None, "seeds")})


def _values(text: str) -> list[Any]:
    """The values of `KEY=0,1,5 %`: the last one's unit is that of all. Raises BadInput."""
    key, _, rest = text.partition("=")
    if not rest.lstrip().startswith(("[", "{", '"', "'")) and "," in rest:
        parts = [part.strip() for part in rest.split(",")]
        number, unit = split(parts[-1])
        if number is not None and unit is not None and all(split(part)[1] is None for part in parts[:-1]):
            parts = [f"{part} {unit}" if split(part)[0] is not None else part for part in parts[:-1]] + parts[-1:]
        axis = parse_axis(f"{key}={','.join(parts)}", SET)
        return [parse_override(f"{key}={value}").value for value in axis.values]
    value = parse_override(text).value
    return list(value) if isinstance(value, list) else [value]


def _axis_name(key: str, taken: Mapping[str, Any]) -> str:
    """The last word of a key, or as many as make it another than those taken."""
    words = [word.replace("_", "-").lower() for word in key.split(".")]
    for count in range(1, len(words) + 1):
        name = "-".join(words[-count:])
        if name not in taken:
            return name
    raise BadInput("has the name of another axis", file=SET, field=key, allowed="a file with names of its own")


def sweep_of(source: Source) -> tuple[Sweep, dict[str, Any]]:
    """The sweep, and its data as JSON has it, which give the same sweep again. Raises BadInput."""
    data = json.loads(json.dumps(source.data, default=_plain))
    if not data.get("metrics"):
        data["metrics"] = dict(METRICS)
    source.data = data
    sweep = validate(source, Sweep)
    _check(source, sweep)
    data = {**data, **_full(source, sweep)}
    source.data = data
    return validate(source, Sweep), data


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    raise TypeError(f"{value!r} is not a plain value")


def _check(source: Source, sweep: Sweep) -> None:
    """Raises BadInput for fields that name what is not there."""
    named: list[tuple[tuple[str, ...], str | None, Sequence[str]]] = []
    if sweep.until is not None:
        named.append((("until", "metric"), sweep.until.metric, list(sweep.metrics)))
    if sweep.threshold is not None:
        ranges = [name for name, axis in sweep.axes.items() if axis.start is not None]
        named += [
            (("threshold", "axis"), sweep.threshold.axis, ranges),
            (("threshold", "metric"), sweep.threshold.metric, list(sweep.metrics)),
            (("threshold", "minus"), sweep.threshold.minus, list(sweep.metrics)),
        ]
        if sweep.until is not None:
            raise BadInput.many([source.problem(("until",), "threshold adds seeds itself", "until or threshold")])
        if sweep.threshold.axis in ranges and len(sweep.seeds) < 2:
            raise BadInput.many([source.problem(("seeds",), "a threshold needs several seeds", "such as 1..16")])
    for path, name, allowed in named:
        if name is not None and name not in allowed:
            problem = source.problem(path, f"there is no {name!r}", ", ".join(allowed) or "an axis with from and to")
            raise BadInput.many([problem])


def _full(source: Source, sweep: Sweep) -> dict[str, Any]:
    """`set` and `axes` with the keys of impairments in full. Raises BadInput."""
    segments: list[str] | None = None

    def full(key: str) -> str:
        nonlocal segments
        if key not in Impairments.model_fields or key in ("rate", "limit"):
            return key
        if segments is None:
            segments = _impaired(sweep)
        if len(segments) != 1:
            allowed = ", ".join(f"segments.{name}.impairments.both.{key}" for name in segments)
            what = f"{key} is a field of {len(segments)} segments"
            raise BadInput(what, file=source.file, field=key, allowed=allowed or "a topology with a link")
        return f"segments.{segments[0]}.impairments.both.{key}"

    axes = {name: {**axis, "key": full(axis["key"])} for name, axis in source.data.get("axes", {}).items()}
    return {"set": {full(key): value for key, value in source.data.get("set", {}).items()}, "axes": axes}


def _impaired(sweep: Sweep) -> list[str]:
    """Names of the segments that have impairments."""
    settings = [f"{key}={written(value)}" for key, value in sweep.set.items() if key not in Impairments.model_fields]
    first = load_experiments(sweep.scenario, topology=sweep.topology, overrides=settings, scale=sweep.scale)[0]
    topology: Topology = first.topology
    return [name for name, segment in topology.segments.items() if "impairments" in type(segment).model_fields]


def _is_file(reference: str) -> bool:
    return "/" in reference or reference.endswith((".yaml", ".yml"))

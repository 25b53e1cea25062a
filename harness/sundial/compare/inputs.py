# SPDX-License-Identifier: Apache-2.0
"""What differs in the inputs of runs, from their run.json. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sundial.seams.compare import Input

PARTS = ("scenario", "topology", "seed", "clock", "accelerator", "images", "boots", "versions")
"""Of run.json: what a run was made from. `command` and `host` say how it was asked for and where."""
_REPEATED = ("scenario.seed", "topology.clock")
"""Are in run.json a second time."""
_OFF_THE_WIRE = re.compile(
    r"(scenario|topology)\.description|scenario\.(statistic|scale|variant)|scenario\.expect\..*"
    r"|scenario\.workloads\.\d+\.trace|versions\.tshark"
)
"""What changes no capture: words, what is judged or computed afterwards, and traces, which do not change a run."""


def differing(documents: Sequence[Mapping[str, Any]]) -> list[Input]:
    """The fields that are not the same in all runs, in the order of run.json."""
    flat = [dict(flattened(document)) for document in documents]
    keys = dict.fromkeys(key for each in flat for key in each)
    rows = [(key, tuple(each.get(key) for each in flat)) for key in keys]
    return [Input(key=key, values=values, wire=reaches_wire(key)) for key, values in rows if not _equal(values)]


def flattened(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(path with dots, value) of each input; a list of plain values is one value."""
    for part in PARTS:
        for key, value in _leaves(part, document.get(part)):
            if key not in _REPEATED:
                yield key, value


def reaches_wire(key: str) -> bool:
    """Whether this input may change what is captured."""
    return not _OFF_THE_WIRE.fullmatch(key)


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        for place, inner in enumerate(value):
            yield from _leaves(f"{path}.{place}", inner)
    elif value is not None:
        yield path, value


def _equal(values: Sequence[Any]) -> bool:
    # 1 and True are equal to Python.
    return all(value == values[0] and type(value) is type(values[0]) for value in values[1:])

# SPDX-License-Identifier: Apache-2.0
"""Each value of each JSON document of a run directory: another one, or none."""

from __future__ import annotations

import copy as copying
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from mutation.damage import Copy, Damage, Damages

Path = tuple[str | int, ...]
HASHES = ("captures", "files")
"""The fields of run.json that `Copy.seal` recomputes."""


def damages(copy: Copy) -> Damages:
    """Every leaf of run.json, wire/counters.json and nodes/*/job.json changed; every object's entry removed."""
    for name in copy.names:
        if name.endswith(".json"):
            document = copy.json(name)
            for path, value in _walk(document):
                if name == "run.json" and path[0] in HASHES:
                    continue
                if not isinstance(value, dict | list):
                    yield Damage(f"{name}: {_words(path)} another", _change(name, path, _other))
                if isinstance(value, list):
                    yield Damage(f"{name}: {_words(path)} longer or shorter", _change(name, path, _resized))
                if isinstance(path[-1], str):
                    yield Damage(f"{name}: {_words(path)} missing", _remove(name, path))


def _walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _walk(item, (*path, key))


def _words(path: Path) -> str:
    return re.sub(r"\.\[", "[", ".".join(f"[{key}]" if isinstance(key, int) else key for key in path))


def _at(document: Any, path: Path) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def _change(name: str, path: Path, other: Callable[[Any, Random], Any]) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        document = copying.deepcopy(copy.json(name))
        parent = _at(document, path)
        parent[path[-1]] = other(parent[path[-1]], random)
        copy.write_json(name, document)

    return apply


def _remove(name: str, path: Path) -> Callable[[Copy, Random], None]:
    def apply(copy: Copy, random: Random) -> None:
        document = copy.json(name)
        del _at(document, path)[path[-1]]
        copy.write_json(name, document)

    return apply


def _resized(value: list[Any], random: Random) -> list[Any]:
    return value[:-1] if len(value) > 1 else [*value, *value] or ["another"]


def _other(value: Any, random: Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if value is None:
        return 1
    return _other_text(value, random)


def _other_text(value: str, random: Random) -> str:
    """A number in it one higher, else another last letter."""
    digits = list(re.finditer(r"\d+", value))
    if digits:
        found = random.choice(digits)
        return f"{value[: found.start()]}{int(found[0]) + 1}{value[found.end() :]}"
    return value[:-1] + ("a" if value[-1:] != "a" else "b")

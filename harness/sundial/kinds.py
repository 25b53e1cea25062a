# SPDX-License-Identifier: Apache-2.0
"""Kinds of things, found by folder.

A kind of segment, workload or paper is a package `sundial.FAMILY.NAME`. It has one module for each stage that asks
something of it (`model.py`, `plan.py`, `verify.py` ...), and that module's `KIND` is an object with the interface that
the stage defines. A stage asks this page for all kinds and never names one, so adding a kind is adding a folder.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal, TypeVar

Family = Literal["segments", "workloads", "papers"]
InterfaceT = TypeVar("InterfaceT")


@cache
def names(family: Family) -> tuple[str, ...]:
    """Names of all kinds of a family, sorted: the packages in its folder."""
    package = import_module(f"sundial.{family}")
    return tuple(sorted(found.name for found in pkgutil.iter_modules(package.__path__) if found.ispkg))


def having(family: Family, stage: str) -> tuple[str, ...]:
    """Names of the kinds of a family that have a module for a stage, which is not imported."""
    return tuple(name for name in names(family) if find_spec(f"sundial.{family}.{name}.{stage}") is not None)


_loaded: dict[tuple[Family, str], Mapping[str, Any]] = {}


def load(family: Family, stage: str, interface: type[InterfaceT]) -> Mapping[str, InterfaceT]:
    """What each kind of a family answers to a stage, by name, sorted; kinds without a module for it are left out.

    `interface` must be a runtime-checkable Protocol. Raises TypeError for a `KIND` that lacks something of it.
    """
    if (family, stage) not in _loaded:
        _loaded[family, stage] = MappingProxyType(dict(_answers(family, stage, interface)))
    return _loaded[family, stage]


def _answers(family: Family, stage: str, interface: type[InterfaceT]) -> Iterator[tuple[str, InterfaceT]]:
    for name in having(family, stage):
        path = f"sundial.{family}.{name}.{stage}"
        kind = getattr(import_module(path), "KIND", None)
        if not isinstance(kind, interface):
            raise TypeError(f"{path}.KIND is not a {interface.__name__}")
        yield name, kind

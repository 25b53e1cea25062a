# SPDX-License-Identifier: Apache-2.0
"""Properties that were not verified, by name: the constants `UNPROVEN` of the modules that check.

A module of this room, or one named `verify*` of a kind of segment or workload, has one line for each thing that it does
not check; a kind may say it as `KIND.unproven` as well, or of one run as `KIND.unproven_of(run)`. `UNPROVEN_REAL_CLOCK`
has what is checked under the virtual clock alone.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from sundial import kinds
from sundial.observe import RunDirectory
from sundial.verify.segment import network_of

OF_A_CAPTURE = (
    "where, when and by what the frames were captured: times on the wire, collisions and losses are not looked at",
    "frames of other protocols and ports than the one that was asked for",
    "payloads, and what the calls asked for: there is neither a scenario nor a client's record",
)
"""Of a capture from elsewhere."""


def unproven(run: RunDirectory) -> list[str]:
    """Of a run, from its clock and the kinds that took part."""
    found: dict[str, None] = {}
    for module in _checking(run):
        found.update(dict.fromkeys(getattr(module, "UNPROVEN", ())))
        kind = getattr(module, "KIND", None)
        found.update(dict.fromkeys(getattr(kind, "unproven", ())))
        found.update(dict.fromkeys(getattr(kind, "unproven_of", _nothing)(run)))
        if run.clock == "real":
            found.update(dict.fromkeys(getattr(module, "UNPROVEN_REAL_CLOCK", ())))
    return list(found)


def _nothing(run: RunDirectory) -> Iterable[str]:
    return ()


def _checking(run: RunDirectory) -> Iterator[ModuleType]:
    yield from _modules("sundial.verify", "")
    segments = _segments(run)
    words = {word for workload in _workloads(run) for word in (workload.get("app"), *workload.get("transports", []))}
    for name in kinds.names("segments"):
        if name in segments:
            yield from _modules(f"sundial.segments.{name}", "verify")
    for name in kinds.names("workloads"):
        # A transport of its own is named after its kind: mbcf3.
        if any(str(word).startswith(name) for word in words):
            yield from _modules(f"sundial.workloads.{name}", "verify")


def _modules(package: str, prefix: str) -> Iterator[ModuleType]:
    parent = import_module(package)
    for found in sorted(pkgutil.walk_packages(parent.__path__, f"{package}."), key=lambda each: each.name):
        if found.name.removeprefix(f"{package}.").startswith(prefix):
            yield import_module(found.name)


def _segments(run: RunDirectory) -> set[str]:
    segments = (run.document.get("topology") or {}).get("segments") or {}
    written = {str(segment.get("kind")) for segment in segments.values()} if isinstance(segments, dict) else set()
    network = network_of(run)
    return written if network is None else written | {segment.kind for segment in network.inner.values()}


def _workloads(run: RunDirectory) -> list[dict[str, Any]]:
    return [each for each in (run.document.get("scenario") or {}).get("workloads", []) if isinstance(each, dict)]

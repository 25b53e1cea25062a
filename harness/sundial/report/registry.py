# SPDX-License-Identifier: Apache-2.0
"""Which kind of workload a curve of the report belongs to, and what that kind says of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import polars as pl

from sundial import kinds
from sundial.expect import Leg
from sundial.model.scenario import KINDS
from sundial.report.tables import Table
from sundial.report.workload import BOTH_DIRECTIONS, Client, Filter, Records, Setting, WorkloadReport

_found = kinds.load("workloads", "report", WorkloadReport)
REPORTS: Mapping[str, WorkloadReport] = {name: _found[name] for name in KINDS if name in _found}
"""By the name of the kind, in the order of the model's KINDS."""

CLIENTS: Mapping[str, Client] = {app: client for report in REPORTS.values() for app, client in report.clients.items()}
"""By the word in `app` of samples."""
_OWNERS = {app: report for report in REPORTS.values() for app in report.clients}
_PLACES = {app: place for place, app in enumerate(app for app, client in CLIENTS.items() if client.lines)}
_TRANSPORTS = [transport.name for kind in KINDS.values() for transport in kind.transports]


def client(app: str) -> Client:
    """A client program; one that no kind knows is called by its own name."""
    return CLIENTS.get(app, Client(app))


def order(app: str, transport: str) -> tuple[int, int]:
    """Where curves stand: clients with lines of their own first, their transports in the order of the model."""
    known = transport in _TRANSPORTS
    return _PLACES.get(app, len(_PLACES)), _TRANSPORTS.index(transport) if known else len(_TRANSPORTS)


def legs(setting: Setting, size: int) -> tuple[Leg, Leg] | None:
    """Request and reply of a call; None where nothing is known of them."""
    report = _OWNERS.get(setting.curve[0])
    return report.legs(setting, size) if report else None


def moves(app: str, procedure: str) -> int:
    """How often a successful call moves its payload, both directions counted."""
    report = _OWNERS.get(app)
    return report.moves(procedure) if report else BOTH_DIRECTIONS


def filters(used: Mapping[str, Collection[str]]) -> Iterator[Filter]:
    """Display filters for a run; `used`: transports by app."""
    for report in REPORTS.values():
        transports = {name for app in report.clients for name in used.get(app, ())}
        if transports:
            yield from report.filters(transports)


def serves(step: Mapping[str, Any]) -> bool:
    """True if a step of a job answers others and asks nothing itself."""
    report = REPORTS.get(str(step.get("app")))
    return report is not None and report.serves(step.get("options") or {})


def tables(records: Records, samples: pl.DataFrame) -> dict[str, list[Table]]:
    """What kinds have to show besides calls, by the name of the kind."""
    found = {name: list(report.tables(records, samples)) for name, report in REPORTS.items()}
    return {name: made for name, made in found.items() if made}

# SPDX-License-Identifier: Apache-2.0
"""Which capture the user means, and the port from whose point of view it is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from sundial.cli import rooms
from sundial.cli.runs import captures as captures_of
from sundial.cli.runs import find_run, read_json
from sundial.errors import BadInput
from sundial.plan.request import Kept

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
at_port: Callable[[Decorated], Decorated] = click.option(
    "--at", "port", metavar="PORT", help="The point of view, such as client:eth0. Default: the first client's port."
)
all_ports: Callable[[Decorated], Decorated] = click.option(
    "--all", "all_", is_flag=True, help="All ports in one: Wireshark takes the second record of a frame for a copy."
)


@dataclass(frozen=True)
class Point:
    """A capture as it is to be shown."""

    capture: Path
    port: str | None
    """None: all ports."""
    ports: Sequence[str]
    kept: Kept | None
    """The topology, if it is up."""
    other_captures: Sequence[str]

    def in_words(self) -> str:
        """What is shown, and what else there is."""
        others = [f"--at {port}" for port in self.ports if port != self.port]
        others += [] if self.port is None else ["--all"]
        return f"showing {self.port or 'all ports'}; also: {', '.join(others)}"


def find_point(run: str, segment: str | None, port: str | None, *, all_: bool) -> Point:
    """What `RUN|TOPOLOGY [SEGMENT] [--at PORT | --all]` means. Raises BadInput."""
    if port is not None and all_:
        raise BadInput("--at and --all exclude each other", allowed="one of them")
    kept = next((kept for kept in rooms.kept() if kept.topology == run), None)
    folder = kept.captures if kept is not None else find_run(run)
    capture = _find_capture(folder, segment)
    ports = rooms.ports(capture)
    if port is not None and port not in ports:
        raise BadInput(f"{port!r} is not a port of this capture", file=str(capture), allowed=", ".join(ports))
    others = [name for name in captures_of(folder) if name != capture.stem] if segment is None else []
    return Point(capture, None if all_ else port or _first(ports, folder), ports, kept, others)


def _find_capture(folder: Path, segment: str | None) -> Path:
    """The capture of a segment, or the only one (the first where a run has several). Raises BadInput."""
    captures = captures_of(folder)
    if not captures:
        raise BadInput("has no captures", file=str(folder))
    if segment is None:
        return next(iter(captures.values()))
    if segment not in captures:
        raise BadInput(f"there is no capture of segment {segment!r}", file=str(folder), allowed=", ".join(captures))
    return captures[segment]


def _first(ports: Sequence[str], folder: Path) -> str:
    """The port of the first client that has one here, otherwise the first port."""
    scenario = read_json(folder / "run.json").get("scenario") or {}
    clients = [client for workload in scenario.get("workloads", []) for client in workload.get("clients", [])]
    of_clients = [port for client in clients for port in ports if port.partition(":")[0] == client]
    return next(iter(of_clients), ports[0])

# SPDX-License-Identifier: Apache-2.0
"""The paper's data: its machines, libraries, and what each figure shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper, Scale

System = Literal["grpc", "rpyc"]
Place = Literal["local", "remote"]
Container = Literal["list", "tuple"]


class Machines(Strict):
    """As the paper names them."""

    one: str
    two: str


class Shown(Strict):
    """A figure: what of which system, where."""

    kind: Literal["boxes", "bars", "dots", "compared", "distance"]
    system: System | None = None
    """None: both."""
    place: Place | None = None
    """None: both."""
    containers: tuple[Container, ...] = ()
    """Of the distance, over RPyC."""


class Extent(Strict):
    """Calls of a function."""

    calls: int
    """In what the paper measured: both systems, its twelve functions, RPyC with lists."""
    beside_calls: int
    """In what it did not: other systems, the distance with tuples or without numpy, TCP_NODELAY."""
    slope_calls: int
    """For each round trip time."""
    delays: tuple[str, ...]
    """Of the link, one way, whose round trips the slopes go by."""


class Santos18(Paper):
    """A paper without tables and without printed times."""

    machines: Machines
    scales: Mapping[Scale, Extent]
    libraries: Mapping[str, str]
    calls: int
    """Of each function."""
    percentiles: tuple[float, float]
    """What is below the first and above the second is dropped."""
    figures: Mapping[int, Shown]

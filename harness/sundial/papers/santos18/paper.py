# SPDX-License-Identifier: Apache-2.0
"""The paper's data: its machines, libraries, and what each figure shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper

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


class Santos18(Paper):
    """A paper without tables and without printed times."""

    machines: Machines
    libraries: Mapping[str, str]
    calls: int
    """Of each function."""
    percentiles: tuple[float, float]
    """What is below the first and above the second is dropped."""
    figures: Mapping[int, Shown]


PATH = Path(__file__).with_name("paper.yaml")

# SPDX-License-Identifier: Apache-2.0
"""What observation asks of a kind of workload: which fields of its packets tshark is to show, and how to call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import polars as pl

from sundial import kinds
from sundial.observe.pcap import Capture, Interface

ServerPorts = Mapping[str, tuple[int, ...]]
"""Ports of a kind's servers by transport (udp, tcp), as far as they are known."""


_TYPES: Mapping[str, type[pl.DataType]] = {"number": pl.UInt32, "word": pl.Categorical}


@dataclass(frozen=True)
class Field:
    """A column of the table of frames: a field of tshark, and which of its values: the first, as text, as one of a few
    words or as a number, or all with commas between; `octets`: all, in hexadecimal digits alone."""

    column: str
    tshark: str
    values: Literal["number", "first", "word", "all", "octets"]

    @property
    def dtype(self) -> type[pl.DataType]:
        """Numbers have 32 bits."""
        return _TYPES.get(self.values, pl.String)


@runtime_checkable
class Dissection(Protocol):
    """`KIND` of `sundial.workloads.NAME.observe`."""

    @property
    def fields(self) -> Sequence[Field]:
        """Columns that tshark gives."""

    @property
    def computed(self) -> Mapping[str, type[pl.DataType]]:
        """Columns that `compute` gives."""

    def carried_by(self, capture: Capture, interface: Interface) -> bool:
        """Whether frames at this interface may be of the kind; if not, its columns are null and cost nothing."""

    def options(self, ports: ServerPorts) -> Sequence[str]:
        """tshark's options, each `-x value`."""

    def compute(self, capture: Capture, interface: Interface) -> Sequence[pl.Series]:
        """What is computed of the bytes of an interface's frames, one value a frame."""


def dissections() -> Mapping[str, Dissection]:
    """Of all kinds that have one, by the kind's name."""
    return kinds.load("workloads", "observe", Dissection)

# SPDX-License-Identifier: Apache-2.0
"""What observation asks of a kind of workload: which columns it reads from the bytes of its packets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import polars as pl

from sundial import kinds
from sundial.observe.headers import Headers
from sundial.observe.pcap import Capture, Interface


@runtime_checkable
class Reader(Protocol):
    """`KIND` of `sundial.workloads.NAME.observe`."""

    @property
    def columns(self) -> Mapping[str, type[pl.DataType]]:
        """Columns of the table of frames that `read` gives."""

    def carried_by(self, interface: Interface, headers: Headers) -> bool:
        """Whether frames at this interface may be of the kind; if not, its columns are null and cost nothing."""

    def read(self, capture: Capture, interface: Interface, headers: Headers) -> Sequence[pl.Series]:
        """The columns, one value a frame."""


def readers() -> Mapping[str, Reader]:
    """Of all kinds that have one, by the kind's name."""
    return kinds.load("workloads", "observe", Reader)

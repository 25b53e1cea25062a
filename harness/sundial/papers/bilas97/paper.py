# SPDX-License-Identifier: Apache-2.0
"""The paper's data."""

from __future__ import annotations

from collections.abc import Mapping

from sundial.model.fields import Strict
from sundial.reproduce.paper import Paper, Scale


class Null(Strict):
    """Round trips of a call without arguments and results, in us."""

    vrpc: float
    shrimprpc: float


class Hardware(Strict):
    """What the project says of its network interface."""

    latency_us: float
    """From user memory to user memory."""
    megabytes_per_s: float


class Extent(Strict):
    """Calls of one kind and size, and sizes in bytes."""

    calls: int
    sizes: tuple[int, ...]
    """Of calls."""
    stream_sizes: tuple[int, ...]
    transfers: int
    """Of a stream."""
    latencies: tuple[str, ...]
    """Of a word over the backplane: a design's, the default's, and the project's own figure."""


class Bilas97(Paper):
    """A paper of which the abstract's figures are known, and no table."""

    scales: Mapping[Scale, Extent]
    null_us: Null
    above_hardware_us: float
    """The null call of ShrimpRPC is so much above the hardware's least."""
    hardware: Hardware

    @property
    def floor_us(self) -> float:
        """A round trip of the hardware alone."""
        return self.null_us.shrimprpc - self.above_hardware_us

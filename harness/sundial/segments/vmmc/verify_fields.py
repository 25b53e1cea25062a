# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane as captures hold them: 32 bytes, little endian, and the data."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sundial.observe.octets import Octets
from sundial.segments.vmmc.wire import FIELDS, HEADER

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Packets:
    """Fields of packets, a number of each in every array."""

    version: Numbers
    kind: Numbers
    flags: Numbers
    reason: Numbers
    sender: Numbers
    receiver: Numbers
    sequence: Numbers
    export: Numbers
    generation: Numbers
    offset: Numbers
    length: Numbers
    count: Numbers

    def take(self, which: Numbers | NDArray[np.bool_]) -> Packets:
        """Some of them, by place or by mask."""
        return Packets(*(getattr(self, field.name)[which] for field in fields(self)))


def packets_of(octets: Octets) -> Packets:
    """Bytes that a packet lacks are 0."""
    heads = octets.matrix(0, HEADER).astype(np.int64)
    return Packets(
        **{
            name: (heads[:, at : at + size] << 8 * np.arange(size)).sum(axis=1, dtype=np.int64)
            for name, (at, size) in FIELDS.items()
        }
    )

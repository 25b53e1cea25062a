# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane as captures hold them: 32 bytes, little endian, and the data."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sundial.observe.octets import Octets
from sundial.segments.vmmc.model import HEADER_BYTES

Numbers = NDArray[np.int64]

VERSION = 1
AU, DU, CONTROL, NACK = 1, 2, 3, 4
LAST = 2
"""Flag: the last packet of a deliberate update."""
GAP, PAGE_END, FULL, TIMER, UNCOMBINED, FLUSHED = 1, 2, 3, 4, 5, 6
"""Why a packet of automatic update left."""

_PLACES = {
    "version": (0, 1), "kind": (1, 1), "flags": (2, 1), "reason": (3, 1), "sender": (4, 2), "receiver": (6, 2),
    "sequence": (8, 4), "export": (12, 4), "generation": (16, 4), "offset": (20, 4), "length": (24, 4),
    "count": (28, 4),
}  # fmt: skip


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
    heads = octets.matrix(0, HEADER_BYTES).astype(np.int64)
    return Packets(
        **{
            name: (heads[:, at : at + size] << 8 * np.arange(size)).sum(axis=1, dtype=np.int64)
            for name, (at, size) in _PLACES.items()
        }
    )

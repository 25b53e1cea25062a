# SPDX-License-Identifier: Apache-2.0
"""Which bits of a short PDU a line has flipped: its CRC tells. Control frames of LAN emulation that the services sent
are seen nowhere else when they arrive with a wrong one.

A CRC is linear: that of the differing bits alone is the difference of the two. Among so few bits as a line flips in
three cells, hardly two choices have the same one.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sundial.expect.atm import CELL_PAYLOAD, crc32
from sundial.verify.wire import Numbers

CELLS_MOST = 3
"""As control frames have."""
_CRC = 4
_BITS = 8 * CELL_PAYLOAD


def restored(octets: bytes) -> bytes:
    """A PDU with a wrong CRC without the flips that explain it: two bits, or one of each cell. As it came, where there
    are none."""
    cells = len(octets) // CELL_PAYLOAD
    if not 1 <= cells <= CELLS_MOST or len(octets) % CELL_PAYLOAD:
        return octets
    wrong = crc32(octets[:-_CRC]) ^ int.from_bytes(octets[-_CRC:])
    changes = _changes(cells)
    bits = _two(changes, wrong) if cells < CELLS_MOST else _two(changes, wrong) or _three(changes, wrong)
    value = int.from_bytes(octets)
    for bit in bits:
        value ^= 1 << (8 * len(octets) - 1 - bit)
    return value.to_bytes(len(octets))


def _two(changes: Numbers, wrong: int) -> list[int]:
    """The one bit, or else the two."""
    one = np.flatnonzero(changes == wrong)
    if len(one):
        return [int(one[0])]
    first = np.flatnonzero(np.isin(changes ^ wrong, changes))
    return [] if not len(first) else [int(first[0]), int(np.flatnonzero(changes == changes[first[0]] ^ wrong)[0])]


def _three(changes: Numbers, wrong: int) -> list[int]:
    """One of each cell."""
    one, two, three = changes.reshape(CELLS_MOST, _BITS)
    rest = one[:, None] ^ two ^ wrong
    found = np.argwhere(np.isin(rest, three))
    if not len(found):
        return []
    first, second = found[0].tolist()
    return [first, _BITS + second, 2 * _BITS + int(np.flatnonzero(three == rest[first, second])[0])]


@cache
def _changes(cells: int) -> Numbers:
    """What each bit of a PDU changes in the difference between the CRC that is there and the one that is due."""
    size = CELL_PAYLOAD * cells
    nothing = crc32(bytes(size - _CRC))
    found = []
    for bit in range(8 * size):
        flipped = (1 << (8 * size - 1 - bit)).to_bytes(size)
        found.append(crc32(flipped[:-_CRC]) ^ nothing ^ int.from_bytes(flipped[-_CRC:]))
    return np.array(found, np.int64)

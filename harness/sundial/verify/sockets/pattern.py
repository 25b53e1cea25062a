# SPDX-License-Identifier: Apache-2.0
"""The pattern of payloads (harness/schemas/README.md): byte i of call n is 131 n + i // 256 + 7 (i mod 256), modulo
256; as text, one of the 94 printable characters from 33 on, by the same number modulo 94."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sundial.verify.sockets.protocol import Bytes

_CALL_STEP, _BYTE_STEP, _BLOCK = 131, 7, 256
_FIRST_PRINTABLE, _PRINTABLES = 33, 94
_TEXT = (_FIRST_PRINTABLE + np.arange(256) % _PRINTABLES).astype(np.uint8)


@lru_cache(maxsize=64)
def _first(begin: int, end: int) -> Bytes:
    place = np.arange(begin, end)
    pattern: Bytes = (place // _BLOCK + _BYTE_STEP * (place % _BLOCK)).astype(np.uint8)
    return pattern


def pattern(numbers: NDArray[np.int64], begin: int, end: int, *, text: bool = False) -> Bytes:
    """Bytes `begin` to `end` of the payloads of some calls, a row each."""
    bases = (numbers * _CALL_STEP).astype(np.uint8)
    filled: Bytes = _first(begin, end)[None, :] + bases[:, None]
    return _TEXT[filled] if text else filled


def words(*columns: int | NDArray[np.int64], height: int = 1) -> Bytes:
    """32-bit words in network order, a row of them for each number; `height`: rows where all are single numbers."""
    parts = [np.broadcast_to(np.asarray(column, dtype=np.int64), height) for column in columns]
    return np.stack(parts, axis=1).astype(">u4").view(np.uint8).reshape(height, 4 * len(columns))

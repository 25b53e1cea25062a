# SPDX-License-Identifier: Apache-2.0
"""What raw echoes carry: magic, sequence number, length and attempt, each in four bytes, then the pattern of payloads.

A reply is its request. Where a request was sent more than once, the attempt in a reply says which of them it returns;
it must be one of those that were sent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sundial.verify.sockets.pattern import pattern, words
from sundial.verify.sockets.protocol import Bytes, Part
from sundial.workloads import functions
from sundial.workloads.raw.expect import HEADER, MAGIC
from sundial.workloads.raw.expect_functions import magic as magic_of
from sundial.workloads.raw.expect_functions import values

_FIELDS = ("magic", "sequence", "length", "attempt")
_ATTEMPT = 12


def content(part: Part, seen: Bytes) -> Bytes:
    """The bytes of a part of some payloads."""
    sequence = part.numbers["xid"]
    end = part.begin + part.length
    right = np.empty_like(seen)
    function = part.procedure in functions.BY_NAME
    carried = values(part.procedure, reply=part.reply) if function else b""
    if part.begin < HEADER:
        magic, length = (magic_of(part.procedure), HEADER + len(carried)) if function else (MAGIC, part.size)
        head = words(int.from_bytes(magic, "big"), sequence, length, _attempts(part, seen), height=len(seen))
        right[:, : HEADER - part.begin] = head[:, part.begin : min(end, HEADER)]
    if end > HEADER:
        first = max(part.begin, HEADER)
        behind = right[:, first - part.begin :]
        behind[:] = _values(carried, seen, first, end) if function else pattern(sequence, first, end)
    return right


def _values(carried: bytes, seen: Bytes, begin: int, end: int) -> Bytes:
    """Those of a function, in each message. What a message has behind them, others say."""
    here = np.frombuffer(carried, np.uint8)[begin - HEADER : end - HEADER]
    right = seen[:, seen.shape[1] - (end - begin) :].copy()
    right[:, : len(here)] = here
    return right


def _attempts(part: Part, seen: Bytes) -> NDArray[np.int64]:
    """Which attempt each says: its own, of a request; what it says, of a reply, if that can be."""
    attempt, most = part.numbers["attempt"], part.numbers["retransmits"]
    if not part.reply:
        # Requests that an adapter dropped before they were seen at its port are counted, but not here.
        attempt, low = np.minimum(attempt, most), attempt
    else:
        low = np.zeros_like(attempt)
    at = _ATTEMPT - part.begin
    if at < 0 or at + 4 > part.length:
        return np.clip(attempt, low, most)
    said: NDArray[np.int64] = seen[:, at : at + 4].astype(np.int64) @ np.array([1 << 24, 1 << 16, 1 << 8, 1])
    return np.clip(said, low, np.maximum(low, most))


def content_field(part: Part, place: int) -> str:
    """The part of the payload at a place."""
    if place < HEADER:
        return _FIELDS[place // 4]
    return "value" if part.procedure in functions.BY_NAME else "payload"

# SPDX-License-Identifier: Apache-2.0
"""The format of a backplane's packets: 32 bytes, little endian, and the data; and what kernels say to one another."""

from __future__ import annotations

from collections.abc import Mapping

LINK_TYPE = 148
"""LINKTYPE_USER1."""
HEADER = 32
PAGE = 4096
WORD = 8
VERSION = 1
AU, DU, CONTROL, NACK = 1, 2, 3, 4
KINDS: Mapping[int, str] = {
    AU: "automatic update",
    DU: "deliberate update",
    CONTROL: "control message",
    NACK: "refusal",
}
NOTIFY, LAST = 1, 2
"""Flags: a notification to the receiver; the last packet of a deliberate update."""
GAP, PAGE_END, FULL, TIMER, UNCOMBINED, FLUSHED = 1, 2, 3, 4, 5, 6
"""Why a packet of automatic update left."""
REASONS: Mapping[int, str] = {
    GAP: "gap", PAGE_END: "page", FULL: "full", TIMER: "timer", UNCOMBINED: "uncombined", FLUSHED: "flushed",
}  # fmt: skip

PLACES: Mapping[str, tuple[int, int]] = {
    "version": (0, 1), "kind": (1, 1), "flags": (2, 1), "reason": (3, 1), "sender": (4, 2), "receiver": (6, 2),
    "sequence": (8, 4), "export": (12, 4), "generation": (16, 4), "offset": (20, 4), "length": (24, 4),
    "count": (28, 4),
}  # fmt: skip
"""Fields of the header: offset and bytes."""

MESSAGE_MOST = 256
"""Bytes of a control packet's data that an adapter sends."""
CONTROL_BYTES = 64
IMPORT, ANSWER, GONE, UNIMPORT = 1, 2, 3, 4
NAME_BYTES = 32
CONTROL_FORMAT = f"<IIQ{NAME_BYTES}sIIIHH"
"""struct's: type, request, key, name, status, export, generation, pages, use."""
EXPORTS, EXPORT_PAGES = 240, 256
"""Of a node; pages of one, at most."""
REFUSALS: Mapping[int, str] = {1: "no such name", 2: "another key", 3: "not for this node", 4: "full", 5: "gone"}
"""Status of an answer, where it is not 0."""
USES: Mapping[int, str] = {0: "memory", 1: "vRPC", 2: "ShrimpRPC"}
"""What an export is for."""

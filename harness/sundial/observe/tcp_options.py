# SPDX-License-Identifier: Apache-2.0
"""Options of TCP headers (RFC 9293 section 3.1, RFC 7323, RFC 2018) of many segments at once."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import ETHERNET
from sundial.observe.octets import Numbers, Octets

END, NOP, MSS, SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8
_LENGTHS = {MSS: 4, SCALE: 3, SACK_PERMITTED: 2, TIMESTAMPS: 10}
_AT_ONCE = 1 << 14
BLOCKS = 4
"""Of SACK, at most."""

OPTIONS: dict[str, type[pl.DataType]] = {
    "row": pl.UInt32,
    "malformed": pl.Boolean,
    "mss": pl.UInt16,
    "scale": pl.UInt8,
    "sack_permitted": pl.Boolean,
    "stamp": pl.UInt32,
    "echo": pl.UInt32,
    "blocks": pl.UInt8,
    **{f"{edge}{place}": pl.UInt32 for place in range(BLOCKS) for edge in ("left", "right")},
}
"""`malformed`: an unknown option, one twice, or of another length than it has."""


def tcp_options(segments: pl.DataFrame, octets: Octets) -> pl.DataFrame:
    """OPTIONS of each of `segments` (row, ip_header, tcp_header), whose bytes are `octets`."""
    begin = ETHERNET + segments["ip_header"].cast(pl.Int64).to_numpy() + 20
    length = segments["tcp_header"].cast(pl.Int64).to_numpy() - 20
    parts = []
    for first in range(0, segments.height, _AT_ONCE):
        where = slice(first, first + _AT_ONCE)
        part = Octets(octets.data, octets.begin[where], octets.length[where])
        parts.append(_table(*read_options(part.matrix(begin[where], MOST), length[where])))
        octets.forget()
    table = pl.concat(parts) if parts else pl.DataFrame(schema=OPTIONS).drop("row")
    return segments.select("row").hstack(table).select([pl.col(name).cast(kind) for name, kind in OPTIONS.items()])


MOST = 40
"""Bytes of options that a header has at most."""


def read_options(octets: NDArray[np.uint8], length: Numbers) -> tuple[NDArray[np.bool_], dict[str, Numbers]]:
    """`malformed`, and the other OPTIONS but `row`, -1 where there is none: of the MOST bytes behind the first 20 of
    each header, of which `length` are options.

    Nearly all segments have the options that RFC 7323 recommends (appendix A); only others are walked through."""
    recommended = (length == 12) & (octets[:, :4] == (NOP, NOP, TIMESTAMPS, 10)).all(axis=1)
    found = {name: np.full(len(octets), -1, np.int64) for name in OPTIONS if name not in ("row", "malformed")}
    stamps = np.ascontiguousarray(octets[recommended, 4:12]).view(">u4")
    found["stamp"][recommended], found["echo"][recommended] = stamps[:, 0], stamps[:, 1]
    malformed = np.zeros(len(octets), np.bool_)
    others = np.flatnonzero(~recommended)
    malformed[others], walked = _walk(octets[others], length[others])
    for name, values in walked.items():
        found[name][others] = values
    return malformed, found


def _table(malformed: NDArray[np.bool_], found: dict[str, Numbers]) -> pl.DataFrame:
    table = pl.DataFrame({"malformed": malformed, **found})
    return table.with_columns(pl.when(pl.col(name) >= 0).then(name) for name in found).with_columns(
        sack_permitted=pl.col("sack_permitted").is_not_null()
    )


def _walk(octets: NDArray[np.uint8], length: Numbers) -> tuple[NDArray[np.bool_], dict[str, Numbers]]:
    """Option by option: `malformed`, and the values, -1 where there is none."""
    count = len(octets)
    rows = np.arange(count)
    found: dict[str, Numbers] = {
        name: np.full(count, -1, np.int64) for name in OPTIONS if name not in ("row", "malformed")
    }
    malformed = length < 0
    at = np.zeros(count, np.int64)

    def number(offset: int, size: int) -> Numbers:
        value = np.zeros(count, np.int64)
        for place in range(size):
            value = value << 8 | octets[rows, np.minimum(at + offset + place, MOST - 1)]
        return value

    active = ~malformed & (at < length)
    while active.any():
        kind = np.where(active, octets[rows, np.minimum(at, MOST - 1)], END)
        plain = kind <= NOP
        size = np.where(plain, 1, number(1, 1))
        right = (plain | (size >= 2)) & (at + size <= length)
        for code, least in _LENGTHS.items():
            right &= (kind != code) | (size == least)
        sacks = kind == SACK
        right &= ~sacks | ((size % 8 == 2) & (size > 2) & (size <= 2 + 8 * BLOCKS))
        right &= plain | sacks | np.isin(kind, list(_LENGTHS))
        first = {MSS: "mss", SCALE: "scale", SACK_PERMITTED: "sack_permitted", TIMESTAMPS: "stamp", SACK: "blocks"}
        for code, name in first.items():
            right &= (kind != code) | (found[name] < 0)
        malformed |= active & ~right
        active &= right
        values = {
            "mss": (MSS, number(2, 2)),
            "scale": (SCALE, number(2, 1)),
            "sack_permitted": (SACK_PERMITTED, np.ones(count, np.int64)),
            "stamp": (TIMESTAMPS, number(2, 4)),
            "echo": (TIMESTAMPS, number(6, 4)),
            "blocks": (SACK, (size - 2) // 8),
        }
        for name, (code, value) in values.items():
            found[name] = np.where(active & (kind == code), value, found[name])
        for place in range(BLOCKS):
            has = active & sacks & (size >= 10 + 8 * place)
            for edge, offset in (("left", 2), ("right", 6)):
                name = f"{edge}{place}"
                found[name] = np.where(has, number(offset + 8 * place, 4), found[name])
        at = np.where(active, at + size, at)
        active &= (kind != END) & (at < length)
    return malformed, found

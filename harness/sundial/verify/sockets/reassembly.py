# SPDX-License-Identifier: Apache-2.0
"""Datagrams that have come whole and were not put together, since their machine had no memory left for fragments.

Linux holds the fragments of a datagram for 30 s, of all datagrams together in 4 MiB (ipfrag_time and ipfrag_high_thresh
in ip-sysctl), and takes no further ones while those are full. On a lossy wire what is asked for again and again fills
that with datagrams that will never be whole.
"""

from __future__ import annotations

from collections import deque

import polars as pl

MEMORY = 4 << 20
HELD_NS = 30_000_000_000
_PAGE = 4096
"""Linux takes no more for a frame of Ethernet's size: its head, its data and the management of both."""


def refused(frames: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Of the datagrams that `arrived` those that came whole, as `expected`, and that their machine may not have put
    together. `frames`: UDP, with row, end, time_ns and data."""
    key = ["call", "reply", "layout"]
    size = pl.max_horizontal(pl.lit(_PAGE), 2 * pl.col("data") + _PAGE // 4)
    largest = int(frames.select(size.max()).item() or 0)
    unfinished = arrived.join(expected, on=key, how="anti")
    if unfinished["count"].sum() * largest < MEMORY:
        return arrived.clear()
    numbered = arrived.with_row_index("datagram_place")
    whole = numbered.join(expected, on=key, how="semi")
    # One that is not split needs no memory.
    alone = whole.filter(pl.col("count") == 1)
    parts = (
        numbered.join(alone.select("datagram_place"), on="datagram_place", how="anti")
        .select("datagram_place", row=pl.col("rows"))
        .explode("row")
        .join(frames.select("end", "time_ns", row=pl.col("row").cast(pl.UInt32), size=size), on="row", how="inner")
        .sort("time_ns", "row")
    )
    ends = dict(whole.select("datagram_place", "last_ns").iter_rows())
    found: list[int] = []
    for _, part in parts.group_by("end", maintain_order=True):
        found += _refused(part, ends)
    return numbered.filter(pl.col("datagram_place").is_in(found)).drop("datagram_place")


def _refused(parts: pl.DataFrame, whole: dict[int, int]) -> list[int]:
    """At one end: all that came before and may still be held is counted. `whole`: by datagram, when it was."""
    held: dict[int, int] = {}
    since: deque[tuple[int, int]] = deque()
    memory = 0
    found = []
    for datagram, at, size in parts.select("datagram_place", "time_ns", "size").iter_rows():
        while since and since[0][0] + HELD_NS <= at:
            memory -= held.pop(since.popleft()[1], 0)
        if datagram not in held:
            held[datagram] = 0
            since.append((at, datagram))
        held[datagram] += size
        memory += size
        if whole.get(datagram) == at:
            if memory >= MEMORY:
                found.append(datagram)
            else:
                memory -= held[datagram]
                held[datagram] = 0
    return found

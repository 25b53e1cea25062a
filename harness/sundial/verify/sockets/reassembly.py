# SPDX-License-Identifier: Apache-2.0
"""How a machine puts datagrams together from the fragments that arrive, as Linux does (net/ipv4/ip_fragment.c and
inet_fragment.c).

Fragments of one source, destination and identification wait in one queue. A copy of what waits there is dropped, so
that copies make no second datagram unless all come again behind the first; an overlap discards the queue. A fragment is
dropped with its queue after 30 s, or when more than 64 others of its source came in between (ipfrag_time and
ipfrag_max_dist in ip-sysctl). All queues together may take 4 MiB (ipfrag_high_thresh): while those are full no further
fragment is taken. On a lossy wire what is asked for again and again fills that with datagrams that will never be whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from sundial.verify.groups import number_of
from sundial.verify.sockets.udp import datagrams, layout_item

MEMORY = 4 << 20
HELD_NS = 30_000_000_000
MOST_APART = 64
_PAGE = 4096
"""Linux takes no more for a frame of Ethernet's size: its head, its data and the management of both."""


@dataclass(frozen=True)
class Fragment:
    """What arrived. `number`: its place among all fragments of its source that arrived here."""

    place: int
    at_ns: int
    number: int
    begin: int
    end: int
    more: bool


@dataclass
class Queue:
    """Fragments that wait, or were put together if it is `whole`."""

    since_ns: int
    number: int
    places: list[int] = field(default_factory=list)
    whole: bool = False
    _runs: list[tuple[int, int]] = field(default_factory=list)
    """Stretches, in their order; what continues the last fragment lengthens its stretch, all else is one of its own."""
    _last: int | None = None
    _length: int = 0
    _meat: int = 0

    def take(self, fragment: Fragment) -> bool:
        """False if the queue is discarded: with a fragment that overlaps others, or another end."""
        begin, end = fragment.begin, fragment.end
        if fragment.more:
            end -= end % 8
            if end > self._length and self._last is not None:
                return False
        elif end < self._length or self._last not in (None, end):
            return False
        else:
            self._last = end
        self._length = max(self._length, end)
        if end == begin:
            return False
        behind = self._runs[-1][1] if self._runs else 0
        if self._runs and behind >= end:
            at = bisect_right(self._runs, (begin, end))
            near = self._runs[max(0, at - 1) : at + 1]
            if any(first <= begin and end <= last for first, last in near):
                return True
            if any(begin < last and first < end for first, last in near):
                return False
            self._runs.insert(at, (begin, end))
        elif self._runs and begin <= behind:
            if begin < behind:
                return False
            self._runs[-1] = (self._runs[-1][0], end)
        else:
            self._runs.append((begin, end))
        self.places.append(fragment.place)
        self._meat += end - begin
        self.whole = self._runs[0][0] == 0 and self._last is not None and self._meat == self._length
        return True


def put_together(fragments: Iterable[Fragment]) -> Iterator[Queue]:
    """The queues that fragments of one source, destination and identification go through, in the order of arrival."""
    queue: Queue | None = None
    for fragment in fragments:
        over = queue is not None and (
            fragment.at_ns - queue.since_ns >= HELD_NS or fragment.number - queue.number > MOST_APART
        )
        if queue is None or over:
            if queue is not None:
                yield queue
            queue = Queue(fragment.at_ns, fragment.number)
        queue.number = fragment.number
        if not queue.take(fragment) or queue.whole:
            yield queue
            queue = None
    if queue is not None:
        yield queue


_KEY = ["end", "source", "target", "ip_id"]
_NAMES = ["call", "reply", "layout", "count", "first_ns", "last_ns", "rows", "damaged"]


def arrivals(frames: pl.DataFrame) -> pl.DataFrame:
    """One row a datagram that arrived, whole or in part: call, reply, layout (see `legs.layout`), count, first_ns,
    last_ns, rows and whether any of it is `damaged`. `frames`: UDP that arrived, with `call`."""
    split = pl.col("more") | (pl.col("fragment_offset") > 0)
    fragments = _numbered(frames.filter(split))
    plain = _plain(fragments)
    alone = pl.concat([frames.filter(~split), fragments.filter(plain).drop("number")])
    several = _through_queues(fragments.filter(~plain))
    return pl.concat(
        [
            *(
                datagrams(alone.filter(pl.col("damaged") == damaged)).select(*_NAMES[:-1], damaged=pl.lit(damaged))
                for damaged in (False, True)
            ),
            several,
        ]
    ).sort("call", "reply", "first_ns", "last_ns", maintain_order=True)


def _numbered(fragments: pl.DataFrame) -> pl.DataFrame:
    return fragments.sort("time_ns", "row").with_columns(number=pl.int_range(pl.len()).over("end", "source"))


def _plain(fragments: pl.DataFrame) -> pl.Series:
    """Fragments of datagrams (`_KEY`) whose queue holds all of their fragments: most. `fragments`: by time."""
    if fragments.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    columns = fragments.select(
        "number", "data", "time_ns", "more", "damaged",
        queue=number_of(*_KEY), begin=pl.col("fragment_offset").cast(pl.Int64),
    )  # fmt: skip
    of = {name: columns[name].to_numpy() for name in columns.columns}
    by_time, by_offset = np.argsort(of["queue"], kind="stable"), np.lexsort((of["begin"], of["queue"]))
    begins = np.append(True, np.diff(of["queue"][by_time]) != 0)
    starts = np.flatnonzero(begins)
    ends = np.append(starts[1:], len(begins)) - 1
    near = begins | (np.diff(of["number"][by_time], prepend=0) <= MOST_APART)
    behind = (of["begin"] + of["data"])[by_offset]
    apart = begins | (np.append(0, behind[:-1]) <= of["begin"][by_offset])
    right = np.logical_and.reduceat(near & apart & ~of["damaged"][by_time], starts)
    right &= np.add.reduceat((~of["more"][by_time]).astype(np.int64), starts) <= 1
    times = of["time_ns"][by_time]
    right &= times[ends] - times[starts] < HELD_NS
    found = np.zeros(len(begins), np.bool_)
    found[by_time] = right[np.cumsum(begins) - 1]
    return pl.Series(found)


def _queues(fragments: pl.DataFrame) -> Iterator[Queue]:
    """`fragments` with `number`; the places of a queue are their rows."""
    for _, part in fragments.group_by(_KEY, maintain_order=True):
        columns = part.select(
            "row",
            "time_ns",
            "number",
            begin=pl.col("fragment_offset").cast(pl.Int64),
            end=pl.col("fragment_offset").cast(pl.Int64) + pl.col("data"),
            more="more",
        )
        yield from put_together(Fragment(*each) for each in columns.iter_rows())


def _through_queues(fragments: pl.DataFrame) -> pl.DataFrame:
    rows = [(number, queue.places) for number, queue in enumerate(_queues(fragments))]
    queues = pl.DataFrame(rows, schema={"queue": pl.Int64, "row": pl.List(pl.UInt32)}, orient="row").explode("row")
    return (
        queues.join(fragments.with_columns(pl.col("row").cast(pl.UInt32)), on="row", how="inner")
        .drop_nulls("call")
        .sort("queue", "fragment_offset")
        .group_by("queue", maintain_order=True)
        .agg(
            pl.col("call", "reply").first(),
            layout=layout_item().str.join(","),
            count=pl.len(),
            first_ns=pl.col("time_ns").min(),
            last_ns=pl.col("time_ns").max(),
            rows=pl.col("row"),
            damaged=pl.col("damaged").any(),
        )
        .select(_NAMES)
    )


def refused(frames: pl.DataFrame, arrived: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """Of the datagrams that `arrived` those that came whole, as `expected`, and that their machine may not have put
    together. `frames`: UDP, with row, end, time_ns and data."""
    key = ["call", "reply", "layout"]
    size = _size()
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


def refused_one(fragments: pl.DataFrame, row: int) -> bool:
    """Whether the datagram of this fragment came whole, and its machine may not have put it together. `fragments`: all
    that arrived at its end, with row, end, time_ns, source, target, ip_id, fragment_offset, more and data."""
    numbered = _numbered(fragments)
    times = dict(numbered.select("row", "time_ns").iter_rows())
    queues = list(_queues(numbered))
    queue_of = {place: number for number, queue in enumerate(queues) for place in queue.places}
    parts = numbered.select(
        "time_ns",
        size=_size(),
        datagram_place=pl.col("row").replace_strict(queue_of, default=None, return_dtype=pl.Int64),
    )
    whole = {number: max(map(times.__getitem__, queue.places)) for number, queue in enumerate(queues) if queue.whole}
    return queue_of.get(row) in _refused(parts.drop_nulls("datagram_place"), whole)


def _size() -> pl.Expr:
    return pl.max_horizontal(pl.lit(_PAGE), 2 * pl.col("data") + _PAGE // 4)


def _refused(parts: pl.DataFrame, whole: dict[int, int]) -> list[int]:
    """At one end: all that came before and may still be held is counted. `whole`: by datagram, when it was."""
    held: dict[int, int] = {}
    full: set[int] = set()
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
        if memory >= MEMORY:
            full.add(datagram)
        if whole.get(datagram) == at:
            if datagram in full:
                found.append(datagram)
            else:
                memory -= held[datagram]
                held[datagram] = 0
    return found

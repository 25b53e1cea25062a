# SPDX-License-Identifier: Apache-2.0
"""Which ports a frame leaves at that a learning switch or bridge has received (IEEE 802.1D, 7.7 to 7.9).

The source of a frame is learned at its port, unless it is a group; an address not seen for the ageing time is
forgotten; what a full table has no place for is not learned. A frame leaves at the port of its destination, at none if
that is where it came from, and at all others if the destination is a group or not known.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np
import polars as pl

from sundial.verify.wire import Numbers

GROUP_BIT = 1 << 40
"""Of an address as a number: multicast and broadcast (IEEE 802.3, 3.2.3)."""
FOREVER_NS = 1 << 62
FLOODED, FILTERED = -1, -2
"""Instead of a port: all others, and none."""


@dataclass(frozen=True)
class Received:
    """Frames in the order in which a relay looks at them; `ready`: when it has all of each, in ns, or in ps where lines
    follow one another whose bits take fractions of a ns."""

    ready: Numbers
    port: Numbers
    row: Numbers
    length: Numbers
    content: Numbers
    source: Numbers
    target: Numbers

    def __len__(self) -> int:
        return len(self.row)


def output_ports(frames: Received, ageing: int, entries: int) -> Numbers:
    """The port at which each frame leaves, FLOODED or FILTERED; `ageing` is in the unit of `ready`."""
    learnt = (frames.source & GROUP_BIT) == 0
    if len(np.unique(frames.source[learnt])) <= entries:
        port = _learned(frames, learnt, ageing)
    else:
        port = _learned_with_few_places(frames, ageing, entries)
    port[(frames.target & GROUP_BIT) != 0] = FLOODED
    port[(port >= 0) & (port == frames.port)] = FILTERED
    return port


def _learned(frames: Received, learnt: Numbers, ageing: int) -> Numbers:
    """The port at which each destination was seen last, and not too long ago; FLOODED: at none."""
    at = np.arange(len(frames))
    seen = pl.DataFrame({"address": frames.source, "at": at, "port": frames.port, "since": frames.ready}).filter(
        pl.Series(learnt)
    )
    asked = pl.DataFrame({"address": frames.target, "at": at})
    known = asked.join_asof(seen, on="at", by="address", check_sortedness=False)
    port = known["port"].fill_null(FLOODED).to_numpy().copy()
    since = known["since"].fill_null(0).to_numpy()
    port[(port >= 0) & (frames.ready - since >= ageing)] = FLOODED
    return np.asarray(port)


def _learned_with_few_places(frames: Received, ageing: int, entries: int) -> Numbers:
    """The same frame by frame: whether an address has a place depends on what was learned before."""
    table: OrderedDict[int, tuple[int, int]] = OrderedDict()
    found = []
    columns = (frames.ready, frames.port, frames.source, frames.target)
    for now, port, source, target in zip(*(column.tolist() for column in columns), strict=True):
        if not source & GROUP_BIT:
            while table and now - next(iter(table.values()))[1] >= ageing:
                table.popitem(last=False)
            if source in table or len(table) < entries:
                table[source] = (port, now)
                table.move_to_end(source)
        home, since = table.get(target, (FLOODED, now))
        found.append(home if now - since < ageing else FLOODED)
    return np.array(found, np.int64)


@dataclass(frozen=True)
class Behind:
    """The addresses behind all ports of a relay but one: each was seen there at `since_ns`, and known to be there until
    `until_ns`. In order of time."""

    address: Numbers
    since_ns: Numbers
    until_ns: Numbers

    def knows(self, address: int, at_ns: int) -> bool:
        """Whether an address is known to be there at an instant."""
        here = self.address == address
        return bool((here & (self.since_ns <= at_ns) & (at_ns < self.until_ns)).any())

    def came(self, address: int) -> list[int]:
        """When frames from an address have come there."""
        return [int(at) for at in self.since_ns[self.address == address]]


def behind(frames: Received, port: int, ageing_ns: int) -> Behind:
    """What is behind the other ports, for a table that has a place for every address."""
    learnt = pl.DataFrame({"address": frames.source, "at": frames.ready, "port": frames.port}).filter(
        pl.Series((frames.source & GROUP_BIT) == 0)
    )
    # Until its next frame, wherever that comes in.
    until = learnt.with_columns(
        until=pl.min_horizontal(pl.col("at") + ageing_ns, pl.col("at").shift(-1).over("address").fill_null(FOREVER_NS))
    ).filter(pl.col("port") != port)
    return Behind(*(until[name].to_numpy() for name in ("address", "at", "until")))

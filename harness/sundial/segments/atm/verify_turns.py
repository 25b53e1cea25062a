# SPDX-License-Identifier: Apache-2.0
"""Adapters that send a cell of each virtual channel in turn: when each cell leaves, from the stamps of the first of
each PDU.

The channels that have something to send follow one another round robin, by their numbers, and one that is spaced waits
for its own pace. So between the first cells, whose stamps tell when a PDU begins, nothing is left to choose.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from sundial.verify.wire import Mask, Numbers

Departures = tuple[Numbers, Numbers, Numbers]
"""Of all cells of all PDUs, in units, when each leaves; and of each PDU the likely time of its first, and by how much
that may be earlier."""


@dataclass
class _Line:
    """The state of an adapter: `free`, when the line is; by channel, the PDU under way with the cells that it has left,
    and when its next cell may leave."""

    cell_time: int
    spacing: int
    free: int = 0
    slack: int = 0
    """By so much all times since the line was idle may be earlier."""
    last: int = -1
    under_way: dict[int, list[int]] = field(default_factory=dict)
    paced: dict[int, int] = field(default_factory=dict)

    def next(self) -> tuple[int, int] | None:
        """When a PDU under way can send its next cell, and on which channel."""
        if not self.under_way:
            return None
        at = max(self.free, min(self.paced[vci] for vci in self.under_way))
        ready = sorted(vci for vci in self.under_way if self.paced[vci] <= at)
        return at, ready[bisect_right(ready, self.last) % len(ready)]

    def send(self, vci: int, at: int, count: int) -> None:
        """Cells of one channel, one behind the other."""
        last = at + (count - 1) * self.spacing
        self.free, self.paced[vci], self.last = last + self.cell_time, last + self.spacing, vci


def departures(
    seen: Numbers, whole: Mask, vci: Numbers, cells: Numbers, cell_time: int, spacing: int, ns: int
) -> Departures:
    """`seen`: stamps in units, of whole ns, rounded up; `whole`: PDUs that begin there where the line is idle."""
    line = _Line(cell_time, spacing)
    begin = np.cumsum(cells) - cells
    times = np.zeros(int(cells.sum()), np.int64)
    first, slack = np.zeros((2, len(seen)), np.int64)
    for place, (due, channel, count) in enumerate(zip(seen.tolist(), vci.tolist(), cells.tolist(), strict=True)):
        _until(line, times, due - ns)
        following = line.next()
        # As soon as the line is free and its channel may send again, or in turn with the cells of other channels.
        ends = [max(line.free, line.paced.get(channel, 0)), *([] if following is None else following[:1])]
        at = next((each for each in ends if due - ns < each <= due + line.slack), None)
        if at is not None:
            # Behind another cell, which tells more of both than either stamp.
            line.slack -= max(at - due, 0)
            at = min(at, due)
        else:
            at = max(due, line.free)
            line.slack = 0 if whole[place] else ns - 1
        times[begin[place]] = first[place] = at
        slack[place] = line.slack
        line.send(channel, at, 1)
        if count > 1:
            line.under_way[channel] = [int(begin[place]) + 1, count - 1]
    _until(line, times, 1 << 62)
    return times, first, slack


def _until(line: _Line, times: Numbers, limit: int) -> None:
    """All cells under way that leave by a limit."""
    while (following := line.next()) is not None and following[0] <= limit:
        at, vci = following
        place, left = line.under_way[vci]
        count = min(left, (limit - at) // line.spacing + 1) if len(line.under_way) == 1 else 1
        times[place : place + count] = at + np.arange(count) * line.spacing
        line.send(vci, at, count)
        if count == left:
            del line.under_way[vci]
        else:
            line.under_way[vci] = [place + count, left - count]


def in_turn(ready: Numbers, channel: Numbers, cells: Numbers, cell_time: int) -> Numbers:
    """When each cell of each PDU leaves, where an adapter has the PDUs at known instants, in that order."""
    begin = (np.cumsum(cells) - cells).tolist()
    times = np.zeros(int(cells.sum()), np.int64)
    waiting = deque(zip(ready.tolist(), channel.tolist(), begin, cells.tolist(), strict=True))
    queues: dict[int, deque[list[int]]] = {}
    free, last = 0, -1
    while waiting or queues:
        at = free if queues else max(free, waiting[0][0])
        while waiting and waiting[0][0] <= at:
            _, number, place, count = waiting.popleft()
            queues.setdefault(number, deque()).append([place, count])
        ready_ones = sorted(queues)
        last = ready_ones[bisect_right(ready_ones, last) % len(ready_ones)]
        place, left = queues[last][0]
        alone = len(queues) == 1
        until = -(-(waiting[0][0] - at) // cell_time) if waiting else left
        count = min(left, until) if alone else 1
        times[place : place + count] = at + np.arange(count) * cell_time
        free = at + count * cell_time
        queues[last][0] = [place + count, left - count]
        if count == left:
            queues[last].popleft()
            if not queues[last]:
                del queues[last]
    return times

# SPDX-License-Identifier: Apache-2.0
"""The law of an output queue of an ATM switch: which cells are discarded, and when the others leave.

Cells leave first come, first served, one a cell time; the one being sent takes no place. What a cell finds decides, in
this order: its PDU is being discarded (ATM Forum TM 4.0, 5.8; Romanow and Floyd 1995); it is a PDU's first and the
queue is at its threshold (early packet discard); CLP is 1 and the queue at that threshold, its channel at its limit, or
the queue is full. Partial packet discard lets the last cell try, since it ends the PDU for the receiver.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sundial.segments.atm.model_parts import Queue
from sundial.verify.wire import Mask, Numbers, queue_starts

Reasons = NDArray[np.int8]

PASSED, EARLY, CLP_1, VC_FULL, QUEUE_FULL, PARTIAL, POLICED = range(7)
WORDS = ("", "early packet discard", "CLP 1", "VC full", "queue full", "partial packet discard", "policed")
"""As a fate, and a channel's counters, name them."""


@dataclass(frozen=True)
class Joining:
    """Cells that come to one queue, in the order in which they join it. `first`: the one before on its channel was the
    last of a PDU, as the switch saw it."""

    at: Numbers
    channel: Numbers
    first: Mask
    last: Mask
    clp: Mask

    def __len__(self) -> int:
        return len(self.at)


def discarded(queue: Queue, cell_time: int, cells: Joining) -> Reasons:
    """The reason for which each cell is discarded, or PASSED. No PDU is under way before the first cell."""
    reasons = np.zeros(len(cells), np.int8)
    if not len(cells):
        return reasons
    starts = queue_starts(cells.at, np.full(len(cells), cell_time))
    tight = _tight(queue, cells, starts)
    if not tight.any():
        return reasons
    idle = starts == cells.at
    period = np.cumsum(idle)
    tight = np.isin(period, period[tight])
    place, slow = 0, _OneByOne(queue, cell_time, cells, reasons)
    while place < len(cells):
        ahead = np.flatnonzero(tight[place:])
        if not len(ahead):
            break
        place = slow.run(place + int(ahead[0]), idle & ~tight)
    return reasons


def _tight(queue: Queue, cells: Joining, starts: Numbers) -> Mask:
    """Cells that would be discarded if none had been before them."""
    waiting = np.arange(len(cells)) - np.searchsorted(starts, cells.at, "right")
    tight = waiting >= queue.cells
    if queue.early_cells is not None:
        tight |= cells.first & (waiting >= queue.early_cells)
    if queue.clp1_above is not None:
        tight |= cells.clp & (waiting >= queue.clp1_above)
    if queue.vc_cells is not None:
        for channel in np.unique(cells.channel):
            own = np.flatnonzero(cells.channel == channel)
            before = np.arange(len(own)) - np.searchsorted(starts[own], cells.at[own], "right")
            tight[own] |= before >= queue.vc_cells
    return np.asarray(tight)


class _OneByOne:
    """Cell by cell, where whether one is discarded decides what the next finds."""

    def __init__(self, queue: Queue, cell_time: int, cells: Joining, reasons: Reasons) -> None:
        self.queue, self.cell_time, self.reasons = queue, cell_time, reasons
        self.cells = cells

    def run(self, begin: int, calm: Mask) -> int:
        """From a cell that finds the line idle to the next `calm` one, when no PDU is being discarded; its place."""
        cells, reasons, free = self.cells, self.reasons, 0
        waiting: deque[tuple[int, int]] = deque()
        own: Counter[int] = Counter()
        dropping: dict[int, int] = {}
        for place in range(begin, len(cells)):
            if calm[place] and not dropping:
                return place
            at, channel = int(cells.at[place]), int(cells.channel[place])
            last = bool(cells.last[place])
            while waiting and waiting[0][0] <= at:
                own[waiting.popleft()[1]] -= 1
            state = dropping.get(channel, PASSED)
            if last:
                dropping.pop(channel, None)
            if state == EARLY or (state == PARTIAL and not last):
                reasons[place] = state
                continue
            reason = self._reason(place, len(waiting), own[channel])
            if reason == PASSED:
                start = max(at, free)
                free = start + self.cell_time
                if start > at:
                    waiting.append((start, channel))
                    own[channel] += 1
                continue
            reasons[place] = reason
            if not last and self.queue.discard != "tail":
                dropping[channel] = EARLY if reason == EARLY else PARTIAL
        return len(cells)

    def _reason(self, place: int, waiting: int, own: int) -> int:
        queue, cells = self.queue, self.cells
        if queue.early_cells is not None and cells.first[place] and waiting >= queue.early_cells:
            return EARLY
        if queue.clp1_above is not None and cells.clp[place] and waiting >= queue.clp1_above:
            return CLP_1
        if queue.vc_cells is not None and own >= queue.vc_cells:
            return VC_FULL
        return QUEUE_FULL if waiting >= queue.cells else PASSED


def conforming(at: Numbers, increment: int, tolerance: int) -> Mask:
    """Which cells of one channel conform to GCRA(T, tau), the virtual scheduling algorithm (ITU-T I.371, annex A)."""
    if not len(at):
        return np.ones(0, np.bool_)
    due = queue_starts(at, np.full(len(at), increment))
    if (due - at <= tolerance).all():
        return np.ones(len(at), np.bool_)
    kept, expected = np.ones(len(at), np.bool_), int(at[0])
    for place, arrival in enumerate(at.tolist()):
        if arrival < expected - tolerance:
            kept[place] = False
        else:
            expected = max(arrival, expected) + increment
    return kept

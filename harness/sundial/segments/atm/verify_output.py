# SPDX-License-Identifier: Apache-2.0
"""What becomes of PDUs on their way to one port: when their cells leave its queue, and which are discarded.

Cells of all senders join the queue in order of time, of one instant those of the lower port first. Where that order, or
what joins, is not known to the unit (cells that a line lost, cell delay variation), there are bounds: a cell waits for
no other than those that may have joined before it, and at least for those that certainly did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sundial.segments.atm.model_parts import Queue
from sundial.segments.atm.verify_lines import Times, joined
from sundial.segments.atm.verify_queue import PASSED, POLICED, Joining, Reasons, discarded
from sundial.verify.wire import Mask, Numbers, queue_starts

_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Copies:
    """PDUs on their way to ports, one for each port that it goes to."""

    pdu: Numbers
    """The place of its bytes among all records."""
    sender: Numbers
    """The port it comes from; the services' is as many as there are ports."""
    to: Numbers
    sent_vci: Numbers
    vci: Numbers
    """On which it arrives."""
    cells: Numbers
    spacing: Numbers
    left: Times
    """When the first bit of its first cell left its sender."""
    joins: Times
    """When its first cell joins the queue."""
    train: Numbers
    """Where its cells begin among `delays`; -1: they are evenly spaced."""
    delays: Numbers
    """By how much cells left their adapter later than at even spacing."""

    def __len__(self) -> int:
        return len(self.pdu)

    def take(self, which: Numbers | Mask) -> Copies:
        """Some of them, by place or by mask."""
        numbers = {name: getattr(self, name)[which] for name in _NUMBERS}
        return Copies(**numbers, left=self.left.take(which), joins=self.joins.take(which), delays=self.delays)

    def offset(self, which: Numbers, place: Numbers) -> Numbers:
        """From the first cell of a PDU to its `place`th."""
        own = self.train[which]
        late = np.where(own >= 0, self.delays[np.where(own >= 0, own + place, 0)], 0) if len(self.delays) else 0
        return np.asarray(place * self.spacing[which] + late)

    @property
    def length(self) -> Numbers:
        """From the first cell of each to its last."""
        return self.offset(np.arange(len(self)), self.cells - 1)


_NUMBERS = ("pdu", "sender", "to", "sent_vci", "vci", "cells", "spacing", "train")


def all_copies(parts: Sequence[Copies]) -> Copies:
    """Several as one."""
    numbers = {name: np.concatenate([getattr(each, name) for each in parts]) for name in _NUMBERS}
    sizes = [len(each.delays) for each in parts]
    before = [np.where(each.train >= 0, each.train + sum(sizes[:place]), -1) for place, each in enumerate(parts)]
    numbers["train"] = np.concatenate(before)
    return Copies(
        **numbers,
        left=joined([each.left for each in parts]),
        joins=joined([each.joins for each in parts]),
        delays=np.concatenate([each.delays for each in parts]),
    )


@dataclass(frozen=True)
class Policing:
    """What the switch did to the cells of copies before the queue: `begin` is the place of each copy's first cell, -1
    where all conform."""

    begin: Numbers
    dropped: Mask
    tagged: Mask

    def take(self, which: Numbers | Mask) -> Policing:
        """Of some copies."""
        return Policing(self.begin[which], self.dropped, self.tagged)


@dataclass(frozen=True)
class Cells:
    """Cells that leave the queue, in that order: whose, the how many'th of its PDU, when its last bit arrives."""

    copy: Numbers
    place: Numbers
    arrival: Times
    clp: Mask


@dataclass(frozen=True)
class Outcome:
    """Of copies to one port, in their order."""

    known: Mask
    """Whether it is known which cells are discarded."""
    arrival: Times
    """Of the last bit of the last cell, where that is not lost."""
    first_arrival: Numbers
    """The earliest at which any of its cells can have arrived."""
    lost: Numbers
    last_lost: Mask
    reason: Numbers
    """Of the first cell that was lost."""
    lost_at: Times
    most_waiting: Numbers
    """As many as its cells may have found waiting."""
    reasons: Numbers
    """Cells by reason, a row a copy."""
    cells: Cells | None


def outcome(
    copies: Copies,
    policing: Policing,
    queue: Queue,
    line: tuple[int, int],
    *,
    latency: int,
    cdv: int,
    unsure: Mask,
    fated: Mask,
    keep_cells: bool,
) -> Outcome:
    """`line`: a cell's time and the propagation; `latency`: from a cell's last bit in to the queue; policing is before
    that. `unsure`: copies of which it is not known which cells join; while such are under way, or delays vary, there
    are only bounds, and those `fated` need not have joined at all."""
    result = _Result(len(copies), keep_cells)
    order = np.lexsort((copies.sender, copies.joins.likely))
    carry: dict[int, bool] = {}
    for some in _apart(copies.take(order), line[0], cdv):
        which = order[some]
        loose = fated[which] if cdv or unsure[which].any() else None
        _chunk(copies, policing, which, queue, line, latency, cdv, loose, carry, result)
    return result.outcome()


def _apart(copies: Copies, cell_time: int, cdv: int) -> Iterator[slice]:
    """Copies, in the order in which they join, in pieces between which the line is idle and no PDU is under way."""
    if not len(copies):
        return
    work = copies.cells * cell_time
    whole = copies.joins.high + copies.length + cdv
    done = np.maximum.accumulate(queue_starts(whole, work) + work)
    calm = np.flatnonzero(copies.joins.low[1:] >= done[:-1]) + 1
    cuts = np.append(calm, len(copies))
    before = np.append(0, np.cumsum(copies.cells))
    first = 0
    while first < len(copies):
        most = np.searchsorted(before, before[first] + _CELLS_AT_ONCE, "right") - 1
        end = int(cuts[max(np.searchsorted(cuts, most, "right") - 1, np.searchsorted(cuts, first, "right"))])
        yield slice(first, end)
        first = end


def _chunk(
    copies: Copies,
    policing: Policing,
    which: Numbers,
    queue: Queue,
    line: tuple[int, int],
    latency: int,
    cdv: int,
    loose: Mask | None,
    carry: dict[int, bool],
    result: _Result,
) -> None:
    cell_time, propagation = line
    some, count = copies.take(which), copies.cells[which]
    copy = np.repeat(np.arange(len(which)), count)
    place = np.arange(len(copy)) - np.repeat(np.cumsum(count) - count, count)
    offset = some.offset(copy, place)
    likely = some.joins.likely[copy] + offset
    if len(likely) > 1 and not (np.diff(likely) > 0).all():
        order = np.lexsort((some.sender[copy], likely))
        copy, place, offset, likely = copy[order], place[order], offset[order], likely[order]
    begin = policing.begin[which][copy]
    policed, tagged = np.zeros((2, len(copy)), np.bool_)
    known = begin >= 0
    if known.any():
        policed[known] = policing.dropped[(begin + place)[known]]
        tagged[known] = policing.tagged[(begin + place)[known]]
    last = place == count[copy] - 1
    channel = some.sender[copy] * 65536 + some.vci[copy]
    reasons = np.where(policed, POLICED, PASSED).astype(np.int8)
    here = np.flatnonzero(~policed)
    at = Times(likely, some.joins.low[copy] + offset, some.joins.high[copy] + offset + cdv)
    if loose is None:
        first = _first(channel[here], last[here], carry)
        joining = Joining(likely[here], channel[here], first, last[here], tagged[here])
        reasons[here] = discarded(queue, cell_time, joining)
    sure = reasons == PASSED
    start, waiting = _bounds(at, sure, sure if loose is None else sure & ~loose[copy], cell_time)
    arrival = start + (cell_time + propagation)
    passed = np.flatnonzero(sure)
    result.known[which] = loose is None
    result.add(which, copy, place, last, reasons, at, arrival, waiting, latency)
    if result.cells is not None:
        result.cells.append(Cells(which[copy[passed]], place[passed], arrival.take(passed), tagged[passed]))


def _first(channel: Numbers, last: Mask, carry: dict[int, bool]) -> Mask:
    """Whether the cell before on the channel was the last of its PDU. `carry`: channels with a PDU under way before
    these cells, and after them."""
    order = np.argsort(channel, kind="stable")
    own, ends = channel[order], last[order]
    begins = np.append(True, own[1:] != own[:-1])[: len(own)]
    first = np.append(True, ends[:-1])[: len(ends)]
    first[begins] = [not carry.get(each, False) for each in own[begins].tolist()]
    final = np.append(own[1:] != own[:-1], True)[: len(own)]
    carry.update(zip(own[final].tolist(), (~ends[final]).tolist(), strict=True))
    result = np.zeros(len(first), np.bool_)
    result[order] = first
    return result


def _bounds(at: Times, present: Mask, certain: Mask, cell_time: int) -> tuple[Times, Numbers]:
    """When cells that are `present` begin to leave, and how many may wait when each joins; `certain` ones surely are
    there. Of others it is when they would."""
    start = Times(*(at.likely.copy() for _ in range(3)))
    waiting = np.zeros(len(at.likely), np.int64)
    which = np.flatnonzero(present)
    here = at.take(which)
    busy = np.full(len(which), cell_time)
    likely = queue_starts(here.likely, busy)
    low = high = likely
    place = np.arange(len(which))
    if here.exact and certain[which].all():
        waiting[which] = np.maximum(place - np.searchsorted(likely, here.likely, "right"), 0)
    elif len(which):
        latest = np.maximum.accumulate(here.high)
        earliest = np.minimum.accumulate(here.low[::-1])[::-1]
        late = queue_starts(latest, busy)
        # Those that may have joined before: their end is the latest at which this one can still wait.
        most = np.maximum(np.searchsorted(earliest, here.high, "left"), place + 1)
        high = late[most - 1]
        waiting[which] = np.maximum(most - 1 - np.searchsorted(late, here.low, "right"), 0)
        # Those that certainly joined before.
        sure = certain[which]
        ends = queue_starts(earliest[sure], busy[sure]) + cell_time
        fewest = np.minimum(np.searchsorted(latest[sure], here.low, "right"), np.cumsum(sure) - sure)
        low = np.maximum(here.low, np.where(fewest > 0, ends[fewest - 1], here.low) if len(ends) else here.low)
    for target, value in ((start.likely, likely), (start.low, low), (start.high, high)):
        target[which] = value
    return start, waiting


class _Result:
    """Outcome under construction."""

    def __init__(self, copies: int, keep_cells: bool) -> None:
        zeros = np.zeros((6, copies), np.int64)
        self.arrival, self.lost_at = Times(*zeros[:3]), Times(*zeros[3:])
        self.first_arrival, self.lost, self.reason, self.most = np.zeros((4, copies), np.int64)
        self.last_lost, self.known = np.zeros((2, copies), np.bool_)
        self.reasons = np.zeros((copies, POLICED + 1), np.int64)
        self.cells: list[Cells] | None = [] if keep_cells else None

    def add(
        self,
        which: Numbers,
        copy: Numbers,
        place: Numbers,
        last: Mask,
        reasons: Reasons,
        at: Times,
        arrival: Times,
        waiting: Numbers,
        latency: int,
    ) -> None:
        ends = which[copy[last]]
        for name in ("likely", "low", "high"):
            getattr(self.arrival, name)[ends] = getattr(arrival, name)[last]
        self.last_lost[ends] = reasons[last] != PASSED
        self.first_arrival[which[copy[place == 0]]] = arrival.low[place == 0]
        most = np.zeros(len(which), np.int64)
        np.maximum.at(most, copy, waiting)
        self.most[which] = most
        lost = np.flatnonzero(reasons != PASSED)
        if not len(lost):
            return
        np.add.at(self.reasons, (which[copy[lost]], reasons[lost]), 1)
        np.add.at(self.lost, which[copy[lost]], 1)
        whose, first = np.unique(copy[lost], return_index=True)
        first = lost[first]
        self.reason[which[whose]] = reasons[first]
        # Policing is before the switch, not in front of its queue.
        early = np.where(reasons[first] == POLICED, latency, 0)
        for name in ("likely", "low", "high"):
            getattr(self.lost_at, name)[which[whose]] = getattr(at, name)[first] - early

    def outcome(self) -> Outcome:
        cells = None
        if self.cells is not None:
            empty = np.zeros(0, np.int64)
            parts = [Cells(empty, empty, Times(empty, empty, empty), np.zeros(0, np.bool_)), *self.cells]
            cells = Cells(
                np.concatenate([each.copy for each in parts]),
                np.concatenate([each.place for each in parts]),
                joined([each.arrival for each in parts]),
                np.concatenate([each.clp for each in parts]),
            )
        return Outcome(
            self.known,
            self.arrival,
            self.first_arrival,
            self.lost,
            self.last_lost,
            self.reason,
            self.lost_at,
            self.most,
            self.reasons,
            cells,
        )

# SPDX-License-Identifier: Apache-2.0
"""The law of one way of a link: a line at each end, and between them what tc-netem(8) does (net/sched/sch_netem.c).

A frame enters when its last bit has left the sender. It may be lost, doubled, corrupted or find the queue full, as
fates tell; else it is let go after its delay, or after what is before it in the shaper, and arrives when the line has
carried it. All that is as the state says in which the frame began (`stage`); a shaper of another rate goes on where the
one before falls free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm

import numpy as np
import polars as pl

from sundial.model.impairments import Impairments
from sundial.segments.link.model import Link
from sundial.segments.netem.verify_tc import LIMIT, Effects
from sundial.verify.law import Bounds
from sundial.verify.wire import GAP_BITS, Line, Mask, Numbers, Passages, bits_of, queue_starts


def effects(written: Impairments) -> Effects:
    """Impairments as bounds and steps of time."""
    plain = Effects(
        reorders=bool(written.reorder) and bool(written.delay),
        gap=written.gap or 1,
        shaper=Line(written.rate) if written.rate else None,
        overhead=written.packet_overhead or 0,
        cell=written.cell_size or 0,
        cell_overhead=written.cell_overhead or 0,
        limit=written.limit or LIMIT,
    )
    return plain.delayed(written.delay or 0, written.jitter or 0, written.distribution or "uniform")


SHORTEST, LONGEST = "shortest_ns", "longest_ns"
"""Fields of Effects: the bounds of a delay."""
_MOST_PARTS = (1 << 62) // (86_400 * 10**9)


@dataclass(frozen=True)
class Copies:
    """What netem let in, in order: the place in what was sent, and when it came in."""

    place: Numbers
    entered: Numbers
    bits: Numbers
    shaped: Numbers
    stage: Numbers | None = None
    """The number of the state in which it began; None: all in the first."""


@dataclass(frozen=True)
class Way:
    """The arithmetic of one way; times are in `parts` of a ns. `stages`: what it does in each state."""

    stages: Sequence[Effects]
    line: Line
    propagation_ns: int
    since_ns: Sequence[int] = ()
    """When each state after the first one begins."""

    def stage(self, begins_ns: Numbers) -> Numbers:
        """The number of the state in which each frame begins."""
        return np.searchsorted(np.array(self.since_ns, np.int64), begins_ns, "right")

    @property
    def parts(self) -> int:
        return lcm(self.line.parts, *(stage.shaper.parts for stage in self.stages if stage.shaper))

    @property
    def exact(self) -> bool:
        """Whether nothing is drawn but fates in any state."""
        return all(stage.exact for stage in self.stages)

    @property
    def reorders(self) -> bool:
        """Whether frames are let past others in any state."""
        return any(stage.reorders for stage in self.stages)

    @property
    def overtakes(self) -> bool:
        """Whether a frame may come before one that was sent before it."""
        return self.reorders or len(self.stages) > 1

    def each(self, name: str, copies: Copies) -> Numbers:
        """A number of the stage of each copy, by its name in Effects."""
        values = np.array([getattr(stage, name) for stage in self.stages])
        return values[np.zeros(len(copies.place), np.int64) if copies.stage is None else copies.stage]

    def is_shaped(self, copies: Copies) -> Mask:
        """Which pass a shaper."""
        shaped = np.array([stage.shaper is not None for stage in self.stages])
        return shaped[np.zeros(len(copies.place), np.int64) if copies.stage is None else copies.stage]

    @property
    def tolerance_ns(self) -> int:
        """Where a bit takes no whole number of ns, the end of each step is rounded."""
        return 0 if self.parts == 1 else 2

    def on_line(self, bits: Numbers) -> Numbers:
        """The time of so many bits on the line."""
        return self._exact(self.line.time(bits)) * (self.parts // self.line.parts)

    def shaping(self, copies: Copies) -> Numbers:
        """The time of each copy in its shaper."""
        found = self._exact(np.zeros_like(copies.shaped))
        for number, stage in enumerate(self.stages):
            here = np.arange(len(found)) if copies.stage is None else np.flatnonzero(copies.stage == number)
            if stage.shaper is not None and len(here):
                exact = self._exact(stage.shaper.time(copies.shaped[here]))
                found[here] = exact * (self.parts // stage.shaper.parts)
        return found

    def fine(self, time_ns: Numbers | int) -> Numbers:
        """Whole ns in parts."""
        return self._exact(np.asarray(time_ns)) * self.parts

    def whole(self, parts: Numbers) -> Numbers:
        """Parts in ns, rounded up."""
        return np.asarray(-(-parts // self.parts)).astype(np.int64)

    def _exact(self, numbers: Numbers) -> Numbers:
        """In Python's numbers, where rates have so little in common that 64 bits do not hold a day of their parts."""
        return numbers.astype(object) if self.parts > _MOST_PARTS else numbers

    def let_go(self, copies: Copies, delay: str) -> Numbers:
        """When netem lets each go, if all delays are those of this name: in order, since the shaper keeps it."""
        delay_ns = self.each(delay, copies)
        entered, ready = self.fine(copies.entered), self.fine(copies.entered + delay_ns)
        shaped = np.flatnonzero(self.is_shaped(copies))
        if len(shaped):
            busy = self.shaping(copies)[shaped]
            ready[shaped] = queue_starts(ready[shaped], busy) + busy
        return np.asarray(np.maximum(ready, entered))

    def arrive(self, let_go: Numbers, bits: Numbers) -> Numbers:
        """When the last bits arrive, in whole ns: the line into the receiver carries one frame at a time, too."""
        takes = self.on_line(bits)
        begins = let_go + self.fine(self.propagation_ns) - takes
        ends = queue_starts(begins, takes + self.on_line(np.full_like(bits, GAP_BITS))) + takes
        return self.whole(ends)


def way_of(segment: Link, sender: str) -> Way:
    """From `sender` to the other port."""
    stages = [effects(each) for each in segment.every(sender)]
    return Way(stages, Line(segment.rate), segment.propagation, since_of(segment))


def since_of(segment: Link) -> list[int]:
    """When each state after the first one begins."""
    return [state.at_ns for state in segment.timeline]


def entries(way: Way, sent: Passages) -> Numbers:
    """When the last bit of each frame has left its sender."""
    bits = bits_of(sent.length)
    return way.line.ends(way.line.starts(sent.time_ns, bits), bits)


def copies_of(sent: Passages, entered: Numbers, count: Numbers, way: Way) -> Copies:
    """As many of each frame as fates leave."""
    stage = way.stage(sent.time_ns)
    place = np.repeat(np.arange(len(sent)), count)
    length = sent.length[place]
    shaped = np.zeros_like(length)
    for number, effect in enumerate(way.stages):
        here = stage[place] == number
        shaped[here] = effect.shaped_bits(length[here])
    return Copies(place, entered[place], bits_of(length), shaped, stage[place])


def matched(sent_content: Numbers, came: Numbers, came_ns: Numbers, copies: Copies) -> tuple[Numbers, Numbers]:
    """Pairs (copy, arrival) with the same content, in order of time among equals."""
    one = pl.DataFrame({"content": sent_content[copies.place], "copy": np.arange(len(copies.place))})
    other = pl.DataFrame({"content": came, "arrival": np.arange(len(came)), "at": came_ns}).sort("at", "arrival")
    number = pl.int_range(pl.len()).over("content").alias("number")
    pairs = one.with_columns(number).join(other.with_columns(number), on=["content", "number"]).sort("arrival")
    return pairs["copy"].to_numpy(), pairs["arrival"].to_numpy()


@dataclass(frozen=True)
class Span:
    """For each arrival that was matched: when it may come, and whether it must have been let past others."""

    low: Numbers
    high: Numbers
    right: Mask
    past: Mask


def spans(way: Way, copies: Copies, copy: Numbers, every_ns: Numbers, arrival: Numbers | None = None) -> Span:
    """Bounds of arrivals where delays are drawn: of all of `every_ns`, which are in order, or those of `arrival`.

    `copy` is what arrives at each.
    """
    slack = way.tolerance_ns
    if arrival is None:
        arrival = np.arange(len(every_ns))
    came_ns = every_ns[arrival]
    entered, bits = copies.entered[copy], copies.bits[copy]
    spacing = way.whole(way.on_line(bits + GAP_BITS))
    shaping = way.whole(way.shaping(copies)[copy])
    before = np.append(-way.propagation_ns, every_ns[:-1])[arrival]
    shaped, reorders = way.is_shaped(copies)[copy], way.each("reorders", copies)[copy]
    low = entered + way.each("shortest_ns", copies)[copy] + np.where(shaped, shaping, 0)
    high = entered + way.each("longest_ns", copies)[copy]
    # The one before it left the shaper when it arrived, or earlier.
    high = np.where(shaped & ~reorders, np.maximum(high, before - way.propagation_ns) + shaping, high)
    if (shaped & reorders).any():
        late = way.whole(way.let_go(copies, LONGEST))
        high = np.where(shaped & reorders, late[copy], high)
    low, high = np.maximum(low, entered), np.maximum(high, entered)
    low, high = low + way.propagation_ns - slack, high + way.propagation_ns + slack
    after = before + spacing
    held = np.abs(came_ns - after) <= slack
    past = reorders & (came_ns < low)
    at_once = np.abs(came_ns - entered - way.propagation_ns) <= slack
    let_past = (~past | at_once | held) & (came_ns >= entered + way.propagation_ns - slack)
    right = np.where(reorders, let_past, came_ns >= low)
    right &= (came_ns <= high) | held
    first = arrival == 0
    right &= first | (came_ns >= after - slack)
    low = np.maximum(np.where(reorders, entered + way.propagation_ns, low), np.where(first, low, after))
    return Span(low, np.maximum(high, after), right, past)


def rematched(way: Way, copies: Copies, copy: Numbers, came_ns: Numbers, content: Numbers, span: Span) -> Numbers:
    """`copy` again, for frames of the same bytes of which one may have overtaken another: then what was sent first did
    not arrive first. Where the order of sending breaks a bound, another assignment that keeps all is taken."""
    out = copy.copy()
    doubtful = np.unique(content[~span.right])
    if not len(doubtful):
        return out
    import networkx as nx  # takes a third of a second, and few runs need it

    for same in doubtful:
        places = np.flatnonzero(content == same)
        arrival, sent = np.divmod(np.arange(len(places) ** 2), len(places))
        pairs = spans(way, copies, copy[places][sent], came_ns, places[arrival])
        graph = nx.Graph()
        # As few as possible are let past others.
        graph.add_weighted_edges_from(
            (int(at), int(len(places) + one), 0 if past else 1)
            for at, one, past in zip(arrival[pairs.right], sent[pairs.right], pairs.past[pairs.right], strict=True)
        )
        pairing = [sorted(pair) for pair in nx.max_weight_matching(graph, maxcardinality=True)]
        if len(pairing) == len(places):
            for at, one in pairing:
                out[places[at]] = copy[places[one - len(places)]]
    return out


def let_past(
    way: Way, copies: Copies, copy: Numbers, came_ns: Numbers, sent_content: Numbers, content: Numbers
) -> Bounds:
    """How many arrivals were let past others, at least and at most: as many as the order allows in which the line took
    them. Of frames of the same bytes, as those that are sent again have, each may be what came.

    `copy` is what arrives at each of `came_ns`, which are in order, with these `content`s.
    """
    slack = way.tolerance_ns
    shortest_ns = way.each(SHORTEST, copies)
    low = np.maximum(copies.entered + shortest_ns + way.whole(way.shaping(copies)), copies.entered)
    high = np.maximum(way.whole(way.let_go(copies, LONGEST)), low)
    choices: dict[int, set[tuple[int, int, int]]] = {}
    own = sent_content[copies.place]
    for name, *span in zip(*(each.tolist() for each in (own, copies.entered, low, high)), strict=True):
        choices.setdefault(name, set()).add(tuple(span))
    let_go = (came_ns - way.propagation_ns).tolist()
    spacing = way.whole(way.on_line(copies.bits[copy] + GAP_BITS))
    held = np.append(False, np.abs(came_ns[1:] - came_ns[:-1] - spacing[1:]) <= slack)[: len(came_ns)].tolist()
    # By when netem let go what the line took last: how many of all so far were let past others.
    known: dict[int, Bounds] = {let_go[0] if let_go else 0: (0, 0)}
    for name, at, waited in zip(content.tolist(), let_go, held, strict=True):
        known = _taken(known, choices[name], at, waited, slack)
    counts = [count for bounds in known.values() for count in bounds]
    return min(counts), max(counts)


def _taken(
    known: Mapping[int, Bounds], choices: Iterable[tuple[int, int, int]], at: int, waited: bool, slack: int
) -> dict[int, Bounds]:
    """`known` after one more, which the line took at `at`: when netem let it go, unless it `waited` for the line. Its
    choices: when it came to netem, and from when until when it is let go if it is delayed."""
    found: dict[int, Bounds] = {}
    for before, (least, most) in known.items():
        first = before if waited else at
        for entered, low, high in choices:
            if first - slack <= entered <= at + slack:
                _widen(found, entered if waited else at, least + 1, most + 1)
            go = max(first, low)
            if go <= min(at, high) + slack:
                _widen(found, go if waited else at, least, most)
    if found:
        return found
    # None of its arrivals is right, which others say.
    return {at: (min(least for least, _ in known.values()), max(most for _, most in known.values()) + 1)}


def _widen(found: dict[int, Bounds], at: int, least: int, most: int) -> None:
    few, many = found.get(at, (least, most))
    found[at] = min(few, least), max(many, most)

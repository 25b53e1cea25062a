# SPDX-License-Identifier: Apache-2.0
"""A call as a ladder (sequence) diagram: which frame left and reached which port when, and what a wire did to it.

Pure: sightings of frames and records of fates become arrows between parties, and arrows become rows.
`ladder_read` has the files, `ladder_text` and `ladder_svg` draw the rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sundial.report.ladder_frames import Head

FEW = 6
"""Like frames in a row that are drawn one by one; more are summarised."""
DELAYED = 1.5
"""A frame is delayed if it takes more than this many times as long as the fastest of its length on its way."""


@dataclass(frozen=True)
class Sighting:
    """A frame at a port: sent there, or received. `number` is that of the capture of `segment`."""

    at_ns: int
    segment: str
    port: str
    sent: bool
    number: int
    length: int
    head: Head

    @property
    def party(self) -> str:
        """The machine or device of the port."""
        return self.port.partition(":")[0]


@dataclass(frozen=True)
class Fate:
    """A record of the segment's fate interface. `arriving` is the key of the frame as it goes on, `leaving` as it was
    sent: they differ if a bit was inverted."""

    at_ns: int
    segment: str
    number: int
    length: int
    leaving: Hashable
    arriving: Hashable
    head: Head
    kind: str
    """`lost`, `dropped`, `duplicated`, `corrupted` or `collision`."""
    words: str
    sender: str | None
    """The port that it names as the frame's sender, or whose adapter had the frame."""
    receiver: str | None
    refused: bool = False
    """True if it is about a frame that its adapter did not send."""
    bits: int | None = None
    """Of a collision: sent until the end of the jam."""

    @property
    def ends(self) -> bool:
        """True if the frame does not arrive."""
        return self.kind in ("lost", "dropped")


@dataclass(frozen=True)
class Arrow:
    """A frame on its way over one segment, from one party to another."""

    source: str
    target: str | None
    """None: where it was going is not known."""
    segment: str
    sent_ns: int
    arrived_ns: int | None
    """None: it did not arrive, or not while the capture was read."""
    lost: bool
    numbers: tuple[int, ...]
    """Its records in the capture of the segment."""
    length: int
    head: Head
    again: bool = False
    """True if its sender had sent the same before."""
    notes: tuple[str, ...] = ()
    """What a wire did to it, in words."""
    delayed_ns: int = 0
    """How much longer it took than the fastest of its length, if that is much."""
    overtaken: bool = False
    """True if a frame arrived before it that was sent after it."""
    words: str = ""

    @property
    def transit_ns(self) -> int | None:
        """From its first bit at the sender to its last at the receiver."""
        return None if self.arrived_ns is None else self.arrived_ns - self.sent_ns

    @property
    def plain(self) -> bool:
        """True if no wire did anything to it."""
        return not self.notes and not self.lost and self.arrived_ns is not None

    @property
    def remarks(self) -> tuple[str, ...]:
        """All that is to be said of it: what a wire did to it, and what its times show."""
        late = [f"delayed by {in_time(self.delayed_ns)}"] if self.delayed_ns else []
        late += ["overtaken"] if self.overtaken else []
        return (*self.notes, *([", ".join(late)] if late else []))


@dataclass(frozen=True)
class Row:
    """What is drawn at one height: an arrow, others like it (`count` of them), or an event: of a party, or of all."""

    at_ns: int
    arrow: Arrow | None = None
    count: int = 1
    last_ns: int = 0
    """Of several arrows: when the last one was sent."""
    also: str = ""
    """Of several arrows: how many were delayed or overtaken."""
    party: str = ""
    event: str = ""


@dataclass(frozen=True)
class Ladder:
    """A call, ready to be drawn. `zero_ns` is where its times begin."""

    title: str
    outcome: str
    parties: tuple[str, ...]
    zero_ns: int
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    """All of them, in order, also those that the rows summarise."""
    hidden: int = field(default=0)
    """Arrows that the rows summarise."""


def arrows(sightings: Sequence[Sighting], fates: Sequence[Fate], parties: Sequence[str]) -> list[Arrow]:
    """The ways of all frames that a party sent, in order of time; what reaches another than a party is not shown."""
    everything: list[Sighting | Fate] = [*sightings, *fates]
    segments = dict.fromkeys(each.segment for each in everything)
    found: list[Arrow] = []
    for segment in segments:
        pairing = _Pairing(parties)
        events: list[tuple[int, int, Sighting | Fate]] = [
            (each.at_ns, 0 if each.sent else 2, each) for each in sightings if each.segment == segment
        ]
        events += [(each.at_ns, 1, each) for each in fates if each.segment == segment]
        for _, _, event in sorted(events, key=lambda event: event[:2]):
            pairing.take(event)
        found += pairing.arrows()
    return _noted(sorted(found, key=lambda arrow: (arrow.sent_ns, arrow.segment)))


@dataclass
class _Sent:
    """A frame that left a port of one segment, and what came of it so far."""

    sighting: Sighting
    notes: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    copies: int = 1
    end: Fate | None = None
    arrived: list[Sighting] = field(default_factory=list)

    def awaits(self, port: str) -> bool:
        """True if it may arrive at a port, once more."""
        if self.end is not None:
            return False
        return sum(each.port == port for each in self.arrived) < self.copies


@dataclass
class _Pairing:
    """Frames of one segment that left, those that arrived, and fates, in order of time."""

    parties: Sequence[str]
    sent: list[_Sent] = field(default_factory=list)
    never_left: list[Arrow] = field(default_factory=list)
    _by_key: dict[Hashable, list[_Sent]] = field(default_factory=lambda: defaultdict(list))
    _collisions: dict[tuple[str, Hashable], list[Fate]] = field(default_factory=lambda: defaultdict(list))

    def take(self, event: Sighting | Fate) -> None:
        """The next event."""
        if isinstance(event, Fate):
            self._take_fate(event)
        elif event.sent:
            each = _Sent(event)
            collided = self._collisions.pop((event.port, event.head.key), [])
            each.notes += _collided(collided)
            each.numbers += [fate.number for fate in collided]
            self.sent.append(each)
            self._by_key[event.head.key].append(each)
        else:
            self._take_arrival(event)

    def _take_arrival(self, event: Sighting) -> None:
        there = [
            each for each in self._by_key.get(event.head.key, ()) if each.sighting.port != event.port or _loop(event)
        ]
        waiting = next((each for each in there if each.awaits(event.port)), None)
        if waiting is not None:
            waiting.arrived.append(event)

    def _take_fate(self, fate: Fate) -> None:
        if fate.kind == "collision":
            self._collisions[fate.sender or "", fate.leaving].append(fate)
            return
        there = [
            each
            for each in self._by_key.get(fate.leaving, ())
            if fate.sender in (None, each.sighting.port) and each.end is None
        ]
        # A switch may lose the copy of a frame towards one port that it has delivered to another.
        there = [each for each in there if fate.receiver not in [arrival.port for arrival in each.arrived]] or there
        if not there:
            if fate.refused:
                self._never_left(fate)
            return
        each = there[-1]
        each.numbers.append(fate.number)
        each.notes.append(fate.words)
        if fate.kind == "duplicated":
            each.copies += 1
        elif fate.kind == "corrupted":
            self._by_key[fate.arriving].append(each)
        else:
            each.end = fate

    def _never_left(self, fate: Fate) -> None:
        collided = self._collisions.pop((fate.sender or "", fate.leaving), [])
        source = (fate.sender or "").partition(":")[0]
        numbers = (*(each.number for each in collided), fate.number)
        notes = (*_collided(collided), fate.words)
        target = _party(fate.receiver)
        arrow = Arrow(
            source, target, fate.segment, fate.at_ns, None, True, numbers, fate.length, fate.head, notes=notes
        )
        self.never_left.append(arrow)

    def arrows(self) -> Iterator[Arrow]:
        """Of all frames that a party sent."""
        yield from (arrow for arrow in self.never_left if arrow.source in self.parties)
        for each in self.sent:
            if each.sighting.party in self.parties:
                yield from self._of(each)

    def _of(self, each: _Sent) -> Iterator[Arrow]:
        own = each.sighting
        begun = Arrow(
            own.party, None, own.segment, own.at_ns, None, False,
            (own.number, *each.numbers), own.length, own.head, notes=tuple(each.notes),
        )  # fmt: skip
        reached = [arrival for arrival in each.arrived if arrival.party in self.parties]
        for place, arrival in enumerate(reached):
            numbers = (*begun.numbers, arrival.number)
            notes = begun.notes if place == len(reached) - 1 else ()
            yield replace(begun, target=arrival.party, arrived_ns=arrival.at_ns, numbers=numbers, notes=notes)
        if each.end is not None:
            yield replace(begun, target=_party(each.end.receiver), lost=True)
        elif not each.arrived:
            yield begun


def _collided(fates: Sequence[Fate]) -> list[str]:
    """One note of all collisions of a frame."""
    if len(fates) < 2:
        return [fate.words for fate in fates]
    bits = sorted({fate.bits for fate in fates if fate.bits is not None})
    spent = f", {bits[0]}{f' to {bits[-1]}' if len(bits) > 1 else ''} bits each" if bits else ""
    return [f"{len(fates)} collisions: {fates[0].sender}{spent}"]


def _loop(event: Sighting) -> bool:
    return event.port.endswith(":lo")


def _party(port: str | None) -> str | None:
    return None if port is None else port.partition(":")[0]


def _noted(ways: list[Arrow]) -> list[Arrow]:
    """With what follows from other arrows: sent again, delayed, overtaken."""
    fastest: dict[tuple[str, str | None, str, int], int] = {}
    for arrow in ways:
        if arrow.transit_ns is not None:
            lane = (*_lane(arrow), arrow.length)
            fastest[lane] = min(fastest.get(lane, arrow.transit_ns), arrow.transit_ns)
    behind = _overtaken(ways)
    again = _again(ways)
    result = []
    for place, arrow in enumerate(ways):
        transit, least = arrow.transit_ns, fastest.get((*_lane(arrow), arrow.length), 0)
        delayed_ns = transit - least if transit is not None and transit > DELAYED * least else 0
        result.append(replace(arrow, delayed_ns=delayed_ns, overtaken=behind[place], again=again[place]))
    return result


def _overtaken(ways: Sequence[Arrow]) -> list[bool]:
    latest: dict[tuple[str, str | None, str], int] = {}
    behind = [False] * len(ways)
    for place in range(len(ways) - 1, -1, -1):  # the earliest arrival of what was sent later
        arrow = ways[place]
        if arrow.arrived_ns is not None:
            later = latest.get(_lane(arrow), arrow.arrived_ns)
            behind[place] = later < arrow.arrived_ns
            latest[_lane(arrow)] = min(arrow.arrived_ns, later)
    return behind


def _again(ways: Sequence[Arrow]) -> list[bool]:
    """Which were sent before: a frame passes each segment once, so another one asks for the same there. All fragments
    of a packet are, if one is."""
    first: dict[tuple[str, str, Hashable], int] = {}
    again = [
        arrow.head.asks is not None
        and first.setdefault((arrow.source, arrow.segment, arrow.head.asks), arrow.numbers[0]) != arrow.numbers[0]
        for arrow in ways
    ]
    packets = {arrow.head.packet for arrow, repeated in zip(ways, again, strict=True) if repeated and arrow.head.packet}
    return [repeated or arrow.head.packet in packets for arrow, repeated in zip(ways, again, strict=True)]


def _lane(arrow: Arrow) -> tuple[str, str | None, str]:
    return arrow.source, arrow.target, arrow.segment


def rows(ways: Sequence[Arrow], events: Iterable[Row], *, everything: bool) -> tuple[list[Row], int]:
    """Rows in order of time, and how many arrows they do not draw one by one. Unless `everything`, of a stretch of more
    than FEW like arrows over one lane, to which nothing happened, the first and the last are drawn."""
    stretches = [] if everything else list(_stretches(ways))
    inner = {id(arrow) for stretch in stretches for arrow in stretch[1:-1]}
    result = [Row(arrow.sent_ns, arrow) for arrow in ways if id(arrow) not in inner]
    result += [
        Row(stretch[1].sent_ns, stretch[1], len(stretch) - 2, stretch[-2].sent_ns, _also(stretch[1:-1]))
        for stretch in stretches
    ]
    result += list(events)
    return sorted(result, key=lambda row: row.at_ns), len(inner)


def _stretches(ways: Sequence[Arrow]) -> Iterator[list[Arrow]]:
    """Like arrows in a row over one lane. One that asks for something ends a stretch of the other direction: what
    follows may be an answer."""
    open_: dict[tuple[str, str | None, str], list[Arrow]] = defaultdict(list)
    found: list[list[Arrow]] = []
    for arrow in ways:
        stretch = open_[_lane(arrow)]
        if stretch and not (arrow.plain and _alike(arrow, stretch[-1])):
            found.append(stretch)
            open_[_lane(arrow)] = stretch = []
        if arrow.plain and arrow.head.group:
            stretch.append(arrow)
        back = (str(arrow.target), arrow.source, arrow.segment)
        opposite = open_.get(back)
        if arrow.head.asks is not None and opposite and opposite[-1].head.asks is not None:
            found.append(open_.pop(back))
    return (stretch for stretch in (*found, *open_.values()) if len(stretch) > FEW)


def _alike(one: Arrow, other: Arrow) -> bool:
    return (one.head.group, one.again) == (other.head.group, other.again)


def _also(stretch: Sequence[Arrow]) -> str:
    delayed = sum(arrow.delayed_ns > 0 for arrow in stretch)
    overtaken = sum(arrow.overtaken for arrow in stretch)
    counted = ((delayed, "delayed"), (overtaken, "overtaken"))
    return ", ".join(f"{count} {word}" for count, word in counted if count)


def in_time(ns: int) -> str:
    """A length of time in the unit that fits it, with three decimals of it."""
    if abs(ns) >= 10**9:
        return f"{ns / 10**9:.3f} s"
    if abs(ns) >= 10**6:
        return f"{ns / 10**6:.3f} ms"
    return f"{ns / 10**3:.3f} us"

# SPDX-License-Identifier: Apache-2.0
"""The table of a server's activities: which place each gets, and which is given up for it (guest-apps/dce/README.md).

A server has one table for each of its ports. All its activities are replayed together (`verify_executors`):
an activity that the server does not know gets the first place that is free again, else the next new one, else that of
the activity that has been idle for longest, which the server then forgets. The number of the latest question
who_are_you counts on in its place.

A capture does not show when a server read what had come. Where that leaves several places possible, the hint that
the server says decides among them.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from sundial.judge.machine import NEVER
from sundial.judge.replay import Item, Replay, Sent
from sundial.workloads.dce.expect_pdu import Pdu, Type
from sundial.workloads.dce.verify_server import HALF_NS, TOO_BUSY, Given, Server, Taken
from sundial.workloads.dce.verify_stream import CONV, DRIFT_NS

REFUSED = -1
"""In place of a place: there is none."""


@dataclass
class Party:
    """One activity at its server."""

    replay: Replay[Server]
    items: Sequence[Item]
    table: Table
    place: int | None = None
    """None: the server does not know it."""
    guessed: frozenset[int] = frozenset()
    """All places that it may have; empty if the server has said which."""
    answered_ns: int = -NEVER
    """When the latest of its responses was sent."""
    _said: list[tuple[int, int]] = field(init=False)
    _asked: list[tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        sent = [each for each in self.items if isinstance(each, Sent)]
        words = ((each.at_ns, _word(each.message)) for each in sent)
        self._said = [(at_ns, word) for at_ns, word in words if word is not None]
        self._asked = [(each.at_ns, each.message.sequence) for each in sent if each.message.interface == CONV]

    def said(self, at_ns: int) -> int | None:
        """The place that the server names next, or REFUSED; None: none."""
        return _first(self._said, at_ns)

    def asked(self, at_ns: int) -> int | None:
        """The number of its next question who_are_you."""
        return _first(self._asked, at_ns)

    def feed(self, item: Item) -> None:
        self.replay.feed(item)
        if isinstance(item, Sent) and item.message.type in (Type.RESPONSE, Type.FAULT):
            self.answered_ns = item.at_ns

    def may_be_forgotten(self, at_ns: int) -> bool:
        """Whether the server may have forgotten it by itself by then; quick, and true too often."""
        return any(
            each.state in ("unknown", "way") or each.used_ns + HALF_NS <= at_ns for each in self.replay.histories
        )

    def leaves(self, at_ns: int) -> list[Server]:
        """What may have become of it by an instant, without those whose timers are long due; if others can be, without
        those that left something unread for long."""
        every = self.replay.leaves(at_ns)
        found = [each for each in every if each.deadline() + each.unread_ns + DRIFT_NS > at_ns] or every
        return [each for each in found if not each.lagged] or found

    def unknown(self, at_ns: int) -> tuple[bool, bool]:
        """Whether the server may not know it at an instant, and whether it surely does not."""
        if not self.may_be_forgotten(at_ns):
            return False, False
        states = [each.state == "unknown" for each in self.leaves(at_ns)]
        return any(states), all(states)

    def idle(self, at_ns: int) -> tuple[int, bool] | None:
        """Since when it is idle, at the earliest, and whether it surely is; None: it is not."""
        leaves = self.leaves(at_ns)
        since = [each.used_ns for each in leaves if each.state == "idle"]
        return (max(min(since), self.answered_ns), len(since) == len(leaves)) if since else None


def _first(found: Sequence[tuple[int, int]], at_ns: int) -> int | None:
    place = bisect_left(found, (at_ns, -1))
    return found[place][1] if place < len(found) else None


def _word(pdu: Pdu) -> int | None:
    """What a PDU of the server says of the place that an activity has; None: others repeat what their client said."""
    if pdu.interface == CONV:
        return int.from_bytes(pdu.activity.bytes[14:])
    if pdu.type == Type.REJECT:
        return REFUSED if pdu.body == struct.pack(pdu.order + "I", TOO_BUSY) else None
    own = pdu.type in (Type.RESPONSE, Type.FAULT, Type.FACK) or (pdu.type == Type.NOCALL and pdu.body)
    return pdu.activity_hint if own else None


class Table:
    """The places of one port, and which activity has each, or had it last."""

    def __init__(self, places: int, unread_ns: int, conv: Callable[[int], UUID]) -> None:
        """`unread_ns`: how long what came may wait to be read; `conv`: the activity of the questions of a place."""
        self._places, self._unread_ns, self._conv = places, unread_ns, conv
        self._holders: list[Party] = []
        self._asked: list[set[int]] = []
        """Of places: the number that the latest question of those who had it before may have."""

    def request(self, party: Party, at_ns: int) -> None:
        """A request of an activity comes: one that the server may not know gets a place."""
        may, surely = (True, True) if party.place is None else party.unknown(at_ns)
        if not may:
            return
        word = party.said(at_ns)
        candidates, likely = self._candidates(at_ns)
        if party.place is not None and not surely and word in (None, party.place):
            candidates, likely = [party.place], party.place
        place = likely if word is None else word
        if place not in candidates and not self._correct(place, candidates, at_ns):
            place = likely
        self._release(party, at_ns)
        if place == REFUSED:
            party.feed(Given(at_ns, None))
            return
        self._hold(party, place, at_ns)
        party.guessed = frozenset(candidates) if word is None and len(candidates) > 1 else frozenset()
        numbers, asked = self._asked[place], party.asked(at_ns)
        latest = asked - 1 if asked is not None and asked - 1 in numbers else max(numbers)
        party.feed(Given(at_ns, place, self._conv(place), latest))

    def _correct(self, place: int, candidates: Sequence[int], at_ns: int) -> bool:
        """Whether the activity at a place, of which the server has never said where it is, may be at one of the
        candidates. It is there from now on."""
        there = self._holders[place] if 0 <= place < len(self._holders) else None
        others = [] if there is None else [each for each in candidates if each in there.guessed and each != REFUSED]
        if there is None or there.place != place or not others:
            return False
        there.place = None
        self._hold(there, others[0], at_ns)
        return True

    def _hold(self, party: Party, place: int, at_ns: int) -> None:
        if place == len(self._holders):
            self._holders.append(party)
            self._asked.append({0})
        before = self._holders[place]
        if before is not party and before.place == place:
            self._release(before, at_ns)
            before.feed(Taken(at_ns))
        self._holders[place], party.place = party, place

    def _release(self, party: Party, at_ns: int) -> None:
        if party.place is not None and not party.guessed:
            self._asked[party.place] = {each.conv_sequence for each in party.leaves(at_ns)}
        party.place = None

    def _candidates(self, at_ns: int) -> tuple[list[int], int]:
        """The places that a new activity may get, and the one that it gets if all is read at once."""
        found: list[int] = []
        for place, each in enumerate(self._holders):
            may, surely = each.unknown(at_ns) if each.place == place else (True, True)
            if may:
                found.append(place)
            if surely:
                return found, place
        if len(self._holders) < self._places:
            return [*found, len(self._holders)], len(self._holders)
        idle = [(each.idle(at_ns), place) for place, each in enumerate(self._holders)]
        since = sorted((at[0], place, at[1]) for at, place in idle if at is not None)
        oldest = next((at for at, _, surely in since if surely), None)
        if oldest is None:
            return [*found, *(place for _, place, _ in since), REFUSED], since[0][1] if since else REFUSED
        found += [place for at, place, _ in since if at <= oldest + self._unread_ns]
        return found, next(place for _, place, surely in since if surely)

# SPDX-License-Identifier: Apache-2.0
"""What a sender of fragments does next: its window and its bursts, by policy.

`window`: khandker's text. A burst of 1 fragment, whose last one asks for a fack; each fack of a burst's end doubles the
next, up to 8. `halves`: the rule of the OSF runtime, which the counts of khandker's table 2 need: the fragment in the
middle of a burst asks, too, and each fack lets twice as many follow as it has acknowledged. `osf`: that, with bursts of
at most 4 that grow while nothing is lost. (The OSF runtime itself also ends a burst where its caller has queued nothing
more yet, which a capture does not show; ours has the whole message at hand.)

A verifier replays a capture with it: `next` is compared with what was sent, `sent`, `fack` and `timeout` tell what
happened. Fragments and serials are counted from 0 without wrapping.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from dataclasses import dataclass, field
from typing import Literal

Policy = Literal["window", "halves", "osf"]

BURST_MOST = 8
WINDOW_UNKNOWN = 8
"""Fragments that a sender takes its receiver to offer until a fack says."""
_ASKS = (0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4)
_OSF_BURST = 4
_OSF_GOOD_FACKS = 8
_LITERAL_WINDOWS = 2
"""A window of 0, 1 or 2 is a number of fragments and not of KB, as the OSF runtime takes it."""


def asks_at_most(window: int) -> int:
    """Facks that may be asked for at a time in a window of so many fragments."""
    return _ASKS[window] if window < len(_ASKS) else window // 4


def window_fragments(window_kib: int, fragment: int) -> int:
    """A fack's window in fragments of so many bytes."""
    return window_kib if window_kib <= _LITERAL_WINDOWS else window_kib * 1024 // fragment


@dataclass(slots=True)
class _Sent:
    serial: int
    asked: bool
    outstanding: bool = True
    lost: bool = False


@dataclass
class Sender:
    """The sender of a message of `count` fragments."""

    policy: Policy
    count: int
    window: int = WINDOW_UNKNOWN
    burst_most: int = BURST_MOST
    _sent: dict[int, _Sent] = field(default_factory=dict)
    _acked: set[int] = field(default_factory=set)
    _unsent: int = 0
    _base: int = 0
    _serial: int = 0
    _permits: int = 1
    _burst: int = 1
    _begun: bool = False
    _until_middle: int = 0
    _fack_serial: int = -1
    _awaited: int = -1
    _good_facks: int = _OSF_GOOD_FACKS
    _offered: bool = False
    _kept: int = 0
    """Fragments from the first on that have been copied into the sender's memory, which holds one window."""

    def __post_init__(self) -> None:
        if self.policy == "osf":
            self.burst_most = _OSF_BURST

    @property
    def outstanding(self) -> int:
        """Fragments sent, and neither acknowledged nor known to be lost."""
        return sum(each.outstanding for each in self._sent.values())

    @property
    def done(self) -> bool:
        """Whether all fragments are acknowledged."""
        return len(self._acked) == self.count

    def next(self) -> tuple[int, bool] | None:
        """The fragment that may be sent now, and whether it asks for a fack; None: it has to wait."""
        if not self._permits:
            return None
        if not self._begun:
            self._begin_burst()
        lost = self._lost()
        if not lost and not self._copied(self._unsent):
            return None
        fragment = lost[0] if lost else self._unsent
        more = lost[1:] or self._copied(self._unsent + (not lost))
        ends_burst = self._permits == 1 or not more
        middle = self._until_middle == 1
        return fragment, self.count > 1 and fragment != self.count - 1 and (ends_burst or middle)

    def sent(self, fragment: int, serial: int, asked: bool) -> None:
        """Fragment `fragment` was sent."""
        self._permits = max(0, self._permits - 1)
        self._until_middle = max(0, self._until_middle - 1)
        self._sent[fragment] = _Sent(serial, asked)
        self._unsent = max(self._unsent, fragment + 1)
        self._kept = max(self._kept, self._unsent)
        self._serial = serial + 1
        if asked:
            self._awaited = serial

    def fill(self) -> None:
        """It has sent what it may, and copies what the window has room for."""
        while self._copied(self._kept):
            pass

    def fack(
        self,
        in_order: int,
        beyond: Collection[int],
        serial: int,
        window: int | None = None,
        *,
        nothing_under_way: bool = False,
    ) -> bool:
        """A fack for transmission `serial`: all to `in_order` (-1: none) and those `beyond` have come. Whether it said
        anything new. `nothing_under_way`: it answers a question that was asked behind all fragments."""
        if serial >= self._serial:
            return False
        if serial < self._fack_serial:
            self._acknowledge(in_order, beyond)
            return False
        if window is not None:
            self.window = window
        self._offered = True
        begin = self._burst_begin(serial)
        before = {number: each.serial for number, each in self._sent.items() if number not in self._acked}
        self._acknowledge(in_order, beyond)
        of_burst = sum(1 for number, own in before.items() if number in self._acked and begin < own <= serial)
        lost = 0
        for number, each in self._sent.items():
            if number not in self._acked and each.outstanding and (nothing_under_way or each.serial < serial):
                each.outstanding, each.lost = False, True
                lost += 1
        if serial == self._fack_serial and not of_burst and not lost:
            return False  # the same once more
        if self.policy == "window":
            self._open_window(serial, lost)
        else:
            self._open_halves(of_burst, lost)
        self._fack_serial = serial
        return True

    def timeout(self) -> int | None:
        """Its resend timer: the oldest fragment that is not acknowledged is lost, and goes alone. None: all are, by
        facks that were too old to open a burst, so the next new one goes alone."""
        left = [number for number in sorted(self._sent) if number not in self._acked]
        self._restart(1)
        if not left:
            return None
        self._sent[left[0]].outstanding = False
        self._sent[left[0]].lost = True
        return left[0]

    def again(self) -> None:
        """Its receiver seems to have nothing: all that is not acknowledged goes once more."""
        for number, each in self._sent.items():
            each.outstanding, each.lost = False, number not in self._acked
        self._restart(2)

    def clone(self) -> Sender:
        """One that goes on by itself."""
        other = copy(self)
        other._sent = {number: copy(each) for number, each in self._sent.items()}
        other._acked = set(self._acked)
        return other

    @property
    def all_sent(self) -> bool:
        """Whether every fragment was sent, and none is to be sent again."""
        return self._unsent == self.count and not self._lost()

    @property
    def ever_sent(self) -> bool:
        """Whether every fragment was sent at least once."""
        return self._unsent == self.count

    @property
    def base(self) -> int:
        """The first fragment that is not acknowledged."""
        while self._base < self._unsent and self._base in self._acked:
            self._base += 1
        return self._base

    def _copied(self, fragment: int) -> bool:
        """Whether a fragment is in the sender's memory, or has room there now."""
        # The first fack tells the size of the fragments behind the OSF runtime's first one.
        most = max(1, self.window) if self.policy != "osf" or self._offered else 1
        if fragment == self._kept and fragment < self.count and fragment - self.base < most:
            self._kept += 1
        return fragment < self._kept

    def _acknowledge(self, in_order: int, beyond: Collection[int]) -> None:
        for number, each in self._sent.items():
            if number <= in_order or number in beyond:
                self._acked.add(number)
                each.outstanding = each.lost = False

    def _lost(self) -> list[int]:
        return sorted(number for number, each in self._sent.items() if each.lost)

    def _left(self) -> int:
        return self.count - self._unsent + len(self._lost())

    def _begin_burst(self) -> None:
        self._permits = min(self._permits, self._left()) or self._permits
        self._begun = True
        asked = sum(each.asked and each.outstanding for each in self._sent.values())
        splits = self.policy != "window" and asks_at_most(self.window) > asked + 1
        self._until_middle = self._permits // 2 if splits else 0

    def _burst_begin(self, serial: int) -> int:
        """The burst that made a fack begins behind the transmission that had asked before."""
        base = self.base
        asked = (
            each.serial for number, each in self._sent.items() if number >= base and each.asked and each.serial < serial
        )
        return max((own for own in asked if own > self._fack_serial), default=self._fack_serial)

    def _restart(self, burst: int) -> None:
        self._permits = self._burst = burst
        self._begun = False

    def _open_window(self, serial: int, lost: int) -> None:
        if lost:
            self._restart(1)
        elif serial >= self._awaited or not self.outstanding:
            self._restart(min(2 * self._burst, BURST_MOST))
        else:
            return
        self._limit()

    def _open_halves(self, acked: int, lost: int) -> None:
        permits = self._permits + 2 * acked
        if self.policy == "osf":
            self._adapt(lost)
        permits = min(permits, self.burst_most)
        self._restart(2 if lost or permits < 2 else permits)
        self._limit()

    def _adapt(self, lost: int) -> None:
        """Bursts of the OSF runtime grow by 2 after so many good facks, and shrink by 2 at a loss."""
        self._good_facks = _OSF_GOOD_FACKS if lost else self._good_facks - 1
        if lost:
            self.burst_most = max(_OSF_BURST, self.burst_most - 2)
        elif not self._good_facks:
            self._good_facks = _OSF_GOOD_FACKS
            self.burst_most = min(BURST_MOST, self.burst_most + 2)

    def _limit(self) -> None:
        self._permits = min(self._permits, max(0, self.window - self.outstanding))

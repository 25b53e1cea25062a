# SPDX-License-Identifier: Apache-2.0
"""All activities of a server together, in the order of time, and the threads that run their procedures.

A server hands complete calls to its executors in the order in which they became complete, whatever port they came to
(guest-apps/dce/dce_server.c). A procedure that takes a time (`work`) keeps its thread. A call waits until a thread is
free: its client's pings are answered with working. A response shows that a thread is free again, from when its work was
over at the earliest. What no response shows, such as the end of a maybe call, lasts as long as its work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge

from sundial.judge.replay import Item, Sent
from sundial.workloads.dce.expect_pdu import Pdu, Type
from sundial.workloads.dce.verify_places import Party
from sundial.workloads.dce.verify_server import Begun
from sundial.workloads.dce.verify_stream import CONV

_ENTERING = (Type.REQUEST, Type.RESPONSE, Type.CL_CANCEL)
"""What comes of a client that may complete a call, or change how it ends. Responses answer who_are_you."""
_ANSWERS = (Type.RESPONSE, Type.FAULT)


@dataclass
class _Run:
    """A procedure that runs, or waits for a thread."""

    party: Party
    sequence: int
    entered_ns: int
    work_ns: int
    silent: bool
    """No response shows its end."""
    begun_ns: int = 0
    cancelled_ns: int | None = None

    @property
    def over_ns(self) -> int:
        """When it may be over, at the earliest."""
        over_ns = self.begun_ns + self.work_ns
        return over_ns if self.cancelled_ns is None else min(over_ns, max(self.begun_ns, self.cancelled_ns))


@dataclass
class Executors:
    """The threads of one server."""

    count: int
    late_ns: int
    """So long after it was due a response may leave."""
    _waiting: deque[_Run] = field(default_factory=deque)
    _running: list[_Run] = field(default_factory=list)

    def pass_time(self, now_ns: int) -> None:
        """What must be over by then, whether or not its end was seen, keeps no thread."""
        while self._running:
            least = min(self._running, key=self._over_ns)
            if self._over_ns(least) > now_ns:
                return
            self._end(least, least.over_ns)

    def _over_ns(self, run: _Run) -> int:
        return run.over_ns + (0 if run.silent else self.late_ns)

    def answered(self, party: Party, pdu: Pdu, at_ns: int) -> None:
        """A response leaves: its procedure has run, and its thread is free again."""
        own = self._of(party)
        if own is not None and own.sequence == pdu.sequence:
            self._has_run(own, at_ns)

    def _has_run(self, own: _Run, at_ns: int) -> bool:
        """It is over, and so is what it waited for, though no response has shown it; false: that cannot be."""
        while own in self._waiting:
            least = min(self._running, key=lambda each: (not each.silent, each.over_ns))
            if least.over_ns > at_ns and not least.silent:
                return False
            self._end(least, min(least.over_ns, at_ns))
        self._end(own, min(at_ns, own.over_ns))
        return True

    def came(self, party: Party, at_ns: int) -> None:
        """Something came that may have completed a call."""
        for each in party.leaves(at_ns):
            own = self._of(party)
            if own is not None and own.sequence != each.sequence and each.queued and self._has_run(own, at_ns):
                own = None  # an activity has one call at a time
            if own is None and each.queued:
                cancelled_ns = at_ns if each.cancelled else None
                self._enter(_Run(party, each.sequence, at_ns, each.work_ns, each.silent, cancelled_ns=cancelled_ns))
            elif own is not None and own.sequence == each.sequence:
                own.silent |= each.silent
                if each.cancelled and own.cancelled_ns is None:
                    own.cancelled_ns = at_ns

    def _of(self, party: Party) -> _Run | None:
        return next((each for each in (*self._running, *self._waiting) if each.party is party), None)

    def _enter(self, run: _Run) -> None:
        if len(self._running) < self.count:
            self._begin(run, run.entered_ns)
        else:
            self._waiting.append(run)

    def _begin(self, run: _Run, at_ns: int) -> None:
        run.begun_ns = at_ns
        self._running.append(run)
        run.party.feed(Begun(at_ns))

    def _end(self, run: _Run, at_ns: int) -> None:
        self._running.remove(run)
        if self._waiting:
            following = self._waiting.popleft()
            self._begin(following, max(at_ns, following.entered_ns))


def replay_together(parties: Sequence[Party], executors: Executors | None, boot_time: int, end_ns: int) -> None:
    """All activities of a server, in the order of time; `executors` None: no procedure takes a time; `end_ns`: as of
    `Replay.finish`."""
    for party, item in _in_order(parties):
        pdu: Pdu = item.message
        if executors is not None:
            executors.pass_time(item.at_ns)
            if isinstance(item, Sent) and pdu.type in _ANSWERS and pdu.interface != CONV:
                executors.answered(party, pdu, item.at_ns)
        # What has another boot time is rejected before it is looked for in the table.
        is_request = not isinstance(item, Sent) and pdu.type == Type.REQUEST and pdu.interface != CONV
        if is_request and pdu.boot_time in (0, boot_time):
            party.table.request(party, item.at_ns)
        party.feed(item)
        if executors is not None and not isinstance(item, Sent) and pdu.type in _ENTERING:
            executors.came(party, item.at_ns)
    for party in parties:
        if executors is not None:
            executors.pass_time(end_ns)
        party.replay.finish(end_ns)


def _in_order(parties: Sequence[Party]) -> Iterator[tuple[Party, Item]]:
    streams = (
        [(item.at_ns, isinstance(item, Sent), number, item) for item in party.items]
        for number, party in enumerate(parties)
    )
    for _, _, number, item in merge(*streams, key=lambda each: each[:3]):
        yield parties[number], item

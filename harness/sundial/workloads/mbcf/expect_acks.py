# SPDX-License-Identifier: Apache-2.0
"""When a node acknowledges the frames of a peer (guest-apps/sss-core/mbcf/README.md), as one state machine. Pure.

Every frame carries an acknowledgement; a PROBE asks for one, and leaves owed what is owed. One of its own (ACK) is due
ACK_DELAY_NS after the last frame that waits for it, but not later than ACK_PATIENCE times that and FRAME_NS for each
after the first; at the ACK_EVERY-th frame; and at once for ACK_NOW, a question (PROBE), the first frames behind a gap,
or when the last error is known to the peer and what it heard last was UNSURE.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from sundial.workloads.mbcf.wire import ACK_DELAY_NS, ACK_EVERY, ACK_PATIENCE, FRAME_NS, GAP_ACKS

_WRAP = 1 << 32
_HALF = 1 << 31
Idle = Callable[[int, int], int]
"""ns between two instants in which a node could have sent."""


def after(one: int, other: int) -> bool:
    """Whether sequence number `one` is behind `other` (32 bits, going round)."""
    return one != other and (one - other) % _WRAP < _HALF


def following(seq: int) -> int:
    """The next sequence number: 0 is left out."""
    return 1 if seq == _WRAP - 1 else seq + 1


def _elapsed_ns(low: int, high: int) -> int:
    return high - low


class Urgent(NamedTuple):
    """Something that is to be acknowledged at once; `seq`: unless a frame does that acknowledges so much; `alone`: in
    any case by an ACK, for what came makes nothing else leave."""

    at_ns: int
    seq: int | None = None
    alone: bool = False


@dataclass
class Receiver:
    """What one node knows of a peer's frames, by what arrived at its port and what left it.

    `slack_ns`: how long the wire may be free between an ACK and its reason. `own_ns`: the same between the moment at
    which an ACK is due and the ACK: the machine's own time for it. `idle` says how long the wire was free.
    """

    slack_ns: int
    own_ns: int
    idle: Idle = _elapsed_ns
    received: int = 0
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    """(seq, when it came) of frames executed and not yet acknowledged."""
    again: deque[int] = field(default_factory=deque)
    """When frames came that change nothing, but are to be acknowledged like others."""
    crossed: list[int] = field(default_factory=list)
    """The same, of what came while another frame waited for the wire: perhaps before that was made, perhaps after."""
    urgent: deque[Urgent] = field(default_factory=deque)
    spare: deque[int] = field(default_factory=deque)
    """Of these, what an ACK that was due for another reason may have answered."""
    gaps: int = 0
    unsure: bool = False
    """That the latest frame which left was UNSURE."""
    reported: bool = False
    """That the acknowledgement which is due now is missing."""

    def begin(self, base: int) -> None:
        """The peer's SYN or SYNACK: what it sends next is behind `base`."""
        if after(base, self.received) or self.received == 0:
            self.received = base
            self.gaps = 0

    def arrive(self, at_ns: int, seq: int, ack_now: bool) -> str:
        """A sequenced frame reaches the node: `accepted`, `duplicate` or `gap`."""
        if seq == following(self.received):
            self.received = seq
            self.gaps = 0
            self.waiting.append((seq, at_ns))
            if ack_now:
                self.urgent.append(Urgent(at_ns, seq))
            return "accepted"
        if after(seq, self.received):
            if self.gaps < GAP_ACKS:
                self.gaps += 1
                self.urgent.append(Urgent(at_ns, alone=True))
            else:
                self.again.append(at_ns)
            return "gap"
        if ack_now:
            self.urgent.append(Urgent(at_ns))
        else:
            self.again.append(at_ns)
        return "duplicate"

    def asked(self, at_ns: int) -> None:
        """A PROBE reaches the node."""
        self.urgent.append(Urgent(at_ns))

    def errors_known(self, at_ns: int) -> None:
        """The last error RESULT of the node is acknowledged: so is at once what was acknowledged UNSURE."""
        if self.unsure:
            self.urgent.append(Urgent(at_ns))
        else:
            self.spare.append(at_ns)  # an UNSURE frame may still wait for the wire

    def due_ns(self) -> int | None:
        """When what waits now must have been acknowledged, None where nothing waits."""
        dues = [self.urgent[0].at_ns] if self.urgent else []
        if self.waiting:
            dues.append(_due([*(at for _, at in self.waiting), *self.again]))
            if len(self.waiting) >= ACK_EVERY:
                dues.append(self.waiting[ACK_EVERY - 1][1])
        return min(dues) if dues else None

    def late(self, now_ns: int) -> int | None:
        """When an acknowledgement was due that has not come, answered once; None where none is missing."""
        due = self.due_ns()
        if due is None or self.reported or now_ns <= due + self.own_ns or self.idle(due, now_ns) <= self.own_ns:
            return None
        self.reported = True
        return due

    def sent(self, at_ns: int, ack: int, alone: bool, unsure: bool = False, asks: bool = False) -> str | None:
        """The node sends a frame with `ack`; `alone`: nothing but an ACK; `asks`: a PROBE. Returns what is wrong with
        it."""
        if after(ack, self.received):
            return f"acknowledges {ack}, but no more than {self.received} has come"
        if asks:
            return None
        self.reported = False
        self.unsure = unsure
        covered = []
        while self.waiting and not after(self.waiting[0][0], ack):
            covered.append(self.waiting.popleft()[1])
        fault = self._reason(at_ns, ack, covered) if alone else None
        if not alone:
            # What leaves in the same instant does for an ACK at once; whether it was the same is known by `ack` alone.
            self.spare.extend(one.at_ns for one in self.urgent if one.seq is None and not one.alone)
            kept = (one for one in self.urgent if one.alone or (one.seq is not None and after(one.seq, ack)))
            self.urgent = deque(kept)
        self.crossed = [time for time in (*self.crossed, *self.again) if self.idle(time, at_ns) < self.slack_ns]
        self.again.clear()
        return fault

    def _reason(self, at_ns: int, ack: int, covered: list[int]) -> str | None:
        """Takes the reason of an ACK; says why there is none."""
        waits = sorted([*covered, *self.again, *self.crossed])
        due = _due(waits) if waits else None
        # A frame may have come while the ACK waited for the wire: then it was due before that.
        usual = len(waits) >= ACK_EVERY or any(
            at_ns >= wait for wait in (due, *(time + ACK_DELAY_NS for time in waits)) if wait
        )
        # One that acknowledges less was made before that came.
        urgent = next((one for one in self.urgent if one.seq is None or not after(one.seq, ack)), None)
        if urgent is not None and urgent.at_ns <= at_ns:
            self.urgent.remove(urgent)
            if usual:  # one ACK, two reasons: which of them it was is not known
                self.spare.append(urgent.at_ns)
            return None
        if usual:
            return None
        while self.spare:
            if self.idle(self.spare.popleft(), at_ns) < self.slack_ns:
                return None
        if due is None:
            return "nothing waits to be acknowledged"
        return f"{len(waits)} frames wait, the ACK is not due for another {due - at_ns} ns"


def _due(waits: list[int]) -> int:
    """When an ACK is due for frames that came at these times."""
    return min(max(waits) + ACK_DELAY_NS, min(waits) + ACK_PATIENCE * ACK_DELAY_NS + len(waits) * FRAME_NS)

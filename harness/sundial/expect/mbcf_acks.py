# SPDX-License-Identifier: Apache-2.0
"""When a node acknowledges the frames of a peer (guest-apps/sss-core/mbcf/README.md), as one state machine. Pure.

Every frame carries an acknowledgement. One of its own (ACK) is due DELAY_NS after the last frame that waits for it, but
not later than PATIENCE times that after the first; at the EVERY-th frame; and at once for ACK_NOW, a question (PROBE),
or the first frames behind a gap.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

DELAY_NS = 2_000_000
PATIENCE = 8
EVERY = 16
GAP_ACKS = 4
_WRAP = 1 << 32
_HALF = 1 << 31


def after(one: int, other: int) -> bool:
    """Whether sequence number `one` lies behind `other` (32 bits, going round)."""
    return one != other and (one - other) % _WRAP < _HALF


def following(seq: int) -> int:
    """The next sequence number: 0 is left out."""
    return 1 if seq == _WRAP - 1 else seq + 1


@dataclass
class Receiver:
    """What one node knows of a peer's frames, by what arrived at its port and what left it.

    `slack_ns`: how much later than its reason an ACK may be seen: the machine's own time and the wait for a free wire.
    """

    slack_ns: int
    received: int = 0
    waiting: deque[tuple[int, int]] = field(default_factory=deque)
    """(seq, when it came) of frames executed and not yet acknowledged."""
    again: deque[int] = field(default_factory=deque)
    """When frames came that change nothing, but are to be acknowledged like others."""
    crossed: list[int] = field(default_factory=list)
    """The same, of what came while another frame waited for the wire: perhaps before that was made, perhaps after."""
    urgent: deque[tuple[int, int | None]] = field(default_factory=deque)
    """When something came that is to be acknowledged at once; with a sequence number: unless another frame does it."""
    spare: deque[int] = field(default_factory=deque)
    """Of these, what an ACK that was due for another reason may have answered."""
    gaps: int = 0
    told: bool = False
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
                self.urgent.append((at_ns, seq))
            return "accepted"
        if after(seq, self.received):
            if self.gaps < GAP_ACKS:
                self.gaps += 1
                self.urgent.append((at_ns, None))
            else:
                self.again.append(at_ns)
            return "gap"
        if ack_now:
            self.urgent.append((at_ns, None))
        else:
            self.again.append(at_ns)
        return "duplicate"

    def asked(self, at_ns: int) -> None:
        """A PROBE reaches the node."""
        self.urgent.append((at_ns, None))

    def due_ns(self) -> int | None:
        """When what waits now must have been acknowledged, None where nothing waits."""
        dues = [self.urgent[0][0]] if self.urgent else []
        if self.waiting:
            latest = max(self.waiting[-1][1], self.again[-1] if self.again else 0)
            dues.append(min(latest + DELAY_NS, self.waiting[0][1] + PATIENCE * DELAY_NS))
            if len(self.waiting) >= EVERY:
                dues.append(self.waiting[EVERY - 1][1])
        return min(dues) if dues else None

    def late(self, now_ns: int) -> int | None:
        """When an acknowledgement was due that has not come, told once; None where none is missing."""
        due = self.due_ns()
        if due is None or self.told or now_ns <= due + self.slack_ns:
            return None
        self.told = True
        return due

    def sent(self, at_ns: int, ack: int, alone: bool) -> str | None:
        """The node sends a frame with `ack`; `alone`: nothing but an ACK. Returns what is wrong with it."""
        self.told = False
        if after(ack, self.received):
            return f"acknowledges {ack}, but no more than {self.received} has come"
        covered = []
        while self.waiting and not after(self.waiting[0][0], ack):
            covered.append(self.waiting.popleft()[1])
        fault = self._reason(at_ns, covered) if alone else None
        if not alone:
            self.urgent = deque(one for one in self.urgent if one[1] is None or after(one[1], ack))
        self.crossed = [time for time in (*self.crossed, *self.again) if at_ns - time < self.slack_ns]
        self.again.clear()
        return fault

    def _reason(self, at_ns: int, covered: list[int]) -> str | None:
        """Takes the reason of an ACK; says why there is none."""
        waits = sorted([*covered, *self.again, *self.crossed])
        due = min(waits[-1] + DELAY_NS, waits[0] + PATIENCE * DELAY_NS) if waits else None
        # A frame may have come while the ACK waited for the wire: then it was due before that.
        delayed = due is not None and (at_ns >= due or any(time + DELAY_NS <= at_ns for time in waits))
        urgent = bool(self.urgent) and self.urgent[0][0] <= at_ns
        if urgent:
            came = self.urgent.popleft()[0]
            if delayed:  # one ACK, two reasons: which of them it was is not told
                self.spare.append(came)
            return None
        if delayed or len(covered) >= EVERY:
            return None
        while self.spare:
            if at_ns - self.spare.popleft() < self.slack_ns:
                return None
        if due is None:
            return "nothing waits to be acknowledged"
        return f"{len(waits)} frames wait, the ACK is not due for another {due - at_ns} ns"

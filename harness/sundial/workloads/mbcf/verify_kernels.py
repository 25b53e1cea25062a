# SPDX-License-Identifier: Apache-2.0
"""What Linux does to a node that is a process, and no port shows: frames for which its socket has no room, and the
process's end. Pure.

Such a node sends through a packet socket (guest-apps/sss-core/linux). Linux takes a frame for it only while what waits
for the line is less than the buffer of the socket (sock_alloc_send_pskb); else the frame is lost, as on a wire. So one
is lost only where a buffer full of the node's frames leaves without a break.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sundial.verify.contention import Contention

SEND_BUFFER = 212_992
"""Bytes (net.core.wmem_default, where Linux has pages of 4096 bytes and no setting)."""
_BUFFER_HEAD, _BUFFER_END, _HEADROOM = 256, 320, 16
"""struct sk_buff; struct skb_shared_info at the end of a frame's memory; what is kept free in front of it."""
LINGER_NS = 100_000_000
"""How long a process waits for its last acknowledgements (guest-apps/sss-core/linux/node.c)."""


def buffered(length: int) -> int:
    """Bytes of a socket's buffer that a frame takes: its memory is a power of two (skb->truesize)."""
    return int(_BUFFER_HEAD + (1 << (length + _HEADROOM + _BUFFER_END - 1).bit_length()))


@dataclass(frozen=True)
class Congested:
    """Stretches in which a port sent without a break, a whole buffer of its node's frames at least: in order, apart."""

    begins: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def meets(self, low: int, high: int) -> bool:
        """Whether the node's socket may have been full at some time between two instants."""
        place = bisect_left(self.ends, low)
        return place < len(self.begins) and self.begins[place] <= high


NEVER_CONGESTED = Congested()


def congested(wire: Contention, frames: Iterable[tuple[int, int]]) -> Congested:
    """`frames`: when those of the node were handed in, and their lengths."""
    taken = [0] * len(wire.begins)
    for at_ns, length in frames:
        place = bisect_right(wire.begins, at_ns + wire.latency_ns) - 1
        if place >= 0:
            taken[place] += buffered(length)
    full = [place for place, count in enumerate(taken) if count >= SEND_BUFFER]
    return Congested(
        [wire.begins[place] - wire.latency_ns for place in full], [wire.ends[place] - wire.latency_ns for place in full]
    )


def ended_ns(began_ns: int, ends_ns: Sequence[int]) -> int:
    """When a process is gone that sent first at `began_ns`: its step of the job has ended, and it waits for nothing
    more. `ends_ns`: when the last call of each step ended."""
    return min((end for end in ends_ns if end >= began_ns), default=began_ns) + LINGER_NS

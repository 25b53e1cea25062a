# SPDX-License-Identifier: Apache-2.0
"""When a server's machine had booted, under the real clock: clients do not wait for it, and no frame says so.

What comes before is not heard. ARP asks until the machine answers; but a broadcast, and a packet to an address that is
known beforehand (`static_arp`), leave at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sundial.judge.machine import NEVER
from sundial.verify.findings import Finding

_MOST = 32
"""Instants that are tried."""


def boots(came_ns: Sequence[int], spoke_ns: int) -> list[int]:
    """Instants at which the last came that was not heard, in order. `came_ns`: in order; `spoke_ns`: when its machine
    sent its first frame. Of many, those before the longest pauses."""
    early = [at_ns for at_ns in came_ns if at_ns < spoke_ns]
    pauses = sorted(zip(early, [*early, NEVER][1:], strict=True), key=lambda each: each[0] - each[1])
    return sorted({at_ns for at_ns, _ in pauses[:_MOST]})


def fewest_findings(served: Callable[[int], list[Finding]], instants: Sequence[int]) -> list[Finding]:
    """The findings of the instant that has the fewest. `served`: those about a server that has not heard what came
    until then; it is called last for the instant that is meant."""
    fewest = min((len(served(until_ns)), until_ns) for until_ns in instants)
    return served(fewest[1])

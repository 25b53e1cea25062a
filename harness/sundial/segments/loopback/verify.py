# SPDX-License-Identifier: Apache-2.0
"""A loopback carries each frame, at once and in order; and its capture is all that the kernel saw there.

Linux hands a frame to the captures of what is sent, queues it for the same CPU, and hands it to the captures of what is
received when that CPU takes it from its queue (drivers/net/loopback.c, net/core/dev.c).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sundial.observe.pcapng import interface_statistics
from sundial.segments.loopback.model import Loopback
from sundial.verify.findings import Finding, as_table
from sundial.verify.law import Law, check_fates, merged
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import Wire, problem

UNPROVEN = (
    "loopback: checksums of UDP and TCP, which remain unfinished there; only that each is the sum of its pseudo header",
    "loopback: how long a frame waits for its machine's CPU",
    "loopback: where zero of its capture's stamps is, within the reading of two clocks that the guest makes at once",
)


class _Loopback(SegmentVerifier[Loopback]):
    def check_times(self, segment: Loopback, wire: Wire) -> Law:
        rows = as_table(list(_counted(wire)))
        return Law(merged([check_fates(wire, segment, ()), _carried(wire), rows]))

    def hears_itself(self, segment: Loopback) -> bool:
        return True


def _carried(wire: Wire) -> pl.DataFrame:
    """The n-th frame received is the n-th sent, and not before it."""
    sent, received = wire.sent[0], wire.received[0]
    both = min(len(sent), len(received))
    wrong = np.ones(max(len(sent), len(received)), np.bool_)
    wrong[:both] = (sent.content[:both] != received.content[:both]) | (sent.time_ns[:both] > received.time_ns[:both])
    places = np.flatnonzero(wrong)
    # Behind the first that is missing all are other ones.
    wrong[places[1:]] = False
    rows = [np.append(each.row, np.full(len(wrong) - len(each.row), -1)) for each in (sent, received)]
    return problem(
        f"order on {wire.name}",
        wrong,
        rows,
        (f"each frame received as it was sent, number {place + 1} of {len(sent)}" for place in places),
        (f"another one, or none, number {place + 1} of {len(received)}" for place in places),
    )


def _counted(wire: Wire) -> Iterator[Finding]:
    """What the guest's kernel counted at its capture: each frame twice, none dropped."""
    statistics = None if wire.folder is None else interface_statistics(wire.folder / f"{wire.name}.pcapng")
    if statistics is None:
        yield Finding(None, f"{wire.name} statistics", "what the guest's kernel counted", "none")
        return
    captured = len(wire.sent[0]) + len(wire.received[0])
    if statistics.dropped:
        yield Finding(None, f"{wire.name} dropped", "0 by the guest's kernel", str(statistics.dropped))
    if statistics.received - statistics.dropped != captured:
        yield Finding(
            None, f"{wire.name} frames", f"{statistics.received} by the guest's kernel", f"{captured} captured"
        )


KIND: SegmentVerifier[Loopback] = _Loopback()

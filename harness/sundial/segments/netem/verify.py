# SPDX-License-Identifier: Apache-2.0
"""A bridge in a guest's kernel: what it received leaves at its other ports, no earlier than its tc-netem lets it go, and
no later than that and the work of its CPU take (tc-netem(8), net/sched/sch_netem.c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never

import numpy as np
import polars as pl

from sundial.model.network import Node
from sundial.segments.netem.verify_tc import Effects, read_arguments
from sundial.verify.law import Law, merged
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import Numbers, Passages, Wire, problem, queue_starts

INSTRUCTIONS = 60_000
"""Of the guest's kernel for a frame, from one adapter to the other; measured: 9,400 (75 us at 125 MIPS)."""
PAUSE_INSTRUCTIONS = 2_500_000
"""Before it looks at its adapters again, when it has handed them to a thread that other work delays: 20 ms at 125 MIPS."""
CLOCK_ERROR = 1000
"""Under the real clock a guest measures its delays with a clock of its own; it may be wrong by one part in so many."""


class _Netem(SegmentVerifier[Never]):
    unproven = (
        "netem: the delay of a frame between its least, and its most and what the bridge's CPU may take",
        "netem: which frames are lost, doubled, corrupted and reordered, but that each is configured",
        "netem: how late a frame leaves where the port behind it is on a hub, or under the real clock",
        "netem: what slots, loss by states and the distributions of tables of one's own do to time",
    )

    def check_machine(self, node: Node, wires: Mapping[str, Wire], *, exact: bool) -> Law:
        if node.role != "bridge":
            return Law()
        found = []
        into = {nic.end: _of(wires, nic.end).received for nic in node.nics}
        for nic in node.nics:
            effects = read_arguments(nic.netem)
            if effects is None:
                continue
            sent = _at(wires, nic.end, into=False)
            came = _together([_at(wires, other, into=True) for other in into if other != nic.end])
            found.append(_check(node, nic.end, effects, came, sent, exact))
        return Law(merged(found))


KIND: SegmentVerifier[Never] = _Netem()

# SPDX-License-Identifier: Apache-2.0
"""Machines that are off, at the ports of a wire: they send nothing, and what their adapters held has a fate."""

from __future__ import annotations

import numpy as np
import polars as pl

from sundial.model.segment import SegmentBase
from sundial.seams.fate import AdapterOff
from sundial.verify.law import Bounds, cut_off, merged, ring_of
from sundial.verify.wire import Mask, Numbers, Wire, problem


def check_power(wire: Wire, segment: SegmentBase) -> tuple[pl.DataFrame, dict[tuple[str, str], Bounds]]:
    """Findings, and how often each port must have counted what its adapter lost. What is for a machine that is off is
    checked by the law of the segment."""
    found, counted = [], {}
    for place, port in enumerate(segment.ports if segment.timeline else ()):
        sent, lost = wire.sent[place], wire.fates_of(AdapterOff, fate_adapter=port)
        machine = port.partition(":")[0]
        wrong = is_off(segment, port, sent.time_ns)
        found.append(
            problem(f"frame of {machine}", wrong, [sent.row],
                    iter([f"none while {machine} is off"] * int(wrong.sum())),
                    (f"at {at} ns" for at in sent.time_ns[wrong]))
        )  # fmt: skip
        at, rows = lost["time_ns"].to_numpy(), lost["row"].to_numpy().astype(np.int64)
        early = ~is_off(segment, port, at) | (np.arange(len(at)) >= ring_of(wire, segment, port)[0])
        found.append(
            problem(f"fate on {wire.name}", early, [rows],
                    iter([f"lost with the ring of {port}, while {machine} is off"] * int(early.sum())),
                    (f"at {when} ns" for when in at[early]))
        )  # fmt: skip
        # The end of the run may come before the transmission would have begun.
        counted[port, "dropped adapter off"] = (len(at), len(at) + cut_off(wire, segment, port, 0)[0])
    return merged(found), counted


def is_off(segment: SegmentBase, port: str, times_ns: Numbers) -> Mask:
    """Which instants are in states in which the machine at a port is off."""
    off = np.array([False, *(port in state.off for state in segment.timeline)])
    since = np.array([state.at_ns for state in segment.timeline], np.int64)
    return off[np.searchsorted(since, times_ns, "right")]

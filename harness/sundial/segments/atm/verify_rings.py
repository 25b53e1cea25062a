# SPDX-License-Identifier: Apache-2.0
"""The adapters: frames that they refuse or drop before there is a PDU, and how full their rings can have been."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl

from sundial.expect.atm import LANE
from sundial.seams.fate import Cells, ForAddress, OfAdapter, Spoiled
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_fates import NO_COPY
from sundial.segments.atm.verify_frames import fates_of_pdus
from sundial.segments.atm.verify_lines import NS
from sundial.segments.atm.verify_pdus import Pdus
from sundial.segments.atm.verify_times import Walk
from sundial.verify.law import Bounds, offered, ring_drops, ring_of
from sundial.verify.wire import Numbers, Wire, problem

BY_ADAPTER = ("not joined", "8 frames wait", "no answer", "not IP", "no VC")
"""Rules by which adapters drop frames."""
RECORDS = (Cells, Spoiled, OfAdapter, ForAddress)
"""Of what becomes of frames, beside what all adapters refuse."""
HELD = 8
"""Frames that a client of LAN emulation holds back for a destination at most."""


Counts = tuple[dict[tuple[str, str], Bounds], dict[str, Bounds], list[pl.DataFrame]]


def ring_counts(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, late: Numbers) -> Counts:
    """Counters of adapters, what the end of the run may have cut off, and findings. `late`: by port, frames that were
    still to come at the end."""
    counted: dict[tuple[str, str], Bounds] = {}
    cut: dict[str, Bounds] = {}
    found: list[pl.DataFrame] = []
    for number, port in enumerate(segment.ports):
        refused, full = _ring(segment, wire, pdus, walked, number)
        found.append(refused)
        drops = len(ring_drops(wire, port))
        dropped = {rule: wire.given_up(port).filter(fate_rule=rule).height for rule in BY_ADAPTER}
        counted |= {(port, f"dropped {rule}"): (count, count) for rule, count in dropped.items()}
        in_pdus = _of_pdus(wire, port) + _at_services(pdus, walked, number)
        counted |= {(port, f"dropped {words}"): (count, count) for words, count in in_pdus.items()}
        counted[port, "dropped adapter full"] = drops, drops
        counted[port, "adapter_full"] = full
        counted[port, "offered_frames"] = offered(
            wire, segment, port, drops + sum(dropped.values()) + len(wire.sent[number])
        )
        cut[port] = (0, int(late[number]))
        counted[port, "undelivered"] = (0, int(late[number]))
    return counted, cut, found


def _of_pdus(wire: Wire, port: str) -> Counter[str]:
    """Frames that were lost in PDUs on their way from or to a port, by reason."""
    return Counter(fates_of_pdus(wire).filter(pl.coalesce("fate_from", "fate_to") == port)["fate_rule"])


def _at_services(pdus: Pdus, walked: Walk, number: int) -> Counter[str]:
    """Those that were lost on their way from a port to the services, which have no counters."""
    fates, copies = walked.fates, walked.copies
    own = fates.towards & (fates.port == len(pdus.ports)) & ~pdus.control[fates.record] & (fates.copy != NO_COPY)
    own[own] = copies.sender[fates.copy[own]] == number
    return Counter(pdus.fates["fate_rule"].gather(fates.record[own]))


def _ring(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, number: int) -> tuple[pl.DataFrame, Bounds]:
    """Frames that a full ring refused, and how often one can have been full: as many frames as it has places follow one
    another on the line, at the spacing to which it is shaped, but for those that a client may hold back."""
    port, sent = segment.ports[number], walked.sent[number]
    places, drops_frames = ring_of(wire, segment, port)
    places = max(0, places - (HELD if segment.encapsulation == LANE else 0))
    drops = ring_drops(wire, port)
    start, end = sent.start, sent.end
    gap = start.low[1:] - np.maximum.accumulate(end.high)[:-1]
    head = np.append(True, gap >= NS + sent.spacing - sent.cell_time)[: len(sent)]
    begin = pdus.time_ns[sent.place][np.maximum.accumulate(np.where(head, np.arange(len(sent)), 0))]
    frames = wire.sent[number].time_ns
    own = np.minimum(np.searchsorted(pdus.time_ns[sent.place], frames), max(len(sent) - 1, 0))
    if not len(sent):
        own, begin = own[:0], begin[:0]
    before = np.searchsorted(frames, begin[own], "left")
    full = np.arange(len(own)) - before + 1 >= places
    records = drops["row"].to_numpy().astype(np.int64)
    if not drops_frames:
        return _refused(port, records, "the machine stops"), (0, int(full.sum()))
    at = drops["time_ns"].to_numpy()
    ends = -(-end.high[own] // NS)
    oldest = np.searchsorted(ends, at - wire.latency_ns.get(port, 0), "left")
    last = oldest + places - 1
    there = last < len(own)
    place = np.minimum(last, max(len(own) - 1, 0))
    holds = there & ((before[place] <= oldest) | (begin[own][place] <= at)) if len(own) else there
    open_end = ~there & (wire.end_ns is not None)
    # A client may hold back all frames of so small a ring.
    wrong = ~holds & ~open_end & (places > 0)
    return _refused(port, records[wrong], f"{places} frames that wait"), (len(at), len(at))


def _refused(port: str, rows: Numbers, expected: str) -> pl.DataFrame:
    wrong, words = np.ones(len(rows), np.bool_), [expected] * len(rows)
    return problem(f"ring of {port}", wrong, [rows], iter(words), iter(["a frame refused"] * len(rows)))

# SPDX-License-Identifier: Apache-2.0
"""The adapters: frames that they refuse or drop before there is a PDU, and how full their rings can have been."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl

from sundial.expect.atm import LANE
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_fates import NO_COPY, SERVICES
from sundial.segments.atm.verify_frames import OF_PDUS
from sundial.segments.atm.verify_lines import NS
from sundial.segments.atm.verify_pdus import Pdus
from sundial.segments.atm.verify_times import Walk
from sundial.verify.law import Bounds, fates_matching, offered, ring_drops, ring_of
from sundial.verify.wire import Numbers, Wire, problem

NOT_JOINED = r"^dropped: not joined \((\S+)\)$"
WAITING = r"^dropped: (\d+) frames wait for (\S+) \((\S+)\)$"
NO_ANSWER = r"^dropped: no answer for (\S+) \((\S+)\)$"
NOT_IP = r"^dropped: not IP \((\S+)\)$"
NO_VC = r"^dropped: no VC for (\S+) \((\S+)\)$"
BY_ADAPTER = {
    "not joined": (NOT_JOINED, "port"),
    "8 frames wait": (WAITING, "number", "address", "port"),
    "no answer": (NO_ANSWER, "address", "port"),
    "not IP": (NOT_IP, "port"),
    "no VC": (NO_VC, "address", "port"),
}
"""What adapters drop, by the words of their counters: the form of the comment, and its parts."""
PATTERNS = (OF_PDUS, *(form for form, *_ in BY_ADAPTER.values()))
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
        dropped = {
            words: fates_matching(wire, form, *parts).filter(pl.col("port") == port).height
            for words, (form, *parts) in BY_ADAPTER.items()
        }
        counted |= {(port, f"dropped {words}"): (count, count) for words, count in dropped.items()}
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
    words = pl.col("comment").str.extract(rf"^dropped: (?:\d+ of \d+ cells, )?(.+) (?:from|towards) {re.escape(port)}$")
    return Counter(
        dict(wire.fates.filter(pl.col("comment").str.contains(OF_PDUS)).group_by(words).len().drop_nulls().iter_rows())
    )


def _at_services(pdus: Pdus, walked: Walk, number: int) -> Counter[str]:
    """Those that were lost on their way from a port to the services, which have no counters."""
    fates, copies = walked.fates, walked.copies
    own = fates.towards & (fates.port == len(pdus.ports)) & ~pdus.control[fates.record] & (fates.copy != NO_COPY)
    own[own] = copies.sender[fates.copy[own]] == number
    comments = pdus.table["comment"].gather(fates.record[own])
    return Counter(comments.str.extract(rf"^dropped: (?:\d+ of \d+ cells, )?(.+) towards {SERVICES}$").drop_nulls())


def _ring(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, number: int) -> tuple[pl.DataFrame, Bounds]:
    """Frames that a full ring refused, and how often one can have been full: as many frames as it has places follow one
    another on the line, but for those that a client may hold back."""
    port, sent = segment.ports[number], walked.sent[number]
    places, drops_frames = ring_of(wire, segment, port)
    places -= HELD if segment.encapsulation == LANE else 0
    drops = ring_drops(wire, port)
    start, end = sent.start, sent.end
    head = np.append(True, start.low[1:] - np.maximum.accumulate(end.high)[:-1] >= NS)[: len(sent)]
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
    wrong = ~holds & ~open_end
    return _refused(port, records[wrong], f"{places} frames that wait"), (len(at), len(at))


def _refused(port: str, rows: Numbers, expected: str) -> pl.DataFrame:
    wrong, words = np.ones(len(rows), np.bool_), [expected] * len(rows)
    return problem(f"ring of {port}", wrong, [rows], iter(words), iter(["a frame refused"] * len(rows)))

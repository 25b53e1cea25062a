# SPDX-License-Identifier: Apache-2.0
"""Each PDU that did not get through, against what must have become of it.

What a queue or a contract discards follows from when cells join: so many, the first then and for that reason. What a
line loses is drawn: never where it has no such fault, within the PDU's time on it, and as often as is likely. A PDU
behind one whose last cell was lost is joined to that one, and neither is handed on.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.seams.fate import Cells
from sundial.segments.atm.model import Atm
from sundial.segments.atm.model_parts import Faults
from sundial.segments.atm.verify_channels import services_port
from sundial.segments.atm.verify_fates import CELL_LOSS, CRC, HEADER_ERROR, JOIN, LOST, NO_COPY, QUEUE_WORDS, Fates
from sundial.segments.atm.verify_lines import NS, stamp
from sundial.segments.atm.verify_pdus import Pdus, at_records, crc_32, of
from sundial.segments.atm.verify_queue import CLP_1, EARLY, PARTIAL, PASSED, POLICED, QUEUE_FULL, VC_FULL, WORDS
from sundial.segments.atm.verify_times import Due, Walk, faulty, line_to
from sundial.verify.chance import hardly
from sundial.verify.findings import Finding, as_table
from sundial.verify.wire import MOST, Mask, Numbers, Wire

_NEVER = 1 << 62


def check_losses(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due) -> list[pl.DataFrame]:
    """Fates that must be there, and of those that are there, what they say."""
    return [
        *_discarded(segment, wire, pdus, walked, owed),
        *_joined(segment, wire, pdus, walked, owed),
        *_by_chance(segment, pdus, walked, owed),
        *_shares(segment, walked),
    ]


def _discarded(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due) -> Iterator[pl.DataFrame]:
    """Where what joins is known: the fate of each PDU that lacks cells, and none of another."""
    copies, fates, lost = walked.copies, walked.fates, walked.by_copy("lost")
    sure = walked.by_copy("known") & ~owed.chance
    at = walked.times("lost_at")
    low, high = stamp(at.low), stamp(at.high)
    records, ports = pdus.numbers("row"), np.array([*segment.ports, "service"])
    fated = walked.fate != NO_COPY
    reason = np.array(WORDS)[walked.by_copy("reason")]
    early = walked.by_copy("reason") == POLICED
    port = np.where(early, copies.sender, copies.to)
    missing = sure & (lost > 0) & ~fated & ~walked.completed & (high <= _end(wire))

    def comments(which: Numbers) -> list[str]:
        columns = (each[which[:MOST]].tolist() for each in (reason, lost, copies.cells, early, ports[port]))
        return [_comment(*each) for each in zip(*columns, strict=True)]

    gone = np.flatnonzero(missing)
    due = (f"{each} at {at} ns" for each, at in zip(comments(gone), low[gone].tolist(), strict=False))
    yield at_records(pdus.name, "fate", missing, records[copies.pdu], due,
                     of(missing, "none of record {}", records[copies.pdu] + 1))  # fmt: skip
    own = np.flatnonzero(sure & fated & (_kind(walked) != JOIN))
    fate = walked.fate[own]
    record = fates.record[fate]
    comment = pdus.table["comment"].to_numpy()[record]
    other = (lost[own] == 0) | (fates.kind[fate] != LOST)
    for column, expected in (
        (fates.lost, lost), (fates.of, copies.cells), (fates.reason, reason), (fates.towards, ~early),
        (fates.port, port),
    ):  # fmt: skip
        other |= column[fate] != expected[own]
    yield at_records(pdus.name, "fate", other, records[record], iter(comments(own[other])), of(other, "{}", comment))
    seen = pdus.time_ns[record]
    wrong = ~other & ((seen < low[own]) | (seen > high[own]))
    yield at_records(pdus.name, "time of a fate", wrong, records[record],
                     of(wrong, "{} to {} ns", low[own], high[own]), of(wrong, "{} ns", seen))  # fmt: skip


def _comment(rule: Any, lost: int, cells: int, early: bool, port: str) -> str:
    """The comment on a PDU that lacks so many cells."""
    if not lost:
        return "none: no cell was lost"
    end = {"from" if early else "to": port}
    return Cells.model_validate({"fate": "dropped", "rule": rule, "lost_cells": lost, "cells": cells, **end}).comment


def _joined(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due) -> Iterator[pl.DataFrame]:
    copies, fates = walked.copies, walked.fates
    records = pdus.numbers("row")
    own = _kind(walked) == JOIN
    arrival = walked.times("arrival")
    low, high = stamp(arrival.low), stamp(arrival.high)
    missing = owed.must_join & (walked.fate == NO_COPY) & (high <= _end(wire)) & (copies.to < services_port(segment))
    yield at_records(pdus.name, "fate", missing, records[copies.pdu], of(missing, "joined to the PDU before"),
                     of(missing, "none of record {}", records[copies.pdu] + 1))  # fmt: skip
    which = np.flatnonzero(own)
    record = fates.record[walked.fate[which]]
    strange = ~(owed.must_join | owed.may_join)[which]
    yield at_records(pdus.name, "fate", strange, records[record],
                     of(strange, "none: the PDU before lost no last cell"), of(strange, "joined to it"))  # fmt: skip
    seen = pdus.time_ns[record]
    wrong = ~strange & ((seen < low[which]) | (seen > high[which]))
    yield at_records(pdus.name, "time of a fate", wrong, records[record],
                     of(wrong, "{} to {} ns", low[which], high[which]), of(wrong, "{} ns", seen))  # fmt: skip


def _by_chance(segment: Atm, pdus: Pdus, walked: Walk, owed: Due) -> Iterator[pl.DataFrame]:
    """Of fates that chance explains: a fault that is there, or a queue that may have been full, and the time."""
    copies, fates = walked.copies, walked.fates
    which = np.flatnonzero(owed.chance)
    if not len(which):
        return
    fate = walked.fate[which]
    record, records = fates.record[fate], pdus.numbers("row")
    comment = pdus.table["comment"].to_numpy()[record]
    waiting, surely = walked.by_copy("most_waiting")[which], walked.by_copy("lost")[which]
    some = copies.take(which)
    reasons = walked.by_copy("reasons")[which]
    cases = zip(some.sender.tolist(), some.to.tolist(), waiting.tolist(), fate.tolist(), strict=True)
    allowed = np.array([_allowed(segment, fates, *case) for case in cases], np.bool_)
    # What arithmetic discards may be the first that is lost.
    number = [QUEUE_WORDS.get(each, PASSED) for each in fates.reason[fate].tolist()]
    allowed |= (reasons[np.arange(len(which)), number] > 0) & (np.array(number) != PASSED)
    yield at_records(pdus.name, "fate", ~allowed, records[record],
                     of(~allowed, "what this segment's lines and queues do"), of(~allowed, "{}", comment))  # fmt: skip
    least = np.where(owed.lost[which] < surely, surely, 0)
    fewer = walked.by_copy("known")[which] & (fates.kind[fate] == LOST) & (least > 0)
    yield at_records(pdus.name, "cells lost", fewer, records[record],
                     of(fewer, "at least {}", least), of(fewer, "{}", comment))  # fmt: skip
    in_switch = some.joins.low - segment.cell_latency * NS
    train = some.length
    arrival = walked.times("arrival").take(which)
    behind = fates.towards[fate]
    queued = np.isin(fates.reason[fate], list(QUEUE_WORDS)) & (fates.kind[fate] == LOST)
    # A line in front of the switch loses a cell where that has come, one behind it where it leaves.
    line = np.array([sum(line_to(segment, number)) for number in range(len(segment.ports) + 1)])[some.to]
    low = np.where(behind, np.where(queued, some.joins.low, walked.by_copy("first_arrival")[which] - line), in_switch)
    high = np.where(behind, np.where(queued, some.joins.high + train + segment.cdv * NS, arrival.high - line),
                    some.joins.high - segment.cell_latency * NS + train)  # fmt: skip
    damaged = fates.kind[fate] == CRC
    low, high = np.where(damaged, arrival.low, low), np.where(damaged, arrival.high, high)
    low, high, seen = stamp(low), stamp(high), pdus.time_ns[record]
    wrong = allowed & ((seen < low) | (seen > high))
    yield at_records(pdus.name, "time of a fate", wrong, records[record],
                     of(wrong, "{} to {} ns", low, high), of(wrong, "{} ns", seen))  # fmt: skip
    octets = pdus.octets.take(record[damaged])
    right = crc_32(octets) == octets.number(octets.length - 4, 4)
    yield at_records(
        pdus.name, "CRC-32 of a fate", right, records[record[damaged]], of(right, "wrong"), of(right, "right")
    )


def _allowed(segment: Atm, fates: Fates, sender: int, to: int, waiting: int, own: int) -> bool:
    """Whether a fate may be that of a PDU from `sender`, whose cells may have found so many `waiting`."""
    inward, outward = _faults(segment, sender), _faults(segment, to, "to")
    reason, towards = str(fates.reason[own]), bool(fates.towards[own])
    if fates.kind[own] == CRC:
        return bool(inward.payload_bit or outward.payload_bit)
    line = outward if towards else inward
    if reason == CELL_LOSS:
        return bool(line.cell_loss or line.gemodel)
    if reason == HEADER_ERROR:
        return bool(line.header_bit)
    number = QUEUE_WORDS[reason]
    if number == POLICED:
        contract = segment.contracts.get(segment.ports[sender]) if sender < len(segment.ports) else None
        return not towards and contract is not None and contract.action == "drop"
    queue = segment.queue
    if number in (EARLY, PARTIAL) and towards and faulty(inward):
        # Where the last cell of a PDU that was discarded is lost on its way, the next one is taken for its rest.
        return queue.early_cells is not None if number == EARLY else queue.discard != "tail"
    if number == PARTIAL:
        return False
    room = {EARLY: queue.early_cells, CLP_1: queue.clp1_above, VC_FULL: queue.vc_cells, QUEUE_FULL: queue.cells}[number]
    return towards and room is not None and waiting >= room


def _faults(segment: Atm, number: int, way: str = "from") -> Faults:
    return segment.faults(f"{way} {segment.ports[number]}") if number < len(segment.ports) else Faults()


def _shares(segment: Atm, walked: Walk) -> Iterator[pl.DataFrame]:
    """As many PDUs with a fate by each fault of each line as are likely."""
    copies, fates = walked.copies, walked.fates
    rows: list[Finding] = []
    has_fate = walked.fate != NO_COPY
    reason = np.where(has_fate, at_fates(fates.reason, walked.fate), "")
    damaged = has_fate & (at_fates(fates.kind, walked.fate) == CRC)
    behind = at_fates(fates.towards, walked.fate).astype(np.bool_)
    by_sender = np.array([_share(_faults(segment, each).payload_bit) for each in range(len(segment.ports) + 1)])
    for number, port in enumerate(segment.ports):
        inward, outward = _faults(segment, number), _faults(segment, number, "to")
        here, there = copies.sender == number, copies.to == number
        whole = (1 - _share(outward.payload_bit)) * (1 - by_sender[copies.sender])
        cases: list[tuple[str, Any, Mask, Mask]] = [(f"wrong CRC towards {port}", 1 - whole, there, damaged)]
        for way, mine, faults in (("from", here, inward), ("towards", there, outward)):
            for words, share in ((CELL_LOSS, _share(faults.cell_loss)), (HEADER_ERROR, _share(faults.header_bit) ** 2)):
                hit = (reason == words) & (behind == (way == "towards"))
                cases.append((f"{words} {way} {port}", np.full(len(copies), share), mine, hit))
        for words, shares, mine, hit in cases:
            # Where another fault came first, it has that fate; and that is likelier the longer a PDU is.
            seen, alone = int((mine & hit).sum()), mine & (~has_fate | hit)
            for which, fewer in ((mine, False), (alone, True)):
                likely = float((1 - (1 - shares[which]) ** copies.cells[which]).mean()) if which.any() else 0.0
                if likely and hardly(seen, int(which.sum()), likely, fewer=fewer):
                    rows.append(Finding(None, words, f"{100 * likely:.4g} % of {int(which.sum())} PDUs", f"{seen}"))
    yield as_table(rows[:MOST])


def at_fates(column: NDArray[Any], fate: Numbers) -> NDArray[Any]:
    """Of the fates of copies; where there is none, whatever comes first."""
    return np.asarray(column[np.maximum(fate, 0)] if len(column) else np.zeros(len(fate), column.dtype))


def _share(share: Decimal | None) -> float:
    return float(share or 0)


def _kind(walked: Walk) -> Numbers:
    return np.where(walked.fate != NO_COPY, at_fates(walked.fates.kind, walked.fate), -1)


def _end(wire: Wire) -> int:
    return _NEVER if wire.end_ns is None else wire.end_ns

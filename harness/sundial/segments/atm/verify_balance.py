# SPDX-License-Identifier: Apache-2.0
"""What the fabric counted of an ATM segment, against its captures: by port, and by virtual channel.

On each channel, cells that came into the switch went out or were dropped for a reason; a copy for each port counts by
itself where they go out.
"""

from __future__ import annotations

import numpy as np

from sundial.expect.atm import LANE
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import TO_EVERY_PORT
from sundial.segments.atm.verify_fates import CELL_LOSS, CRC, HEADER_ERROR, JOIN, LOST, NO_COPY, SERVICES
from sundial.segments.atm.verify_lane_ignored import ignored
from sundial.segments.atm.verify_lines import stamp
from sundial.segments.atm.verify_losses import at_fates
from sundial.segments.atm.verify_pdus import Pdus
from sundial.segments.atm.verify_queue import PASSED, WORDS
from sundial.segments.atm.verify_times import Due, Walk, faulty
from sundial.verify.chance import hardly
from sundial.verify.law import Bounds
from sundial.verify.wire import Mask, Numbers, Wire

_NEVER = 1 << 62
Counted = dict[tuple[str, str], Bounds]


def port_counts(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due) -> Counted:
    """Own counters of each port. What was under way when the run ended may be counted or not."""
    counted: Counted = {}
    copies = walked.copies
    end_ns = _NEVER if wire.end_ns is None else wire.end_ns
    arrival, kind = walked.times("arrival"), _kinds(walked)
    done, begun = stamp(arrival.high) <= end_ns, stamp(walked.by_copy("first_arrival")) <= end_ns
    came = copies.cells - owed.lost
    last_lost = walked.by_copy("last_lost")
    bad = (kind == JOIN) | (kind == CRC) | (~owed.chance & (owed.lost > 0) & ~last_lost & ~owed.arrives)
    perhaps = bad | (owed.chance & (kind == LOST) & (came > 0))
    over = ignored(segment, wire, pdus) if segment.encapsulation == LANE else []
    for number, port in enumerate(segment.ports):
        sent = walked.sent[number]
        left, started = stamp(sent.end.high) <= end_ns, pdus.time_ns[sent.place] <= end_ns
        mine = copies.to == number
        counted[port, "tx_cells"] = _sum(sent.cells, left, started)
        counted[port, "tx_pdus"] = _sum(np.ones_like(sent.cells), left, started)
        most = _sum(came, mine & done, mine & begun)
        counted[port, "rx_cells"] = most[0] - int(owed.lacks[mine & done].sum()), most[1]
        counted[port, "rx_pdus"] = _sum(np.ones_like(came), mine & done & owed.arrives, mine & begun & owed.arrives)
        counted[port, "bad_pdus"] = _sum(np.ones_like(came), mine & done & bad, mine & begun & perhaps)
        counted[port, "cells_tagged"] = _tagged(segment, walked, number, bool(left.all()))
        if segment.encapsulation == LANE:
            counted[port, "lane_ignored_sdus"] = over[number]
        counted[port, "cells_corrected"] = _corrected(segment, port, int(sent.cells.sum()), int(came[mine].sum()))
    return counted


def _sum(numbers: Numbers, least: Mask, most: Mask) -> Bounds:
    return int(numbers[least].sum()), int(numbers[least | most].sum())


def _tagged(segment: Atm, walked: Walk, number: int, whole: bool) -> Bounds:
    """Cells that the contract of a port made CLP 1; of a line that loses cells, which come is not known."""
    count, port = int(walked.tagged[number]), segment.ports[number]
    if port not in segment.contracts or segment.contracts[port].action == "drop":
        return 0, 0
    if faulty(segment.faults(f"from {port}")):
        return 0, int(walked.sent[number].cells.sum())
    return (count if whole else 0), count


def _kinds(walked: Walk) -> Numbers:
    return np.where(walked.fate != NO_COPY, at_fates(walked.fates.kind, walked.fate), -1)


def _corrected(segment: Atm, port: str, sent: int, came: int) -> Bounds:
    """Header bits that HEC set right, on the lines of a port: what a share makes likely."""
    shares = [float(segment.faults(f"{way} {port}").header_bit or 0) for way in ("from", "to")]
    if not any(shares):
        return 0, 0
    tried = sent + came
    likely = (sent * shares[0] + came * shares[1]) / max(tried, 1)
    fewest = next((each for each in range(tried + 1) if not hardly(each, tried, likely, fewer=True)), 0)
    most = next((each for each in range(tried, -1, -1) if not hardly(each, tried, likely, fewer=False)), tried)
    return fewest, most


def channel_counts(segment: Atm, wire: Wire, walked: Walk, owed: Due) -> Counted:
    """By channel of a port of the switch (`client:eth0 0.65`) and counter, a dropped cell's is `dropped REASON`."""
    copies, known = walked.copies, walked.by_copy("known")
    end_ns = _NEVER if wire.end_ns is None else wire.end_ns
    last = copies.length
    into = stamp(copies.joins.high + last) <= end_ns
    out = stamp(walked.times("arrival").high) <= end_ns
    kind = _kinds(walked)
    reason = np.where(kind == LOST, at_fates(walked.fates.reason, walked.fate), "")
    behind = at_fates(walked.fates.towards, walked.fate).astype(np.bool_)
    before = owed.chance & ~behind & np.isin(reason, (CELL_LOSS, HEADER_ERROR))
    unsure = owed.chance & (before | ~known)
    # Of a PDU that a line struck on its way in, it is not known which of its cells came.
    missing = np.where(unsure, owed.lost, 0) + owed.lacks
    reasons = walked.by_copy("reasons")
    names = np.array([*segment.ports, SERVICES])
    counted: Counted = {}
    first = ~np.isin(copies.sent_vci, TO_EVERY_PORT) | (copies.to == 0)
    for sender, vci in np.unique(np.stack([copies.sender, copies.sent_vci]), axis=1).T.tolist():
        own = (copies.sender == sender) & (copies.sent_vci == vci)
        channel = f"{names[sender]} 0.{vci}"
        once = own & first
        came = copies.cells[once]
        counted[channel, "cells_in"] = (
            int((came - missing[once])[into[once]].sum()),
            int((came - before[once]).sum()),
        )
        gone = copies.cells[own] - reasons[own].sum(axis=1) + reasons[own][:, PASSED]
        counted[channel, "cells_out"] = (
            int((gone - missing[own])[out[own]].sum()),
            int((gone - before[own]).sum()),
        )
        for number, words in enumerate(WORDS):
            if number != PASSED:
                sure = reasons[own & ~unsure & into][:, number].sum()
                most = reasons[own & ~unsure][:, number].sum() + missing[own].sum()
                counted[channel, f"dropped {words}"] = (int(sure), int(most))
    return counted

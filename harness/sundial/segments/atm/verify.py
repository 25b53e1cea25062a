# SPDX-License-Identifier: Apache-2.0
"""Full duplex: only what a port itself sends takes the line in front of it; and where, when and as what each frame's
cells travel. The captures of PDUs and of cells are checked against the standards, the topology and the frames."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from sundial.expect.atm import BRIDGED, BRIDGED_FCS, LANE, ROUTED
from sundial.expect.ip import ETHERNET_HEADER
from sundial.observe.headers import ARP
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_balance import channel_counts, port_counts
from sundial.segments.atm.verify_cells import check_cells, read_cells
from sundial.segments.atm.verify_channels import NOWHERE, destinations
from sundial.segments.atm.verify_clip import check_clip
from sundial.segments.atm.verify_fates import SERVICES, check_words
from sundial.segments.atm.verify_frames import check_frames
from sundial.segments.atm.verify_handed import check_behind, check_handed_in, held_back
from sundial.segments.atm.verify_lane import check_lane, lec_ids, problem_findings
from sundial.segments.atm.verify_lines import NS, check_line
from sundial.segments.atm.verify_losses import check_losses
from sundial.segments.atm.verify_pdus import (
    Pdus,
    at_records,
    check_encapsulation,
    check_form,
    check_stamps,
    of,
    read_pdus,
)
from sundial.segments.atm.verify_rings import RECORDS, ring_counts
from sundial.segments.atm.verify_times import check_arrivals, due, late, walk
from sundial.verify.contention import Contention, contention_of
from sundial.verify.frames import OUTBOUND
from sundial.verify.law import Law, check_fates, merged
from sundial.verify.learning import Behind
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import Passages, Wire

UNPROVEN = (
    "atm: when a machine handed a frame to its adapter, and how long it waited for its line",
    "atm: the order of two cells that join a queue within the fraction of a ns that the stamps of PDUs leave open",
    "atm: which cells of a PDU arrived that a line damaged on its way to the switch; queues behind it have bounds",
    "atm: cell delay variation within its bounds; of what a queue then discards only that it may have had no room",
    "atm: which cells a line loses or damages, only their share; and the header bits that HEC corrected",
    "atm: the cells themselves where they are not captured, or after `cells_most` of them",
    "atm: the order of slots of SONET, and its overhead, which are not modelled: an idle line begins at once",
)


class _Atm(SegmentVerifier[Atm]):
    def contention(self, segment: Atm, port: str, frames: pl.DataFrame) -> Contention | None:
        sent = frames.filter(pl.col("fate").is_null(), pl.col("direction") == OUTBOUND, pl.col("interface") == port)
        cell_time = segment.spacing_units(port)
        taken = []
        for at, length, at_a_port in sent.select("time_ns", "frame_length", "at_a_port").iter_rows():
            cells = segment.packet_cells(length - ETHERNET_HEADER) or 0
            if segment.encapsulation in (BRIDGED, BRIDGED_FCS) and not at_a_port:
                # A PDU to every other port.
                cells *= len(segment.ports) - 1
            taken.append((at, at + -(-cells * cell_time // NS)))
        return contention_of(taken)

    def receives_all(self, segment: Atm) -> bool:
        return False

    def check_offered(self, segment: Atm, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
        return check_handed_in(segment, wire, port, handed_in)

    def check_behind(self, segment: Atm, wire: Wire, port: str, behind: Behind) -> list[pl.DataFrame]:
        resolved = segment.encapsulation == LANE and segment.lan_emulation.resolution == "le_arp"
        return (
            [problem_findings(pdus, [problem]) for pdus, problem in check_behind(segment, wire, port, behind)]
            if resolved
            else []
        )

    def orders_pairs(self, segment: Atm) -> bool:
        # A broadcast by the BUS overtakes frames that wait for a channel.
        return segment.encapsulation == LANE

    def own_types(self, segment: Atm) -> Collection[int]:
        return (ARP,) if segment.encapsulation == ROUTED else ()

    def own_stations(self, segment: Atm) -> Collection[str]:
        return (SERVICES,) if segment.encapsulation == LANE else ()

    def held_back(self, segment: Atm, wire: Wire) -> pl.DataFrame:
        resolved = segment.encapsulation == LANE and segment.lan_emulation.resolution == "le_arp"
        return held_back(segment, wire) if resolved else super().held_back(segment, wire)

    def further_captures(self, segment: Atm) -> Sequence[str]:
        return ["pdus", "cells"] if segment.capture.cells else ["pdus"]

    def check_times(self, segment: Atm, wire: Wire) -> Law | None:
        pdus = read_pdus(segment, wire)
        known = lec_ids(segment, wire, pdus) if segment.encapsulation == LANE else None
        walked = walk(segment, pdus, keep_cells=segment.capture.cells)
        owed = due(segment, walked)
        found = [
            check_fates(wire, segment, RECORDS),
            *check_form(pdus),
            check_stamps(pdus.name, pdus.table, wire.epoch_ns),
            *check_encapsulation(segment, pdus, known),
            *(check_line(segment, pdus, number, sent) for number, sent in enumerate(walked.sent)),
            _check_channels(segment, pdus),
            *check_frames(segment, wire, pdus, walked, known),
            *check_words(pdus, walked.fates),
            *check_arrivals(segment, wire, pdus, walked, owed),
            *check_losses(segment, wire, pdus, walked, owed),
        ]
        if segment.encapsulation == LANE:
            found += check_lane(segment, wire, pdus)
        elif segment.encapsulation == ROUTED:
            found += check_clip(segment, wire)
        if segment.capture.cells:
            found += check_cells(segment, wire, pdus, walked, owed, read_cells(segment, wire))
        counted, cut, rings = ring_counts(segment, wire, pdus, walked, late(segment, wire, walked, owed))
        counted |= port_counts(segment, wire, pdus, walked, owed)
        return Law(merged([*found, *rings]), counted, cut, channel_counts(segment, wire, walked, owed))


def _check_channels(segment: Atm, pdus: Pdus) -> pl.DataFrame:
    """A port sends on no channel that there is not."""
    sent = (pdus.direction == OUTBOUND) & ~pdus.fate
    nowhere = sent.copy()
    nowhere[sent] = destinations(segment, pdus.port[sent], pdus.vci[sent]) == NOWHERE
    return at_records(pdus.name, "VCI", nowhere, pdus.numbers("row"),
                      of(nowhere, "of a channel from its port"), of(nowhere, "{}", pdus.vci))  # fmt: skip


KIND: SegmentVerifier[Atm] = _Atm()

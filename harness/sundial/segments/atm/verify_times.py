# SPDX-License-Identifier: Apache-2.0
"""The law of time of an ATM segment: when each PDU must arrive, from when each has left.

A cell is in the switch when its last bit is; `cell_latency` later it joins the queue of its output, leaves it as
`verify_queue` says, and arrives when its last bit has come down the line. A PDU arrives with its last cell, and the
frame in it `rx_latency` later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sundial.expect.atm import CELL_OCTETS, CELL_PAYLOAD, LANE, cell_time_units
from sundial.segments.atm.model import Atm
from sundial.segments.atm.model_parts import Faults
from sundial.segments.atm.verify_channels import (
    NOWHERE,
    arriving_vci,
    destinations,
    services_port,
)
from sundial.segments.atm.verify_fates import CRC, JOIN, LOST, NO_COPY, Fates, assigned, read_fates
from sundial.segments.atm.verify_lines import NS, Sent, Times, sent_by, stamp
from sundial.segments.atm.verify_output import Copies, Outcome, Policing, all_copies, outcome
from sundial.segments.atm.verify_pdus import Pdus, at_records, of
from sundial.segments.atm.verify_queue import conforming
from sundial.segments.atm.verify_services import sent_by_services
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.wire import MOST, Mask, Numbers, Wire

_NEVER = 1 << 62
UNKNOWN_CLP = -1


@dataclass(frozen=True)
class Walk:
    """All PDUs of a capture on their way: `outcomes` by port, the services' last, of the copies at `places`."""

    sent: list[Sent]
    copies: Copies
    fates: Fates
    fate: Numbers
    """Of each copy: which of the fates is its own, or NO_COPY."""
    places: list[Numbers]
    outcomes: list[Outcome]
    completed: Mask
    """Copies without a fate that may lack cells: those of the PDU before on the channel stand in for them."""
    clp: Numbers
    """Of the first cell of each copy, as it leaves the switch."""
    tagged: Numbers
    """Cells from each port that its contract made CLP 1."""

    def by_copy(self, name: str) -> Numbers:
        """A column of all outcomes."""
        first = getattr(self.outcomes[0], name)
        column = np.zeros((len(self.copies), *first.shape[1:]), first.dtype)
        for place, each in zip(self.places, self.outcomes, strict=True):
            column[place] = getattr(each, name)
        return column

    def times(self, name: str) -> Times:
        """Instants of all outcomes."""
        columns = np.zeros((3, len(self.copies)), np.int64)
        for place, each in zip(self.places, self.outcomes, strict=True):
            for column, part in zip(columns, ("likely", "low", "high"), strict=True):
                column[place] = getattr(getattr(each, name), part)
        return Times(*columns)


def walk(segment: Atm, pdus: Pdus, *, keep_cells: bool) -> Walk:
    """From every port's stamps of what it sent to every port's arrivals."""
    whole = _whole(segment, pdus)
    sent = [sent_by(segment, pdus, number, whole) for number in range(len(segment.ports))]
    fates = read_fates(segment, pdus)
    parts = [_copies(segment, number, each) for number, each in enumerate(sent)]
    policed = _Policed(segment, sent)
    service = services_port(segment)
    copies = all_copies(parts)
    done: list[Outcome] = []
    if segment.encapsulation == LANE:
        first = assigned(segment, fates, pdus, copies)
        completed = _completed(segment, pdus, copies, first)
        there = np.flatnonzero(copies.to == service)
        at_services = _to(segment, copies, there, policed, first, completed, service, keep_cells=False)
        lost = np.isin(there, first.copy) | (at_services.lost > 0) & ~completed[there]
        own = sent_by_services(segment, pdus, copies, there[~lost], at_services.arrival.take(~lost))
        copies = all_copies([copies, own])
        done = [at_services]
    fates = assigned(segment, fates, pdus, copies)
    completed = _completed(segment, pdus, copies, fates)
    places = [np.flatnonzero(copies.to == number) for number in range(len(segment.ports))]
    outcomes = [
        _to(segment, copies, place, policed, fates, completed, number, keep_cells=keep_cells)
        for number, place in enumerate(places)
    ]
    if done:
        places.append(np.flatnonzero(copies.to == service))
    fate = np.full(len(copies), NO_COPY)
    known = fates.copy != NO_COPY
    fate[fates.copy[known]] = np.flatnonzero(known)
    clp = policed.first(copies)
    return Walk(sent, copies, fates, fate, places, outcomes + done, completed, clp, policed.count())


def _completed(segment: Atm, pdus: Pdus, copies: Copies, fates: Fates) -> Mask:
    """Copies without a fate behind one that lost cells, but not all, and began with the same octets. If that lost its
    last cell, the others may be the beginning of this one: where a line or a queue took that of its own, it is whole
    for all that."""
    lost, whole = np.zeros(len(copies), np.int64), np.ones(len(copies), np.bool_)
    known = fates.copy != NO_COPY
    whole[fates.copy[known]] = False
    some = known & (fates.kind == LOST)
    lost[fates.copy[some]] = fates.lost[some]
    found = np.zeros(len(copies), np.bool_)
    order, before, same = _neighbours(copies, lost < copies.cells)
    head = pdus.sent.heads(CELL_PAYLOAD).hashes()[copies.pdu]
    found[order] = same & whole[order] & (lost[before] > 0) & (head[order] == head[before])
    return found


def _neighbours(copies: Copies, among: Mask) -> tuple[Numbers, Numbers, Mask]:
    """Some copies in the order of their channels, the place of the one before each, and whether it is of the same."""
    order = np.lexsort((copies.joins.likely, copies.sender, copies.vci, copies.to))
    order = order[among[order]]
    before = np.append(0, order[:-1])[: len(order)]
    same = np.append(False, np.ones(len(order), np.bool_))[: len(order)]
    for channel in (copies.to, copies.vci, copies.sender):
        same &= channel[order] == channel[before]
    return order, before, same


def _whole(segment: Atm, pdus: Pdus) -> Mask:
    """PDUs that begin at a whole ns if their line is idle: frames, unless a client may have held them back until an
    answer came, or until C11 or C22 after another one was over."""
    port, out = pdus.port, pdus.direction == OUTBOUND
    if segment.encapsulation != LANE:
        return np.asarray(out)
    table = pl.DataFrame({"port": port, "vci": pdus.vci, "control": pdus.control, "out": out})
    number = pl.int_range(pl.len())
    table = table.with_columns(
        answer=pl.when("control").then(number).forward_fill().over("port"),
        before=pl.when(pl.col("out") & ~pl.col("control")).then(number).forward_fill().shift().over("port", "vci"),
    )
    held = table.select((pl.col("answer") > pl.col("before").fill_null(-1)).fill_null(False)).to_series().to_numpy()
    timed = np.zeros(len(port), np.bool_)
    lane = segment.lan_emulation
    for each in range(len(segment.ports)):
        own = np.flatnonzero((port == each) & out & ~pdus.control)
        at = pdus.time_ns[own]
        for span_ns in (lane.unknown_frame_time, lane.path_switching_delay):
            begun = np.searchsorted(at, at - span_ns - 1)
            timed[own] |= (begun < len(at)) & (at[np.minimum(begun, len(at) - 1)] <= at - span_ns + 1)
    return np.asarray(out & ~pdus.control & ~held & ~timed)


def _copies(segment: Atm, number: int, sent: Sent) -> Copies:
    """What a port sent, without what is on no channel."""
    sender = np.full(len(sent), number)
    to = destinations(segment, sender, sent.vci)
    propagation = segment.by_port(segment.propagation)[number]
    joins = sent.start + (sent.cell_time + (propagation + segment.cell_latency) * NS)
    copies = Copies(
        sent.place, sender, to, sent.vci, arriving_vci(segment, sender, sent.vci), sent.cells,
        np.full(len(sent), sent.spacing), sent.start, joins,
        np.cumsum(sent.cells) - sent.cells if len(sent.delays) else np.full(len(sent), -1), sent.delays,
    )  # fmt: skip
    return copies.take(to != NOWHERE)


class _Policed:
    """What contracts do to the cells of copies: each channel of a port that has one is policed by itself."""

    def __init__(self, segment: Atm, sent: list[Sent]) -> None:
        self.begin: dict[int, Numbers] = {}
        self.unknown: dict[int, str] = {}
        """Ports whose lines lose cells: which of the others conform is not known. What happens to those that do not."""
        dropped, tagged, count = [np.zeros(0, np.bool_)], [np.zeros(0, np.bool_)], 0
        for number, (port, each) in enumerate(zip(segment.ports, sent, strict=True)):
            contract = segment.contracts.get(port)
            if contract is None:
                continue
            if faulty(segment.faults(f"from {port}")):
                self.unknown[number] = contract.action
                continue
            behind = np.cumsum(each.cells) - each.cells
            at = np.repeat(each.start.likely, each.cells) + each.offsets
            channel = np.repeat(each.vci, each.cells)
            wrong = np.zeros(len(at), np.bool_)
            increment = cell_time_units(contract.rate, CELL_OCTETS)
            for vci in np.unique(each.vci):
                own = np.flatnonzero(channel == vci)
                wrong[own] = ~conforming(at[own], increment, contract.tolerance * NS)
            self.begin[number] = count + behind
            count += len(at)
            drops = contract.action == "drop"
            dropped.append(wrong & drops)
            tagged.append(wrong & (not drops))
        self.sent = sent
        self.dropped, self.tagged = np.concatenate(dropped), np.concatenate(tagged)

    def of(self, copies: Copies) -> Policing:
        """Where the cells of each copy begin among those that were policed."""
        begin = np.full(len(copies), -1)
        for number, own in self.begin.items():
            mine = np.flatnonzero(copies.sender == number)
            begin[mine] = own[np.searchsorted(self.sent[number].place, copies.pdu[mine])]
        return Policing(begin, self.dropped, self.tagged)

    def first(self, copies: Copies) -> Numbers:
        """Whether the first cell of each copy was tagged; UNKNOWN_CLP: perhaps."""
        begin = self.of(copies).begin
        found = np.zeros(len(copies), np.int64)
        found[np.isin(copies.sender, [port for port, action in self.unknown.items() if action == "tag"])] = UNKNOWN_CLP
        found[begin >= 0] = self.tagged[begin[begin >= 0]]
        return found

    def count(self) -> Numbers:
        """Cells from each port that were tagged."""
        found = np.zeros(len(self.sent), np.int64)
        for number, begin in self.begin.items():
            if len(begin):
                end = int(begin[-1] + self.sent[number].cells[-1])
                found[number] = self.tagged[int(begin[0]) : end].sum()
        return found


def line_to(segment: Atm, number: int) -> tuple[int, int]:
    """A cell's time and the propagation on the line to a port, or to the services."""
    if number == services_port(segment):
        return segment.lan_emulation.service_line.cell_time_units, 0
    return segment.cell_time_units(segment.ports[number]), segment.by_port(segment.propagation)[number] * NS


def _to(
    segment: Atm,
    copies: Copies,
    place: Numbers,
    policed: _Policed,
    fates: Fates,
    completed: Mask,
    number: int,
    *,
    keep_cells: bool,
) -> Outcome:
    own = copies.take(place)
    unsure = completed & _by_port(segment, "from")[copies.sender]
    fated = unsure.copy()
    fated[fates.copy[fates.copy != NO_COPY]] = True
    unsure[fates.copy[fates.random & ~fates.towards & (fates.copy != NO_COPY)]] = True
    for sender, action in policed.unknown.items():
        if action == "drop" or segment.queue.clp1_above is not None:
            unsure |= copies.sender == sender
    return outcome(
        own,
        policed.of(own),
        segment.queue,
        line_to(segment, number),
        latency=segment.cell_latency * NS,
        cdv=segment.cdv * NS,
        unsure=unsure[place],
        fated=fated[place],
        keep_cells=keep_cells,
    )


# ---- What must arrive ----


@dataclass(frozen=True)
class Due:
    """Of each copy: what the capture must show of it."""

    arrives: Mask
    """It is whole, and handed on."""
    chance: Mask
    """It has a fate that no arithmetic foretells; how many cells it lost is what that says."""
    must_join: Mask
    """It is whole, and behind a PDU whose last cell was lost."""
    may_join: Mask
    """It is whole, and behind a PDU that may have lost its last cell."""
    lost: Numbers
    """Cells, by arithmetic or by chance."""
    lacks: Numbers
    """Cells that may be lost beside those: others stand in for them."""


def due(segment: Atm, walked: Walk) -> Due:
    """From the outcomes, and the fates that chance explains."""
    copies, fates = walked.copies, walked.fates
    fated = walked.fate != NO_COPY
    known = walked.by_copy("known")
    faulty = _by_port(segment, "to")
    kind = np.where(fated, _of(fates.kind, walked.fate), -1)
    random = fated & _of(fates.random, walked.fate).astype(bool)
    chance = fated & (kind != JOIN) & (random | ~known | faulty[copies.to])
    lost = np.where(chance, np.where(kind == LOST, _of(fates.lost, walked.fate), 0), walked.by_copy("lost"))
    order, before, same = _neighbours(copies, lost < copies.cells)
    whole = (lost[order] == 0) & (kind[order] != CRC)
    must, may = np.zeros((2, len(copies)), np.bool_)
    must[order] = whole & same & ~chance[before] & walked.by_copy("last_lost")[before]
    may[order] = whole & same & chance[before] & (lost[before] > 0)
    # Which of two came first the stamps need not tell.
    either = same & (copies.joins.low[order] < copies.joins.high[before]) & chance[order] & (lost[order] > 0)
    may[before[either & (lost[before] == 0) & (kind[before] != CRC)]] = True
    struck = walked.completed & (faulty[copies.to] | _by_port(segment, "from")[copies.sender])
    must &= ~struck
    joined_ = must | (may & (kind == JOIN))
    lacks = np.where(struck, copies.cells - 1 - lost, 0)
    return Due(((lost == 0) | walked.completed) & ~chance & ~joined_, chance, must, may, lost, lacks)


def _of(column: Numbers | Mask, place: Numbers) -> Numbers:
    """Values at places, of which some are none."""
    return np.asarray(column[place] if len(column) else np.zeros(len(place), column.dtype))


def _by_port(segment: Atm, way: str) -> Mask:
    """Whether the line `from` or `to` each port, and then the services, loses or damages cells."""
    return np.array([*(faulty(segment.faults(f"{way} {port}")) for port in segment.ports), False])


def faulty(faults: Faults) -> bool:
    """Whether any."""
    return any(getattr(faults, name) for name in type(faults).model_fields)


def late(segment: Atm, wire: Wire, walked: Walk, owed: Due) -> Numbers:
    """By port: PDUs that may come, and their frames be handed on, after the end of the run."""
    end_ns = _NEVER if wire.end_ns is None else wire.end_ns
    latency = np.array([*segment.by_port(segment.rx_latency), 0])
    due_ns = stamp(walked.times("arrival").high) + latency[walked.copies.to]
    return np.bincount(walked.copies.to[owed.arrives & (due_ns > end_ns)], minlength=len(segment.ports) + 1)


def check_arrivals(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due) -> list[pl.DataFrame]:
    """Each PDU that must arrive does, at its instant and on its channel, and no other."""
    copies, arrival = walked.copies, walked.times("arrival")
    content = pdus.content[copies.pdu]
    expected = np.flatnonzero(owed.arrives & (copies.to < len(segment.ports)))
    seen = np.flatnonzero(pdus.direction == INBOUND)
    low, high = stamp(arrival.low[expected]), stamp(arrival.high[expected])
    one = pl.DataFrame(
        {"to": copies.to[expected], "vci": copies.vci[expected], "content": content[expected], "low": low, "high": high,
         "sent": pdus.numbers("row")[copies.pdu[expected]], "clp": walked.clp[expected]}
    ).sort("low", maintain_order=True)  # fmt: skip
    other = pl.DataFrame(
        {"to": pdus.port[seen], "vci": pdus.vci[seen], "content": pdus.content[seen], "at": pdus.time_ns[seen],
         "record": pdus.numbers("row")[seen], "seen_clp": pdus.numbers("clp")[seen]}
    )  # fmt: skip
    key = ["to", "vci", "content"]
    number = pl.int_range(pl.len()).over(key).alias("number")
    end_ns = _NEVER if wire.end_ns is None else wire.end_ns
    table = one.with_columns(number).join(other.with_columns(number), on=[*key, "number"], how="full", coalesce=True)
    wrong = table.filter(
        pl.when(pl.col("at").is_null())
        .then(pl.col("high") <= end_ns)
        .otherwise(pl.col("low").is_null() | ~pl.col("at").is_between("low", "high"))
    ).sort(pl.min_horizontal("low", "at"))
    wrong = wrong.head(MOST).with_columns(port=pl.col("to").replace_strict(dict(enumerate(segment.ports)), default="?"))
    both = table.drop_nulls(["low", "at"])
    priority, due_clp = both["seen_clp"].to_numpy(), both["clp"].to_numpy()
    other_clp = (priority != due_clp) & (due_clp != UNKNOWN_CLP)
    return [
        as_table(_arrival(pdus.name, row) for row in wrong.iter_rows(named=True)),
        at_records(pdus.name, "CLP", other_clp, both["record"].to_numpy(),
                   of(other_clp, "{}", due_clp), of(other_clp, "{}", priority)),
    ]  # fmt: skip


def _arrival(name: str, row: dict[str, Any]) -> Finding:
    expected = "none" if row["low"] is None else f"at {row['low']} ns, of record {row['sent'] + 1}"
    if row["low"] is not None and row["high"] > row["low"]:
        expected = f"at {row['low']} to {row['high']} ns, of record {row['sent'] + 1}"
    seen = "none" if row["at"] is None else f"at {row['at']} ns, record {row['record'] + 1}"
    return Finding(None, f"{name}: arrival at {row['port']} on {row['vci']}", expected, seen)

# SPDX-License-Identifier: Apache-2.0
"""The cells of an ATM segment's own capture: those of each PDU, in order, with its octets, at their instants.

Payload type 1 marks a PDU's last cell alone (ITU-T I.363.5; I.361); what arrives with it, joined to what came before on
its channel, is the PDU. A line carries a cell at a time, so two are never nearer than a cell time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from sundial.errors import BadInput
from sundial.expect.atm import CELL_OCTETS, CELL_PAYLOAD
from sundial.observe.erf import CELL, CELL_HEADER, ERF_HEADER, erf_octets, read_erf
from sundial.observe.octets import Octets
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import services_port
from sundial.segments.atm.verify_fates import CRC, NO_COPY
from sundial.segments.atm.verify_lines import NS, Sent, stamp
from sundial.segments.atm.verify_pdus import FROM_ADAPTER, TO_ADAPTER, Pdus, at_records, check_records, check_stamps, of
from sundial.segments.atm.verify_times import UNKNOWN_CLP, Due, Walk
from sundial.verify.frames import FATE_SUFFIX, INBOUND, OUTBOUND
from sundial.verify.wire import Mask, Numbers, Wire

ENDS = r"^capture ends: records_most (\d+)$"
_NEVER = 1 << 62


@dataclass(frozen=True)
class Seen:
    """The records of a capture of cells. `until_ns`: what comes later is not there."""

    name: str
    table: pl.DataFrame
    octets: Octets
    until_ns: int

    def numbers(self, column: str) -> Numbers:
        """A column as whole numbers."""
        return self.table[column].cast(pl.Int64).to_numpy()

    def take(self, which: Numbers | Mask) -> Seen:
        """Some of them, by place or by mask."""
        return Seen(self.name, self.table.filter(which) if which.dtype == np.bool_ else self.table[which],
                    self.octets.take(which), self.until_ns)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """Cells that a place must show, in order of time. `pdu`: where the octets are, `number`: which cell of them."""

    low_ns: Numbers
    high_ns: Numbers
    pdu: Numbers
    number: Numbers
    vci: Numbers
    last: Mask
    clp: Numbers
    sure: Mask
    """Else it may have been lost."""
    bits: Numbers
    """As many may be wrong."""
    copy: Numbers
    """A number of the PDU on its way."""
    most: Numbers
    """As many cells of that PDU come at the most."""
    ordered: Mask
    """PDUs of its channel come in this order; those of the services in the order in which they had them, which the
    stamps may not tell."""
    known: Mask
    """Else only bounds of its time are."""


def read_cells(segment: Atm, wire: Wire) -> Seen:
    """The capture of cells, and where it ends."""
    name = f"atm/{wire.name}.cells.pcapng"
    assert wire.folder is not None
    path = wire.folder / name
    table = read_erf(path, wire.epoch_ns, [*segment.ports, f"{wire.name}{FATE_SUFFIX}"])
    strange = table.filter(~pl.col("interface").is_in(segment.ports))
    if not strange.is_empty():
        what = f"a cell at {strange['interface'][0]!r}, which is not a port"
        raise BadInput(what, file=str(path), allowed=", ".join(segment.ports))
    most = segment.capture.cells_most
    until_ns = int(table["time_ns"][-1]) if table.height >= most else _NEVER
    return Seen(f"wire/{name}", table, erf_octets(path, table), until_ns)


def check_cells(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, owed: Due, seen: Seen) -> Iterator[pl.DataFrame]:
    """Every field of every record, and none missing."""
    yield from _form(segment, wire, seen)
    ports = seen.table["interface"].replace_strict(segment.ports, list(range(len(segment.ports)))).to_numpy()
    direction = seen.numbers("direction")
    for number, port in enumerate(segment.ports):
        cell_time = segment.cell_time_units(port)
        for way, words in ((OUTBOUND, "from"), (INBOUND, "to")):
            own = seen.take((ports == number) & (direction == way))
            yield _spacing(f"cells {words} {port}", own, cell_time)
            if way == OUTBOUND:
                yield from _against(f"cells from {port}", pdus, _left(walked.sent[number]), own, wire)
            else:
                expected = _arrived(segment, walked, owed, number)
                yield from _against(f"cells to {port}", pdus, expected, own, wire)
                yield _struck(pdus, walked, owed, number, expected, own)
                yield from _joined(port, number, pdus, walked, own)


def _form(segment: Atm, wire: Wire, seen: Seen) -> Iterator[pl.DataFrame]:
    table, records = seen.table, seen.numbers("row")
    yield from check_records(seen.name, table, CELL, np.zeros(table.height, np.bool_))
    yield check_stamps(seen.name, table, wire.epoch_ns)
    flags = np.where(seen.numbers("direction") == INBOUND, TO_ADAPTER, FROM_ADAPTER)
    whole = ERF_HEADER + CELL_HEADER + CELL_PAYLOAD
    for what, column, expected in (
        ("wire length", "wlen", CELL_OCTETS),
        ("record length", "rlen", whole),
        ("length of the block", "original", whole),
        ("payload", "length", CELL_PAYLOAD),
        ("loss counter", "lctr", 0),
        ("ERF flags", "erf_flags", flags),
    ):
        wanted = np.broadcast_to(np.asarray(expected), records.shape)
        wrong = seen.numbers(column) != wanted
        yield at_records(
            seen.name, what, wrong, records, of(wrong, "{}", wanted), of(wrong, "{}", seen.numbers(column))
        )
    most = segment.capture.cells_most
    ends = np.zeros(table.height, np.bool_)
    ends[most - 1 :] = True
    comment = table["comment"].to_numpy()
    expected_words = np.where(ends, np.array(f"capture ends: records_most {most}", object), np.array(None, object))
    wrong = comment != expected_words
    wrong[most:] = True
    yield at_records(seen.name, "comment", wrong, records, of(wrong, "{}", expected_words), of(wrong, "{}", comment))


def _same(seen: Seen, what: str, expected: Numbers, found: Numbers) -> pl.DataFrame:
    wrong = found != expected
    return at_records(seen.name, what, wrong, seen.numbers("row"), of(wrong, "{}", expected), of(wrong, "{}", found))


def _same_payload(seen: Seen, what: str, sent: Octets, pdu: Numbers, number: Numbers, allowed: Numbers) -> pl.DataFrame:
    """Cells against those of PDUs; as many bits may differ as are `allowed`."""
    begin = sent.begin[pdu] + CELL_PAYLOAD * number
    cells = Octets(sent.data, begin, np.full(len(begin), CELL_PAYLOAD))
    wrong = differing_bits(seen.octets, cells) > allowed
    return at_records(seen.name, f"payload of {what}", wrong, seen.numbers("row"),
                      of(wrong, "that of cell {} of a PDU", number), of(wrong, "another"))  # fmt: skip


def _spacing(what: str, own: Seen, cell_time: int) -> pl.DataFrame:
    at = own.numbers("time_ns")
    near = np.append(False, np.diff(at) < cell_time // NS)[: len(at)]
    before = np.append(0, at[:-1])[: len(at)]
    return at_records(own.name, f"{what}, one at a time", near, own.numbers("row"),
                      of(near, "a cell time after {} ns", before), of(near, "at {} ns", at))  # fmt: skip


def _left(sent: Sent) -> Expected:
    """The cells of what a port sent, in order of time."""
    which = np.repeat(np.arange(len(sent)), sent.cells)
    number = np.arange(len(which)) - np.repeat(np.cumsum(sent.cells) - sent.cells, sent.cells)
    at = sent.start.take(which) + sent.offsets
    order = np.argsort(at.likely, kind="stable")
    which, number, at = which[order], number[order], at.take(order)
    nothing = np.zeros(len(which), np.bool_)
    return Expected(
        stamp(at.low), stamp(at.high), sent.place[which], number, sent.vci[which], number == sent.cells[which] - 1,
        nothing.astype(np.int64), ~nothing, nothing.astype(np.int64), which, sent.cells[which], ~nothing, ~nothing,
    )  # fmt: skip


def _arrived(segment: Atm, walked: Walk, owed: Due, number: int) -> Expected:
    """The cells that leave a port's queue; on the line behind it some may be lost."""
    outcome, place = walked.outcomes[number], walked.places[number]
    cells = outcome.cells
    assert cells is not None
    copy = place[cells.copy]
    last = cells.place == walked.copies.cells[copy] - 1
    sure = ~owed.chance[copy] & ((owed.lacks[copy] == 0) | last)
    clp = np.where(walked.clp[copy] == UNKNOWN_CLP, UNKNOWN_CLP, cells.clp)
    # A PDU that is not handed on may have been damaged, too.
    damages = [_damages(segment, each) for each in range(len(segment.ports) + 1)]
    lines = np.array(damages, np.int64)
    most = np.where(owed.chance, walked.copies.cells - owed.lost, walked.copies.cells)[copy]
    bits = np.where(owed.arrives[copy], 0, lines[walked.copies.sender[copy], 0] + lines[number, 1])
    return Expected(
        stamp(cells.arrival.low), stamp(cells.arrival.high), walked.copies.pdu[copy], cells.place,
        walked.copies.vci[copy], last, clp, sure, bits, cells.copy, most,
        walked.copies.sender[copy] != services_port(segment), outcome.known[cells.copy],
    )  # fmt: skip


def _damages(segment: Atm, number: int) -> tuple[int, int]:
    """Bits of a cell that the lines from and to a port may flip."""
    if number == len(segment.ports):
        return 0, 0
    ways = (segment.faults(f"{way} {segment.ports[number]}") for way in ("from", "to"))
    one, other = (int(bool(faults.payload_bit)) for faults in ways)
    return one, other


def _against(what: str, pdus: Pdus, expected: Expected, own: Seen, wire: Wire) -> Iterator[pl.DataFrame]:
    """Cells one by one. On a line no two are at one instant, so that the time tells which is which."""
    at, records = own.numbers("time_ns"), own.numbers("row")
    place, there = _which(expected, own, pdus)
    strange = ~there
    yield at_records(own.name, what, strange, records, of(strange, "none then"), of(strange, "a cell at {} ns", at))
    shown = np.zeros(len(expected.low_ns), np.bool_)
    shown[place[there]] = True
    end_ns = min(own.until_ns, _NEVER if wire.end_ns is None else wire.end_ns)
    missing = ~shown & expected.sure & (expected.high_ns < end_ns)
    due = of(missing, "cell {} at {} ns", expected.number, expected.low_ns)
    yield at_records(pdus.name, what, missing, pdus.numbers("row")[expected.pdu], due, of(missing, "none"))
    own, place = own.take(there), place[there]
    for field, column, value in (("VCI", "vci", expected.vci), ("payload type", "pt", expected.last),
                                 ("CLP", "clp", expected.clp)):  # fmt: skip
        wanted, found = value[place].astype(np.int64), own.numbers(column)
        yield _same(own, f"{field} of {what}", np.where(wanted == UNKNOWN_CLP, found, wanted), found)
    yield _same_payload(own, what, pdus.sent, expected.pdu[place], expected.number[place], expected.bits[place])


def _which(expected: Expected, own: Seen, pdus: Pdus) -> tuple[Numbers, Mask]:
    """The cell that each record is one of, and whether there is one: by its time, and where that is not known to the
    ns, by its place among those of its channel."""
    at = own.numbers("time_ns")
    if not len(expected.low_ns):
        return np.zeros(len(at), np.int64), np.zeros(len(at), np.bool_)
    earliest = np.minimum.accumulate(expected.low_ns[::-1])[::-1]
    # Where bounds meet, the time does not tell which is which.
    meets = np.append(np.maximum.accumulate(expected.high_ns)[:-1] >= earliest[1:], False)
    known = expected.known & ~meets & ~np.append(False, meets[:-1])
    place = np.searchsorted(earliest, at, "right") - 1
    there = (place >= 0) & (at <= expected.high_ns[place])
    there &= np.append(True, place[1:] != place[:-1])[: len(place)]
    loose = np.flatnonzero(~known)
    if len(loose):
        low, high = earliest[loose], np.maximum.accumulate(expected.high_ns[loose])
        within = np.searchsorted(low, at, "right") - 1
        here = np.flatnonzero((within >= 0) & (at <= high[within]) & (~there | ~known[place]))
        place[here], there[here] = _in_order(expected, loose, own.take(here), pdus)
    return np.maximum(place, 0), there


def _in_order(expected: Expected, loose: Numbers, own: Seen, pdus: Pdus) -> tuple[Numbers, Mask]:
    """Each cell is the next of its channel with its octets and its payload type, where those between may be lost, and
    no PDU has more than it can have left."""
    place, there = np.zeros(len(own.octets.begin), np.int64), np.zeros(len(own.octets.begin), np.bool_)
    vci, at, pt = own.numbers("vci"), own.numbers("time_ns"), own.numbers("pt")
    for channel in np.unique(vci).tolist():
        ahead = _Ahead(expected, loose[expected.vci[loose] == channel], pdus.sent)
        for record in np.flatnonzero(vci == channel).tolist():
            cell = ahead.take(int(at[record]), bool(pt[record]), own.octets.frame(record))
            if cell is not None:
                place[record], there[record] = cell, True
    return place, there


class _Ahead:
    """The cells that a channel may still show, PDU behind PDU."""

    def __init__(self, expected: Expected, cells: Numbers, sent: Octets) -> None:
        self.expected, self.sent = expected, sent
        self.waiting: dict[int, list[int]] = {}
        self.left: dict[int, int] = {}
        self.earliest: dict[int, int] = {}
        """When a cell of a PDU, or of one behind it, can come."""
        earliest = np.minimum.accumulate(expected.low_ns[cells][::-1])[::-1]
        for cell, low in zip(cells.tolist(), earliest.tolist(), strict=True):
            if not expected.most[cell]:
                continue
            copy = int(expected.copy[cell])
            self.waiting.setdefault(copy, []).append(cell)
            self.left[copy] = int(expected.most[cell])
            self.earliest.setdefault(copy, low)

    def take(self, at: int, last: bool, octets: bytes) -> int | None:
        """The cell that came then, which is over with it, and so is what can come no more."""
        over: list[int] = []
        took = None
        for copy, cells in self.waiting.items():
            if at < self.earliest[copy]:
                break
            found = next((place for place, cell in enumerate(cells) if self._is(cell, at, last, octets)), None)
            # What must still come is not before this one.
            due = any(self.expected.sure[cell] and at <= self.expected.high_ns[cell] for cell in cells[:found])
            if found is not None and not due:
                took, self.left[copy], self.waiting[copy] = cells[found], self.left[copy] - 1, cells[found + 1 :]
                if not self.left[copy] or not self.waiting[copy]:
                    over.append(copy)
                break
            if due and self.expected.ordered[cells[0]]:
                return None
            if self.expected.ordered[cells[0]] or at > self.expected.high_ns[cells[-1]]:
                over.append(copy)
        if took is not None:
            for copy in over:
                del self.waiting[copy]
        return took

    def _is(self, cell: int, at: int, last: bool, octets: bytes) -> bool:
        expected = self.expected
        if not expected.low_ns[cell] <= at <= expected.high_ns[cell] or last != expected.last[cell]:
            return False
        begin = int(self.sent.begin[expected.pdu[cell]] + CELL_PAYLOAD * expected.number[cell])
        own = int.from_bytes(self.sent.data[begin : begin + CELL_PAYLOAD].tobytes())
        return (own ^ int.from_bytes(octets)).bit_count() <= int(expected.bits[cell])


def _struck(pdus: Pdus, walked: Walk, owed: Due, number: int, expected: Expected, own: Seen) -> pl.DataFrame:
    """Of a PDU that a line struck, as many cells come as its fate leaves."""
    place, there = _which(expected, own, pdus)
    copies = walked.places[number]
    count = np.bincount(expected.copy[place[there]], minlength=len(copies))
    until = np.zeros(len(copies), np.int64)
    np.maximum.at(until, expected.copy, expected.high_ns)
    wanted = walked.copies.cells[copies] - owed.lost[copies]
    wrong = owed.chance[copies] & (count != wanted) & (until < own.until_ns)
    records = pdus.numbers("row")[walked.copies.pdu[copies]]
    return at_records(own.name, "cells of a PDU that lost some", wrong, records,
                      of(wrong, "{}", wanted), of(wrong, "{}", count))  # fmt: skip


def differing_bits(one: Octets, other: Octets) -> Numbers:
    """In how many bits cells differ."""
    found = np.zeros(len(one.begin), np.int64)
    for first in range(0, len(found), 1 << 15):
        some = np.arange(first, min(first + (1 << 15), len(found)))
        different = one.take(some).matrix(0, CELL_PAYLOAD) ^ other.take(some).matrix(0, CELL_PAYLOAD)
        which = np.flatnonzero(different.any(axis=1))
        found[some[which]] = np.unpackbits(different[which], axis=1).sum(axis=1)
    return found


def _joined(port: str, number: int, pdus: Pdus, walked: Walk, own: Seen) -> Iterator[pl.DataFrame]:
    """A PDU is what its cells make: those since the last "last cell" on its channel, with the stamp of its own last. So
    is one with a wrong CRC."""
    arrived = np.flatnonzero((pdus.port == number) & (pdus.direction == INBOUND) & (pdus.time_ns < own.until_ns))
    fates, copies = walked.fates, walked.copies
    damaged = (fates.kind == CRC) & (fates.port == number) & (fates.copy != NO_COPY)
    damaged &= pdus.time_ns[fates.record] < own.until_ns
    channel = np.append(pdus.vci[arrived], copies.vci[fates.copy[damaged]])
    arrived = np.append(arrived, fates.record[damaged])
    vci, at = own.numbers("vci"), own.numbers("time_ns")
    order = np.argsort(vci, kind="stable")
    last = own.numbers("pt")[order] == 1
    group = np.cumsum(last) - last
    cells = pl.DataFrame({"group": group, "vci": vci[order], "at": at[order], "place": order})
    groups = cells.group_by("group", "vci").agg(pl.col("at").last(), pl.len().alias("cells"))
    whole = pl.DataFrame({"vci": channel, "at": pdus.time_ns[arrived], "pdu": arrived})
    pairs = whole.join(groups, on=["vci", "at"], how="left", maintain_order="left")
    records = pdus.numbers("row")[arrived]
    found = pairs["cells"].fill_null(0).to_numpy()
    wrong = found != pdus.cells[arrived]
    yield at_records(pdus.name, f"cells of a PDU to {port}", wrong, records,
                     of(wrong, "{}", pdus.cells[arrived]), of(wrong, "{} by the time of its stamp", found))  # fmt: skip
    right = pairs.filter(~pl.Series(wrong)).select("group", "vci", "pdu")
    both = cells.with_columns(number=pl.int_range(pl.len()).over("group", "vci")).join(right, on=["group", "vci"])
    mine = own.take(both["place"].to_numpy())
    nothing = np.zeros(both.height, np.int64)
    yield _same_payload(
        mine, f"cells to {port}", pdus.octets, both["pdu"].to_numpy(), both["number"].to_numpy(), nothing
    )

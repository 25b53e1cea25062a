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
from sundial.segments.atm.verify_fates import FAULTY_LINES
from sundial.segments.atm.verify_lines import NS, Sent, stamp
from sundial.segments.atm.verify_pdus import FROM_ADAPTER, TO_ADAPTER, Pdus, at_records, check_records, check_stamps, of
from sundial.segments.atm.verify_times import Due, Walk
from sundial.verify.findings import FINDING
from sundial.verify.frames import INBOUND, OUTBOUND
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
    clp: Mask
    sure: Mask
    """Else it may have been lost, or damaged."""


def read_cells(segment: Atm, wire: Wire) -> Seen:
    """The capture of cells, and where it ends."""
    name = f"atm/{wire.name}.cells.pcapng"
    assert wire.folder is not None
    path = wire.folder / name
    table = read_erf(path, wire.epoch_ns)
    strange = table.filter(~pl.col("interface").is_in(segment.ports))
    if not strange.is_empty():
        what = f"a cell at {strange['interface'][0]!r}, which is no port"
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
            if way == OUTBOUND and segment.interleave == "cells":
                yield from _in_turn(port, pdus, walked.sent[number], own)
            elif way == OUTBOUND:
                yield from _against(f"cells from {port}", pdus, _left(walked.sent[number]), own, wire)
            else:
                if walked.outcomes[number].known.all():
                    yield from _against(f"cells to {port}", pdus, _arrived(walked, owed, number), own, wire)
                yield from _joined(port, number, pdus, own)


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


def _same_payload(seen: Seen, what: str, pdus: Pdus, pdu: Numbers, number: Numbers, allowed: Numbers) -> pl.DataFrame:
    """Cells against those of PDUs; as many bits may differ as are `allowed`."""
    begin = pdus.octets.begin[pdu] + CELL_PAYLOAD * number
    cells = Octets(pdus.octets.data, begin, np.full(len(begin), CELL_PAYLOAD))
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
    """The cells of what a port sent."""
    which = np.repeat(np.arange(len(sent)), sent.cells)
    number = np.arange(len(which)) - np.repeat(np.cumsum(sent.cells) - sent.cells, sent.cells)
    at = sent.start.take(which) + number * sent.spacing
    nothing = np.zeros(len(which), np.bool_)
    return Expected(
        stamp(at.low), stamp(at.high), sent.place[which], number, sent.vci[which], number == sent.cells[which] - 1,
        nothing, ~nothing,
    )  # fmt: skip


def _arrived(walked: Walk, owed: Due, number: int) -> Expected:
    """The cells that leave a port's queue; on the line behind it some may be lost."""
    outcome, place = walked.outcomes[number], walked.places[number]
    cells = outcome.cells
    assert cells is not None
    copy = place[cells.copy]
    last = cells.place == walked.copies.cells[copy] - 1
    sure = ~owed.chance[copy]
    return Expected(
        stamp(cells.arrival.low), stamp(cells.arrival.high), walked.copies.pdu[copy], cells.place,
        walked.copies.vci[copy], last, cells.clp, sure,
    )  # fmt: skip


def _against(what: str, pdus: Pdus, expected: Expected, own: Seen, wire: Wire) -> Iterator[pl.DataFrame]:
    """Cells one by one. On a line no two are at one instant, so that the time tells which is which."""
    at, records = own.numbers("time_ns"), own.numbers("row")
    place = np.searchsorted(expected.low_ns, at, "right") - 1
    there = place >= 0
    place = np.maximum(place, 0)
    if len(expected.low_ns):
        there &= at <= expected.high_ns[place]
        there &= np.append(True, place[1:] != place[:-1])[: len(place)]
    else:
        there = np.zeros(len(at), np.bool_)
    strange = ~there
    yield at_records(own.name, what, strange, records, of(strange, "none then"), of(strange, "a cell at {} ns", at))
    shown = np.zeros(len(expected.low_ns), np.bool_)
    shown[place[there]] = True
    end_ns = min(own.until_ns, _NEVER if wire.end_ns is None else wire.end_ns)
    missing = ~shown & expected.sure & (expected.high_ns < end_ns)
    sources = pdus.numbers("row")[expected.pdu]
    yield at_records(pdus.name, what, missing, sources,
                     of(missing, "cell {} at {} ns", expected.number, expected.low_ns), of(missing, "none"))  # fmt: skip
    own, place = own.take(there), place[there]
    for field, column, value in (("VCI", "vci", expected.vci), ("payload type", "pt", expected.last),
                                 ("CLP", "clp", expected.clp)):  # fmt: skip
        yield _same(own, f"{field} of {what}", value[place].astype(np.int64), own.numbers(column))
    # The fate of a damaged PDU says which those are.
    allowed = np.where(expected.sure[place], 0, FAULTY_LINES)
    yield _same_payload(own, what, pdus, expected.pdu[place], expected.number[place], allowed)


def differing_bits(one: Octets, other: Octets) -> Numbers:
    """In how many bits cells differ."""
    found = np.zeros(len(one.begin), np.int64)
    for first in range(0, len(found), 1 << 15):
        some = np.arange(first, min(first + (1 << 15), len(found)))
        different = one.take(some).matrix(0, CELL_PAYLOAD) ^ other.take(some).matrix(0, CELL_PAYLOAD)
        which = np.flatnonzero(different.any(axis=1))
        found[some[which]] = np.unpackbits(different[which], axis=1).sum(axis=1)
    return found


def _in_turn(port: str, pdus: Pdus, sent: Sent, own: Seen) -> Iterator[pl.DataFrame]:
    """Where channels take turns on a line: of each the cells of its PDUs in order, the first at the PDU's time."""
    expected = _left(sent)
    count = [np.bincount(each, minlength=1 << 16) for each in (expected.vci, own.numbers("vci"))]
    wrong = count[1] > count[0] if own.until_ns != _NEVER else count[1] != count[0]
    rows: list[tuple[None, str, str, str, list[int]]] = [
        (None, f"{own.name}: cells from {port} on {vci}", f"{count[0][vci]}", f"{count[1][vci]}", [])
        for vci in np.flatnonzero(wrong).tolist()
    ]
    yield pl.DataFrame(rows, schema=FINDING, orient="row")
    if rows or own.until_ns != _NEVER:
        return
    what = f"cells from {port}"
    order = np.argsort(expected.vci, kind="stable")
    own = own.take(np.argsort(own.numbers("vci"), kind="stable"))
    number, low, high = expected.number[order], expected.low_ns[order], expected.high_ns[order]
    at = own.numbers("time_ns")
    wrong = (number == 0) & ((at < low) | (at > high))
    yield at_records(own.name, what, wrong, own.numbers("row"), of(wrong, "at {} ns", low), of(wrong, "at {} ns", at))
    yield _same(own, f"payload type of {what}", expected.last[order].astype(np.int64), own.numbers("pt"))
    yield _same(own, f"CLP of {what}", np.zeros(len(at), np.int64), own.numbers("clp"))
    yield _same_payload(own, what, pdus, expected.pdu[order], number, np.zeros(len(at), np.int64))


def _joined(port: str, number: int, pdus: Pdus, own: Seen) -> Iterator[pl.DataFrame]:
    """A PDU is what its cells make: those since the last "last cell" on its channel, with the stamp of its own last."""
    arrived = np.flatnonzero((pdus.port == number) & (pdus.direction == INBOUND) & (pdus.time_ns < own.until_ns))
    vci, at = own.numbers("vci"), own.numbers("time_ns")
    order = np.argsort(vci, kind="stable")
    last = own.numbers("pt")[order] == 1
    group = np.cumsum(last) - last
    cells = pl.DataFrame({"group": group, "vci": vci[order], "at": at[order], "place": order})
    groups = cells.group_by("group", "vci").agg(pl.col("at").last(), pl.len().alias("cells"))
    whole = pl.DataFrame({"vci": pdus.vci[arrived], "at": pdus.time_ns[arrived], "pdu": arrived})
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
    yield _same_payload(mine, f"cells to {port}", pdus, both["pdu"].to_numpy(), both["number"].to_numpy(), nothing)

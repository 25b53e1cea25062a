# SPDX-License-Identifier: Apache-2.0
"""The PDUs of an ATM segment's own capture: their form, and the Ethernet frames in them.

Each is an AAL5 PDU (ITU-T I.363.5): the SDU, a pad of zeros to a multiple of 48 octets, UU and CPI 0, the SDU's length
and a CRC-32, which is computed here. Each frame that a port sent is the SDU of one PDU behind the header of its
encapsulation (af-lane-0021, 4.1.1; RFC 2684, sections 5.1 and 5.2), and each that a port received is that of one that
arrived.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sundial.expect.atm import BRIDGED, BRIDGED_FCS, CELL_PAYLOAD, LANE, ROUTED, TRAILER
from sundial.expect.ip import ETHERNET_FCS, ETHERNET_MIN
from sundial.observe.erf import AAL5, CELL_HEADER, ERF_HEADER, erf_octets, read_erf
from sundial.observe.fates import fate_columns
from sundial.observe.octets import Octets
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import is_data
from sundial.segments.atm.verify_flips import CELLS_MOST, restored
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import FATE_SUFFIX, INBOUND, OUTBOUND
from sundial.verify.wire import MOST, SECOND_NS, Mask, Numbers, Wire

HEADERS = {
    LANE: b"",
    BRIDGED: bytes.fromhex("aaaa03 0080c2 0007 0000"),
    BRIDGED_FCS: bytes.fromhex("aaaa03 0080c2 0001 0000"),
    ROUTED: bytes.fromhex("aaaa03 000000"),
}
"""Octets in front of the frame that are always the same; over LAN emulation it is the sender's LEC ID."""
LEC_ID = 2
ETHERTYPE = 12
"""Where a frame's type begins: `routed` leaves out what is before."""
_CONTROL_MARK = 0xFF00
"""The first two octets of LE control frames, in place of a LEC ID."""

FROM_ADAPTER, TO_ADAPTER, _ERROR = 0x04, 0x05, 0x14
"""ERF flags: varying record lengths, with interface 0 or 1, or with RX error."""
_REVERSED = np.array([int(f"{octet:08b}"[::-1], 2) for octet in range(256)], np.uint8)
_REVERSED_TABLE = _REVERSED.tobytes()
_AT_ONCE, _NEAR = 1 << 10, 1 << 26
"""PDUs whose CRCs are computed together, and in how many octets of the file at most."""


@dataclass(frozen=True)
class Pdus:
    """The records of a capture of PDUs, in the order of the file. `port`: that of the interface, as many as there are
    ports for the fate."""

    name: str
    table: pl.DataFrame
    octets: Octets
    ports: tuple[str, ...]

    def numbers(self, column: str) -> Numbers:
        """A column as whole numbers."""
        return self.table[column].cast(pl.Int64).to_numpy()

    @cached_property
    def port(self) -> Numbers:
        names = [*self.ports]
        column = self.table["interface"].replace_strict(names, list(range(len(names))), default=len(names))
        return column.cast(pl.Int64).to_numpy()

    @cached_property
    def time_ns(self) -> Numbers:
        return self.numbers("time_ns")

    @cached_property
    def direction(self) -> Numbers:
        return self.numbers("direction")

    @cached_property
    def vci(self) -> Numbers:
        return self.numbers("vci")

    @cached_property
    def cells(self) -> Numbers:
        return self.octets.length // CELL_PAYLOAD

    @cached_property
    def sdu(self) -> Numbers:
        """Length of the SDU, by the trailer."""
        return self.sent.number(self.octets.length - 6, 2)

    @cached_property
    def sent(self) -> Octets:
        """As they were sent: short ones with a wrong CRC without the bits that a line flipped."""
        damaged = self.fate & (self.cells <= CELLS_MOST) & (self.numbers("lctr") == 0)
        places = np.flatnonzero(damaged)
        places = places[crc_32(self.octets.take(places)) != self.octets.take(places).number(
            self.octets.length[places] - 4, 4)]  # fmt: skip
        if not len(places):
            return self.octets
        right = b"".join(restored(self.octets.frame(place)) for place in places.tolist())
        begin = self.octets.begin.copy()
        sizes = self.octets.length[places]
        begin[places] = len(self.octets.data) + np.cumsum(sizes) - sizes
        return Octets(np.append(self.octets.data, np.frombuffer(right, np.uint8)), begin, self.octets.length)

    @cached_property
    def content(self) -> Numbers:
        return self.sent.hashes()

    @cached_property
    def control(self) -> Mask:
        """LE control frames, on whatever channel."""
        return np.asarray(self.sent.number(0, 2) == _CONTROL_MARK)

    @cached_property
    def fate(self) -> Mask:
        return np.asarray(self.port == len(self.ports))

    @cached_property
    def fates(self) -> pl.DataFrame:
        """FATE_COLUMNS of each record; null where it is not a fate."""
        return fate_columns(self.table.select(pl.when(pl.Series(self.fate)).then("comment")).to_series())


def read_pdus(segment: Atm, wire: Wire) -> Pdus:
    """The capture of PDUs. Raises BadInput where it is none of this segment."""
    name = f"atm/{wire.name}.pdus.pcapng"
    assert wire.folder is not None
    path = wire.folder / name
    table = read_erf(path, wire.epoch_ns, [*segment.ports, f"{wire.name}{FATE_SUFFIX}"])
    return Pdus(f"wire/{name}", table, erf_octets(path, table), tuple(segment.ports))


def at_records(
    name: str, what: str, wrong: Mask, records: Numbers, expected: Iterator[str], seen: Iterator[str]
) -> pl.DataFrame:
    """A finding for each place that is `wrong`, up to MOST, with the number of its record in file `name`; `expected`
    and `seen` are of those places only."""
    places = np.flatnonzero(wrong)[:MOST]
    return as_table(
        Finding(None, f"{name}: {what}", one, f"{other}, record {records[place] + 1}")
        for place, one, other in zip(places.tolist(), expected, seen, strict=False)
    )


def of(wrong: Mask, form: str, *columns: Numbers) -> Iterator[str]:
    """The form filled in for each place that is wrong."""
    places = np.flatnonzero(wrong)
    return (form.format(*(column[place] for column in columns)) for place in places)


def check_form(pdus: Pdus) -> list[pl.DataFrame]:
    """Each field of each record that follows from what it is: ERF, cell header, pad and trailer."""
    records, octets = pdus.numbers("row"), pdus.octets
    found = list(check_records(pdus.name, pdus.table, AAL5, pdus.fate))

    def same(what: str, seen: Numbers, expected: Numbers, among: Mask | None = None) -> None:
        wrong = seen != expected
        if among is not None:
            wrong &= among
        found.append(at_records(pdus.name, what, wrong, records, of(wrong, "{}", expected), of(wrong, "{}", seen)))

    length = octets.length
    same("octets after the last whole cell", length % CELL_PAYLOAD, np.zeros_like(length))
    same("wire length", pdus.numbers("wlen"), length + CELL_HEADER)
    same("record length", pdus.numbers("rlen"), length + CELL_HEADER + ERF_HEADER)
    same("length of the block", pdus.numbers("original"), length + CELL_HEADER + ERF_HEADER)
    same("payload type", pdus.numbers("pt"), np.zeros_like(length))
    # What a contract tags has CLP 1 behind the switch: `verify_times`.
    same("CLP", pdus.numbers("clp"), np.zeros_like(length), pdus.direction != INBOUND)
    flags = np.select([pdus.fate, pdus.direction == INBOUND], [_ERROR, TO_ADAPTER], FROM_ADAPTER)
    same("ERF flags", pdus.numbers("erf_flags"), flags)
    remarks = ~pdus.fate & pdus.table["comment"].is_not_null().to_numpy()
    found.append(at_records(pdus.name, "comment", remarks, records, of(remarks, "none at a port"),
                            of(remarks, "{}", pdus.table["comment"].to_numpy())))  # fmt: skip
    # A PDU that did not get through may hold whatever came of it; it is checked against what was sent.
    good = ~pdus.fate
    same("loss counter", pdus.numbers("lctr"), np.zeros_like(length), good)
    same("cells for its length", pdus.cells, -(-(pdus.sdu + TRAILER) // CELL_PAYLOAD), good)
    same("UU and CPI", octets.number(length - TRAILER, 2), np.zeros_like(length), good)
    pad = octets.matrix(pdus.sdu, CELL_PAYLOAD)
    inside = np.arange(CELL_PAYLOAD) < (length - TRAILER - pdus.sdu)[:, None]
    same("octets of the pad that are not zero", (pad.astype(bool) & inside).sum(axis=1), np.zeros_like(length), good)
    same("CRC-32", octets.number(length - 4, 4), crc_32(octets), good)
    return found


def check_records(name: str, table: pl.DataFrame, kind: int, fate: Mask) -> Iterator[pl.DataFrame]:
    """What PDUs and cells have in common."""
    records = table["row"].cast(pl.Int64).to_numpy()

    def wrong(what: str, column: pl.Expr | str, expected: Numbers) -> pl.DataFrame:
        seen = table.select(column).to_series().cast(pl.Int64).to_numpy()
        bad = seen != expected
        return at_records(name, what, bad, records, of(bad, "{}", expected), of(bad, "{}", seen))

    zero = np.zeros(table.height, np.int64)
    yield wrong("type of record", "erf_type", zero + kind)
    yield wrong("GFC", "gfc", zero)
    yield wrong("VPI", "vpi", zero)
    yield wrong("a block with more than a direction and a comment", ~pl.col("plain"), zero)
    yield wrong("direction", (pl.col("direction") == 0) != pl.Series(fate), zero)
    time_ns = table["time_ns"].cast(pl.Int64).to_numpy()
    early = np.append(False, np.diff(time_ns) < 0)[: len(time_ns)]
    before = np.append(0, time_ns[:-1])[: len(time_ns)]
    yield at_records(
        name, "order of records", early, records, of(early, "not before {} ns", before), of(early, "at {} ns", time_ns)
    )


def check_stamps(name: str, table: pl.DataFrame, epoch_ns: int) -> pl.DataFrame:
    """The record's own stamp is the block's, in units of 2^-32 s, rounded down."""
    records = table["row"].cast(pl.Int64).to_numpy()
    ticks = (table["time_ns"].cast(pl.Int64).to_numpy() + epoch_ns).astype(np.uint64)
    second = np.uint64(SECOND_NS)
    expected = (ticks // second << np.uint64(32)) + (ticks % second << np.uint64(32)) // second
    seen = table["erf_time"].to_numpy()
    wrong = seen != expected
    return at_records(name, "ERF time stamp", wrong, records, of(wrong, "{:#x}", expected), of(wrong, "{:#x}", seen))


def crc_32(octets: Octets) -> Numbers:
    """The CRC-32 of all but the last four octets of each PDU, most significant bit first (I.363.5, 9.2.1.2).

    zlib's takes the bits of each octet, and of its result, the other way round.
    """
    found = np.zeros(len(octets.begin), np.int64)
    end = octets.begin + np.maximum(octets.length - 4, 0)
    for first in range(0, len(found), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        low, high = int(octets.begin[some].min()), int(end[some].max())
        if high - low > _NEAR:
            own = zip(octets.begin[some].tolist(), end[some].tolist(), strict=True)
            found[some] = [zlib.crc32(bytes(octets.data[a:b]).translate(_REVERSED_TABLE)) for a, b in own]
            continue
        # They follow each other in the file.
        data = memoryview(bytes(octets.data[low:high]).translate(_REVERSED_TABLE))
        places = zip((octets.begin[some] - low).tolist(), (end[some] - low).tolist(), strict=True)
        found[some] = [zlib.crc32(data[a:b]) for a, b in places]
    octet = found.astype("<u4").view(np.uint8).reshape(-1, 4)
    return np.ascontiguousarray(_REVERSED[octet]).view(">u4").ravel().astype(np.int64)


# ---- Frames and PDUs ----


@dataclass(frozen=True)
class Carried:
    """PDUs that hold a frame each, with the place of the frame in them."""

    place: Numbers
    """Of the PDU among all."""
    begin: int
    """Of the frame's octets in the PDU."""
    skipped: int
    """Octets at a frame's beginning that the PDU leaves out."""
    behind: int
    """Octets between the frame, padded, and the end of the SDU."""


def carried(segment: Atm, pdus: Pdus, which: Mask) -> Carried:
    """Those of `which` that hold frames."""
    kind = segment.encapsulation
    holds = which & is_data(pdus.vci) & ~pdus.control if kind == LANE else which
    begin = LEC_ID if kind == LANE else len(HEADERS[kind])
    return Carried(
        np.flatnonzero(holds), begin, ETHERTYPE if kind == ROUTED else 0, ETHERNET_FCS if kind == BRIDGED_FCS else 0
    )


def check_encapsulation(segment: Atm, pdus: Pdus, lec_ids: Numbers | None) -> list[pl.DataFrame]:
    """Headers, the FCS where it is kept, and of LAN emulation the sender's LEC ID (by port, -1 where it has none)."""
    which = carried(segment, pdus, ~pdus.fate)
    octets, records = pdus.octets.take(which.place), pdus.numbers("row")[which.place]
    found = []
    header = HEADERS[segment.encapsulation]
    if header:
        wrong = (octets.matrix(0, len(header)) != np.frombuffer(header, np.uint8)).any(axis=1)
        found.append(at_records(pdus.name, "header of the encapsulation", wrong, records,
                                of(wrong, header.hex()), of(wrong, "another")))  # fmt: skip
    if lec_ids is not None:
        out, seen = pdus.direction[which.place] == OUTBOUND, octets.number(0, LEC_ID)
        wanted = np.where(out, lec_ids[np.where(out, pdus.port[which.place], 0)], seen)
        wrong = seen != wanted
        found.append(at_records(pdus.name, "LEC ID", wrong, records, of(wrong, "{}", wanted), of(wrong, "{}", seen)))
    if segment.encapsulation == BRIDGED_FCS:
        size = pdus.sdu[which.place]
        seen = octets.number(size - ETHERNET_FCS, ETHERNET_FCS)
        data = octets.data
        checked = [
            int.from_bytes(
                zlib.crc32(bytes(data[begin + len(header) : begin + end - ETHERNET_FCS])).to_bytes(4, "little")
            )
            for begin, end in zip(octets.begin.tolist(), size.tolist(), strict=True)
        ]
        expected = np.array(checked, np.int64)
        wrong = seen != expected
        found.append(
            at_records(pdus.name, "FCS", wrong, records, of(wrong, "{:#x}", expected), of(wrong, "{:#x}", seen))
        )
    return found


def holds(segment: Atm, pdus: Pdus, which: Carried, frames: Octets) -> Mask:
    """Whether each PDU holds the frame beside it, byte for byte and padded with zeros to Ethernet's least length."""
    octets = pdus.octets.take(which.place)
    size = frames.length - which.skipped
    least = 0 if segment.encapsulation == ROUTED else ETHERNET_MIN
    inside = pdus.sdu[which.place] - which.begin - which.behind
    right = inside == np.maximum(size, least)
    own = Octets(octets.data, octets.begin + which.begin, np.minimum(size, np.maximum(octets.length - which.begin, 0)))
    given = Octets(frames.data, frames.begin + which.skipped, np.maximum(size, 0))
    right &= own.hashes() == given.hashes()
    if least:
        padding = octets.matrix(which.begin + size, least)
        right &= ~(padding.astype(bool) & (np.arange(least) < (least - size)[:, None])).any(axis=1)
    return np.asarray(right)

# SPDX-License-Identifier: Apache-2.0
"""Frames at the ports and the PDUs that carry them.

Each frame is sent as the SDU of a PDU, when its first cell is; each that arrives is that of a PDU, `rx_latency` after
its last cell; and each that is lost has its fate in both captures.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sundial.expect.atm import LANE, ROUTED
from sundial.observe.octets import Octets
from sundial.seams.fate import Cells, Spoiled
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import MULTICAST, destinations
from sundial.segments.atm.verify_fates import CRC, NO_COPY
from sundial.segments.atm.verify_pdus import Carried, Pdus, at_records, carried, holds, of
from sundial.segments.atm.verify_times import Walk
from sundial.verify.findings import findings
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.wire import MOST, Mask, Numbers, Wire

_ARP = 0x0806
GROUP_BIT = 1 << 40
"""Of an address as a number: multicast and broadcast (IEEE 802.3, 3.2.3)."""


def check_frames(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, lec_ids: Numbers | None) -> Iterator[pl.DataFrame]:
    """All three."""
    yield from _sent(segment, wire, pdus)
    yield from _received(segment, wire, pdus, lec_ids)
    yield from _lost(segment, wire, pdus, walked, lec_ids)


def _frames(segment: Atm, wire: Wire, direction: int) -> pl.DataFrame:
    """Frames that PDUs carry. Classical IP asks its ATMARP server for addresses, not the other stations."""
    frames = wire.frames.filter(pl.col("fate").is_null(), pl.col("direction") == direction)
    frames = frames.with_columns(port=_number(segment, pl.col("interface")))
    if segment.encapsulation == ROUTED:
        types = _octets(wire, frames).number(12, 2)
        frames = frames.filter(pl.Series(types != _ARP))
    return frames.sort("port", "time_ns", "row")


def _number(segment: Atm, port: pl.Expr) -> pl.Expr:
    return (
        port.cast(pl.String).replace_strict(segment.ports, list(range(len(segment.ports))), default=-1).cast(pl.Int64)
    )


def _octets(wire: Wire, frames: pl.DataFrame) -> Octets:
    assert wire.octets is not None
    return wire.octets(frames)


def _table(pdus: Pdus, which: Carried) -> pl.DataFrame:
    return pl.DataFrame(
        {"port": pdus.port[which.place], "time_ns": pdus.time_ns[which.place], "content": pdus.content[which.place],
         "vci": pdus.vci[which.place], "record": pdus.numbers("row")[which.place], "place": np.arange(len(which.place))}
    )  # fmt: skip


def _paired(table: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    """With the row of the frame at the same port and instant."""
    own = frames.select("port", "time_ns", "row")
    return table.join(own, on=["port", "time_ns"], how="left", maintain_order="left")


def _taken(which: Carried, places: Numbers) -> Carried:
    return Carried(which.place[places], which.begin, which.skipped, which.behind)


def _sent(segment: Atm, wire: Wire, pdus: Pdus) -> Iterator[pl.DataFrame]:
    """One PDU for each frame; over a mesh of permanent channels one for each port that it goes to."""
    frames = _frames(segment, wire, OUTBOUND)
    which = carried(segment, pdus, ~pdus.fate & (pdus.direction == OUTBOUND))
    table = _table(pdus, which)
    pairs = table.join(
        frames.select("port", "time_ns", "row"), on=["port", "time_ns"], how="left", maintain_order="left"
    )
    # A flood's further PDUs follow the first on other channels.
    heads = pairs.filter(pl.col("row").is_not_null()).select("port", "content", "time_ns", head="row").sort("time_ns")
    pairs = pairs.sort("time_ns", "place").join_asof(
        heads, on="time_ns", by=["port", "content"], check_sortedness=False
    )
    if segment.encapsulation != LANE:
        pairs = pairs.with_columns(row=pl.coalesce("row", "head"))
    alone = pairs["row"].is_null().to_numpy()
    yield at_records(pdus.name, "PDU without a frame", alone, pairs["record"].to_numpy(),
                     of(alone, "a frame that its port sends then"), of(alone, "none"))  # fmt: skip
    known = pairs.filter(pl.col("row").is_not_null())
    yield _unlike(segment, wire, pdus, which, known)
    twice = known.filter(pl.struct("row", "vci").is_duplicated())
    bad = np.ones(twice.height, np.bool_)
    yield at_records(pdus.name, "PDU of a frame", bad, twice["record"].to_numpy(),
                     of(bad, "one on each channel"), of(bad, "two"))  # fmt: skip
    yield _without(frames.join(known, on="row", how="anti"), "frame sent", "in a PDU that begins then")
    yield _channels(segment, wire, frames, known)


def _channels(segment: Atm, wire: Wire, frames: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Over a mesh of channels a frame for the MAC address of a port goes to that port, any other to all. Over LAN
    emulation a PDU is a frame's only one."""
    others = 1 if segment.encapsulation == LANE else len(segment.ports) - 1
    to = destinations(segment, known["port"].to_numpy(), known["vci"].to_numpy())
    copies = known.with_columns(to=pl.Series(to)).group_by("row").agg(pl.len().alias("copies"), pl.col("to").first())
    table = frames.join(copies, on="row")
    table = table.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    right = pl.col("copies") == others
    if segment.encapsulation != LANE:
        ports = {wire.macs[port]: number for number, port in enumerate(segment.ports)}
        target = pl.col("eth_target").cast(pl.Int64).replace_strict(
            list(ports), list(ports.values()), default=None, return_dtype=pl.Int64
        )  # fmt: skip
        one = (pl.col("copies") == 1) & (pl.col("to") == target)
        right = pl.when(target.is_null() | (target == pl.col("port"))).then(right).otherwise(one)
    seen = pl.format("{}, the first to port {}", "copies", "to")
    return _told(table.filter(~right), "PDUs of a frame", f"{others}, or that to its station", seen)


def _received(segment: Atm, wire: Wire, pdus: Pdus, lec_ids: Numbers | None) -> Iterator[pl.DataFrame]:
    frames = _frames(segment, wire, INBOUND)
    which = carried(segment, pdus, ~pdus.fate & (pdus.direction == INBOUND))
    latency = np.array([*segment.by_port(segment.rx_latency), 0])
    table = _table(pdus, which).with_columns(time_ns=pl.col("time_ns") + pl.Series(latency[pdus.port[which.place]]))
    pairs = table.join(
        frames.select("port", "time_ns", "row"), on=["port", "time_ns"], how="left", maintain_order="left"
    )
    known = pairs.filter(pl.col("row").is_not_null())
    yield _unlike(segment, wire, pdus, which, known)
    yield _without(frames.join(known, on="row", how="anti"), "frame received", "that of a PDU that came then")
    wanted = _wanted(segment, wire, pdus, which, pdus.port[which.place], lec_ids)
    late = (wire.end_ns is not None) & (pairs["time_ns"].to_numpy() > (wire.end_ns or 0))
    records, has = pairs["record"].to_numpy(), pairs["row"].is_not_null().to_numpy()
    missing, extra = wanted & ~has & ~late, ~wanted & has
    yield at_records(
        pdus.name, "frame of a PDU", missing, records, of(missing, "delivered"), of(missing, "not delivered")
    )
    yield at_records(pdus.name, "frame of a PDU", extra, records, of(extra, "not delivered"), of(extra, "delivered"))


def _wanted(segment: Atm, wire: Wire, pdus: Pdus, which: Carried, port: Numbers, lec_ids: Numbers | None) -> Mask:
    """Whether a machine gets the frame of each PDU at a port. A client hands on what is for its own address or a group,
    a device's all but its own echo (af-lane-0021, 4.1.1)."""
    if segment.encapsulation != LANE or lec_ids is None:
        return np.ones(len(which.place), np.bool_)
    octets = pdus.octets.take(which.place)
    target = octets.number(which.begin, 6)
    relays = np.array([name in wire.rings for name in segment.ports])[port]
    own = np.array([wire.macs[name] for name in segment.ports])[port]
    echo = octets.number(0, 2) == lec_ids[port]
    return np.asarray((relays | ((target & GROUP_BIT) != 0) | (target == own)) & ~echo)


def _lost(segment: Atm, wire: Wire, pdus: Pdus, walked: Walk, lec_ids: Numbers | None) -> Iterator[pl.DataFrame]:
    """The fates of frames that were in PDUs, and of PDUs that carried frames, are the same."""
    which = carried(segment, pdus, pdus.fate)
    table = _table(pdus, which).with_columns(comment=pdus.table["comment"][which.place])
    frames = fates_of_pdus(wire)
    number = pl.int_range(pl.len()).over("time_ns", "comment").alias("number")
    pairs = table.with_columns(number).join(
        frames.select("time_ns", "comment", "row").with_columns(number),
        on=["time_ns", "comment", "number"], how="left", maintain_order="left",
    )  # fmt: skip
    # A copy of the BUS that its port would not have handed on is not a frame of any port.
    fates = walked.fates
    own = np.searchsorted(fates.record, which.place)
    port, copy = fates.port[own], fates.copy[own]
    copied = (pdus.vci[which.place] == MULTICAST) & (port >= 0) & (port < len(segment.ports))
    # For whom it was, its own octets do not tell where a line has flipped some.
    origin = np.where(copy != NO_COPY, walked.copies.pdu[copy], which.place)
    as_sent = Carried(origin, which.begin, which.skipped, which.behind)
    wanted = np.where(copied, _wanted(segment, wire, pdus, as_sent, np.where(copied, port, 0), lec_ids), True)
    has, records = pairs["row"].is_not_null().to_numpy(), pairs["record"].to_numpy()
    alone, extra = wanted & ~has, ~wanted & has
    yield at_records(pdus.name, "fate", alone, records,
                     of(alone, "that of a frame, too"), of(alone, "none in the capture of frames"))  # fmt: skip
    yield at_records(pdus.name, "fate", extra, records,
                     of(extra, "of no machine's frame"), of(extra, "one in the capture of frames"))  # fmt: skip
    known = pairs.filter(pl.col("row").is_not_null())
    yield _without(frames.join(known, on="row", how="anti"), "fate", "that of a PDU, too")
    damaged = np.isin(which.place, fates.record[fates.kind == CRC])
    yield _unlike(segment, wire, pdus, which, known.filter(~pl.Series(damaged)[known["place"]]))


def fates_of_pdus(wire: Wire) -> pl.DataFrame:
    """Fates that a frame shares with its PDU."""
    return wire.fates.filter(pl.col("record").is_in([Cells.__name__, Spoiled.__name__]))


def _unlike(segment: Atm, wire: Wire, pdus: Pdus, which: Carried, pairs: pl.DataFrame) -> pl.DataFrame:
    """PDUs that hold other octets than their frames."""
    places = pairs["place"].to_numpy()
    rows = pl.DataFrame({"row": pairs["row"]}).join(wire.frames, on="row", maintain_order="left")
    wrong = ~holds(segment, pdus, _taken(which, places), _octets(wire, rows)) if len(places) else np.zeros(0, np.bool_)
    table = pairs.filter(pl.Series(wrong)).with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    return _told(
        table,
        f"{pdus.name}: octets of a frame",
        "those of the frame",
        pl.format("others, record {}", pl.col("record") + 1),
    )


def _without(frames: pl.DataFrame, what: str, expected: str) -> pl.DataFrame:
    table = frames.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    return _told(table, what, expected, pl.format("none at {} ns", "time_ns"))


def _told(table: pl.DataFrame, what: str, expected: str, seen: pl.Expr) -> pl.DataFrame:
    return findings(table.head(MOST), pl.lit(True), pl.lit(f"atm: {what}"), pl.lit(expected), seen)

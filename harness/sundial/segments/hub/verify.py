# SPDX-License-Identifier: Apache-2.0
"""Half duplex: the frames of all stations take the wire, with their gaps, and so do collisions, after each of which a
station backs off for a random number of slots (IEEE 802.3, 4.2.3.2.5)."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.expect.ip import ETHERNET_GAP
from sundial.seams.fate import Collision, GivenUp
from sundial.segments.hub.model import CARRIER_SENSE_NS, JAM_BITS, SLOT_BITS, Hub
from sundial.segments.hub.verify_csma import ATTEMPTS, Medium, Transmissions, listen, transmissions
from sundial.segments.hub.verify_law import check_medium
from sundial.segments.hub.verify_offered import check_handed_in
from sundial.verify.contention import BACKOFF_LIMIT, Contention, contention_of, duration_ns, serialisations
from sundial.verify.frames import COLLISION, OUTBOUND
from sundial.verify.law import (
    Bounds,
    Law,
    check_fates,
    check_room,
    cut_off,
    merged,
    offered,
    ring_drops,
    ring_of,
)
from sundial.verify.segment import SegmentVerifier
from sundial.verify.wire import SECOND_NS, Arrivals, Passages, Wire, bits_of, check_arrivals, problem, together


class _Hub(SegmentVerifier[Hub]):
    def contention(self, segment: Hub, port: str, frames: pl.DataFrame) -> Contention | None:
        times = frames.filter(pl.col("fate") == COLLISION)["time_ns"].to_list()
        jammed_ns = duration_ns((SLOT_BITS + JAM_BITS) // 8 + ETHERNET_GAP, segment.rate)
        jams = np.array([(at, at + jammed_ns) for at in times], np.int64).reshape(-1, 2)
        slot_ns = duration_ns(SLOT_BITS // 8, segment.rate)
        taken = np.concatenate([serialisations(frames, segment.rate), jams, _backing_off(frames, port, slot_ns)])
        return contention_of(taken, times, slot_ns)

    def check_times(self, segment: Hub, wire: Wire) -> Law:
        medium = _medium(segment)
        everything = transmissions(wire, medium, _collisions(wire))
        found = [
            check_fates(wire, segment, [Collision, GivenUp]),
            *check_medium(everything, medium, segment.ports),
            _given_up(wire, everything),
        ]
        counted: dict[tuple[str, str], Bounds] = {}
        cut: dict[str, Bounds] = {}
        for place, port in enumerate(segment.ports):
            arrivals, late = check_arrivals(port, _due(wire, medium, place), wire.received[place], wire.end_ns)
            sent = wire.sent[place]
            ends = sent.time_ns + bits_of(sent.length) * medium.bit_ns
            found += [arrivals, check_room(wire, segment, port, sent, ends)]
            counted[port, "undelivered"] = (0, late)
            cut[port] = cut_off(wire, segment, port, late)
            counted |= _counted(segment, wire, everything, medium, place)
        return Law(merged(found), counted, cut)

    def check_offered(self, segment: Hub, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
        medium = _medium(segment)
        everything = transmissions(wire, medium, _collisions(wire))
        return check_handed_in(segment, wire, port, handed_in, everything, medium)


def _medium(segment: Hub) -> Medium:
    return Medium(
        bit_ns=SECOND_NS // segment.rate,
        cables_ns=np.array(segment.by_port(segment.cable_delay), np.int64),
        repeater_ns=segment.through,
        sense_ns=CARRIER_SENSE_NS[segment.rate],
    )


def _collisions(wire: Wire) -> pl.DataFrame:
    """Row, station, time, bits, content and attempt of each collision."""
    places = {name: place for place, name in enumerate(wire.ports)}
    return (
        wire.fates_of(Collision)
        .select(
            "row",
            "time_ns",
            "octets_hash",
            attempt="fate_attempt",
            bits="fate_bits",
            station=pl.col("fate_adapter").replace_strict(places, default=None, return_dtype=pl.Int64),
        )
        .drop_nulls("station")
    )


def _due(wire: Wire, medium: Medium, receiver: int) -> Arrivals:
    """All that arrives at a station: the last bit of what others sent, when it has come through the hub."""
    parts = []
    for sender, sent in enumerate(wire.sent):
        if sender != receiver:
            way = medium.way_ns(np.full(len(sent), sender), receiver)
            parts.append(Arrivals(sent.time_ns + bits_of(sent.length) * medium.bit_ns + way, sent.content, sent.row))
    return together(parts)


def _backing_off(frames: pl.DataFrame, port: str, slot_ns: int) -> NDArray[np.int64]:
    """When a port waited after a collision of its own, at most: (begin, end) each. What stands behind the frame in its
    adapter waits as long, whenever that was made."""
    at = frames.filter(pl.col("fate") == COLLISION, pl.col("fate_adapter") == port)["time_ns"].sort().to_numpy()
    own = pl.col("fate").is_null() & (pl.col("direction") == OUTBOUND) & (pl.col("interface") == port)
    sent = frames.filter(own)["time_ns"].sort().to_numpy()
    never = np.iinfo(np.int64).max
    before = np.searchsorted(sent, at)
    attempts = np.arange(len(at)) - np.searchsorted(before, before) + 1
    most = at + slot_ns * (1 << np.minimum(attempts, BACKOFF_LIMIT).astype(np.int64))
    again = np.minimum(np.append(at[1:], never)[: len(at)], np.append(sent, never)[before])
    return np.stack([at, np.minimum(most, again)], axis=1)


def _given_up(wire: Wire, everything: Transmissions) -> pl.DataFrame:
    """After the last attempt a frame is given up when its jam has ended, and then only (4.2.3.2.5)."""
    last = everything.take(np.flatnonzero(everything.attempt >= ATTEMPTS))
    due = pl.DataFrame(
        {
            "station": last.station,
            "content": last.content,
            "low": last.end,
            "high": last.latest + last.end - last.start,
            "cause": last.row,
        }
    ).sort("low")
    if wire.end_ns is not None:
        due = due.filter(pl.col("high") <= wire.end_ns)
    places = {name: place for place, name in enumerate(wire.ports)}
    came = wire.fates_of(GivenUp).select(
        at="time_ns",
        content=pl.col("octets_hash").cast(pl.Int64),
        row=pl.col("row").cast(pl.Int64),
        attempts="fate_attempts",
        station=pl.col("fate_adapter").replace_strict(places, default=-1, return_dtype=pl.Int64),
    )
    keys = ["station", "content"]
    number = pl.int_range(pl.len()).over(keys).alias("number")
    table = due.with_columns(number).join(came.with_columns(number), on=[*keys, "number"], how="full", coalesce=True)
    right = pl.col("at").is_between("low", "high") & (pl.col("attempts") == ATTEMPTS)
    wrong = table.filter(~right.fill_null(False)).sort("number").with_columns(pl.col("row", "cause").fill_null(-1))
    return problem(
        f"frames given up on {wire.name}",
        np.ones(len(wrong), np.bool_),
        [wrong["cause"].to_numpy(), wrong["row"].to_numpy()],
        ("no such fate" if low is None else f"after {ATTEMPTS} attempts, at {low} ns" for low in wrong["low"]),
        (
            "none" if at is None else f"after {tries} attempts, at {at} ns"
            for at, tries in wrong.select("at", "attempts").iter_rows()
        ),
    )  # fmt: skip


def _counted(
    segment: Hub, wire: Wire, everything: Transmissions, medium: Medium, place: int
) -> dict[tuple[str, str], Bounds]:
    """What a station has counted of its own, from the events on the wire.

    The frame behind one that was given up may have found the wire free by itself: so many fewer may have been deferred.
    """
    port = segment.ports[place]
    station = listen(everything, medium, place)
    own, sent = station.own, wire.sent[place]
    refused = len(ring_drops(wire, port))
    given_up = int((own.attempt >= ATTEMPTS).sum())
    collided = int(own.broken.sum())
    others = int(everything.broken.sum()) - collided
    waited = int((station.waited & station.first).sum())
    unknown = given_up + int((everything.latest > everything.start).sum())
    pause = own.start > station.free
    pause &= station.first
    run = np.arange(len(own)) - np.maximum.accumulate(np.where(pause, np.arange(len(own)), 0)) + 1
    places, drops_frames = ring_of(wire, segment, port)
    full = refused if drops_frames else int((run >= places).sum())
    return {
        (port, "collisions"): (collided, collided),
        (port, "excessive_collisions"): (given_up, given_up),
        (port, "fragments_seen"): (others, others),
        (port, "deferred"): (max(waited - unknown, 0), waited + unknown),
        (port, "adapter_full"): (full if drops_frames else 0, full),
        (port, "dropped adapter full"): (refused, refused),
        (port, "dropped excessive collisions"): (given_up, given_up),
        (port, "offered_frames"): offered(wire, segment, port, refused + len(sent) + given_up),
    }


KIND: SegmentVerifier[Hub] = _Hub()

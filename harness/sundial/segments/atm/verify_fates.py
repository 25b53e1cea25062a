# SPDX-License-Identifier: Apache-2.0
"""Fates of PDUs: what their records say, and which PDU on its way to which port each belongs to."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.expect.atm import CELL_PAYLOAD
from sundial.seams.fate import Cells, Spoiled
from sundial.segments.atm.model import Atm
from sundial.segments.atm.verify_channels import services_port
from sundial.segments.atm.verify_lines import NS, stamp
from sundial.segments.atm.verify_output import Copies
from sundial.segments.atm.verify_pdus import Pdus, at_records, of
from sundial.segments.atm.verify_queue import PASSED, WORDS
from sundial.verify.frames import INBOUND
from sundial.verify.wire import Mask, Numbers

SERVICES = "service"
"""The name of the services' port."""
CELL_LOSS, HEADER_ERROR, JOINED = "cell loss", "header error", "joined to the PDU before"
QUEUE_WORDS = {words: number for number, words in enumerate(WORDS) if number != PASSED}
"""The number of a reason by its words. Partial discard is that of a PDU's first cell only where the switch takes it for
the rest of the PDU before."""
LOST, CRC, JOIN, UNKNOWN = range(4)
"""Kinds of fates."""
NO_COPY = -1
FAULTY_LINES = 2
"""On a PDU's way; each may damage a bit of a cell."""


@dataclass(frozen=True)
class Fates:
    """Fates of PDUs in order of time, by the place of each among all records. `copy`: NO_COPY where there is none."""

    record: Numbers
    kind: Numbers
    lost: Numbers
    of: Numbers
    reason: NDArray[np.str_]
    towards: Mask
    """Behind the switch; else in front of it."""
    port: Numbers
    copy: Numbers

    @property
    def random(self) -> Mask:
        """Those that a fault of a line caused."""
        return np.asarray(np.isin(self.reason, (CELL_LOSS, HEADER_ERROR)) | (self.kind == CRC))


def read_fates(segment: Atm, pdus: Pdus) -> Fates:
    """As their records say; which copies they belong to is not known yet."""
    record = np.flatnonzero(pdus.fate)
    names = [*segment.ports, SERVICES]
    known = pl.col("port").is_in(names)
    cells = pl.col("record") == Cells.__name__
    kinds = {**dict.fromkeys((*QUEUE_WORDS, CELL_LOSS, HEADER_ERROR), LOST), "wrong CRC": CRC, JOINED: JOIN}
    table = (
        pdus.fates[record]
        .with_columns(port=pl.coalesce("fate_to", "fate_from"))
        .select(
            kind=pl.when(known, pl.col("record").is_in([Cells.__name__, Spoiled.__name__]))
            .then(pl.col("fate_rule").replace_strict(kinds, default=UNKNOWN, return_dtype=pl.Int64))
            .otherwise(UNKNOWN),
            port=pl.col("port").replace_strict(names, list(range(len(names))), default=-1, return_dtype=pl.Int64),
            towards=pl.col("fate_from").is_null(),
            reason=pl.when(cells).then("fate_rule").fill_null(""),
            lost=pl.col("fate_lost_cells").fill_null(0),
            of=pl.col("fate_cells").fill_null(0),
        )
    )
    return Fates(
        record,
        table["kind"].to_numpy(),
        table["lost"].to_numpy(),
        table["of"].to_numpy(),
        np.array(table["reason"].to_list(), np.str_),
        table["towards"].to_numpy(),
        table["port"].to_numpy(),
        np.full(len(record), NO_COPY),
    )


def assigned(segment: Atm, fates: Fates, pdus: Pdus, copies: Copies) -> Fates:
    """With the copy of each that has the same bytes, channel and end. Of several alike, what was lost on the way into
    the switch, by its queue or at the services, whose arrivals no capture shows, is the latest that had come so far;
    what leaves the queue to a port is in order."""
    copy, joins = fates.copy.copy(), copies.joins.low
    into = (fates.kind != UNKNOWN) & ~fates.towards
    queued = (fates.kind != UNKNOWN) & fates.towards & np.isin(fates.reason, list(QUEUE_WORDS))
    served = (fates.kind != UNKNOWN) & fates.towards & ~queued & (fates.port == services_port(segment))
    for which, end, came in (
        (into, copies.sender, joins - segment.cell_latency * NS),
        (queued, copies.to, joins),
        (served, copies.to, joins + copies.length),
    ):
        own = _alike(pdus, fates.record[which], at=pdus.time_ns[fates.record[which]], end=fates.port[which])
        known = _alike(pdus, copies.pdu, vci=copies.sent_vci, at=stamp(came), end=end)
        copy[which] = _latest(own, known)
    behind = np.flatnonzero((fates.kind != UNKNOWN) & ~into & ~queued & ~served)
    copy[behind] = _in_order(segment, fates, behind, pdus, copies, np.setdiff1d(np.arange(len(copies)), copy))
    damaged = np.flatnonzero((fates.kind == CRC) & (copy == NO_COPY))
    if len(damaged):
        copy[damaged] = _damaged(fates, damaged, pdus, copies, stamp(copies.left.low))
    return replace(fates, copy=copy)


_KEYS = ["vci", "end", "content"]


def _alike(pdus: Pdus, records: Numbers, **columns: Numbers) -> pl.DataFrame:
    """Of some records, what tells which are alike: `columns`, beside channel and content."""
    own = {"vci": pdus.vci[records], "content": pdus.content[records], **columns}
    return pl.DataFrame(own).with_columns(row=pl.int_range(pl.len()))


def _latest(asked: pl.DataFrame, known: pl.DataFrame) -> Numbers:
    """Of each that is asked about, the latest that is known `at` its time, or NO_COPY. No two are one."""
    known = known.sort("at").with_columns(number=pl.int_range(pl.len()).over(_KEYS))
    asked = asked.sort("at").with_columns(behind=pl.int_range(pl.len()).over(_KEYS))
    pairs = asked.join_asof(known.drop("row"), on="at", by=_KEYS, check_sortedness=False).with_columns(
        number=pl.col("behind") + (pl.col("number") - pl.col("behind")).cum_min(reverse=True).over(_KEYS)
    )
    found = pairs.join(known.drop("at"), on=[*_KEYS, "number"], how="left", maintain_order="left").sort("row")
    return found["row_right"].fill_null(NO_COPY).to_numpy()


def _in_order(segment: Atm, fates: Fates, which: Numbers, pdus: Pdus, copies: Copies, left: Numbers) -> Numbers:
    """Of fates behind the queue, each the copy whose turn it is, of those that are `left`. What arrived had its turn
    too; a lost cell is over when it would have come."""
    record, channel = fates.record[which], ["sent_vci", "end", "content"]
    lines = np.array([*(segment.cell_time_units(port) // NS for port in segment.ports), 0])
    lines += [*segment.by_port(segment.propagation), 0]
    over = pdus.time_ns[record] + np.where(fates.kind[which] == LOST, lines[fates.port[which]], 0)
    came = np.flatnonzero((pdus.direction == INBOUND) & ~pdus.fate)
    turns = _alike(pdus, copies.pdu[left], vci=copies.vci[left], sent_vci=copies.sent_vci[left], end=copies.to[left],
                   at=copies.joins.likely[left], copy=left)  # fmt: skip
    known = turns.unique(channel).drop("at", "copy", "row")
    own = _alike(pdus, record, end=fates.port[which], at=over).rename({"vci": "sent_vci"})
    seen = pl.concat(
        [own.join(known, on=channel),
         _alike(pdus, came, end=pdus.port[came], at=pdus.time_ns[came]).drop("row").join(known, on=_KEYS)],
        how="diagonal",
    )  # fmt: skip
    number = pl.int_range(pl.len()).over([*_KEYS, "sent_vci"]).alias("number")
    turns = turns.sort("at", maintain_order=True).with_columns(number).drop("row", "at")
    pairs = seen.sort("at", maintain_order=True).with_columns(number).drop_nulls("row")
    pairs = pairs.join(turns, on=[*_KEYS, "sent_vci", "number"])
    found = np.full(len(which), NO_COPY)
    found[pairs["row"].to_numpy()] = pairs["copy"].to_numpy()
    early = (found != NO_COPY) & (stamp(copies.left.low)[found] > pdus.time_ns[record])
    return np.where(early, NO_COPY, found)


def _damaged(fates: Fates, which: Numbers, pdus: Pdus, copies: Copies, left: Numbers) -> Numbers:
    """Of PDUs with a wrong CRC: the latest that had left by then and differs in a few bits of its cells alone."""
    found = np.full(len(which), NO_COPY)
    order = np.argsort(left, kind="stable")
    channels: dict[tuple[int, int, int], list[int]] = {}
    keys = zip(copies.sent_vci[order].tolist(), copies.to[order].tolist(), copies.cells[order].tolist(), strict=True)
    for key, copy in zip(keys, order.tolist(), strict=True):
        channels.setdefault(key, []).append(copy)
    for place, (fate, record) in enumerate(zip(which.tolist(), fates.record[which].tolist(), strict=True)):
        known = channels.get((int(pdus.vci[record]), int(fates.port[fate]), int(pdus.cells[record])), [])
        behind = bisect_right(known, int(pdus.time_ns[record]), key=lambda copy: int(left[copy]))
        came = pdus.octets.frame(record)
        for copy in reversed(known[:behind]):
            if few_bits(came, pdus.sent.frame(int(copies.pdu[copy]))):
                found[place] = copy
                break
    return found


def few_bits(came: bytes, sent: bytes) -> bool:
    """Whether two PDUs of one length differ, and in no cell by more than each line can damage."""
    cells = [slice(at, at + CELL_PAYLOAD) for at in range(0, len(sent), CELL_PAYLOAD)]
    bits = [(int.from_bytes(came[each]) ^ int.from_bytes(sent[each])).bit_count() for each in cells]
    return 0 < max(bits) <= FAULTY_LINES


def check_words(pdus: Pdus, fates: Fates) -> list[pl.DataFrame]:
    """Each fate has a record that is known, belongs to a PDU, as the only one of it, and counts what it lacks. Of those
    without a valid record the first stands for all."""
    records = pdus.numbers("row")[fates.record]
    comments = pdus.table["comment"].to_numpy()[fates.record]
    name = pdus.name
    strange = fates.kind == UNKNOWN
    without = pdus.fates["record"].is_null().to_numpy()[fates.record]
    shown = strange & ~(without & (np.cumsum(without) > 1))
    found = [
        at_records(name, "fate", shown, records, of(shown, "a fate that this segment has"), of(shown, "{}", comments))
    ]
    alone = ~strange & (fates.copy == NO_COPY)
    found.append(
        at_records(name, "fate", alone, records, of(alone, "of a PDU that is on its way"), of(alone, "{}", comments))
    )
    own, number = np.unique(fates.copy, return_counts=True)
    twice = ~strange & ~alone & np.isin(fates.copy, own[number > 1])
    found.append(at_records(name, "fate", twice, records, of(twice, "one of each PDU"), of(twice, "{}", comments)))
    missing = pdus.numbers("lctr")[fates.record]
    cells = pdus.cells[fates.record]
    lacking = np.where(fates.kind == LOST, fates.lost, 0)
    for what, wrong, expected, seen in (
        ("loss counter of a fate", ~strange & (missing != lacking), lacking, missing),
        ("cells of a fate", (fates.kind == LOST) & (fates.of != cells), cells, fates.of),
    ):
        found.append(at_records(name, what, wrong, records, of(wrong, "{}", expected), of(wrong, "{}", seen)))
    none = (fates.kind == LOST) & ((fates.lost < 1) | (fates.lost > fates.of))
    found.append(
        at_records(name, "cells lost", none, records, of(none, "1 to {}", fates.of), of(none, "{}", fates.lost))
    )
    return found

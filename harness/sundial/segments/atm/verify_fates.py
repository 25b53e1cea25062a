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
from sundial.segments.atm.verify_lines import stamp
from sundial.segments.atm.verify_output import Copies
from sundial.segments.atm.verify_pdus import Pdus, at_records, of
from sundial.segments.atm.verify_queue import PASSED, WORDS
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


def assigned(fates: Fates, pdus: Pdus, copies: Copies) -> Fates:
    """With the copy of each that has the same bytes, channel and end: the latest that had left by then."""
    left = stamp(copies.left.low)
    content, seen = pdus.content[copies.pdu], pdus.content[fates.record]
    copy = fates.copy.copy()
    for towards, end in ((True, copies.to), (False, copies.sender)):
        which = np.flatnonzero((fates.kind != CRC) & (fates.towards == towards) & (fates.kind != UNKNOWN))
        asked = pl.DataFrame(
            {"at": pdus.time_ns[fates.record][which], "vci": pdus.vci[fates.record][which], "fate": which,
             "end": fates.port[which], "content": seen[which]}
        ).sort("at")  # fmt: skip
        known = pl.DataFrame(
            {"at": left, "vci": copies.sent_vci, "end": end, "content": content, "copy": np.arange(len(copies))}
        ).sort("at")
        keys = ["vci", "end", "content"]
        pairs = asked.join_asof(known, on="at", by=keys, check_sortedness=False).drop_nulls("copy")
        copy[pairs["fate"].to_numpy()] = pairs["copy"].to_numpy()
    damaged = np.flatnonzero(fates.kind == CRC)
    if len(damaged):
        copy[damaged] = _damaged(fates, damaged, pdus, copies, left)
    return replace(fates, copy=copy)


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

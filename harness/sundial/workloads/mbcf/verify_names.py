# SPDX-License-Identifier: Apache-2.0
"""Names that nodes give to their connections, and the tags that stand for them on the wire
(guest-apps/sss-core/mbcf/connection.c and operate.c)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from sundial.verify.findings import FINDING
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.mbcf.wire import CLOSE, DEFINES, OP_ID_CONNECTION, TAGS, TASKQUE

_CONNECTION = 1 << 31
_PLACE_BITS, _PLACES = 10, 512
_LOCAL = 64
"""Connections of a node to itself, which no capture shows: a few of each service."""

Fault = tuple[str, str, str, list[int]]
"""field, expected, seen, rows."""

UNPROVEN: tuple[str, ...] = (
    "MBCF: which free place a node takes for an operation or a connection, so the name of one that no other frame says",
)


def check_names(first: pl.DataFrame, transactions: Iterable[Transaction]) -> pl.DataFrame:
    """Findings about frames as they were sent for the first time, in order of time."""
    faults = [*_names(first), *_ends(first, transactions), *_tags(first)]
    return pl.DataFrame([(None, *fault) for fault in faults], schema=FINDING, orient="row")


def _names(first: pl.DataFrame) -> Iterator[Fault]:
    """A name has the number of a place and of how often that was taken, which so many connections allow."""
    node = ("mbcf_source", "mbcf_epoch")
    said = first.filter(pl.col("mbcf_op").is_in([TASKQUE, CLOSE])).select(
        "row", *node, name=pl.coalesce("mbcf_connection", "mbcf_close_connection")
    )
    said = said.drop_nulls("name").with_columns(count=pl.len().over(node))
    place, taken = pl.col("name") % (1 << _PLACE_BITS), pl.col("name") % _CONNECTION // (1 << _PLACE_BITS)
    right = (pl.col("name") >= _CONNECTION) & place.is_between(1, _PLACES)
    right &= taken.is_between(1, pl.col("count") + _LOCAL)
    for row, name in said.filter(~right).select("row", "name").iter_rows():
        yield "mbcf.connection", "the name of a connection", f"0x{name:08x}", [row]


def _short(name: int) -> int:
    """What op_id has of a name."""
    return name % OP_ID_CONNECTION | OP_ID_CONNECTION


def _ends(first: pl.DataFrame, transactions: Iterable[Transaction]) -> Iterator[Fault]:
    """What ends a connection that a TASKQUE write has made names it as the frames over it do."""
    closing = first.filter(pl.col("mbcf_op") == CLOSE).select("row", "mbcf_close_connection", "mbcf_close_peer")
    names = {row: (own, peer) for row, own, peer in closing.iter_rows()}
    op_ids = dict(first.select("row", "mbcf_op_id").iter_rows())
    for transaction in transactions:
        if transaction.connections != 1:
            continue
        sent = {op_ids[row] for row, _ in transaction.frames[True]}
        used = {name for name in sent if name & OP_ID_CONNECTION}
        ended = [row for row in transaction.closed[True] if row in names]
        full = {names[row][0] for row in ended}
        for row in ended:
            if used and used != {_short(names[row][0])}:
                yield "mbcf.connection", f"{sorted(used)} at its end", f"0x{names[row][0]:08x}", [row]
        for row in (row for row in transaction.closed[False] if row in names):
            peer = names[row][1] or 0
            known = {_short(name) for name in full} | used
            if peer and known and {_short(peer)} != known:
                yield "mbcf.connection", f"{sorted(known)} at its end", f"0x{peer:08x}", [row]


def _tags(first: pl.DataFrame) -> Iterator[Fault]:
    """A node goes round the tags of a channel; a tag is defined again for another upper half of its addresses alone.

    Definitions may be missing that were given up before they were sent: as many as numbers of the sequence are, and any
    number where the peer has restarted.
    """
    channel = ("mbcf_source", "mbcf_target", "mbcf_epoch")
    seq = pl.col("mbcf_seq").cast(pl.Int64)
    gaps = (seq - seq.shift(1).over(*channel, "mbcf_target_epoch") - 1).fill_null(0).clip(0)
    columns = (
        "row", "mbcf_tag", "missing", *channel, "mbcf_target_epoch", "mbcf_defined_source", "mbcf_defined_target",
        "mbcf_defined_key", "mbcf_defined_high",
    )  # fmt: skip
    defining = first.with_columns(missing=gaps.cum_sum().over(channel)).filter((pl.col("mbcf_flags") & DEFINES) != 0)
    state: dict[tuple[int, ...], tuple[int, int, int]] = {}
    defined: dict[tuple[int, ...], tuple[int, ...]] = {}
    for row, tag, missing, source, target, epoch, target_epoch, *means, high in defining.select(columns).iter_rows():
        between = (source, target, epoch)
        last, known_epoch, known_missing = state.get(between, (-1, target_epoch, 0))
        place = (*between, target_epoch, tag)
        before = defined.get(place)
        if before is not None and before[:-1] == tuple(means) and before[-1] != high:
            state[between] = (last, target_epoch, missing)
        else:
            most = TAGS if target_epoch != known_epoch else missing - known_missing
            if (tag - last - 1) % TAGS > most:
                yield "mbcf.tag", f"{(last + 1) % TAGS}, the next one", str(tag), [row]
            state[between] = (tag, target_epoch, missing)
        defined[place] = (*means, high)

# SPDX-License-Identifier: Apache-2.0
"""Names that nodes give to their connections, and the tags that stand for them on the wire
(guest-apps/sss-core/mbcf/connection.c and operate.c)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from sundial.verify.findings import Finding, as_table
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.mbcf.wire import CLOSE, DEFINES, FETCH_ADD, MORE, OP_ID_CONNECTION, TAGS, TASKQUE

_CONNECTION = 1 << 31
_PLACE_BITS = 10
_CONNECTIONS, _OPERATIONS = 512, 256
"""Places of a node (guest-apps/sss-core/include/sss/abi.h)."""
_HIDDEN = 64
"""Connections and operations that a node has with itself, which no capture shows: a few of each service."""
_FREE = 8
"""At least one of so many places is free at any time."""
_CALLER = ("mbcf_source_task", "mbcf_target")
_ROUND = 900
"""Operations before which no place has been taken 32 times."""

UNPROVEN: tuple[str, ...] = (
    "MBCF: which place a node takes for an operation that no RESULT answers, but that it is a later one, and not taken"
    " before, until all have been taken once",
)


def check_names(
    first: pl.DataFrame, transactions: Iterable[Transaction], asks_again_ns: Mapping[int, int]
) -> pl.DataFrame:
    """Findings about frames as they were sent for the first time, in order of time. `asks_again_ns`: after which time
    the calls of a node are made again; one that finds no place in the window makes a connection and no frame."""
    return as_table([*_names(first, asks_again_ns), *_ends(first, transactions), *_tags(first)])


def _names(first: pl.DataFrame, asks_again_ns: Mapping[int, int]) -> Iterator[Finding]:
    """A name has the number of a place and of how often that was taken. A place is taken again after all others that
    are free, and in the first round in their order."""
    node = ("mbcf_source", "mbcf_epoch")
    ordered = first.with_row_index("order")
    # A peer's TASKQUE write takes a place at its receiver, which names it when it ends at the earliest.
    made_by_peers = ordered.filter(pl.col("mbcf_op") == TASKQUE).select(
        "order", mbcf_source="mbcf_target", made=pl.int_range(1, pl.len() + 1).over("mbcf_target")
    )
    between_ns = pl.col("mbcf_source").replace_strict(dict(asks_again_ns), default=None, return_dtype=pl.Int64)
    unmade = (pl.col("time_ns") - pl.col("time_ns").min().over(node)) // between_ns
    connections = (
        ordered.filter(pl.col("mbcf_op").is_in([TASKQUE, CLOSE]))
        .select("order", "row", "time_ns", *node, name=pl.coalesce("mbcf_connection", "mbcf_close_connection"))
        .drop_nulls("name")
        .with_columns(fresh=pl.struct("name", *node).is_first_distinct().cast(pl.Int64))
        .join_asof(made_by_peers, on="order", by="mbcf_source", check_sortedness=False)  # both are in order of time
        .with_columns(rank=pl.col("fresh").cum_sum().over(node) + pl.col("made").fill_null(0) + unmade.fill_null(0))
    )
    name = pl.col("name").cast(pl.Int64)
    for row, seen in _misnamed(connections.with_columns(name=name - _CONNECTION), _CONNECTIONS):
        yield Finding(None, "mbcf.connection", "the name of a connection", f"0x{seen + _CONNECTION:08x}", [row])
    awaited = (pl.col("mbcf_op_id") & OP_ID_CONNECTION) == 0
    goes_on = (
        ((pl.col("mbcf_flags") & MORE) != 0)
        .shift(1)
        .over(*node, "mbcf_target", "mbcf_op_id")
        .fill_null(False)
        .alias("goes_on")
    )
    operations = (
        first.filter(pl.col("mbcf_op").is_between(TASKQUE, FETCH_ADD), awaited)
        .with_columns(goes_on, rank=(~goes_on).cast(pl.Int64).cum_sum().over(node))
        .filter(pl.col("rank") < _ROUND)  # what op_id has of the number goes round
        .select("row", "rank", "goes_on", *node, *_CALLER, name=pl.col("mbcf_op_id").cast(pl.Int64))
    )
    for row, seen in _misnamed(operations, _OPERATIONS):
        yield Finding(None, "mbcf.op_id", "the name of an operation", f"0x{seen:04x}", [row])
    # A place is taken once in the first round, and a task's operations to a node are in the order of their places.
    begun = operations.filter(~pl.col("goes_on"), pl.col("name") < 2 << _PLACE_BITS)
    behind = begun.with_columns(
        least=pl.col("name").shift(1).over(*node, *_CALLER), again=~pl.struct("name", *node).is_first_distinct()
    )
    wrong = behind.filter((pl.col("name") < pl.col("least")) | pl.col("again"))
    for row, seen in wrong.select("row", "name").iter_rows():
        yield Finding(None, "mbcf.op_id", "a place that follows those before", f"0x{seen:04x}", [row])


def _misnamed(named: pl.DataFrame, places: int) -> Iterator[tuple[int, int]]:
    """`named`: row, name and rank, how many there were until then; so many more may have been hidden."""
    place, taken = pl.col("name") % (1 << _PLACE_BITS), pl.col("name") // (1 << _PLACE_BITS)
    most = pl.col("rank") + _HIDDEN
    right = place.is_between(1, places) & taken.is_between(1, 1 + most * _FREE // places)
    right &= (taken > 1) | (place <= most)
    yield from named.filter(~right).select("row", "name").sort("row").iter_rows()


def _short(name: int) -> int:
    """What op_id has of a name."""
    return name % OP_ID_CONNECTION | OP_ID_CONNECTION


def _ends(first: pl.DataFrame, transactions: Iterable[Transaction]) -> Iterator[Finding]:
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
                yield Finding(None, "mbcf.connection", f"{sorted(used)} at its end", f"0x{names[row][0]:08x}", [row])
        for row in (row for row in transaction.closed[False] if row in names):
            peer = names[row][1] or 0
            known = {_short(name) for name in full} | used
            if peer and known and {_short(peer)} != known:
                yield Finding(None, "mbcf.connection", f"{sorted(known)} at its end", f"0x{peer:08x}", [row])


def _tags(first: pl.DataFrame) -> Iterator[Finding]:
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
                yield Finding(None, "mbcf.tag", f"{(last + 1) % TAGS}, the next one", str(tag), [row])
            state[between] = (tag, target_epoch, missing)
        defined[place] = (*means, high)

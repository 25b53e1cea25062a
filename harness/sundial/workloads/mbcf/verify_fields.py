# SPDX-License-Identifier: Apache-2.0
"""Every field of every MBCF frame as it was sent: what it may be by its operation, and by what was said before.

What depends on the sequence (numbers, acknowledgements, RETX, UNSURE) is checked in `verify_channels`, what depends on
calls (lengths, MORE, ACK_NOW) in `verify_transactions` and by those who speak over MBCF. That what arrives is what was
sent, conservation checks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import OUTBOUND
from sundial.workloads.mbcf.verify_transactions import Answer, Meanings
from sundial.workloads.mbcf.wire import (
    ACK,
    ACK_NOW,
    CAS,
    CAS_PAYLOAD,
    CLOSE,
    CLOSE_PAYLOAD,
    DEFINES,
    DEFINITION,
    ETHERNET,
    FETCH_ADD,
    FIFO,
    FRAME_LEAST,
    HEADER,
    MORE,
    NONCES,
    OPENED,
    OPERATIONS,
    PART,
    PAYLOAD,
    PROBE,
    READ,
    READ_PAYLOAD,
    RESULT,
    RETX,
    RST,
    SIGNAL,
    SIGNAL_ARGUMENT,
    SIGNAL_ARGUMENTS,
    STATUS_BUSY,
    SWAP,
    SYN,
    SYNACK,
    TAGS,
    TASKQUE,
    TASKQUE_HEAD,
    UNSURE,
    VERSION,
    WIDE,
    WORD_PAYLOAD,
    WRITE,
)

UNPROVEN = (
    "MBCF: addresses and accesskeys against the memory of tasks; that all frames which use them agree is checked",
    "MBCF: nonces that were not returned",
)

PLACE_BYTES = 48
"""Of what a server tells of its memory (guest-apps/sss-core/tasks/common/mbcf_target.h): its key, and where it is."""

MOST_RESTARTS = 1 << 16
"""Incarnations of a node in a run."""

_ANY = ACK_NOW | RETX | UNSURE
_FLAGS: Mapping[int, int] = {
    ACK: UNSURE, PROBE: UNSURE, SYN: 0, SYNACK: 0, OPENED: 0, RST: 0, TASKQUE: _ANY, CLOSE: _ANY, RESULT: _ANY,
    WRITE: _ANY | DEFINES | MORE, READ: _ANY | DEFINES | MORE, FIFO: _ANY | DEFINES | MORE | PART,
    SIGNAL: _ANY | DEFINES, SWAP: _ANY | DEFINES | WIDE, CAS: _ANY | DEFINES | WIDE, FETCH_ADD: _ANY | DEFINES | WIDE,
}  # fmt: skip
"""That frames of each operation may have."""
_LENGTHS: Mapping[int, tuple[int, int]] = {
    ACK: (0, 0), PROBE: (0, 0), RST: (0, 0), SYN: (NONCES, NONCES), SYNACK: (NONCES, NONCES),
    OPENED: (NONCES, NONCES), TASKQUE: (TASKQUE_HEAD, PAYLOAD), READ: (READ_PAYLOAD, READ_PAYLOAD),
    SWAP: (WORD_PAYLOAD, WORD_PAYLOAD), FETCH_ADD: (WORD_PAYLOAD, WORD_PAYLOAD), CAS: (CAS_PAYLOAD, CAS_PAYLOAD),
    CLOSE: (0, CLOSE_PAYLOAD), WRITE: (0, PAYLOAD), FIFO: (0, PAYLOAD), SIGNAL: (0, PAYLOAD), RESULT: (0, PAYLOAD),
}  # fmt: skip
"""Bytes of payload, at least and at most."""


def check_fields(
    frames: pl.DataFrame, transit: pl.Series, meanings: Meanings, epochs: Mapping[int, int]
) -> pl.DataFrame:
    """Findings about MBCF frames with `view`, nodes and what their tags stand for. `transit`: ends of machines that
    pass on frames of others; `epochs`: what jobs give to nodes."""
    sent = frames.filter(pl.col("view") == "sent")
    parts = [
        *(_wrong(sent, *rule) for rule in _rules()),
        _strangers(frames, transit),
        _epochs(sent),
        _beginnings(sent, epochs),
        _keys(sent, meanings),
    ]
    return pl.concat(parts)


Rule = tuple[str, str, pl.Expr, pl.Expr]
"""Field, what is expected, where it is wrong, what was seen."""


def _rules() -> Iterator[Rule]:
    op, flags, length = pl.col("mbcf_op"), pl.col("mbcf_flags"), pl.col("mbcf_length")
    status, last = pl.col("mbcf_status"), pl.col("mbcf_last")
    keyed, sequenced = op.is_between(WRITE, FETCH_ADD), op >= TASKQUE
    shakes = op.is_in([SYN, SYNACK, OPENED])
    defines = (flags & DEFINES) != 0
    yield "mbcf.version", str(VERSION), pl.col("mbcf_version") != VERSION, _text("mbcf_version")
    yield "mbcf.op", "a known operation", ~op.is_in(list(OPERATIONS)), _text("mbcf_op")
    allowed = op.replace_strict(dict(_FLAGS), default=0xFF, return_dtype=pl.UInt32)
    yield "mbcf.flags", "those of its operation", (flags & ~allowed) != 0, _text("mbcf_flags")
    yield (
        "mbcf.tag",
        f"below {TAGS}, 0 where there is none",
        (pl.col("mbcf_tag") >= pl.when(keyed).then(TAGS).otherwise(1)),
        _text("mbcf_tag"),
    )
    yield "mbcf.tag", "one that was defined", keyed & pl.col("mbcf_key").is_null(), _text("mbcf_tag")
    yield "mbcf.epoch", "not 0", pl.col("mbcf_epoch") == 0, _text("mbcf_epoch")
    yield "mbcf.seq", "a number in the sequence", sequenced & (pl.col("mbcf_seq") == 0), _text("mbcf_seq")
    yield "mbcf.seq", "0", op.is_in([ACK, PROBE, RST]) & (pl.col("mbcf_seq") != 0), _text("mbcf_seq")
    yield "mbcf.ack", "0", op.is_in([SYN, OPENED, RST]) & (pl.col("mbcf_ack") != 0), _text("mbcf_ack")
    most = {number: ends[1] for number, ends in _LENGTHS.items()}
    least = {number: ends[0] for number, ends in _LENGTHS.items()}
    wrong = (length > op.replace_strict(most, default=PAYLOAD, return_dtype=pl.UInt32)) | (
        length < op.replace_strict(least, default=0, return_dtype=pl.UInt32)
    )
    yield "mbcf.length", "that of its operation", wrong, _text("mbcf_length")
    ends = (op == CLOSE) & ((length == 0) != ((last & 0xFFFF) == 0))
    yield "mbcf.length", "the names of a connection, and none at the end of a task", ends, _text("mbcf_length")
    whole = pl.max_horizontal(
        pl.lit(FRAME_LEAST), ETHERNET + HEADER + pl.when(defines).then(DEFINITION).otherwise(0) + length
    )
    yield "mbcf.frame_length", "headers and payload", pl.col("frame_length") != whole, _text("frame_length")
    yield "mbcf.padding", "zeros up to 60 bytes", pl.col("mbcf_excess") != 0, _text("mbcf_excess")
    yield "mbcf.op_id", "0", (~sequenced | (op == CLOSE)) & (pl.col("mbcf_op_id") != 0), _text("mbcf_op_id")
    named = sequenced & (op != CLOSE) & ((pl.col("mbcf_op_id") & 0x3FF) == 0)
    yield "mbcf.op_id", "a name", named, _text("mbcf_op_id")
    yield "mbcf.reserved", "0", ~sequenced & (last != 0), _text("mbcf_last")
    yield "mbcf.reserved", "0", (op == READ) & (pl.col("mbcf_read_reserved") != 0), _text("mbcf_read_reserved")
    yield "mbcf.permission", "at most 3", (op == TASKQUE) & (pl.col("mbcf_permission") > 3), _text("mbcf_permission")
    no_status = ~op.is_in([RESULT, SIGNAL]) & (status != 0)
    yield "mbcf.status", "0", no_status, _text("mbcf_status")
    arguments = (op == SIGNAL) & ((status > SIGNAL_ARGUMENTS) | (status * SIGNAL_ARGUMENT > length))
    yield "mbcf.status", "as many arguments as there are", arguments, _text("mbcf_status")
    yield "mbcf.status", "one that a node can report", (op == RESULT) & (status > STATUS_BUSY), _text("mbcf_status")
    refusal = (op == RESULT) & (status != 0)
    yield "mbcf.length", "0 of an error", refusal & (length != 0), _text("mbcf_length")
    fresh = (flags & RETX) == 0
    yield "mbcf.ack_now", "on an error", refusal & fresh & ((flags & ACK_NOW) == 0), _text("mbcf_flags")
    yield (
        "mbcf.ack_now",
        "not on a result",
        (op == RESULT) & (status == 0) & fresh & ((flags & ACK_NOW) != 0),
        _text("mbcf_flags"),
    )
    yield (
        "mbcf.part",
        "PART on parts alone",
        (op == FIFO) & ((flags & MORE) != 0) & ((flags & PART) == 0),
        _text("mbcf_flags"),
    )
    tasks = keyed & ((pl.col("mbcf_source_task") == 0) | (pl.col("mbcf_target_task") == 0))
    yield "mbcf.task", "tasks of both sides", tasks, pl.format("{} and {}", "mbcf_source_task", "mbcf_target_task")
    nonce, echo = pl.col("mbcf_nonce"), pl.col("mbcf_echo")
    answers = (op == SYNACK) & (nonce != 0) & (pl.col("mbcf_ack") != 0)
    yield "mbcf.ack", "0 to whom it does not believe", answers, _text("mbcf_ack")
    yield "mbcf.nonce", "not 0", (op == SYN) & (nonce == 0), _text("mbcf_nonce")
    yield "mbcf.nonce", "0", (op == OPENED) & (nonce != 0), _text("mbcf_nonce")
    yield "mbcf.echo", "0", (op == SYN) & (echo != 0), _text("mbcf_echo")
    yield "mbcf.echo", "a nonce", shakes & (op != SYN) & (echo == 0), _text("mbcf_echo")
    knows = pl.col("mbcf_target_epoch") == 0
    yield "mbcf.target_epoch", "0", (op == SYN) & ~knows, _text("mbcf_target_epoch")


def _text(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String)


def _wrong(sent: pl.DataFrame, field: str, expected: str, where: pl.Expr, seen: pl.Expr) -> pl.DataFrame:
    bad = sent.lazy().filter(where.fill_null(False)).select("row", seen=seen.fill_null("none")).sort("row")
    return _findings(field, expected, bad.collect())


def _findings(field: str, expected: str, bad: pl.DataFrame) -> pl.DataFrame:
    """`bad`: row, seen."""
    return as_table(Finding(None, field, expected, seen, [row]) for row, seen in bad.iter_rows())


def _strangers(frames: pl.DataFrame, transit: pl.Series) -> pl.DataFrame:
    """What leaves a machine has its address, and that of a node."""
    own = frames.filter(pl.col("fate").is_null(), ~pl.col("end").is_in(transit.implode()))
    address = pl.format("{} to {}", *(pl.col(f"mbcf_{end}_mac") % (1 << 24) for end in ("source", "target")))
    outbound = pl.col("direction") == OUTBOUND
    bad = own.filter(outbound & ((pl.col("view") != "sent") | (pl.col("mbcf_target") == 0)))
    return _findings("mbcf.address", "from the machine's own to a node", bad.select("row", seen=address).sort("row"))


def _epochs(sent: pl.DataFrame) -> pl.DataFrame:
    """Frames for an incarnation that there is, or was: one that its node has said to be."""
    said = sent.select(target="mbcf_source", epoch="mbcf_epoch").unique()
    meant = sent.filter(pl.col("mbcf_target_epoch") != 0)
    bad = meant.join(
        said, left_on=["mbcf_target", "mbcf_target_epoch"], right_on=["target", "epoch"], how="anti"
    )  # fmt: skip
    bad = bad.select("row", seen=_text("mbcf_target_epoch")).sort("row")
    missing = sent.filter((pl.col("mbcf_target_epoch") == 0) & (pl.col("mbcf_op") != SYN))
    return pl.concat(
        [
            _findings("mbcf.target_epoch", "an epoch of that node", bad),
            _findings("mbcf.target_epoch", "an epoch of that node", missing.select("row", seen=pl.lit("0"))),
        ]
    )


def _beginnings(sent: pl.DataFrame, epochs: Mapping[int, int]) -> pl.DataFrame:
    """A node's first incarnation has the epoch of its job, and each that follows the next one; 0 is left out."""
    first = pl.col("mbcf_source").replace_strict(dict(epochs), default=None, return_dtype=pl.Int64)
    later = (pl.col("mbcf_epoch").cast(pl.Int64) - first) % (1 << 32)
    bad = sent.filter(later >= MOST_RESTARTS).select("row", seen=_text("mbcf_epoch")).sort("row")
    return _findings("mbcf.epoch", "that of the job, or what follows it", bad)


def _keys(sent: pl.DataFrame, meanings: Meanings) -> pl.DataFrame:
    """A key is one that the node has given away: with a TASKQUE write, in the answer to a binding, or at the head of
    what it tells of its memory. Of a node that tells nothing, tasks know keys from elsewhere: then all frames between
    two tasks have the same."""
    asked = sent.filter(pl.col("mbcf_op") == TASKQUE).select("mbcf_source", "mbcf_taskque_key")
    given = set(asked.iter_rows())
    said = sent.filter(pl.col("mbcf_op").is_in([FIFO, WRITE]), pl.col("mbcf_data").is_not_null())
    for node, op, data in said.select("mbcf_source", "mbcf_op", "mbcf_data").iter_rows():
        meaning = meanings(op, data)
        if isinstance(meaning, Answer) and meaning.key is not None:
            given.add((node, meaning.key))
    written = sent.filter(pl.col("mbcf_op") == WRITE, pl.col("mbcf_length") == PLACE_BYTES)
    for node, data in written.select("mbcf_source", "mbcf_data").iter_rows():
        given.add((node, int.from_bytes(bytes.fromhex(data[:16]), "little")))
    tasks = ("mbcf_source", "mbcf_source_task", "mbcf_target", "mbcf_target_task", "mbcf_epoch", "mbcf_target_epoch")
    giving = set(written["mbcf_source"])
    first: dict[tuple[int, ...], int] = {}
    bad = []
    keyed = sent.filter(pl.col("mbcf_key").is_not_null()).sort("time_ns", "row")
    for row, key, *between in keyed.select("row", "mbcf_key", *tasks).iter_rows():
        if (between[2], key) in given:
            continue
        if between[2] in giving or first.setdefault(tuple(between), key) != key:
            bad.append((row, f"0x{key:016x}"))
    table = pl.DataFrame(bad, schema={"row": pl.UInt32, "seen": pl.String}, orient="row")
    return _findings("mbcf.key", "one that the other node has given away", table)

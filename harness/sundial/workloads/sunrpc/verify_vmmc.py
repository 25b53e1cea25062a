# SPDX-License-Identifier: Apache-2.0
"""vRPC over a backplane: its rings, and the messages in them, against samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.segments.vmmc.wire import DU, HEADER, NOTIFY
from sundial.verify.findings import Finding
from sundial.workloads import functions
from sundial.workloads.sunrpc import verify_ring_counts
from sundial.workloads.sunrpc.expect import messages
from sundial.workloads.sunrpc.scenario import DELIBERATE_ABOVE, VRPC
from sundial.workloads.sunrpc.verify import SOCKETS
from sundial.workloads.sunrpc.verify_messages import Contents
from sundial.workloads.sunrpc.verify_ring_calls import RingCalls
from sundial.workloads.sunrpc.verify_rings import CONTROL, RING, WORD, Ring, Write, read_ring
from sundial.workloads.vmmc.verify_evidence import (
    Evidence,
    Expected,
    Import,
    Judgement,
    VmmcProtocol,
    check_soon,
)
from sundial.workloads.vmmc.verify_pairs import NOTIFY_CONTROL, SILENT, Pair, find_pairs, opened_at

PREFIX = "vrpc."
"""Of names of what servers offer."""
USE = 1
"""enum vmmc_use: what imports of it are for."""
PAGES = 1 + RING // CONTROL
_HASH_SHIFT = 8
"""Of the ring's bytes in what both sides must have in common; how they wait is below."""
_INSTRUCTIONS, _OF_A_WORD, _OF_THE_FIRST = 2_000, 10, 40_000
"""A client's, from reading its clock until something leaves, and from the reply's tail until it reads its clock again:
of whatever else (measured: 340, and 540), of each word that is encoded or copied (8, and 1), and of the first message
of a line that goes by deliberate update (18,000 to 23,000), beside what the adapter takes for one."""
_OF_A_VALUE = 160
"""The same of each four bytes of a message of the twelve functions, whose values are encoded one by one (measured: 51
of floats, 131 of short strings)."""
_OF_A_STRING = 19
"""The same, until something leaves, of each word of a string, whose end is looked for twice (measured: 15)."""
STORE = 4
"""Bytes of the shortest store of XDR."""

UNPROVEN: tuple[str, ...] = (
    "vrpc, vrpc-mbcf: how often a polling client looked",
    verify_ring_counts.UNPROVEN,
)


class _VRpc:
    def speaks(self, transport: str) -> bool:
        return transport == VRPC

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        calls = RingCalls(Contents(evidence, evidence.packets, SOCKETS))
        pairs = find_pairs(evidence, judgement, PREFIX)
        waits = _waits(evidence, pairs)
        for pair in pairs:
            judgement.findings += _check_pair(pair, waits.get(pair.there))
            ways = pair.sent(evidence), pair.answered(evidence)
            for packets in ways:
                judgement.findings += _check_flags(pair, packets)
            there, back = (_ring(evidence, way, replies=way is ways[1]) for way in ways)
            calls.add_line(pair.client, there, back, (pair.task, pair.server, 0))
        for sample in evidence.samples.filter(pl.col("transport") == VRPC).iter_rows(named=True):
            if calls.refuses(sample):
                continue
            line = evidence.batches.get((sample["client"], sample["batch"]), {})
            above = evidence.step(sample["client"], line).get("deliberate_above")
            above = DELIBERATE_ABOVE if above is None else int(above)
            client = evidence.nodes.get(sample["client"], 0)
            first = calls.is_first(client, sample["xid"])
            options = calls.judge(sample, client, above)
            lengths = messages(sample["procedure"], sample["size"], options.credential)
            most = evidence.backplane(client).combine_bytes
            request, reply = (_expected(length, above, most) for length in lengths)
            judgement.expected.setdefault((VRPC, sample["procedure"], sample["size"]), (request, reply))
            begins: float = _OF_THE_FIRST if first else 0
            if lengths[0] > above:
                own_ns = evidence.deliberate_ns(client, min(WORD + lengths[0], CONTROL))
                begins += own_ns / (evidence.instructions_ns(client, 1) or 1)
            room_ns = calls.room_ns.get((client, sample["xid"]))
            judgement.findings += _check_soon(evidence, sample, calls.observed[-1], lengths, begins, room_ns)
        calls.check_left()
        judgement.findings += calls.findings
        judgement.findings += map(Finding._make, calls.contents.check().iter_rows())
        judgement.observed += calls.observed
        judgement.owner |= calls.owner
        return judgement

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        return None if call["xid"] is None else f"rpc.xid == 0x{call['xid']:08x}"


KIND: VmmcProtocol = _VRpc()


def _waits(evidence: Evidence, pairs: Sequence[Pair]) -> dict[Import, str]:
    """How the clients wait that have imported so, as the lines above their samples say."""
    opened: dict[tuple[int, int, int], list[Pair]] = {}
    for pair in pairs:
        opened.setdefault((pair.client, pair.task, pair.server), []).append(pair)
    samples = evidence.samples.filter(pl.col("transport") == VRPC)
    began = samples.group_by("client", "batch").agg(pl.col("start_ns").min())
    found = {}
    for client, batch, at_ns in began.iter_rows():
        line = evidence.batches.get((client, batch), {})
        server = int(line.get("server_node") or 0)
        ends = (evidence.nodes.get(client, 0), int(line.get("client_task") or 0), server)
        one = opened_at(opened.get(ends, []), lambda each: each, at_ns)
        if one is not None and "wait" in line:
            found[one.there] = str(line["wait"])
    return found


def _check_pair(pair: Pair, wait: str | None) -> Iterator[Finding]:
    """Both imports are of rings, and both sides wait as the client's options say."""
    for each in (pair.there, pair.back):
        if (each.use, each.pages) != (USE, PAGES):
            rows = [each.request] if each.answer is None else [each.answer]
            yield Finding(None, "vmmc.import", f"use {USE}, {PAGES} pages", f"use {each.use}, {each.pages} pages", rows)
    notify = wait == "notify" if wait is not None else pair.notify != SILENT
    for what, due, seen in (
        ("hash", RING << _HASH_SHIFT | notify, pair.hash),
        ("notify", NOTIFY_CONTROL if notify else SILENT, pair.notify),
    ):
        if due != seen:
            yield Finding(None, f"vrpc.pair.{what}", str(due), str(seen), [pair.there.request])


def _check_flags(pair: Pair, packets: pl.DataFrame) -> Iterator[Finding]:
    """Tails and heads notify their reader, where it sleeps; nothing else does."""
    due = pl.when((pl.col("offset") < CONTROL) & (pair.notify == NOTIFY_CONTROL)).then(NOTIFY).otherwise(0)
    wrong = packets.filter((pl.col("flags") & NOTIFY) != due)
    if not wrong.is_empty():
        first = wrong.row(0, named=True)
        where = f"at {first['offset']}, notify {pair.notify}"
        yield Finding(None, "ring.flags", f"as its page is bound, {where}", str(first["flags"]), wrong["row"].to_list())


def _check_soon(
    evidence: Evidence,
    sample: Mapping[str, Any],
    observed: tuple[Any, ...],
    lengths: tuple[int, int],
    begins: float,
    room_ns: int | None,
) -> Iterable[Finding]:
    """Messages are encoded and stored, or sent from where they were encoded; results are copied, or decoded.

    `begins`: further instructions until the first packet leaves; `room_ns`: when the ring had room for the call.
    """
    _, _, sent_ns, _, _, answered_ns, *_ = observed
    if not sample["ok"] or sent_ns is None or answered_ns is None:
        return ()
    if sample["procedure"] in functions.BY_NAME:
        before, behind = (_OF_A_VALUE * length // 4 for length in lengths)
    else:
        words = sample["size"] // WORD
        before = (_OF_A_STRING if sample["procedure"] == "echo_string" else _OF_A_WORD) * words
        behind = _OF_A_WORD * words
    most = (_INSTRUCTIONS + before + begins, _INSTRUCTIONS + behind)
    return check_soon(evidence, sample, ([], sent_ns), ([], answered_ns), most, room_ns)


def _ring(evidence: Evidence, packets: pl.DataFrame, *, replies: bool) -> Ring:
    columns = packets.select("row", "offset", "length", "sent_ns", "arrived_ns", pl.col("kind") == DU)
    writes = [Write._make((*line, HEADER)) for line in columns.iter_rows()]
    return read_ring(writes, lambda write: evidence.data(write.row), replies=replies)


def _expected(length: int, deliberate_above: int, combined: int) -> Expected:
    """A message and the tail behind it. Stores of a message are combined where they follow each other soon enough."""
    whole = WORD + length
    if length > deliberate_above:
        parts = -(-whole // CONTROL)
        lengths = (*[CONTROL] * (parts - 1), whole - CONTROL * (parts - 1), WORD)
        return Expected(lengths, fewest=parts + 1, most=parts + 2)
    parts = -(-whole // combined)
    lengths = (*[combined] * (parts - 1), whole - combined * (parts - 1), WORD)
    return Expected(lengths, fewest=parts + 1, most=whole // STORE + 1)

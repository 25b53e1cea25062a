# SPDX-License-Identifier: Apache-2.0
"""vRPC over a backplane: its rings, and the messages in them, against samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sundial.segments.vmmc.wire import DU, HEADER
from sundial.workloads.sunrpc.expect import messages
from sundial.workloads.sunrpc.scenario import DELIBERATE_ABOVE, VRPC
from sundial.workloads.sunrpc.verify import SOCKETS
from sundial.workloads.sunrpc.verify_messages import Contents
from sundial.workloads.sunrpc.verify_ring_calls import RingCalls
from sundial.workloads.sunrpc.verify_rings import CONTROL, RING, WORD, Ring, Write, read_ring
from sundial.workloads.vmmc.verify_evidence import Evidence, Expected, Judgement, VmmcProtocol
from sundial.workloads.vmmc.verify_pairs import Pair, find_pairs

PREFIX = "vrpc."
"""Of names of what servers offer."""
USE = 1
"""enum vmmc_use: what imports of it are for."""
PAGES = 1 + RING // CONTROL
STORE = 4
"""Bytes of the shortest store of XDR."""


class _VRpc:
    def speaks(self, transport: str) -> bool:
        return transport == VRPC

    def judge(self, evidence: Evidence) -> Judgement:
        judgement = Judgement()
        calls = RingCalls(Contents(evidence, evidence.packets, SOCKETS))
        for pair in find_pairs(evidence, judgement, PREFIX):
            _check_pair(judgement, pair)
            there = _ring(evidence, pair.sent(evidence), replies=False)
            back = _ring(evidence, pair.answered(evidence), replies=True)
            calls.add_line(pair.client, there, back)
        for sample in evidence.samples.filter(pl.col("transport") == VRPC).iter_rows(named=True):
            line = evidence.batches.get((sample["client"], sample["batch"]), {})
            above = evidence.step(sample["client"], line).get("deliberate_above")
            above = DELIBERATE_ABOVE if above is None else int(above)
            client = evidence.nodes.get(sample["client"], 0)
            options = calls.judge(sample, client, above)
            lengths = messages(sample["procedure"], sample["size"], options.credential)
            most = evidence.backplane(client).combine_bytes
            request, reply = (_expected(length, above, most) for length in lengths)
            judgement.expected.setdefault((VRPC, sample["procedure"], sample["size"]), (request, reply))
        calls.check_left()
        judgement.findings += calls.findings
        judgement.findings += calls.contents.check().iter_rows()
        judgement.observed += calls.observed
        judgement.owner |= calls.owner
        return judgement

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        return None if call["xid"] is None else f"rpc.xid == 0x{call['xid']:08x}"


KIND: VmmcProtocol = _VRpc()


def _check_pair(judgement: Judgement, pair: Pair) -> None:
    """Both imports are of rings."""
    for each in (pair.there, pair.back):
        if (each.use, each.pages) != (USE, PAGES):
            rows = [each.request] if each.answer is None else [each.answer]
            expected, seen = f"use {USE}, {PAGES} pages", f"use {each.use}, {each.pages} pages"
            judgement.findings.append((None, "vmmc.import", expected, seen, rows))


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

# SPDX-License-Identifier: Apache-2.0
"""vRPC over MBCF: its rings, which remote WRITEs fill, and the messages in them, against samples."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from sundial.workloads.mbcf.verify_evidence import Due, Evidence, Judgement, check_frame, check_server
from sundial.workloads.mbcf.wire import WRITE
from sundial.workloads.sunrpc.expect_mbcf import expect_in_rings
from sundial.workloads.sunrpc.scenario import VRPC_MBCF
from sundial.workloads.sunrpc.verify_bound import Handles, Line
from sundial.workloads.sunrpc.verify_messages import Contents
from sundial.workloads.sunrpc.verify_ring_calls import RingCalls
from sundial.workloads.sunrpc.verify_rings import BUFFER, OWN_BYTES, Ring, Write, read_ring


class _Way(NamedTuple):
    """One way of a line: node and task of both sides, where it is in the reader's memory, and the key to that."""

    sender: tuple[int, int]
    receiver: tuple[int, int]
    base: int
    key: int
    replies: bool


def judge_rings(evidence: Evidence, judgement: Judgement, handles: Handles, contents: Contents) -> None:
    """Calls in rings, and all WRITEs of their lines."""
    calls = RingCalls(contents, evidence.exact)
    heads: set[int] = set()
    written = evidence.first.filter(pl.col("mbcf_op") == WRITE).sort("time_ns", "row")
    for line in handles.lines:
        there, back = (_ring(evidence, judgement, written, way) for way in _ways(line))
        calls.add_line(line.client[0], there, back, (line.client[1], *line.server))
        heads.update(there.beside, back.beside)
    samples = evidence.samples.filter(pl.col("transport") == VRPC_MBCF)
    for sample in samples.iter_rows(named=True):
        if calls.refuses(sample):
            continue
        judgement.findings += check_server(
            evidence, sample, evidence.batches.get((sample["client"], sample["batch"]), {})
        )
        options = calls.judge(sample, evidence.nodes.get(sample["client"], 0), None)
        expected = expect_in_rings(sample["procedure"], sample["size"], options.credential)
        group = (VRPC_MBCF, sample["procedure"], sample["size"])
        judgement.expected.setdefault(group, (expected.client, expected.server))
    calls.check_left()
    judgement.findings += calls.findings
    judgement.observed += calls.observed
    judgement.owner |= calls.owner
    _claim_refused_heads(evidence, judgement, heads)


def _claim_refused_heads(evidence: Evidence, judgement: Judgement, heads: set[int]) -> None:
    """A head that the other side needs no more, since it has ended, is answered by an error."""
    for transaction in evidence.of_kind("operation"):
        if transaction.failed and any(row in heads for row, _ in transaction.frames[False]):
            judgement.owner.update((row, None) for row, _ in transaction.failed)


def _ways(line: Line) -> tuple[_Way, _Way]:
    return (
        _Way(line.client, line.server, line.requests, line.server_key, False),
        _Way(line.server, line.client, line.replies, line.client_key, True),
    )


def _ring(evidence: Evidence, judgement: Judgement, written: pl.DataFrame, way: _Way) -> Ring:
    """What its tasks have written there, in the order in which it left first."""
    between = written.filter(
        pl.col("mbcf_source") == way.sender[0],
        pl.col("mbcf_source_task") == way.sender[1],
        pl.col("mbcf_target") == way.receiver[0],
        pl.col("mbcf_target_task") == way.receiver[1],
    )
    writes = []
    for row in between["row"]:
        frame = evidence.carried[row]
        offset = (frame.address or 0) - way.base
        if not OWN_BYTES <= offset < BUFFER:
            continue
        judgement.findings += check_frame(evidence, None, row, Due(key=way.key))
        sent_ns, arrived_ns = evidence.channels.sent_ns[row], evidence.channels.received.get(row)
        writes.append(Write(row, offset, frame.length, sent_ns, arrived_ns, False, frame.at))
    return read_ring(writes, lambda write: evidence.payload(write.row), replies=way.replies)

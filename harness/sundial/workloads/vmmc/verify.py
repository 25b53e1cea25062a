# SPDX-License-Identifier: Apache-2.0
"""Verification of a backplane's calls and operations against its packets: none without a reason."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.observe.octets import octets_of
from sundial.segments.vmmc.model import Backplane
from sundial.segments.vmmc.wire import AU, CONTROL, GAP, KINDS, NACK, TIMER
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.arp import Stretches
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of
from sundial.verify.workload import CLASSES, OBSERVED, Settled, Verifier, WorkloadVerifier
from sundial.workloads.vmmc.verify_evidence import (
    PACKETS,
    STREAM,
    Evidence,
    Expected,
    Judgement,
    judged,
    protocols,
    samples_over_vmmc,
)
from sundial.workloads.vmmc.verify_imports import check_imports, find_imports

NAME = "vmmc"
CALL, SETUP, UNEXPLAINED = "call", "vmmc_setup", "unexplained"
_CLASSES = {CONTROL: "vmmc_control", NACK: "vmmc_refusal"}
"""Of packets that are no kind's."""


class _Vmmc:
    ethertype = None

    def settle(self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, unsent: Stretches) -> Settled:
        calls = samples_over_vmmc(samples).with_columns(protocol=pl.lit(NAME))
        seen = frames.filter(pl.col("vmmc_kind").is_not_null(), pl.col("fate").is_null())
        if seen.is_empty() and calls.is_empty():
            return Settled(calls)
        packets = _packets(seen)
        files = run.capture_files
        mips = _mips(run)
        imports, faults = find_imports(packets, partial(octets_of, files=files), mips)
        evidence = Evidence(
            run, run.node_ids, samples.records, calls.sort("start_ns", "id"), samples.batches, imports, packets,
            _backplanes(run), mips,
        )  # fmt: skip
        judgement = judged(protocol.judge(evidence) for protocol in protocols().values())
        findings: list[Finding] = [*faults, *judgement.findings]
        return Settled(
            calls,
            pl.concat([as_table(findings), check_imports(imports, packets)]),
            _classes(packets, judgement),
            pl.DataFrame(judgement.observed, schema=OBSERVED, orient="row").sort("call"),
            packets.height,
            {},
            judgement.impossible,
            {group: _expected_json(*ways) for group, ways in judgement.expected.items()},
            _expected_json(Expected(), Expected()),
        )

    def describe(self) -> pl.Expr:
        return pl.format(
            "{} number {}, {} bytes from offset {} of export {}, from node {} to {}",
            pl.col("vmmc_kind").replace_strict(dict(KINDS), default="packet", return_dtype=pl.String),
            "vmmc_sequence", "vmmc_length", "vmmc_offset", "vmmc_export", "vmmc_sender", "vmmc_receiver",
        )  # fmt: skip

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        speakers = (protocol for protocol in protocols().values() if protocol.speaks(call["transport"]))
        return next((protocol.display_filter(call) for protocol in speakers), None)


KIND: WorkloadVerifier = Verifier(transport=_Vmmc())


def _packets(seen: pl.DataFrame) -> pl.DataFrame:
    """Each packet once: where it left, and where it arrived. Between two nodes they are numbered."""
    named = seen.rename({name: name.removeprefix("vmmc_") for name in seen.columns if name.startswith("vmmc_")})
    key = ["sender", "receiver", "sequence"]
    arrived = named.filter(pl.col("direction") == INBOUND).select(
        *key, arrived_row="row", arrived_ns=pl.col("time_ns").cast(pl.Int64)
    )
    return (
        named.filter(pl.col("direction") == OUTBOUND)
        .with_columns(sent_ns=pl.col("time_ns").cast(pl.Int64))
        .join(arrived.unique(key, keep="first", maintain_order=True), on=key, how="left", maintain_order="left")
        .sort("sent_ns", "row")
        .with_columns(cut=_cut())
        .select(pl.col(name).cast(dtype) for name, dtype in PACKETS.items())
    )


def _cut() -> pl.Expr:
    """Of packets in the order in which they left."""
    same = ("kind", *STREAM[1:])
    other = pl.any_horizontal(
        (pl.col(name) != pl.col(name).shift(-1).over(STREAM[0])).fill_null(False) for name in same
    )
    return (pl.col("kind") == AU) & ((pl.col("reason") == TIMER) | ((pl.col("reason") == GAP) & other))


def _backplanes(run: RunDirectory) -> dict[int, Backplane]:
    network = network_of(run)
    segments = {} if network is None else network.segments
    return {
        run.node_ids[name]: segment
        for segment in segments.values()
        if isinstance(segment, Backplane)
        for name in (end.partition(":")[0] for end in segment.ports)
        if name in run.node_ids
    }


def _mips(run: RunDirectory) -> dict[int, float]:
    network = network_of(run)
    nodes = () if network is None else network.nodes
    return {run.node_ids[node.name]: float(node.mips) for node in nodes if node.name in run.node_ids}


def _classes(packets: pl.DataFrame, judgement: Judgement) -> pl.DataFrame:
    """What each packet is (workload.CLASSES), at both of its ends."""
    owner = judgement.owner
    lines: list[tuple[int, str, int | None]] = []
    for row, arrived, kind in packets.select("row", "arrived_row", "kind").iter_rows():
        call = owner.get(row)
        name = _CLASSES.get(kind) or (UNEXPLAINED if row not in owner else SETUP if call is None else CALL)
        lines += [(each, name, call) for each in (row, arrived) if each is not None]
    return pl.DataFrame(lines, schema=CLASSES, orient="row")


def _expected_json(there: Expected, back: Expected) -> dict[str, Any]:
    return {"request": there.to_json(), "reply": back.to_json()}

# SPDX-License-Identifier: Apache-2.0
"""Verification of memory-based communication: calls and operations against their frames, no frame without a reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sundial.errors import SundialError
from sundial.expect.mbcf import Frame
from sundial.model.network import Network, build_network
from sundial.model.topology import Topology
from sundial.observe import RunDirectory
from sundial.verify.conserve import check_balance, transit_ends
from sundial.verify.findings import FINDING, findings, none
from sundial.verify.mbcf_channels import FIRST_SEQUENCED, Channels, check_channels
from sundial.verify.mbcf_judge import OBSERVED, OPERATIONS, Executed, Finding, Judge
from sundial.verify.mbcf_talk import COLUMNS, NAMES, Talks, find_talks
from sundial.verify.medium import Medium, media

PREFIX = OPERATIONS
_CONTROL = {0: "mbcf_ack", 1: "mbcf_handshake", 2: "mbcf_handshake", 3: "mbcf_reset", 4: "mbcf_probe"}
CALL, UNEXPLAINED, PASSING = "call", "unexplained", "passing"
SSS_IMAGE = "ssscore"
OWN_INSTRUCTIONS = 256_000
"""An SSS-CORE node's own work from the moment at which an ACK is due, while it may not be interrupted: the making of a
dummy task, or a mapping, is one system call that zeroes each page (under 1,000 instructions). Measured: 150,000 where
clients of type 3b bind at once, 101,000 of type 3, 15,000 in transfers."""


@dataclass(frozen=True)
class Settled:
    """`classes`: row, class, call of every MBCF frame. `expected`: of each group (transport, procedure, size, ack)."""

    findings: pl.DataFrame
    classes: pl.DataFrame
    observed: pl.DataFrame
    packets: int
    retransmissions: int
    impossible: list[int]
    """Calls that their type cannot carry."""
    expected: dict[tuple[str, str, int], tuple[tuple[Frame, ...], tuple[Frame, ...]]]


def settle(
    run: RunDirectory,
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    batches: Mapping[tuple[str, int], Any],
    executed: Mapping[str, Executed],
) -> Settled:
    """`frames` with row, end, fate; `calls`: samples over MBCF with `id`; `batches`: (client, batch) -> its line;
    `executed`: what each server says it has executed."""
    of_mbcf = _with_view(frames.filter(pl.col("mbcf_op").is_not_null()), run.node_ids)
    if of_mbcf.is_empty():
        return _nothing(calls)
    exact = run.clock == "virtual"
    waits, own_ns = _waits(run, frames) if exact else ({}, {})
    channels = check_channels(of_mbcf, exact_time=exact, media=waits, own_ns=own_ns)
    first = of_mbcf.filter(pl.col("row").is_in(channels.first)).sort("time_ns", "row")
    talks = find_talks(first.select(_filled()).iter_rows(), channels.refused)
    judge = Judge(run.node_ids, calls, batches, channels, talks, exact)
    findings = [*judge.findings(), *judge.counted(executed)]
    parts = [channels.findings, pl.DataFrame(findings, schema=FINDING, orient="row"), _balance(of_mbcf, frames)]
    classes = _classes(of_mbcf, channels, talks, judge.owner)
    return Settled(
        pl.concat(parts),
        classes,
        judge.observed(),
        len(channels.first) + len(channels.again),
        len(channels.again),
        judge.impossible,
        judge.kinds,
    )


def check_promises(scenario: dict[str, Any], calls: pl.DataFrame, settled: Settled) -> pl.DataFrame:
    """Findings where a call or operation failed though `expect` rules it out and its type can carry it."""
    if (scenario.get("expect") or {}).get("failures") != "none":
        return none()
    table = calls.filter(~pl.col("ok"), ~pl.col("id").is_in(settled.impossible)).with_columns(
        call=pl.col("id"), reply=False
    )
    text = pl.col("error").fill_null("none, or a wrong one")
    return findings(table, pl.lit(True), pl.lit("reply"), pl.lit("the right one"), text, rows=None)


def _nothing(calls: pl.DataFrame) -> Settled:
    """No frame at all: each call that succeeded lacks all of its frames."""
    lost: list[Finding] = [(row, "mbcf.request", "its frames", "none", []) for row in calls.filter("ok")["id"]]
    classes = pl.DataFrame(schema={"row": pl.UInt32, "mbcf_class": pl.String, "mbcf_call": pl.UInt32})
    return Settled(
        pl.DataFrame(lost, schema=FINDING, orient="row"), classes, pl.DataFrame(schema=OBSERVED), 0, 0, [], {}
    )


def _waits(run: RunDirectory, frames: pl.DataFrame) -> tuple[dict[int, Medium], dict[int, int]]:
    """By node: when the wire in front of its first port was free, and how long it may take by itself to send an ACK."""
    network = _network(run)
    if network is None:
        return {}, {}
    ports = media(network, frames)
    waits: dict[int, Medium] = {}
    own: dict[int, int] = {}
    for node in network.nodes:
        number = run.node_ids.get(node.name)
        medium = ports.get(f"{node.name}:{node.nics[0].device}") if node.nics else None
        if number is not None and medium is not None and node.image == SSS_IMAGE:
            waits[number] = medium
            own[number] = int(OWN_INSTRUCTIONS * 1000 / node.mips)
    return waits, own


def _network(run: RunDirectory) -> Network | None:
    """The topology of the run; None where this version cannot read it."""
    try:
        return build_network(Topology.model_validate(run.document.get("topology")))
    except (SundialError, ValueError, TypeError, KeyError):
        return None


def _filled() -> list[pl.Expr]:
    return [pl.col(name).fill_null("" if name in ("mbcf_address", "mbcf_data") else 0) for name in COLUMNS]


def _with_view(frames: pl.DataFrame, ids: Mapping[str, int]) -> pl.DataFrame:
    """Sets `view` by the machine at whose port a frame was seen, and what conservation asks for."""
    here = pl.col("interface").str.extract(r"^([^:]*)").replace_strict(dict(ids), default=None, return_dtype=pl.UInt32)
    return (
        frames.with_columns(here=here)
        .with_columns(
            view=pl.when(pl.col("fate").is_not_null())
            .then(pl.lit("fate"))
            .when(pl.col("here") == pl.col("mbcf_source"))
            .then(pl.lit("sent"))
            .when(pl.col("here") == pl.col("mbcf_target"))
            .then(pl.lit("received"))
            .otherwise(pl.lit(PASSING)),
            call=pl.lit(None, pl.UInt32),
            reply=pl.lit(False),
        )
        .drop("here")
    )


def _balance(of_mbcf: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    names = pl.col("mbcf_op").replace_strict(
        {**NAMES, 0: "ACK", 1: "SYN", 2: "SYNACK", 3: "RST", 4: "PROBE"}, default="frame", return_dtype=pl.String
    )
    what = pl.format("{} with sequence number {}", names, "mbcf_seq")
    key = [
        "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_op", "mbcf_seq", "mbcf_flags", "mbcf_ack", "mbcf_digest",
        "reply",
    ]  # fmt: skip
    found = check_balance(of_mbcf, key, what, transit_ends(frames))
    return found.with_columns(field=pl.lit("mbcf.received"))


def _classes(of_mbcf: pl.DataFrame, channels: Channels, talks: Talks, owner: Mapping[int, int | None]) -> pl.DataFrame:
    """What each frame is. Sightings elsewhere than at the sender are judged there."""
    kinds = dict.fromkeys(channels.again, "mbcf_retransmission")
    kinds |= dict.fromkeys(talks.closing, "mbcf_close")
    kinds |= dict.fromkeys(talks.nobodys, UNEXPLAINED)
    for talk in talks.talks:
        name = {"setup": "mbcf_setup", "operation": "mbcf_operation"}.get(talk.kind, CALL)
        for part in talk.frames.values():
            kinds |= {row: name if row in owner else UNEXPLAINED for row, _ in part}
    lines = [(row, name, owner.get(row)) for row, name in kinds.items()]
    known = pl.DataFrame(
        lines, schema={"row": pl.UInt32, "known": pl.String, "mbcf_call": pl.UInt32}, orient="row"
    ).sort("row")
    control = pl.col("mbcf_op").replace_strict(_CONTROL, default=None, return_dtype=pl.String)
    received = pl.when(pl.col("view") == PASSING).then(pl.lit(PASSING)).otherwise(pl.lit(CALL))
    of_node = (pl.col("mbcf_op") >= FIRST_SEQUENCED) & (pl.col("view") == "sent")
    return of_mbcf.join(known, on="row", how="left").select(
        "row",
        mbcf_class=pl.coalesce("known", pl.when(of_node).then(pl.lit(UNEXPLAINED)), control, received),
        mbcf_call="mbcf_call",
    )

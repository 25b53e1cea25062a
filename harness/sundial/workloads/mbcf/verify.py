# SPDX-License-Identifier: Apache-2.0
"""Verification of memory-based communication: calls and operations against their frames, no frame without a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from sundial.model.images import IMAGES
from sundial.model.network import Node
from sundial.observe import RunDirectory
from sundial.verify.conservation import Transit, check_balance, transit_of
from sundial.verify.contention import Contention, contention_of
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import machine, refused
from sundial.verify.headers.arp import Stretches
from sundial.verify.headers.ports import ports_of
from sundial.verify.result import leg_json
from sundial.verify.samples import RunSamples
from sundial.verify.segment import contentions, network_of
from sundial.verify.wires import held_back
from sundial.verify.workload import CLASSES, OBSERVED, Settled, Verifier, WorkloadVerifier
from sundial.workloads.mbcf.expect import Frame, mbcf_leg
from sundial.workloads.mbcf.verify_channels import FIRST_SEQUENCED, Channels, check_channels
from sundial.workloads.mbcf.verify_connections import check_connections
from sundial.workloads.mbcf.verify_contents import Carried
from sundial.workloads.mbcf.verify_evidence import (
    Evidence,
    judged,
    protocols,
    samples_over_mbcf,
)
from sundial.workloads.mbcf.verify_fields import check_fields
from sundial.workloads.mbcf.verify_kernels import Congested, congested, ended_ns
from sundial.workloads.mbcf.verify_names import check_names
from sundial.workloads.mbcf.verify_tags import node_numbers, resolved, with_nodes
from sundial.workloads.mbcf.verify_transactions import COLUMNS, Meaning, Transactions, find_transactions
from sundial.workloads.mbcf.wire import (
    ACK,
    DEFINES,
    DEFINITION,
    ETHERNET,
    ETHERTYPE,
    HEADER,
    OPENED,
    OPERATIONS,
    PROBE,
    RST,
    SYN,
    SYNACK,
)

NAME = "mbcf"
_CONTROL = {
    ACK: "mbcf_ack", SYN: "mbcf_handshake", SYNACK: "mbcf_handshake", OPENED: "mbcf_handshake", RST: "mbcf_reset",
    PROBE: "mbcf_probe",
}  # fmt: skip
_SEQUENCED = {number: name for number, name in OPERATIONS.items() if number >= FIRST_SEQUENCED}
CALL, UNEXPLAINED, PASSING = "call", "unexplained", "passing"
OWN_INSTRUCTIONS = 512_000
"""An SSS-CORE node's own work from the moment at which an ACK is due, while it may not be interrupted: the making of a
dummy task, or a mapping, is one system call that zeroes each page (under 1,000 instructions). Measured: 360,000
where a client reads 100,000 bytes and its node serves DCE RPC, too, 150,000 where clients of type 3b bind at once."""
TABLE_INSTRUCTIONS = 1_792_000
"""The same of a node that serves DCE RPC: the 7 MiB of its table (guest-apps/sss-core/dce/runtime.c) are one mapping.
Measured: 1,270,000."""
PROCESS_INSTRUCTIONS = 2_500_000
"""The same of a node that is a process: it maps memory under its lock, page fault by page fault. Measured: 1,440,000
where a binding for messages of 64 KiB makes its rings."""
PROCESS_WAIT_NS = 10_000_000
"""How long such a node may wait for other processes of its machine: Linux' scheduling period is shorter. Where others
run at once, each has its share of the processor (`at_once`)."""


class _Mbcf:
    ethertype = ETHERTYPE

    def settle(self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, unsent: Stretches) -> Settled:
        calls = samples_over_mbcf(samples).with_columns(protocol=pl.lit(NAME))
        over_mbcf = _with_view(frames.filter(pl.col("mbcf_op").is_not_null()), run)
        if over_mbcf.is_empty():
            return _no_frames(calls)
        exact, transit = run.clock == "virtual", transit_of(frames, ports_of(run), run)
        waits, own_ns, end_ns = _waits(run, frames) if exact else ({}, {}, {})
        channels = check_channels(
            with_refused(over_mbcf, run.node_ids), exact_time=exact, contentions=waits, own_ns=own_ns, end_ns=end_ns,
            gone_ns=_gone(run, over_mbcf, samples), congested=_congested(run, frames, over_mbcf),
        )  # fmt: skip
        first = over_mbcf.filter(pl.col("row").is_in(channels.first)).with_columns(
            turn_ns=pl.coalesce("mbcf_turn_ns", "time_ns")
        )
        first = first.sort("turn_ns", "row")
        transactions = find_transactions(first.select(_filled()).iter_rows(), _meaning)
        ordered = calls.sort("start_ns", "id")
        evidence = Evidence(
            run, run.node_ids, samples.records, ordered, samples.batches, channels, transactions, _carried(first), first
        )  # fmt: skip
        judgement = judged(protocol.judge(evidence) for protocol in protocols().values())
        judgement.findings += _farewells(transactions)
        findings = [
            channels.findings,
            as_table(judgement.findings),
            _balance(over_mbcf, transit),
            check_connections(first),
            check_names(first, transactions.transactions, _asks_again(run)),
            check_fields(over_mbcf, transit.ends, _meaning, _epochs(run)),
        ]
        return Settled(
            calls,
            pl.concat(findings),
            _classes(over_mbcf, channels, transactions, judgement.owner),
            pl.DataFrame(judgement.observed, schema=OBSERVED, orient="row").sort("call"),
            len(channels.first) + len(channels.again),
            _counts(calls, len(channels.again)),
            judgement.impossible,
            {group: _expected_json(*legs) for group, legs in judgement.expected.items()},
            _expected_json((), ()),
            counted=judgement.counted,
        )

    def describe(self) -> pl.Expr:
        return pl.format(
            "MBCF {} number {}, {} bytes, between stations {} and {}",
            pl.col("mbcf_op").replace_strict(_SEQUENCED, default="frame", return_dtype=pl.String),
            "mbcf_seq",
            "frame_length",
            pl.col("mbcf_source_mac") % 256,
            pl.col("mbcf_target_mac") % 256,
        )

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        if call["xid"] is None:
            return None
        speakers = (protocol for protocol in protocols().values() if protocol.speaks(call["transport"]))
        return next((protocol.display_filter(call["xid"]) for protocol in speakers), None)


KIND: WorkloadVerifier = Verifier(transport=_Mbcf())


def _carried(first: pl.DataFrame) -> dict[int, Carried]:
    """Of frames that were sent for the first time, by row."""
    columns = first.select(
        "row",
        "mbcf_op",
        "mbcf_flags",
        "mbcf_length",
        "mbcf_content",
        pl.col("mbcf_source_task", "mbcf_target_task").fill_null(0),
        "mbcf_key",
        pl.col("mbcf_address").str.strip_prefix("0x").str.to_integer(base=16, dtype=pl.UInt64),
        "mbcf_op_id",
        "mbcf_answers",
        ETHERNET + HEADER + pl.when((pl.col("mbcf_flags") & DEFINES) != 0).then(DEFINITION).otherwise(0),
        "capture",
        "octets_begin",
    )
    return {row: Carried._make(rest) for row, *rest in columns.iter_rows()}


def _epochs(run: RunDirectory) -> dict[int, int]:
    """What jobs give to nodes as their first epoch."""
    jobs = ((run.node_ids[name], job.get("epoch")) for name, job in run.jobs.items() if name in run.node_ids)
    return {number: int(epoch) for number, epoch in jobs if epoch}


def _asks_again(run: RunDirectory) -> dict[int, int]:
    """By node: after which time its calls are made again."""
    found = {}
    for name, job in run.jobs.items():
        steps = (step.get("options") or {} for step in job.get("steps", ()))
        times = [int(options["retry_timeout_ms"]) * 1_000_000 for options in steps if options.get("retry_timeout_ms")]
        if times and name in run.node_ids:
            found[run.node_ids[name]] = min(times)
    return found


def _meaning(operation: int, data: str) -> Meaning | None:
    meanings = (protocol.meaning(operation, data) for protocol in protocols().values())
    return next((meaning for meaning in meanings if meaning is not None), None)


def _no_frames(calls: pl.DataFrame) -> Settled:
    """Each call that succeeded lacks all of its frames."""
    return Settled(
        calls,
        as_table(Finding(call, "mbcf.request", "its frames", "none") for call in calls.filter("ok")["id"]),
        retransmissions=_counts(calls, 0),
        unsent=_expected_json((), ()),
    )


def _counts(calls: pl.DataFrame, retransmissions: int) -> dict[str, int]:
    return {NAME: retransmissions} if calls.height else {}


def _expected_json(client: tuple[Frame, ...], server: tuple[Frame, ...]) -> dict[str, Any]:
    return {"request": leg_json(mbcf_leg(client)), "reply": leg_json(mbcf_leg(server))}


def _farewells(transactions: Transactions) -> Iterator[Finding]:
    """A task announces its end once to each node."""
    for rows in (rows for epochs in transactions.farewells.values() for rows in epochs.values()):
        if len(rows) > 1:
            yield Finding(None, "mbcf.close", "one CLOSE at the end of a task", str(len(rows)), rows)


def _waits(run: RunDirectory, frames: pl.DataFrame) -> tuple[dict[int, Contention], dict[int, int], dict[int, int]]:
    """By node: when the wire in front of its first port was free; how long it may take by itself to send an ACK; and
    until when it ran, of kernels: a process ends with its job."""
    network = network_of(run)
    if network is None:
        return {}, {}, {}
    ports = contentions(network, frames)
    held = _held_back(run, frames)
    waits: dict[int, Contention] = {}
    own: dict[int, int] = {}
    end_ns: dict[int, int] = {}
    virtual_ns = (run.counters or {}).get("virtual_ns")
    for node in network.nodes:
        number, image = run.node_ids.get(node.name), IMAGES.get(node.image)
        contention = ports.get(f"{node.name}:{node.nics[0].device}") if node.nics else None
        if number is None or contention is None or image is None:
            continue
        nic = node.nics[0]
        waits[number] = _besides(contention, held.get(nic.end, []))
        own[number] = network.segments[nic.segment].tx_latency_ns(nic.end)
        if image.node_is_process:
            alone_ns = PROCESS_WAIT_NS + int(PROCESS_INSTRUCTIONS * 1000 / node.mips)
            own[number] += alone_ns * at_once(run.jobs.get(node.name, {}))
            continue
        own[number] += int(own_instructions(run.jobs.get(node.name, {})) * 1000 / node.mips)
        if virtual_ns is not None:
            end_ns[number] = virtual_ns
    return waits, own, end_ns


def at_once(job: Mapping[str, Any]) -> int:
    """How many programs and threads of a job may share its machine's processor: all services, and one step."""
    threads = (int((step.get("options") or {}).get("threads") or 1) for step in job.get("steps", ()))
    return max(1, len(job.get("services", ())) + max(threads, default=0))


def own_instructions(job: Mapping[str, Any]) -> int:
    """How long an SSS-CORE node with this job may work before it sends an ACK that is due."""
    serves_dce = any(service["app"] == "dce-server" for service in job.get("services", ()))
    return TABLE_INSTRUCTIONS if serves_dce else OWN_INSTRUCTIONS


def _gone(run: RunDirectory, over_mbcf: pl.DataFrame, samples: RunSamples) -> dict[tuple[int, int], int]:
    """By node and epoch: when processes had ended at the earliest that sent nothing any more: clients with their step,
    servers in the call that their job lets them die in."""
    found: dict[tuple[int, int], int] = {}
    sent = over_mbcf.filter(pl.col("view") == "sent").group_by("mbcf_source", "mbcf_epoch")
    lives = sent.agg(first=pl.col("time_ns").min(), last=pl.col("time_ns").max())
    ends = _step_ends(run, samples)
    for node in _processes(run):
        number = run.node_ids[node.name]
        dies = _dies(run, node.name, samples)
        for _, epoch, first, last in lives.filter(pl.col("mbcf_source") == number).iter_rows():
            if dies:
                found[number, epoch] = last
            elif node.name in ends:
                found[number, epoch] = max(last, ended_ns(first, ends[node.name]))
    return found


def _processes(run: RunDirectory) -> list[Node]:
    """Machines where a process is the node."""
    network = network_of(run)
    nodes = network.nodes if network is not None else ()
    images = [(node, IMAGES.get(node.image)) for node in nodes if node.name in run.node_ids]
    return [node for node, image in images if image is not None and image.node_is_process]


def _dies(run: RunDirectory, name: str, samples: RunSamples) -> bool:
    """Whether a machine's server has come to the call that its job lets it die in."""
    options = [service.get("options") or {} for service in run.jobs.get(name, {}).get("services", ())]
    deaths = [int(each["die"]["call"]) for each in options if each.get("die")]
    lines = (line for line in samples.records.get(name, ()) if line["type"] == "counters")
    return bool(deaths) and max((line.get("calls", 0) for line in lines), default=0) >= min(deaths)


def _step_ends(run: RunDirectory, samples: RunSamples) -> dict[str, list[int]]:
    """By client: when the last call of each step ended that has any."""
    of_batch = {name: line.get("step", -1) for name, line in samples.batches.items()}
    latest: dict[str, dict[int, int]] = {}
    for client, batch, end_ns in samples.table.group_by("client", "batch").agg(pl.col("end_ns").max()).iter_rows():
        ends, step = latest.setdefault(client, {}), of_batch.get((client, batch), -1)
        ends[step] = max(ends.get(step, 0), end_ns or 0)
    return {client: list(ends.values()) for client, ends in latest.items()}


def _congested(run: RunDirectory, frames: pl.DataFrame, over_mbcf: pl.DataFrame) -> dict[int, Congested]:
    """By node that is a process: when its socket may have been full."""
    processes = _processes(run)
    network = network_of(run)
    if network is None or not processes:
        return {}
    ports = contentions(network, frames)
    found: dict[int, Congested] = {}
    for node in processes:
        number = run.node_ids[node.name]
        wire = ports.get(f"{node.name}:{node.nics[0].device}") if node.nics else None
        if wire is not None:
            sent = over_mbcf.filter(pl.col("view") == "sent", pl.col("mbcf_source") == number)
            found[number] = congested(wire, sent.select("time_ns", "frame_length").iter_rows())
    return found


def _held_back(run: RunDirectory, frames: pl.DataFrame) -> dict[str, list[tuple[int, int]]]:
    """By port: from when until when its adapter may have kept a frame back."""
    files = run.capture_files
    ports = frames.select("row", "time_ns", port=pl.coalesce("fate_adapter", "interface"))
    held = held_back(run, frames, files).join(ports, on="row")
    spans: dict[str, list[tuple[int, int]]] = {}
    for port, since, until in held.select("port", "since_ns", "time_ns").iter_rows():
        spans.setdefault(port, []).append((since, until))
    return spans


def _besides(wire: Contention, held: Sequence[tuple[int, int]]) -> Contention:
    """What takes the wire, and what keeps frames from it before they come there."""
    if not held:
        return wire
    taken = contention_of([*zip(wire.begins, wire.ends, strict=True), *held])
    return replace(taken, collisions=wire.collisions, slot_ns=wire.slot_ns, latency_ns=wire.latency_ns)


def _filled() -> list[pl.Expr]:
    return [pl.col(name).fill_null("" if name in ("mbcf_address", "mbcf_data") else 0) for name in COLUMNS]


def _with_view(frames: pl.DataFrame, run: RunDirectory) -> pl.DataFrame:
    """Sets `view` by the machine at whose port a frame was seen, what conservation asks for, and what frames name."""
    here = machine().replace_strict(dict(run.node_ids), default=None, return_dtype=pl.UInt32)
    return resolved(
        with_nodes(frames, node_numbers(run))
        .with_columns(here=here)
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


def with_refused(over_mbcf: pl.DataFrame, numbers: Mapping[str, int]) -> pl.DataFrame:
    """What a node's own adapter dropped (excessive collisions, a full ring) was sent: it has a number, which no port
    shows, and is sent again."""
    adapter = pl.col("fate_adapter").cast(pl.String).str.split(":").list.first()
    own = adapter.replace_strict(dict(numbers), default=None, return_dtype=pl.UInt32) == pl.col("mbcf_source")
    return over_mbcf.with_columns(view=pl.when(refused() & own).then(pl.lit("sent")).otherwise("view"))


def _balance(over_mbcf: pl.DataFrame, transit: Transit) -> pl.DataFrame:
    names = pl.col("mbcf_op").replace_strict(dict(OPERATIONS), default="frame", return_dtype=pl.String)
    what = pl.format("{} with sequence number {}", names, "mbcf_seq")
    key = [
        "mbcf_source", "mbcf_target", "mbcf_epoch", "mbcf_target_epoch",
        "mbcf_op", "mbcf_seq", "mbcf_flags", "mbcf_ack", "mbcf_digest",
        "reply",
    ]  # fmt: skip
    found = check_balance(over_mbcf, key, what, transit)
    return found.with_columns(field=pl.lit("mbcf.received"))


def _classes(
    over_mbcf: pl.DataFrame, channels: Channels, transactions: Transactions, owner: Mapping[int, int | None]
) -> pl.DataFrame:
    """What each frame is (workload.CLASSES). Sightings elsewhere than at the sender are judged there."""
    kinds = dict.fromkeys(channels.again, "mbcf_retransmission")
    kinds |= dict.fromkeys(transactions.closing, "mbcf_close")
    kinds |= dict.fromkeys(transactions.unclaimed, UNEXPLAINED)
    for transaction in transactions.transactions:
        name = {"setup": "mbcf_setup", "operation": "mbcf_operation"}.get(transaction.kind, CALL)
        for part in transaction.frames.values():
            kinds |= {row: name if row in owner else UNEXPLAINED for row, _ in part}
    lines = [(row, name, owner.get(row)) for row, name in kinds.items()]
    known = pl.DataFrame(lines, schema=CLASSES, orient="row").rename({"class": "known"}).sort("row")
    control = pl.col("mbcf_op").replace_strict(_CONTROL, default=None, return_dtype=pl.String)
    received = pl.when(pl.col("view") == PASSING).then(pl.lit(PASSING)).otherwise(pl.lit(CALL))
    of_node = (pl.col("mbcf_op") >= FIRST_SEQUENCED) & (pl.col("view") == "sent")
    return (
        over_mbcf.drop("call")
        .join(known, on="row", how="left")
        .select(
            "row",
            pl.coalesce("known", pl.when(of_node).then(pl.lit(UNEXPLAINED)), control, received).alias("class"),
            "call",
        )
    )

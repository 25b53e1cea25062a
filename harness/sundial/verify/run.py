# SPDX-License-Identifier: Apache-2.0
"""Verification of a run directory: samples and captures against the expectations."""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from sundial import CHECK
from sundial.model.network import Network
from sundial.observe import RunDirectory, open_run, read_frames
from sundial.observe.octets import octets_of
from sundial.verify import (
    bounds,
    checks,
    classification,
    corruption,
    counters,
    directory,
    headers,
    scenario_expectations,
    segment,
    truncation,
)
from sundial.verify.conservation import transit_of
from sundial.verify.documents import check_documents
from sundial.verify.findings import none
from sundial.verify.frames import with_places
from sundial.verify.handed_in import latest_hand_in
from sundial.verify.headers.arp import retry_ns
from sundial.verify.headers.ports import not_taken, ports_of
from sundial.verify.jobs import check_jobs
from sundial.verify.plan import check_plan
from sundial.verify.result import (
    IDENTITY,
    Verification,
    exchanges_json,
    figures_json,
    groups_json,
    problems_json,
    settled_groups_json,
)
from sundial.verify.samples import RunSamples, load_samples
from sundial.verify.segment import contentions, network_of
from sundial.verify.sockets import flows, retransmission_causes
from sundial.verify.sockets.analysis import Analysis, analyse
from sundial.verify.sockets.calls import display_filter, reconnected, socket_calls
from sundial.verify.sockets.deaths import dead_servers
from sundial.verify.sockets.kernel_counters import check_kernel_counters
from sundial.verify.sockets.legs import build_legs
from sundial.verify.sockets.served import check_served
from sundial.verify.sockets.tcp import unopened
from sundial.verify.sockets.time_outs import check_time_outs
from sundial.verify.steps import check_steps
from sundial.verify.unproven import unproven
from sundial.verify.unsent import Unsent, unsent
from sundial.verify.wires import check_wires, held_back
from sundial.verify.workload import (
    PROGRAM_TABLES,
    Background,
    Settled,
    own_transports,
    sampled_names,
    socket_protocols,
    verifiers,
)
from sundial.whole import whole

_SAMPLED = ("call", "xid", "warmup", "ok", "retransmits", "start_ns", "end_ns")
_OBSERVED = (
    "call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns",
    "request_packets", "request_packets_expected", "request_fragments", "request_fragments_expected",
    "reply_packets", "reply_packets_expected", "reply_fragments", "reply_fragments_expected",
    "request_retransmissions", "reply_retransmissions",
)  # fmt: skip


_MANY = 1 << 18
"""Of more frames the tables of headers and of calls are made one after the other: they are what takes memory."""
BY_HAND = "what the guests sent and why: an interactive session has no scenario to check it against"


def verify_run(run_dir: Path) -> Verification:
    """Verify a run; writes verify.json and observed.parquet (one row a call, in the order of samples.parquet) into it.

    Raises BadInput where the directory is not that of a run or one of its files cannot be read.
    """
    with ThreadPoolExecutor(max_workers=1) as aside:
        return _verify(run_dir, aside)


def _verify(run_dir: Path, aside: Executor) -> Verification:
    run = open_run(run_dir)
    scenario = run.document.get("scenario") or {}
    samples = load_samples(run)
    protocols, transports = socket_protocols(), own_transports()
    calls = socket_calls(run, samples, protocols)
    files = run.capture_files
    without_frames = aside.submit(_check_without_frames, run, samples)
    on_wire = with_places(read_frames(files, run.epoch_ns))
    directory.refuse_older(run, on_wire)
    network, ports = network_of(run), ports_of(run)
    on_wire = corruption.with_corrupted(on_wire, partial(octets_of, files=files), ports)
    calls = reconnected(run, calls, on_wire)
    frames = latest_hand_in(on_wire, network)
    lines = None if network is None else contentions(network, frames)
    held = cache(partial(held_back, run, on_wire, files))
    dropped = unsent(corruption.intact(frames), ports, partial(octets_of, files=files), lines, retry_ns(run.clock))
    # What asks for no calls, while they are looked for.
    own_types = [each.ethertype for each in transports.values() if each.ethertype is not None]
    on_wires = aside.submit(_check_wires_and_headers, run, on_wire, frames, files, own_types, dropped, held)
    if on_wire.height > _MANY:
        on_wires.result()
    document_findings = aside.submit(check_documents, run, samples, on_wire)
    order_findings = aside.submit(directory.check_order, on_wire)
    transit = transit_of(frames, ports, run)
    analysis = analyse(
        flows.add_flows(frames, calls.flows),
        calls.table,
        calls.flows,
        protocols,
        partial(build_legs, settings=calls.settings, protocols=protocols),
        files,
        exact_time=run.clock == "virtual",
        settings=calls.settings,
        lines=lines,
        transit=transit,
        unsent=dropped.stretches,
        end_ns=headers.length_ns(run),
        not_taken=not_taken(frames, ports),
        held=held,
        asked=dropped.asked,
    )
    settled = [transport.settle(run, frames, samples, dropped.stretches) for transport in transports.values()]
    counted = ChainMap(*(dict(each.counted) for each in settled))
    causes: list[retransmission_causes.Cause] = [
        partial(retransmission_causes.held_back, frames=analysis.frames, held=held),
        partial(
            retransmission_causes.asking,
            frames=analysis.frames,
            calls=calls.table,
            asked=dropped.asked,
            routed=bool(ports["forwards"].any()),
        ),
        partial(dead_servers, run=run, analysis=analysis, protocols=protocols, others=counted),
    ]
    analysis = replace(analysis, uncaused=retransmission_causes.unexplained(analysis.uncaused, causes))
    ahead_ns = {} if run.clock == "virtual" else _ahead_ns(analysis)
    taken = corruption.intact(analysis.frames)
    background = [kind.background(run, corruption.intact(frames), samples, ahead_ns) for kind in verifiers().values()]
    classified = classification.classify(
        analysis.frames,
        analysis.segments,
        pl.concat(
            [
                *(each.classes for each in background),
                _of_memory(analysis.frames, network),
                unopened(taken, calls.flows),
                *dropped.headless(analysis.frames),
            ]
        ),
        _addresses(ports),
    )
    classified = _with_settled(classified, settled)
    sampled = _sampled(analysis, settled, samples)
    divided = check_steps(run, samples, on_wire, ports)
    of_wires, of_headers = on_wires.result()
    findings = pl.concat(
        [
            divided.findings,
            document_findings.result(),
            *without_frames.result(),
            none() if run.by_hand else directory.check_frames(on_wire),
            directory.check_remarks(on_wire),
            order_findings.result(),
            scenario_expectations.check_calls(run, sampled, (each.client_app for each in protocols.values())),
            *of_wires,
            check_kernel_counters(analysis, samples.batches),
            check_served(run, samples, analysis, protocols, counted),
            check_time_outs(run, analysis),
            analysis.findings,
            *(each.findings for each in settled),
            *(each.findings for each in background),
            truncation.check_whole(taken, whole_capture=True),
            of_headers,
            scenario_expectations.check_sockets(scenario, analysis),
            *(scenario_expectations.check_settled(scenario, each) for each in settled),
            none()
            if run.by_hand
            else classification.check_unexplained(classified, [each.describe() for each in transports.values()]),
        ]
    )
    failed = findings.filter(pl.col("call").is_not_null()).group_by("call").agg(mismatches=pl.len())
    all_calls = pl.concat([analysis.calls, *(each.calls for each in settled)], how="diagonal_relaxed")
    observed = pl.concat([analysis.observed, *(each.observed for each in settled)], how="diagonal_relaxed")
    observed = _observed(samples, _stamped(observed, all_calls, network), failed)
    of_programs = _of_programs(background)
    outcomes = _bounds(run, samples, observed, of_programs)
    checked = _checks(run)
    findings = pl.concat([findings, bounds.check(outcomes), checks.check(checked)])

    def filter_of(call: Mapping[str, Any]) -> str | None:
        name = call["protocol"]
        return display_filter(call, protocols[name]) if name in protocols else transports[name].display_filter(call)

    verification = Verification(
        verdict="fail" if findings.height else "checked" if run.by_hand else "pass",
        calls=sampled,
        frames=classified.filter(pl.col("fate").is_null()).height,
        packets=analysis.packets + sum(each.packets for each in settled),
        fragments=analysis.fragments,
        retransmissions={
            **analysis.retransmissions,
            **{name: count for each in settled for name, count in each.retransmissions.items()},
        },
        mismatches=findings.height,
        groups=groups_json(analysis, failed)
        + [group for each in settled for group in settled_groups_json(each, failed)],
        classified=classification.counts(classified),
        unproven=([BY_HAND] if run.by_hand else []) + unproven(run) + list(divided.unproven),
        problems=problems_json(findings, classified, all_calls, filter_of),
        steps=divided.summary,
        bounds=[each.to_json() for each in outcomes] or None,
        checks=[each.to_json() for each in checked] or None,
        remarks=[line for each in background for line in each.remarks] or None,
        exchanges=exchanges_json(of_programs["exchanges"]) or None,
        figures=figures_json(of_programs["figures"]) or None,
    )
    for name, table in of_programs.items():
        if table.height:
            with whole(run_dir / f"{name}.parquet") as beside:
                table.write_parquet(beside)
    with whole(run_dir / "observed.parquet") as beside:
        observed.write_parquet(beside)
    verification.write(run_dir / "verify.json")
    return verification


def _of_programs(background: Sequence[Background]) -> dict[str, pl.DataFrame]:
    """The tables of PROGRAM_TABLES, of all kinds."""
    return {
        name: pl.concat(
            [pl.DataFrame(schema=schema), *(each.tables[name] for each in background if name in each.tables)]
        )
        for name, schema in PROGRAM_TABLES.items()
    }


def _bounds(
    run: RunDirectory, samples: RunSamples, observed: pl.DataFrame, of_programs: Mapping[str, pl.DataFrame]
) -> list[bounds.Outcome]:
    """What the scenario's bounds came to; no table is made where it has none."""
    asked = bounds.of_scenario(run.document.get("scenario") or {})
    if not asked:
        return []
    tables = bounds.tables_of(samples.table, observed, run.counters, of_programs)
    virtual_ns = (run.document.get("time") or {}).get("virtual_ns")
    return [bounds.evaluate(each, tables, virtual_ns) for each in asked]


def _checks(run: RunDirectory) -> list[checks.Outcome]:
    """What the user's own program said, which has been run before; it is never run here."""
    words = ((run.document.get("scenario") or {}).get("expect") or {}).get("check")
    if not words:
        return []
    try:
        said = json.loads((run.path / CHECK).read_bytes())
    except (OSError, ValueError, RecursionError):
        said = None
    return checks.outcomes(words, said if isinstance(said, dict) else None)


def _of_memory(frames: pl.DataFrame, network: Network | None) -> pl.DataFrame:
    """Rows and class of what segments without frames carry: all of it is proven by their law."""
    mapped = [] if network is None else network.mapped_captures
    return frames.filter(pl.col("capture").is_in(mapped)).select("row", pl.lit("memory").alias("class"))


def _check_wires_and_headers(
    run: RunDirectory,
    on_wire: pl.DataFrame,
    frames: pl.DataFrame,
    files: Sequence[tuple[Path, str]],
    own_types: Sequence[int],
    dropped: Unsent,
    held: Callable[[], pl.DataFrame],
) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """What the laws of the segments say and what the fabric counted; and the headers, which leave to the laws what they
    know better."""
    found, counted = check_wires(run, on_wire, files)
    of_users: Mapping[str, Collection[int]] = ChainMap(*(dict(kind.of_users(run)) for kind in verifiers().values()))
    of_headers = headers.check_headers(run, frames, files, own_types, dropped, of_users, held)
    return [found, counters.check_counters(run, on_wire, counted)], of_headers


def _check_without_frames(run: RunDirectory, samples: RunSamples) -> list[pl.DataFrame]:
    """What asks for no frame, done while tshark starts and reads; so are the imports of what comes after it."""
    segment.verifiers()
    return [
        check_jobs(run),
        none() if run.by_hand else check_plan(run, samples, sampled_names()),
        directory.check_directory(run),
        directory.check_samples(run, samples.table.drop("id")),
    ]


def _addresses(ports: pl.DataFrame) -> pl.DataFrame:
    """end, own, relays: the addresses of the machine behind each port, and whether it passes on what is not its own;
    what joins segments has none there."""
    rows = []
    for (joins, forwards, _), part in ports.group_by("joins", "forwards", "machine"):
        own = part["address"].drop_nulls().to_list()
        rows += [(end, own if own or joins else [""], joins or forwards) for end in part["end"]]
    schema = {"end": pl.String(), "own": pl.List(pl.String()), "relays": pl.Boolean()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _with_settled(frames: pl.DataFrame, settled: Sequence[Settled]) -> pl.DataFrame:
    """`class` and `call` of frames of other transports; those on a fate interface are classified already."""
    for each in settled:
        names = {"class": "settled_class", "call": "settled_call"}
        joined = frames.join(each.classes.rename(names), on="row", how="left", maintain_order="left")
        own = pl.col("settled_class").is_not_null() & pl.col("fate").is_null()
        frames = joined.with_columns(
            pl.when(own).then("settled_class").otherwise("class").alias("class"),
            call=pl.coalesce("settled_call", "call"),
        ).drop(*names.values())
    return frames


def _ahead_ns(analysis: Analysis) -> dict[str, int]:
    """How far the captures' clock is ahead of each client's: under the real clock a guest's begins when it boots. A
    frame leaves after its call has begun, perhaps behind many others, so the least difference is nearest to it."""
    sent = analysis.observed.select("call_first_tx_ns", id="call")
    apart = (pl.col("call_first_tx_ns") - pl.col("start_ns")).min().cast(pl.Int64)
    table = analysis.calls.join(sent, on="id").group_by("client").agg(apart).drop_nulls()
    return dict(table.iter_rows())


def _sampled(analysis: Analysis, settled: Sequence[Settled], samples: RunSamples) -> int:
    """Calls with a sample: those that the scenario asked for."""
    over_sockets = analysis.calls.filter(pl.col("id") < samples.table.height).height
    return over_sockets + sum(each.calls.height for each in settled)


def _stamped(observed: pl.DataFrame, calls: pl.DataFrame, network: Network | None) -> pl.DataFrame:
    """With the stamps of the wire where frames had those of `latest_hand_in`."""
    late = {node.name: node.adapter_latency_ns for node in (() if network is None else network.nodes)}
    if not any(late.values()):
        return observed
    senders = {"call_first_tx_ns": "client", "reply_first_tx_ns": "server"}
    names = calls.select("client", "server", call="id").cast({"call": observed.schema["call"]})
    table = observed.join(names, on="call", how="left", maintain_order="left")
    return table.with_columns(
        pl.col(stamp) + pl.col(sender).replace_strict(late, default=0, return_dtype=pl.Int64)
        for stamp, sender in senders.items()
    ).drop("client", "server")


def _observed(samples: RunSamples, observed: pl.DataFrame, failed: pl.DataFrame) -> pl.DataFrame:
    names = [name for name in IDENTITY if name != "call"]
    identity = samples.table.select("id", *names, *_SAMPLED)
    verified = observed.rename({"call": "id"}).with_columns(verified=True)
    return (
        identity.join(verified.drop("transport"), on="id", how="left", maintain_order="left")
        .with_columns(
            retransmissions=pl.col("request_retransmissions") + pl.col("reply_retransmissions"),
            verdict=pl.when(pl.col("verified").is_null())
            .then(pl.lit("unverified"))
            .when(pl.col("id").is_in(failed["call"].implode()))
            .then(pl.lit("fail"))
            .otherwise(pl.lit("pass")),
        )
        .select([*names, *_SAMPLED, *_OBSERVED, "retransmissions", "verdict"])
    )

# SPDX-License-Identifier: Apache-2.0
"""Verification of a run directory: samples and captures against the expectations."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path

import polars as pl

from sundial.observe import Decode, RunDirectory, open_run, read_frames
from sundial.verify import altered, bindings, counted, frames_whole, leftover, mbcf
from sundial.verify.calls import RunCalls, load_calls
from sundial.verify.conserve import transit_ends
from sundial.verify.core import Analysis, analyse
from sundial.verify.findings import FINDING
from sundial.verify.legs import build_legs
from sundial.verify.mbcf_judge import Executed
from sundial.verify.promises import check_calls, check_promises
from sundial.verify.result import IDENTITY, Verification, groups_json, mbcf_groups_json, problems_json

_SAMPLED = ("call", "xid", "warmup", "ok", "retransmits", "start_ns", "end_ns")
_OBSERVED = (
    "call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns",
    "request_packets", "request_packets_expected", "request_fragments", "request_fragments_expected",
    "reply_packets", "reply_packets_expected", "reply_fragments", "reply_fragments_expected",
    "request_retransmissions", "reply_retransmissions",
)  # fmt: skip


def verify_run(run_dir: Path) -> Verification:
    """Verify a run; writes verify.json and observed.parquet (one row a call, in the order of samples.parquet) into it.

    Raises BadInput where the directory is not that of a run or one of its files cannot be read.
    """
    run = open_run(run_dir)
    calls = load_calls(run)
    files = [(run_dir / name, name) for name in sorted(run.captures)]
    frames = read_frames(files, _decode(calls), run.epoch_ns)
    analysis = analyse(
        frames,
        calls.table,
        calls.flows,
        partial(build_legs, settings=calls.settings),
        files,
        exact_time=run.clock == "virtual",
    )
    settled = mbcf.settle(run, analysis.frames, calls.mbcf, calls.lines, _executed(run, calls))
    ahead_ns = {} if run.clock == "virtual" else _ahead_ns(analysis)
    bound, bound_rows = bindings.check_bindings(analysis.frames, run, calls.records, ahead_ns)
    classified = leftover.classify(
        analysis.frames,
        analysis.segments,
        bound_rows,
        _addresses(run, analysis.frames),
        _has_iperf3(run),
    )
    classified = _with_mbcf(classified, settled)
    classified = _excuse(classified, analysis, files)
    whole = frames_whole.check_whole(analysis.frames, whole_capture=True)
    promised = check_promises(run.document.get("scenario") or {}, analysis)
    found = pl.concat(
        [
            _changed(run),
            check_calls(run, _sampled(calls)),
            counted.check_counters(run, analysis.frames),
            counted.check_tcp(analysis, calls.batches),
            analysis.findings,
            settled.findings,
            bound,
            whole,
            promised,
            mbcf.check_promises(run.document.get("scenario") or {}, calls.mbcf, settled),
            leftover.check_leftover(classified),
        ]
    )
    found = _without_corrupted(found, classified)
    verification = _result(analysis, settled, classified, found, calls)
    verification.write(run_dir / "verify.json")
    _observed(calls, pl.concat([analysis.observed, settled.observed], how="diagonal_relaxed"), found).write_parquet(
        run_dir / "observed.parquet"
    )
    return verification


def _decode(calls: RunCalls) -> Decode:
    def ports(protocol: str, transport: str) -> tuple[int, ...]:
        these = calls.flows.filter(pl.col("protocol") == protocol, pl.col("transport") == transport)
        return tuple(these["server_port"].unique().sort())

    return Decode(ports("sunrpc", "udp"), ports("sunrpc", "tcp"))


def _addresses(run: RunDirectory, frames: pl.DataFrame) -> pl.DataFrame:
    """end, own: the addresses of the machine behind each port; a guest that joins segments has none there."""
    joining = set(transit_ends(frames))
    machines = frames.select("end", machine=pl.col("interface").str.extract(r"^([^:]*)")).unique()
    rows = []
    for end, machine in machines.iter_rows():
        node = run.nodes.get(machine)
        if node is not None:
            own = [item.address for item in node.interfaces if item.address]
            rows.append((end, own if own or end in joining else [""]))
    return pl.DataFrame(rows, schema={"end": pl.String, "own": pl.List(pl.String)}, orient="row")


def _has_iperf3(run: RunDirectory) -> bool:
    return any(
        str(task.get("app", "")).startswith("iperf3")
        for job in run.jobs.values()
        for task in (*job.get("services", []), *job.get("steps", []))
    )


def _executed(run: RunDirectory, calls: RunCalls) -> dict[str, Executed]:
    """What each RPC server counted last: calls that it has executed. Not of one that is started anew: what waits for it
    when it ends has been taken by its node and is executed by none of its lives."""
    return {
        name: Executed(int(line["executed"]), _last_call(run, name))
        for name, lines in calls.records.items()
        if not _starts_anew(run, name)
        for line in lines
        if line["type"] == "counters" and line.get("app") == "echo-server" and "executed" in line
    }


def _starts_anew(run: RunDirectory, name: str) -> bool:
    return any(service.get("restart", False) for service in run.jobs.get(name, {}).get("services", []))


def _last_call(run: RunDirectory, name: str) -> int | None:
    """The last call that a server executes which was told to end by itself."""
    for service in run.jobs.get(name, {}).get("services", []):
        die = (service.get("options") or {}).get("die")
        if die:
            return int(die["call"]) - int(die.get("when") == "before")
    return None


def _with_mbcf(frames: pl.DataFrame, settled: mbcf.Settled) -> pl.DataFrame:
    """`class` and `call` of MBCF frames; those on a fate interface are classified already."""
    joined = frames.join(settled.classes, on="row", how="left", maintain_order="left")
    ours = pl.col("mbcf_class").is_not_null() & pl.col("fate").is_null()
    return joined.with_columns(
        pl.when(ours).then("mbcf_class").otherwise("class").alias("class"), call=pl.coalesce("mbcf_call", "call")
    ).drop("mbcf_class", "mbcf_call")


def _excuse(frames: pl.DataFrame, analysis: Analysis, files: list[tuple[Path, str]]) -> pl.DataFrame:
    """Frames that nothing explains but that the wire reports to have corrupted become `corrupted`."""
    extra = analysis.findings.filter(pl.col("field").str.ends_with(".received"))["rows"].explode().drop_nulls()
    unexplained = frames.filter(pl.col("class") == leftover.UNEXPLAINED)["row"]
    rows = altered.corrupted_rows(frames, pl.concat([unexplained, extra.cast(unexplained.dtype)]).unique(), files)
    changed = pl.col("row").is_in(list(rows)) & (pl.col("view").ne_missing("sent"))
    return frames.with_columns(pl.when(changed).then(pl.lit("corrupted")).otherwise("class").alias("class"))


def _without_corrupted(found: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    """Without findings that only tell of frames which arrived corrupted."""
    rows = frames.filter(pl.col("class") == "corrupted")["row"].to_list()
    excused = (pl.col("rows").list.len() > 0) & (pl.col("rows").list.set_difference(rows).list.len() == 0)
    return found.filter(~excused) if rows else found


def _changed(run: RunDirectory) -> pl.DataFrame:
    """A finding for each capture that is not the one that was recorded."""
    rows: list[tuple[None, str, str, str, list[int]]] = []
    for name, recorded in run.captures.items():
        if recorded:
            with (run.path / name).open("rb") as file:
                now = hashlib.file_digest(file, "sha256").hexdigest()
            if now != recorded:
                rows.append((None, f"capture {name}", f"sha256 {recorded}", f"sha256 {now}", []))
    return pl.DataFrame(rows, schema=FINDING, orient="row")


def _result(
    analysis: Analysis, settled: mbcf.Settled, frames: pl.DataFrame, found: pl.DataFrame, calls: RunCalls
) -> Verification:
    failed = found.filter(pl.col("call").is_not_null()).group_by("call").agg(mismatches=pl.len())
    return Verification(
        verdict="pass" if found.is_empty() else "fail",
        calls=_sampled(calls),
        frames=frames.filter(pl.col("fate").is_null()).height,
        packets=analysis.packets + settled.packets,
        fragments=analysis.fragments,
        retransmissions=analysis.retransmissions | ({"mbcf": settled.retransmissions} if calls.mbcf.height else {}),
        mismatches=found.height,
        groups=groups_json(analysis, failed) + mbcf_groups_json(calls.mbcf, settled, failed),
        classified=leftover.counts(frames),
        problems=problems_json(found, frames, pl.concat([analysis.calls, _named(calls)], how="diagonal_relaxed")),
    )


def _ahead_ns(analysis: Analysis) -> dict[str, int]:
    """How far the captures' clock is ahead of each client's: under the real clock a guest's begins when it boots."""
    sent = analysis.observed.select("call_first_tx_ns", id="call")
    apart = (pl.col("call_first_tx_ns") - pl.col("start_ns")).median().cast(pl.Int64)
    table = analysis.calls.join(sent, on="id").group_by("client").agg(apart).drop_nulls()
    return dict(table.iter_rows())


def _named(calls: RunCalls) -> pl.DataFrame:
    """Calls over MBCF as problems name them."""
    return calls.mbcf.with_columns(protocol=pl.lit(mbcf.PREFIX))


def _sampled(calls: RunCalls) -> int:
    """Calls with a sample: those that the scenario asked for."""
    return calls.table.filter(pl.col("id") < calls.samples.height).height + calls.mbcf.height


def _observed(calls: RunCalls, observed: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    failed = found.filter(pl.col("call").is_not_null())["call"].unique()
    names = [name for name in IDENTITY if name != "call"]
    identity = calls.samples.with_row_index("id").select("id", *names, *_SAMPLED)
    seen = observed.rename({"call": "id"}).with_columns(verified=True)
    return (
        identity.join(seen.drop("transport"), on="id", how="left", maintain_order="left")
        .with_columns(
            retransmissions=pl.col("request_retransmissions") + pl.col("reply_retransmissions"),
            verdict=pl.when(pl.col("verified").is_null())
            .then(pl.lit("unverified"))
            .when(pl.col("id").is_in(failed.implode()))
            .then(pl.lit("fail"))
            .otherwise(pl.lit("pass")),
        )
        .select([*names, *_SAMPLED, *_OBSERVED, "retransmissions", "verdict"])
    )

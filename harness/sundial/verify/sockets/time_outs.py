# SPDX-License-Identifier: Apache-2.0
"""Calls over UDP that a client reports to have timed out, although their replies came.

A client that waits takes a reply to its call when it comes, and gives up after the time that its job allows, and not
before. So a call to which a reply came has not timed out earlier.
"""

from __future__ import annotations

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import findings, none
from sundial.verify.headers.ports import ports_of
from sundial.verify.sockets.analysis import Analysis

UNPROVEN: tuple[str, ...] = (
    "that a call over UDP timed out: only that none did before its time was over, after its reply had come in one"
    " packet, on wires that damaged nothing; on Linux also, to a port to which no reply came twice",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = ("that a call timed out, whose reply came",)
NS_PER_MS = 10**6
_EXACT = "sss-core"
"""The platform whose clients count time by their clock (client_call of guest-apps/sss-core/rpc)."""
_TIMED_OUT = "RPC: Timed out"
"""What both libraries of Sun RPC call it (clnt_sperrno)."""


def check_time_outs(run: RunDirectory, analysis: Analysis) -> pl.DataFrame:
    """A finding for each call that ended sooner than its job's `total_timeout_ms` for want of a reply that had come.

    libtirpc counts a wait that another datagram cuts short as a whole one: on Linux, ports to which a reply came twice
    are left out, and runs with damaged frames.
    """
    if run.clock != "virtual" or analysis.frames["damaged"].any():
        return none()
    limits = [
        (name, number, int(options["total_timeout_ms"]) * NS_PER_MS)
        for name, job in run.jobs.items()
        for number, step in enumerate(job.get("steps", ()))
        if "total_timeout_ms" in (options := step.get("options") or {})
    ]
    limit = pl.DataFrame(limits, ["client", "node_step", "limit_ns"], orient="row")
    limit = limit.cast({"client": pl.String, "node_step": analysis.calls.schema["node_step"], "limit_ns": pl.Int64})
    came = (
        analysis.arrived.filter("reply")
        .group_by("call")
        .agg(pl.col("rows", "count", "last_ns").first(), replies=pl.len())
    )
    table = (
        analysis.calls.filter(pl.col("transport") == "udp")
        .rename({"id": "call", "call": "number"})
        .join(came, on="call", how="left")
        .with_columns(
            alone=(pl.col("replies").fill_null(0) <= 1).all().over("client", "client_port")
            | pl.col("client").is_in(_exact_clients(run))
        )
        .filter("alone", ~pl.col("ok"), pl.col("error") == _TIMED_OUT, pl.col("count") == 1)
        .filter(pl.col("last_ns").is_between("start_ns", "end_ns"))
        .join(limit, on=["client", "node_step"], how="inner")
    )
    lasted = pl.col("end_ns") - pl.col("start_ns")
    return findings(
        table,
        lasted < pl.col("limit_ns"),
        pl.lit("sample.error"),
        pl.format("none: a reply came, and the call may last {} ns", "limit_ns"),
        pl.format("{} after {} ns", "error", lasted),
    )


def _exact_clients(run: RunDirectory) -> list[str]:
    """Machines whose clients wait for the whole time, whatever comes."""
    return ports_of(run).filter(pl.col("platform") == _EXACT)["machine"].unique().to_list()

# SPDX-License-Identifier: Apache-2.0
"""What a scenario says must be true of its run (`expect`), beyond exact packets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding, as_table, findings, none
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.workload import Settled


def check_sockets(scenario: dict[str, Any], analysis: Analysis) -> pl.DataFrame:
    """Findings where something happened to calls over UDP and TCP that `expect` rules out.

    `retransmissions` are those of calls over UDP: TCP repeats segments on its own account (for one, when half duplex
    delays acknowledgements), which the counts of the result tell. `explained` ones have a cause on the wire
    (`retransmission_causes`). `failures` are calls without a right reply, except those that cannot be made at their
    size.
    """
    expect = scenario.get("expect") or {}
    parts = [none()]
    if expect.get("retransmissions") == "none":
        observed = analysis.observed.with_columns(reply=pl.lit(False), again=pl.col("request_retransmissions"))
        over_udp = observed.filter(pl.col("transport") == "udp")
        parts.append(
            findings(over_udp, pl.col("again") > 0, "retransmissions", pl.lit("none"), pl.col("again"), rows=None)
        )
    if expect.get("retransmissions") == "explained":
        events = pl.format(
            "{} whole requests, {} replies, {} of them whole at the client", "asked", "answered", "received"
        )
        cause = pl.lit("a request or reply that did not arrive before")
        parts.append(findings(analysis.uncaused, pl.lit(True), "retransmissions", cause, events))
    if expect.get("failures") == "none":
        possible = [kind for kind, call in enumerate(analysis.expected) if call.fails is None]
        parts.append(_failures(analysis.calls.filter(pl.col("kind").is_in(possible))))
    return pl.concat(parts)


def check_settled(scenario: dict[str, Any], settled: Settled) -> pl.DataFrame:
    """The same of calls that a kind settles by itself."""
    expect = scenario.get("expect") or {}
    parts = [none()]
    if expect.get("retransmissions") == "none":
        again = pl.col("request_retransmissions")
        text = pl.lit("request.retransmissions")
        parts.append(findings(settled.observed, again > 0, text, pl.lit("none"), again, rows=None))
    if expect.get("retransmissions") == "explained":
        parts.append(settled.uncaused)
    if expect.get("failures") == "none":
        parts.append(_failures(settled.calls.filter(~pl.col("id").is_in(list(settled.impossible)))))
    return pl.concat(parts)


def check_calls(run: RunDirectory, calls: int, client_apps: Iterable[str]) -> pl.DataFrame:
    """A finding where clients had steps that call and there is no call at all: nothing would be proven."""
    apps = set(client_apps)
    steps = [step for job in run.jobs.values() for step in job.get("steps", []) if step.get("app") in apps]
    if calls or not steps:
        return none()
    return as_table([Finding(None, "calls", "at least 1", "0")])


def _failures(calls: pl.DataFrame) -> pl.DataFrame:
    text = pl.col("error").fill_null("none, or a wrong one")
    table = calls.with_columns(call=pl.col("id"))
    return findings(table, ~pl.col("ok"), pl.lit("reply"), pl.lit("the right one"), text, rows=None)

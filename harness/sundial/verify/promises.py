# SPDX-License-Identifier: Apache-2.0
"""What a scenario says must be true of its run (`expect`), beyond exact packets."""

from __future__ import annotations

from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.calls import PROTOCOLS
from sundial.verify.core import Analysis
from sundial.verify.findings import FINDING, findings, none


def check_promises(scenario: dict[str, Any], analysis: Analysis) -> pl.DataFrame:
    """Findings where something happened that `expect` rules out.

    `retransmissions` are those of calls over UDP: TCP repeats segments on its own account (for one, when half duplex
    delays acknowledgements), which the counts of the result tell. `explained` ones have a cause on the wire (`causes`).
    `failures` are calls without a right reply, except those that cannot be made at their size.
    """
    expect = scenario.get("expect") or {}
    parts = [none()]
    seen = analysis.observed.with_columns(reply=pl.lit(False), again=pl.col("request_retransmissions"))
    if expect.get("retransmissions") == "none":
        over_udp = seen.filter(pl.col("transport") == "udp")
        parts.append(
            findings(over_udp, pl.col("again") > 0, "retransmissions", pl.lit("none"), pl.col("again"), rows=None)
        )
    if expect.get("retransmissions") == "explained":
        told = pl.format("{} whole requests, {} replies, {} of them whole at the client", "asked", "answered", "told")
        cause = pl.lit("a request or reply that did not arrive before")
        parts.append(findings(analysis.uncaused, pl.lit(True), "retransmissions", cause, told))
    if expect.get("failures") == "none":
        possible = [kind for kind, call in enumerate(analysis.expected) if call.fails is None]
        calls = analysis.calls.filter(pl.col("kind").is_in(possible)).with_columns(call=pl.col("id"))
        text = pl.col("error").fill_null("none, or a wrong one")
        parts.append(findings(calls, ~pl.col("ok"), pl.lit("reply"), pl.lit("the right one"), text, rows=None))
    return pl.concat(parts)


def check_calls(run: RunDirectory, calls: int) -> pl.DataFrame:
    """A finding where clients were told to call and there is no call at all: nothing would be proven."""
    steps = [step for job in run.jobs.values() for step in job.get("steps", []) if step.get("app") in PROTOCOLS]
    if calls or not steps:
        return none()
    return pl.DataFrame([(None, "calls", "at least 1", "0", [])], schema=FINDING, orient="row")

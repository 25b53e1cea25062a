# SPDX-License-Identifier: Apache-2.0
"""What servers counted (`counters` lines) against the requests that the capture shows them to have answered.

A server writes its counts when it has had nothing to do for 200 ms. So each line is true of all that it had served up
to a pause: as many of its answers as it counts calls, the first ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import DROPPED, dropped_by
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.sockets.flows import UDP
from sundial.verify.sockets.protocol import SocketProtocol

UNPROVEN: tuple[str, ...] = (
    "what servers counted where a call failed, where calls have no reply, where an adapter dropped replies, and of"
    " SSS-CORE",
    "that a server wrote its counts: it does so 200 ms after its last work, and the run may be over before",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = ("that a server wrote its counts in a pause and at no other time",)
PAUSE_NS = 200_000_000
"""Of a server before it writes; guest-apps/common/server.h."""


def check_served(
    run: RunDirectory, samples: RunSamples, analysis: Analysis, protocols: Mapping[str, SocketProtocol]
) -> pl.DataFrame:
    """A finding for each count that the capture contradicts."""
    rows: list[Finding] = []
    answers = _answers(analysis)
    countable = {
        name: protocol
        for name, protocol in protocols.items()
        if _is_countable(run, analysis.calls.filter(pl.col("protocol") == name), protocol)
    }
    refused = analysis.frames.filter(
        pl.col("fate") == DROPPED, dropped_by().is_not_null(), "reply", pl.col("call").is_not_null()
    ).height
    for server, records in samples.records.items() if not refused else ():
        lines = [each for each in records if each["type"] == "counters" and "task" not in each]
        given = answers.filter(pl.col("server") == server, pl.col("protocol").is_in(list(countable)))
        for name in given["protocol"].unique().sort():
            own = [each for each in lines if each.get("app") == countable[name].server_app]
            mine = given.filter(pl.col("protocol") == name)
            rows += _lines(f"nodes/{server} counters", own, mine, countable[name], exact=run.clock == "virtual")
        services = [str(each.get("app")) for each in run.jobs.get(server, {}).get("services", ())]
        for line in lines if given.height else ():
            if line.get("app") not in services:
                rows.append(Finding(None, f"nodes/{server} counters app", ", ".join(services), str(line.get("app"))))
    return as_table(rows)


def _is_countable(run: RunDirectory, calls: pl.DataFrame, protocol: SocketProtocol) -> bool:
    """Whether each answer is one call, and all have one."""
    steps = [step for job in run.jobs.values() for step in job.get("steps", ()) if step["app"] == protocol.client_app]
    one_way = any((step.get("options") or {}).get("one_way") for step in steps)
    return calls.height > 0 and bool(calls["ok"].all()) and not one_way


def _answers(analysis: Analysis) -> pl.DataFrame:
    """One row for each answer, in the order in which they left: protocol, server, call, transport, procedure, size,
    conn, answered_ns, head, and how many connections its server had in all."""
    over_udp = analysis.frames.filter(
        pl.col("protocol") == UDP, pl.col("view") == "sent", "reply", pl.col("call").is_not_null(),
        pl.col("fragment_offset") == 0, pl.col("fate").is_null(),
    ).select("call", answered_ns="time_ns", head="udp_head")  # fmt: skip
    over_tcp = analysis.observed.filter(pl.col("transport") == "tcp", pl.col("reply_first_tx_ns").is_not_null())
    stamps = over_tcp.select("call", answered_ns="reply_first_tx_ns", head=pl.lit(None, pl.String))
    opened = pl.col("conn").drop_nulls().n_unique().over("protocol", "server")
    calls = analysis.calls.select(
        "protocol", "server", "transport", "procedure", "size", "conn", call="id", connections=opened
    )
    return pl.concat([over_udp, stamps]).join(calls, on="call").sort("answered_ns", "call")


def _lines(
    where: str, lines: Sequence[Mapping[str, Any]], answers: pl.DataFrame, protocol: SocketProtocol, *, exact: bool
) -> Iterator[Finding]:
    before = 0
    for line in lines:
        number = line.get("calls")
        if not isinstance(number, int) or not before <= number <= answers.height:
            yield Finding(
                None, f"{where} calls", f"{before} to {answers.height}, the answers in the capture", str(number)
            )
            continue
        before = number
        for field, expected in protocol.counts(answers[:number]).items():
            seen = line.get(field)
            within = isinstance(expected, tuple) and isinstance(seen, int) and expected[0] <= seen <= expected[1]
            if not within and seen != expected:
                words = "{} to {}".format(*expected) if isinstance(expected, tuple) else str(expected)
                yield Finding(None, f"{where} {field}", words, str(seen))
        if exact and 0 < number < answers.height:
            pause_ns = answers["answered_ns"][number] - answers["answered_ns"][number - 1]
            if pause_ns < PAUSE_NS:
                words = f"a pause of {PAUSE_NS} ns behind the answers that are counted"
                yield Finding(None, f"{where} calls", words, f"{number}, and {pause_ns} ns until the next")


def connections(answers: pl.DataFrame) -> tuple[int, int]:
    """Of a server over TCP: those of its answers so far, and perhaps some that wait for their first call."""
    return answers["conn"].drop_nulls().n_unique(), max(answers["connections"], default=0)

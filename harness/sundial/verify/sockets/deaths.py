# SPDX-License-Identifier: Apache-2.0
"""Requests that no server answered because its job kills it in a call: option `die` of a service, with the `call` of
each of its lives and whether it ends before, during or after it; and `restart`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.sockets.protocol import SocketProtocol
from sundial.verify.sockets.served import answers_of, options_of
from sundial.verify.workload import Counted

_FOREVER = 1 << 62


@dataclass(frozen=True)
class Death:
    """How a server ends, as its job has it."""

    call: int
    """Of the calls that it executes, counted from 1 in each life."""
    answers_it: bool
    restarts: bool
    keeps: bool
    """It answers a request that it has executed already with the reply that it keeps; that counts as none."""


Request = tuple[int, int | None, bool]
"""When it was whole at its server, its call, where it may come again, and whether it was answered."""


def silences(requests: Iterable[Request], death: Death) -> list[tuple[int, int]]:
    """From when, until when (ns), a server was dead, by its requests in the order in which they came."""
    found: list[tuple[int, int]] = []
    count, kept, since = 0, set[int](), None
    for at, call, answered in requests:
        if since is not None:
            if not (answered and death.restarts):
                continue
            found.append((since, at))
            count, kept, since = 0, set(), None
        last = count == death.call - 1
        if call in kept or not (answered or (last and not death.answers_it)):
            continue
        count += 1
        if death.keeps and call is not None:
            kept.add(call)
        # One that answers where it should have ended is in another call of its life than the capture tells.
        if last and answered == death.answers_it:
            since = at
    return found if since is None else [*found, (since, _FOREVER)]


def dead_servers(
    requests: pl.DataFrame,
    run: RunDirectory,
    analysis: Analysis,
    protocols: Mapping[str, SocketProtocol],
    others: Mapping[tuple[str, str], Counted],
) -> set[int]:
    """It came to a server in the call in which it was killed, or until it answered again. `others`: calls that it took
    over other transports."""
    explained: set[int] = set()
    answers = answers_of(analysis)
    servers = analysis.calls.filter(pl.col("id").is_in(requests["call"].implode())).select("server", "protocol")
    for server, name in servers.unique().iter_rows():
        app = protocols[name].server_app
        death = _death_of(run, server, app)
        if death is None:
            continue
        besides = others.get((server, app))
        own = _requests(analysis, answers, server, name)
        known = [*own, *((at, None, True) for at in (() if besides is None else besides.taken_ns))]
        dead = silences(sorted(known, key=lambda each: each[0]), death)
        for place, call, again_ns in requests.select("place", "call", "first_ns").iter_rows():
            came = [at for at, its, answered in own if its == call and not answered and at < again_ns]
            if any(since <= at < until for at in came for since, until in dead):
                explained.add(place)
    return explained


def _death_of(run: RunDirectory, server: str, app: str) -> Death | None:
    services = run.jobs.get(server, {}).get("services", ())
    restarts = any(each.get("restart") for each in services if each.get("app") == app)
    options = options_of(run, server, app)
    die = options.get("die")
    if not isinstance(die, dict):
        return None
    keeps = options.get("semantics") == "at_most_once"
    return Death(int(die["call"]), die.get("when") == "after", restarts, keeps)


def _requests(analysis: Analysis, answers: pl.DataFrame, server: str, protocol: str) -> list[Request]:
    """Whole requests at a server, in order. Of several of a call, an answer is for the last one before it."""
    there = (pl.col("server") == server) & (pl.col("protocol") == protocol)
    mine = analysis.calls.filter(there).select("transport", call="id")
    over_udp = analysis.arrived.filter(~pl.col("reply")).select("call", at="last_ns")
    over_tcp = analysis.observed.select("call", at="call_last_rx_ns").drop_nulls()
    came = pl.concat(
        [
            part.join(mine.filter((pl.col("transport") == "udp") == of_udp), on="call")
            for part, of_udp in ((over_udp, True), (over_tcp, False))
        ]
    ).sort("at", "call")
    left = answers.filter(there)
    events = sorted(
        [
            *((at, 0, call, place) for place, (call, at) in enumerate(came.select("call", "at").iter_rows())),
            *((at, 1, call, -1) for call, at in left.select("call", "answered_ns").iter_rows()),
        ]
    )
    waiting: dict[int, list[int]] = {}
    answered: set[int] = set()
    for _, is_answer, call, place in events:
        if not is_answer:
            waiting.setdefault(call, []).append(place)
        elif waiting.get(call):
            answered.add(waiting[call].pop())
    return [(at, call, place in answered) for place, (call, at) in enumerate(came.select("call", "at").iter_rows())]

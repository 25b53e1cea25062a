# SPDX-License-Identifier: Apache-2.0
"""What servers counted (`counters` lines) against the requests that the capture shows them to have answered.

A server writes its counts when it has had nothing to do for 200 ms. So each line is true of all that it had served up
to a pause: as many of its answers as it counts calls, the first ones. An answer may have been given when its request
had come, and have waited for its line, so a pause is between that and when the next one left. The last line is true of
all that it served, if its machine was quiet for long enough before the end of the run.

A server that keeps replies does not count what it replays as a call. On SSS-CORE one task serves memory-based
communication as well, and counts all calls together (`Settled.counted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import polars as pl

from sundial.model.images import IMAGES
from sundial.observe import RunDirectory
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import DROPPED, machine, turn
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of
from sundial.verify.sockets.analysis import Analysis
from sundial.verify.sockets.flows import UDP
from sundial.verify.sockets.protocol import Counts, SocketProtocol
from sundial.verify.workload import Counted

UNPROVEN: tuple[str, ...] = (
    "what servers counted where a call failed, where calls have no reply, where an adapter dropped replies, and of"
    " SSS-CORE where services end or restart, or a request that arrived has no reply; its copies, and its task where no"
    " call came over MBCF",
    "that a server wrote its counts, where its machine was quiet for less than 250 ms (at 125 mips) before the run's"
    " end",
)
UNPROVEN_REAL_CLOCK: tuple[str, ...] = ("that a server wrote its counts, and that it did so in a pause",)
PAUSE_NS = 200_000_000
"""Of a server before it writes; guest-apps/common/server.h, sss-core/tasks/echo-server.c."""
WRITING_INSTRUCTIONS = 6_250_000
"""More than a machine that has nothing else to do executes from the end of the pause until the line is written."""
_REPLIES_KEPT = 256
"""Where the job does not say how many (CACHE_DEFAULT of sss-core/tasks/echo-server.c)."""


def check_served(
    run: RunDirectory,
    samples: RunSamples,
    analysis: Analysis,
    protocols: Mapping[str, SocketProtocol],
    others: Mapping[tuple[str, str], Counted],
) -> pl.DataFrame:
    """A finding for each count that the capture contradicts. `others`: `Settled.counted` of all kinds."""
    rows: list[Finding] = []
    answers = answers_of(analysis)
    countable = {
        name: protocol
        for name, protocol in protocols.items()
        if protocol.server_app and _is_countable(run, analysis.calls.filter(pl.col("protocol") == name), protocol)
    }
    refused = analysis.frames.filter(
        pl.col("fate") == DROPPED, pl.col("fate_adapter").is_not_null(), "reply", pl.col("call").is_not_null()
    ).height
    quiet = _quiet(run, analysis.frames)
    by_sockets: set[tuple[str, str]] = set()
    for server, records in samples.records.items() if not refused else ():
        lines = [each for each in records if each["type"] == "counters"]
        keeps = _keeps_replies(run, server, lines)
        given = answers.filter(pl.col("server") == server, pl.col("protocol").is_in(list(countable)))
        for name in given["protocol"].unique().sort():
            app, mine = countable[name].server_app, given.filter(pl.col("protocol") == name)
            own = [each for each in lines if each.get("app") == app and ("task" in each) == keeps]
            options = options_of(run, server, app)
            by_sockets.add((server, app))
            besides = others.get((server, app)) if keeps else None
            if keeps and (any("rings" in each for each in own) or "die" in options or _unanswered(analysis, mine)):
                continue
            if keeps and besides is None and _is_called_otherwise(samples, server, countable[name]):
                continue
            served = _Served(
                f"nodes/{server} counters",
                own,
                mine.with_columns(executed=_executed(mine, options)),
                countable[name],
                besides,
                exact=run.clock == "virtual",
                quiet=server in quiet,
            )
            rows += served.check()
        services = [str(each.get("app")) for each in run.jobs.get(server, {}).get("services", ())]
        for line in lines if given.height else ():
            if line.get("app") not in services and (keeps or "task" not in line):
                rows.append(Finding(None, f"nodes/{server} counters app", ", ".join(services), str(line.get("app"))))
    for (server, app), counted in others.items():
        lines = [
            each for each in samples.records.get(server, ()) if (each["type"], each.get("app")) == ("counters", app)
        ]
        if (
            server in quiet
            and (server, app) not in by_sockets
            and counted.taken_ns
            and not any("task" in each for each in lines)
        ):
            rows.append(Finding(None, f"nodes/{server} counters", f"{len(counted.taken_ns)} calls by the end", "none"))
    return as_table(rows)


@dataclass(frozen=True)
class _Served:
    """A server's lines, and what it did: answers over sockets, with `executed`, and calls besides."""

    where: str
    lines: Sequence[Mapping[str, Any]]
    answers: pl.DataFrame
    protocol: SocketProtocol
    besides: Counted | None
    exact: bool
    quiet: bool
    """Its machine was, at the end of the run, for as long as it takes to write a line."""

    def check(self) -> Iterator[Finding]:
        """A finding for each number that is not what the capture shows."""
        taken_ns = () if self.besides is None else self.besides.taken_ns
        work_ns = sorted([*self.answers.select("answered_ns", "asked_ns").iter_rows(), *((at, at) for at in taken_ns)])
        calls_ns = sorted([*self.answers.filter("executed")["answered_ns"], *taken_ns])
        total, before = len(calls_ns), 0
        tasks = dict.fromkeys(str(line.get("task")) for line in self.lines)
        if len(tasks) > 1:
            yield Finding(None, f"{self.where} task", "the same in all lines", ", ".join(tasks))
        for line in self.lines:
            number = line.get("calls")
            if not isinstance(number, int) or not before <= number <= total:
                seen = f"{before} to {total}, the calls in the capture"
                yield Finding(None, f"{self.where} calls", seen, str(number))
                continue
            before = number
            until_ns = calls_ns[number] if number < total else None
            if self.exact or self.besides is None or until_ns is None:
                yield from self._compare(line, until_ns)
            if self.exact and 0 < number < total:
                begin, end = calls_ns[number - 1], calls_ns[number]
                pause_ns = _longest_pause([(at, since) for at, since in work_ns if begin <= at <= end])
                if pause_ns < PAUSE_NS:
                    words = f"a pause of {PAUSE_NS} ns behind the calls that are counted"
                    yield Finding(None, f"{self.where} calls", words, f"{number}, and {pause_ns} ns until the next")
        if self.quiet and (not self.lines or before < total):
            yield Finding(None, self.where, f"{total} calls by the end", f"{before} calls" if self.lines else "none")

    def _compare(self, line: Mapping[str, Any], until_ns: int | None) -> Iterator[Finding]:
        """`until_ns`: when the first call came that is not in the line."""
        answers = self.answers if until_ns is None else self.answers.filter(pl.col("answered_ns") < until_ns)
        counted = answers.filter("executed")
        counts = _with_replays(self.protocol.counts(counted, line), answers)
        if "task" not in line:
            counts = {**counts, "connections": _connections(counted, max(self.answers["connections"], default=0))}
        for field, expected in _sum(counts, {} if self.besides is None else self.besides.until(until_ns)).items():
            seen = line.get(field)
            within = isinstance(expected, tuple) and isinstance(seen, int) and expected[0] <= seen <= expected[1]
            if not within and seen != expected:
                words = "{} to {}".format(*expected) if isinstance(expected, tuple) else str(expected)
                yield Finding(None, f"{self.where} {field}", words, str(seen))


def _longest_pause(work_ns: Iterable[tuple[int, int]]) -> int:
    """Between two answers, of which it is known when each left, and since when it may have been given."""
    return max(left - given for (_, given), (left, _) in pairwise(work_ns))


def _with_replays(counts: Counts, answers: pl.DataFrame) -> Counts:
    """With `replayed`, where it is counted. What is replayed after a pause behind the last call is in no line."""
    if "replayed" not in counts:
        return counts
    last = answers.select(pl.col("answered_ns").filter("executed").max()).item()
    times = answers.select("answered_ns", "asked_ns").rows()
    paused_ns = next(
        (
            two
            for (one, since), (two, _) in pairwise(times)
            if last is not None and one >= last and two - since >= PAUSE_NS
        ),
        None,
    )
    replays = answers.filter(~pl.col("executed"))
    sure = replays if paused_ns is None else replays.filter(pl.col("answered_ns") < paused_ns)
    return {**counts, "replayed": (sure.height, replays.height)}


def _sum(one: Counts, other: Counts) -> Counts:
    """Field by field; of a field that only one has, that."""
    return {name: _added(one.get(name), other.get(name)) for name in {**one, **other}}


def _added(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, dict):
        return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    bounds = [each if isinstance(each, tuple) else (each, each) for each in (one, other)]
    return tuple(sum(ends) for ends in zip(*bounds, strict=True))


def _executed(answers: pl.DataFrame, options: Mapping[str, Any]) -> pl.Series:
    """Of the answers of one server, in order: not replayed from those that it keeps, of which the oldest goes first."""
    if options.get("semantics") != "at_most_once":
        return pl.Series(values=[True] * answers.height, dtype=pl.Boolean)
    most, kept, executed = int(options.get("reply_cache", _REPLIES_KEPT)), dict[int, None](), []
    for call, transport in answers.select("call", "transport").iter_rows():
        executed.append(transport != "udp" or call not in kept)
        if transport == "udp" and executed[-1]:
            if len(kept) == most:
                del kept[next(iter(kept))]
            kept[call] = None
    return pl.Series(values=executed, dtype=pl.Boolean)


def _is_called_otherwise(samples: RunSamples, server: str, protocol: SocketProtocol) -> bool:
    """Whether calls came to a server over a transport that says nothing of its counts."""
    over_sockets = pl.col("transport").is_in(list(protocol.transports))
    own = (pl.col("server") == server) & (pl.col("app") == protocol.client_app)
    return samples.table.filter(own, ~over_sockets).height > 0


def _unanswered(analysis: Analysis, answers: pl.DataFrame) -> bool:
    """Whether more requests over UDP arrived whole for these calls than were answered: a server that has no address
    of its client yet may have executed a call without a reply in the capture."""
    over_udp = answers.filter(pl.col("transport") == "udp")
    asked = analysis.arrived.filter(~pl.col("reply"), pl.col("call").is_in(over_udp["call"].unique().implode()))
    return asked.height > over_udp.height


def options_of(run: RunDirectory, server: str, app: str) -> Mapping[str, Any]:
    """Of the service that a machine runs."""
    services = run.jobs.get(server, {}).get("services", ())
    return next((each.get("options") or {} for each in services if each.get("app") == app), {})


def _keeps_replies(run: RunDirectory, server: str, lines: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a machine's server keeps replies, and is a task with a number."""
    nodes = {} if (network := network_of(run)) is None else {node.name: node for node in network.nodes}
    image = IMAGES.get(nodes[server].image) if server in nodes else None
    return any("task" in each for each in lines) if image is None else image.keeps_replies


def _quiet(run: RunDirectory, frames: pl.DataFrame) -> set[str]:
    """Machines that had nothing to send or receive for so long before the end that their servers wrote their counts."""
    end_ns = (run.counters or {}).get("virtual_ns")
    if run.clock != "virtual" or not isinstance(end_ns, int) or (network := network_of(run)) is None:
        return set()
    seen = frames.select("interface", "time_ns", "fate").filter(pl.col("fate").is_null())
    at_ports = seen.group_by("interface").agg(pl.col("time_ns").max())
    last = dict(at_ports.group_by(machine()).agg(pl.col("time_ns").max()).iter_rows())
    return {
        node.name
        for node in network.nodes
        if node.name in last and end_ns - last[node.name] >= PAUSE_NS + int(WRITING_INSTRUCTIONS * 1000 / node.mips)
    }


def _is_countable(run: RunDirectory, calls: pl.DataFrame, protocol: SocketProtocol) -> bool:
    """Whether each answer is one call, and all have one."""
    steps = [step for job in run.jobs.values() for step in job.get("steps", ()) if step["app"] == protocol.client_app]
    options = [step.get("options") or {} for step in steps]
    one_way = any(each.get("one_way") and each.get("transport") in protocol.transports for each in options)
    return calls.height > 0 and bool(calls["ok"].all()) and not one_way


def answers_of(analysis: Analysis) -> pl.DataFrame:
    """One row for each answer, in the order in which they left: protocol, server, call, transport, procedure, size,
    conn, answered_ns, asked_ns, head, and how many connections its server had in all."""
    over_udp = analysis.frames.filter(
        pl.col("protocol") == UDP, pl.col("view") == "sent", "reply", pl.col("call").is_not_null(),
        pl.col("fragment_offset") == 0, pl.col("fate").is_null(),
    ).select("call", answered_ns="time_ns", head="udp_head").sort("call", "answered_ns")  # fmt: skip
    came = analysis.arrived.filter(~pl.col("reply")).sort("call", "last_ns")
    over_udp = over_udp.with_columns(place=turn("call")).join(
        came.select("call", place=turn("call"), asked_ns="last_ns"), on=["call", "place"], how="left"
    )
    over_tcp = analysis.observed.filter(pl.col("transport") == "tcp", pl.col("reply_first_tx_ns").is_not_null())
    stamps = over_tcp.select(
        "call", answered_ns="reply_first_tx_ns", head=pl.lit(None, pl.String), asked_ns="call_last_rx_ns"
    )
    opened = pl.col("conn").drop_nulls().n_unique().over("protocol", "server")
    calls = analysis.calls.select(
        "protocol", "server", "transport", "procedure", "size", "conn", call="id", connections=opened
    )
    answers = pl.concat([over_udp.select(stamps.columns), stamps]).join(calls, on="call").sort("answered_ns", "call")
    return answers.with_columns(asked_ns=pl.min_horizontal("asked_ns", "answered_ns"))


def _connections(answers: pl.DataFrame, most: int) -> tuple[int, int]:
    """Of a server over TCP: those of its answers so far, and perhaps some that wait for their first one."""
    return answers["conn"].drop_nulls().n_unique(), most

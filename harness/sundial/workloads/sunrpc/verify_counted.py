# SPDX-License-Identifier: Apache-2.0
"""What servers of Sun RPC count, where every call went to them over MBCF (guest-apps/sss-core/tasks/echo-server.c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.workload import Counted
from sundial.workloads import reporting
from sundial.workloads.mbcf.verify_evidence import Evidence, Judgement
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.mbcf.wire import SIGNAL
from sundial.workloads.sunrpc.verify_bound import BINDER, Handles
from sundial.workloads.sunrpc.verify_content import counted, given, taken

_SERVER_APP = "echo-server"
UNPROVEN: tuple[str, ...] = (
    "what servers of Sun RPC over MBCF count of copies in their library, and when clients have gone; of calls that they"
    " took and had not answered whole when the run ended, what they count",
)

Calls = Mapping[tuple[int, int | None], Transaction]
"""By client's node and xid."""
Times = Mapping[tuple[int, int | None], Sequence[int]]
"""By the same: when something happened to a call, in ns."""

SERVER_TASK = 0


class Took(NamedTuple):
    """When a server's node took a request, and which of the server's tasks executes it: over mbcf3b the dummy that its
    SIGNAL names, else SERVER_TASK."""

    at_ns: int
    task: int


Taken = Mapping[tuple[int, int | None], Sequence[Took]]
"""By client's node and xid: each time that its request was taken."""


def check_counted(
    evidence: Evidence, judgement: Judgement, calls: Calls, samples: pl.DataFrame, handles: Handles
) -> Iterator[Finding]:
    """A server's own counts, where every call went to it over MBCF with the same semantics. They go into the judgement,
    since it may have been called over sockets as well."""
    batches = list(evidence.batches.values())
    over_mbcf = [line for line in batches if str(line.get("transport", "")).startswith("mbcf")]
    semantics = {line.get("semantics", "exactly_once") for line in over_mbcf}
    if len(semantics) != 1:
        return
    lines = _counts(evidence)
    for name, node in evidence.nodes.items():
        own = [call for call in calls.values() if call.peer == node]
        if not own or restarts(evidence.run, name):
            continue
        taken = {(call.node, call.xid): _taken(evidence, call) for call in own}
        executed = {key: each if semantics == {"at_least_once"} else each[:1] for key, each in taken.items()}
        done_ns = sorted(took.at_ns for each in executed.values() for took in each)
        answered_ns = _times_ns(taken if semantics == {"at_most_once"} else executed)
        until = partial(_due, evidence, samples, node, handles)
        last = _last_call(evidence.run, name)
        if last is None:
            judgement.counted[name, _SERVER_APP] = Counted(partial(until, answered_ns, _times_ns(executed)), done_ns)
        if name in lines and len(over_mbcf) == len(batches):
            known = executed.keys() - _under_way(own, _one_way(evidence, samples))
            sure = {key: executed[key] for key in known}
            line, is_due = lines[name], reporting.is_due(evidence.run)
            if last is not None:
                counts = _counted_until_death(executed, sure, last, is_due)
                yield from _compared(name, {"executed": _between(*counts)}, line)
                continue
            # A run that ends soon may have the line of an earlier pause.
            earlier = not is_due and line["executed"] < len(done_ns)
            end_ns = done_ns[line["executed"]] if earlier else None
            due, least = (until(answered_ns, _times_ns(of), end_ns) for of in (executed, sure))
            yield from _compared(name, _between(_with_calls(least), _with_calls(due)), line)


def _with_calls(due: Mapping[str, Any]) -> dict[str, Any]:
    return {**due, "calls": due["executed"]}


def _times_ns(taken: Taken) -> Times:
    return {key: [took.at_ns for took in each] for key, each in taken.items()}


def _counted_until_death(executed: Taken, sure: Taken, last: int, is_due: bool) -> tuple[int, int]:
    """The least and the most requests that a server counts as executed whose job ends it: each of its tasks executes
    `last` at most. The server itself writes its counts as it ends, and its dummies may go on; else `is_due` says
    whether it had the time to write them. `sure`: without those of which it is not known whether they count."""
    most, least = (Counter(took.task for each in of.values() for took in each) for of in (executed, sure))
    ended = most[SERVER_TASK] >= last
    counting = [SERVER_TASK] if ended else list(least) if is_due else []
    return sum(min(least[task], last) for task in counting), sum(min(count, last) for count in most.values())


def _due(
    evidence: Evidence,
    samples: pl.DataFrame,
    node: int,
    handles: Handles,
    answered: Times,
    executed: Times,
    until: int | None,
) -> dict[str, Any]:
    """What a node's server must have counted of the calls that it took before a time, of all its clients; and its task,
    where clients name one. `answered`: executed, or answered with the reply that is kept."""
    times = {key: sum(1 for at in each if until is None or at < until) for key, each in executed.items()}
    done, clients = sum(times.values()), handles.accepted(node, until)
    asked = {call.peer_task for call in evidence.transactions.transactions if _asks(call, node)}
    return {
        "executed": done,
        "duplicates": done - sum(1 for each in times.values() if each),
        "replayed": sum(1 for each in answered.values() for at in each if until is None or at < until) - done,
        "clients": clients if until is None else (0, clients),
        "clients_gone": (0, clients),
        **_sums(evidence, samples, times),
        **({"task": next(iter(asked))} if len(asked) == 1 else {}),
    }


def _under_way(calls: Sequence[Transaction], one_way: Container[tuple[int, int | None]]) -> set[tuple[int, int | None]]:
    """Calls whose replies the server had not sent whole when the run ended: what it counts of them depends on how far
    it came. A one-way call has no reply."""
    return {
        (call.node, call.xid)
        for call in calls
        if (call.node, call.xid) not in one_way
        and not any("+" not in text for _, text in call.frames[True] if not text.startswith("RESULT"))
    }


def _one_way(evidence: Evidence, samples: pl.DataFrame) -> set[tuple[int, int | None]]:
    return {
        (evidence.nodes.get(client, 0), xid)
        for client, batch, xid in samples.select("client", "batch", "xid").iter_rows()
        if evidence.batches.get((client, batch), {}).get("one_way")
    }


def _between(least: Any, most: Any) -> Any:
    """Bounds of each field, where there are two."""
    if isinstance(most, dict):
        return {name: _between(least.get(name, 0), value) for name, value in most.items()}
    if least == most:
        return most
    low, high = (each if isinstance(each, tuple) else (each, each) for each in (least, most))
    return min(low[0], high[0]), max(low[1], high[1])


def _compared(name: str, due: Mapping[str, Any], line: Mapping[str, Any]) -> Iterator[Finding]:
    if not _within(line["executed"], due["executed"]):
        text = f"{line['executed']} executed by its own count"
        yield Finding(None, "mbcf.executed", f"{_words(due['executed'])} requests that {name} took", text)
        return
    for field, count in due.items():
        if field in line and not _within(line[field], count):
            yield Finding(None, f"counted.{field}", _words(count), f"{_words(line[field])} by {name}'s own count")


def _within(seen: Any, count: Any) -> bool:
    if isinstance(count, dict):
        return isinstance(seen, dict) and seen.keys() == count.keys() and all(_within(seen[n], count[n]) for n in count)
    return seen == count or (isinstance(count, tuple) and isinstance(seen, int) and count[0] <= seen <= count[1])


def _words(count: Any) -> str:
    if isinstance(count, dict):
        return ", ".join(f"{name} {_words(each)}" for name, each in count.items())
    return f"{count[0]} to {count[1]}" if isinstance(count, tuple) else str(count)


def _asks(call: Transaction, node: int) -> bool:
    """Whether it begins with a TASKQUE write to that node's server."""
    return call.peer == node and bool(call.connections) and call.peer_task != BINDER


def _sums(evidence: Evidence, samples: pl.DataFrame, executed: Mapping[tuple[int, int | None], int]) -> dict[str, Any]:
    """By procedure, and bytes: what the calls that were executed carry. A call without a sample has none."""
    procedures: Counter[str] = Counter()
    bytes_in = bytes_out = 0
    sampled = set()
    columns = ("client", "batch", "xid", "procedure", "size")
    for client, batch, xid, procedure, size in samples.select(columns).iter_rows():
        key = (evidence.nodes.get(client, 0), xid)
        times = 0 if key in sampled else executed.get(key, 0)
        sampled.add(key)
        one_way = procedure == "sink" and evidence.batches.get((client, batch), {}).get("one_way")
        procedures["sink_one_way" if one_way else procedure] += times
        bytes_in += times * taken(procedure, size)
        bytes_out += times * given(procedure, size)
    names = counted(list(procedures))
    procedures["null"] += sum(times for key, times in executed.items() if key not in sampled)
    by_procedure = {name: procedures[name] for name in names}
    wrong = {"bad_payload": 0, "undecodable": 0}
    return {"by_procedure": by_procedure, "bytes_in": bytes_in, "bytes_out": bytes_out, **wrong}


def _counts(evidence: Evidence) -> dict[str, Mapping[str, Any]]:
    """What servers wrote last, by machine. Not of one that restarts: what waits for it when it ends has been taken by
    its node and is lost."""
    return {
        name: line
        for name, lines in evidence.records.items()
        if not restarts(evidence.run, name)
        for line in lines
        if line["type"] == "counters" and line.get("app") == _SERVER_APP and "executed" in line
    }


def restarts(run: RunDirectory, name: str) -> bool:
    """True if services are restarted on a machine."""
    return any(service.get("restart", False) for service in run.jobs.get(name, {}).get("services", []))


def _last_call(run: RunDirectory, name: str) -> int | None:
    """The last call that a server executes which its job ends by itself."""
    for service in run.jobs.get(name, {}).get("services", []):
        die = (service.get("options") or {}).get("die")
        if die:
            return int(die["call"]) - int(die.get("when") == "before")
    return None


def _taken(evidence: Evidence, call: Transaction) -> list[Took]:
    """Each time that the server's node took the request of a call."""
    channels, carried = evidence.channels, evidence.carried
    refused = set(channels.refused.values())
    read = [rows for number, rows in enumerate(call.tries) if number not in call.unread]
    lasts = [rows[-1] for rows in read if rows and rows[-1] in channels.received and not refused & set(rows)]
    return sorted(
        Took(channels.received[row], carried[row].target_task if carried[row].op == SIGNAL else SERVER_TASK)
        for row in lasts
    )

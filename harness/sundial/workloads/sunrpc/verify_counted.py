# SPDX-License-Identifier: Apache-2.0
"""What servers of Sun RPC count, where every call went to them over MBCF (guest-apps/sss-core/tasks/echo-server.c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.workloads.mbcf.verify_channels import Channels
from sundial.workloads.mbcf.verify_evidence import Evidence
from sundial.workloads.mbcf.verify_transactions import Transaction
from sundial.workloads.sunrpc.verify_bound import BINDER, Handles
from sundial.workloads.sunrpc.verify_content import counted, given, taken

_SERVER_APP = "echo-server"
UNPROVEN: tuple[str, ...] = (
    "what servers of Sun RPC over MBCF count of copies in their library, and when clients have gone; that counts are "
    "there at all, since a server writes them when it is idle",
)

Calls = Mapping[tuple[int, int | None], Transaction]
"""By client's node and xid."""


def check_counted(evidence: Evidence, calls: Calls, samples: pl.DataFrame, handles: Handles) -> Iterator[Finding]:
    """A server's own counts, where every call went to it over MBCF with the same semantics."""
    lines = evidence.batches.values()
    semantics = {line.get("semantics", "exactly_once") for line in lines}
    other = any(not str(line.get("transport", "")).startswith("mbcf") for line in lines)
    if other or len(semantics) != 1:
        return
    again = semantics == {"at_least_once"}
    for name, line in _counts(evidence).items():
        node = evidence.nodes.get(name, 0)
        own = [call for call in calls.values() if call.peer == node]
        if not own:
            continue
        taken = {(call.node, call.xid): _taken(evidence.channels, call) for call in own}
        executed = {key: times if again else min(1, times) for key, times in taken.items()}
        last = _last_call(evidence.run, name)
        done = sum(executed.values()) if last is None else min(sum(executed.values()), last)
        if int(line["executed"]) != done:
            text = f"{line['executed']} executed by its own count"
            yield Finding(None, "mbcf.executed", f"{done} requests that {name} took", text)
        elif last is None:
            due = {
                "calls": done,
                "replayed": sum(taken.values()) - done if semantics == {"at_most_once"} else 0,
                "clients": handles.accepted(node),
                **_sums(evidence, samples, executed),
            }
            for field, count in due.items():
                if field in line and line[field] != count:
                    yield Finding(None, f"counted.{field}", str(count), f"{line[field]} by {name}'s own count")
            asked = {call.peer_task for call in evidence.transactions.transactions if _asks(call, node)}
            if asked and "task" in line and line["task"] not in asked:
                yield Finding(None, "counted.task", str(min(asked)), f"{line['task']} by {name}'s own count")
            if int(line.get("clients_gone", 0)) > handles.accepted(node):
                text = f"{line['clients_gone']} by {name}'s own count"
                yield Finding(None, "counted.clients_gone", f"at most {handles.accepted(node)}", text)


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
        sampled.add(key)
        times = executed.get(key, 0)
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


def _taken(channels: Channels, call: Transaction) -> int:
    """How many times the server's node has taken the request of a call."""
    refused = set(channels.refused.values())
    return sum(1 for rows in call.tries if rows and rows[-1] in channels.received and not refused & set(rows))

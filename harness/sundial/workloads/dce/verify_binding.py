# SPDX-License-Identifier: Apache-2.0
"""What clients say of their questions to the endpoint mapper, and the calls of those to which it named no port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.judge import parties
from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.samples import RunSamples
from sundial.workloads.dce.expect_pdu import Type
from sundial.workloads.dce.verify_client import NO_ANSWER, OK, Client
from sundial.workloads.dce.verify_names import CLIENT, NO_PORT, identity
from sundial.workloads.dce.verify_sides import Sides
from sundial.workloads.function_lines import check_function_line

TIMEOUT_MS = 30_000
"""So long a client asks whose options say nothing (guest-apps/dce/dce_client.c)."""
COMM_FAILURE = "1c010001"


def bindings(run: RunDirectory, samples: RunSamples) -> dict[tuple[str, int], Mapping[str, Any]]:
    """By client and step."""
    return {
        (client, int(line["step"])): line
        for client in run.jobs
        for line in samples.records.get(client, ())
        if line["type"] == "binding" and line.get("app") == CLIENT
    }


def bindings_missing(run: RunDirectory, samples: RunSamples) -> Iterator[Finding]:
    """Steps that ask the mapper, and do not say so in one line; others that do."""
    for client, job in run.jobs.items():
        lines = Counter(
            line.get("step")
            for line in samples.records.get(client, ())
            if line["type"] == "binding" and line.get("app") == CLIENT
        )
        for number, step in enumerate(job.get("steps", ())):
            asks = step.get("app") == CLIENT and not step["options"].get("port")
            if lines[number] != int(asks):
                expected = "one where it asks the mapper"
                yield Finding(None, f"nodes/{client} step {number} binding", expected, str(lines[number]))


def check_binding(
    sides: Sides, machines: Sequence[Client], port: int, timeout_ns: int, *, exact: bool
) -> Iterator[Finding]:
    """What a client says of its questions, against one of the `machines` that explain them. `port`: of the server;
    `timeout_ns`: so long it asks at least."""
    line = sides.activity.binding or {}
    where = f"nodes/{sides.activity.client} binding"
    each = [list(_check_outcome(where, line, machine, port)) for machine in machines]
    yield from min(each, key=len)
    times = [each.at_ns for _, each, _ in sides.client.sent]
    # What comes behind a response answers pings that crossed it.
    came: dict[int, int] = {}
    for _, datagram, pdu in sides.client.arrived:
        if pdu.type == Type.RESPONSE:
            came[pdu.sequence] = min(datagram.whole_ns, came.get(pdu.sequence, datagram.whole_ns))
    answered_ns = max(came.values(), default=0)
    if exact and times and min(times) < line["start"]:
        yield Finding(None, f"{where} start", f"not after its first frame, at {min(times)} ns", str(line["start"]))
    if exact and line.get("ok") and line["end"] < answered_ns:
        yield Finding(None, f"{where} end", f"not before its answer, at {answered_ns} ns", str(line["end"]))
    over_ns = line["start"] + timeout_ns
    if not line.get("ok") and line["end"] < over_ns:
        yield Finding(None, f"{where} end", f"not before its time is over, at {over_ns} ns", str(line["end"]))
    ended = machines[0].ended
    last = len(machines[0].calls) - 1
    if exact and last in ended and line["end"] < ended[last][1]:
        expected = f"not before its last question is over, at {ended[last][1]} ns"
        yield Finding(None, f"{where} end", expected, str(line["end"]))
    if exact and last - 1 in ended and ended[last - 1][1] >= over_ns:
        yield Finding(None, f"{where} attempts", f"none after {over_ns} ns", f"{last + 1}")


def _check_outcome(where: str, line: Mapping[str, Any], machine: Client, port: int) -> Iterator[Finding]:
    """It asks until it is answered, or its time is over."""
    ended = [machine.ended.get(place, ("not over", 0))[0] for place in range(len(machine.calls))]
    ok = OK in ended
    last = "none" if not ended else COMM_FAILURE if ended[-1] == NO_ANSWER else ended[-1].rpartition(" ")[2]
    right = {
        "attempts": ended.index(OK) + 1 if ok else max(1, len(ended)),
        "sent": machine.counts["fragments"],
        "port": port if ok else 0,
        "ok": ok,
        "transport": "udp",
        "error": None if ok else f"status {last}",
    }
    for name, expected in right.items():
        if line.get(name) != expected:
            yield Finding(None, f"{where} {name}", str(expected), str(line.get(name)))


def check_ports(run: RunDirectory, samples: RunSamples, calls: pl.DataFrame) -> Iterator[Finding]:
    """Calls go to the port of their options, or that the mapper has named. If it has named none each of them has
    failed, and nothing of it was sent. `calls`: samples of clients."""
    found = bindings(run, samples)
    for batch in parties.batches(samples, calls):
        line = found.get((batch.client, batch.step))
        options = parties.options_of(run, batch.client, batch.step)
        port = options.get("port") if line is None else line.get("port")
        if batch.line.get("server_port") != port:
            yield Finding(None, f"{batch.where} server_port", str(port), str(batch.line.get("server_port")))
        if batch.line.get("server_port") == 0:
            yield from _check_unbound(run, batch)
            continue
        for call in batch.calls:
            if call.error == NO_PORT:
                yield Finding(call.id, "sample.error", f"a call to port {port}", NO_PORT)


def _check_unbound(run: RunDirectory, batch: parties.Batch) -> Iterator[Finding]:
    counted = {f"counters {name}": count for name, count in (batch.line.get("counters") or {}).items()}
    yield from parties.check_unreached(batch, NO_PORT, counted)
    seed = int(run.jobs[batch.client].get("seed") or 0)
    named = identity(seed, batch.client, batch.step, "activity", batch.calls[0].thread)
    if batch.line.get("activity") != str(named):
        yield Finding(None, f"{batch.where} activity", str(named), str(batch.line.get("activity")))
    yield from check_function_line(batch.where, batch.line)

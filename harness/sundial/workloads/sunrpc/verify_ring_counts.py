# SPDX-License-Identifier: Apache-2.0
"""What servers of Sun RPC count, where every call came to them in rings (guest-apps/sss-core/tasks/echo-server.c)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding, as_table
from sundial.verify.samples import RunSamples
from sundial.workloads import reporting
from sundial.workloads.sunrpc.scenario import VRPC, VRPC_MBCF
from sundial.workloads.sunrpc.verify_content import counted, given, taken
from sundial.workloads.sunrpc.verify_counted import restarts

_APPS = ("echo-client", "echo-server")
_IN_RINGS = frozenset((VRPC, VRPC_MBCF))
UNPROVEN = (
    "vrpc, vrpc-mbcf: what servers count of polls and of copies in their library, and their task; of calls in rings, "
    "where calls came otherwise, too, or failed, and where the run ends before they say it; that counts are there"
)


def check_ring_counts(run: RunDirectory, samples: RunSamples) -> pl.DataFrame:
    """Findings about the last counts of each server that is neither killed nor restarted."""
    rows = [
        finding
        for name, lines in samples.records.items()
        for line in [each for each in lines if each["type"] == "counters" and each.get("app") == _APPS[1]][-1:]
        if reporting.is_due(run) and not restarts(run, name) and not _dies(run, name)
        for finding in _check(run, samples, name, line)
    ]
    return as_table(rows)


def _check(run: RunDirectory, samples: RunSamples, name: str, line: Mapping[str, Any]) -> Iterator[Finding]:
    names = run.names
    own = {
        key: batch
        for key, batch in samples.batches.items()
        if batch.get("app") == _APPS[0] and names.get(str(batch.get("server"))) == name
    }
    if not own or any(batch.get("transport") not in _IN_RINGS for batch in own.values()):
        return
    columns = ("client", "batch", "procedure", "size", "ok")
    calls = [row for row in samples.table.select(columns).iter_rows() if row[:2] in own]
    if not all(ok for *_, ok in calls):
        return
    kinds = Counter((procedure, size) for _, _, procedure, size, _ in calls)
    times = dict.fromkeys(counted([procedure for procedure, _ in kinds]), 0)
    for (procedure, _), number in kinds.items():
        times[procedure] += number
    due: dict[str, Any] = {
        "calls": len(calls),
        "executed": len(calls),
        "by_procedure": times,
        "bytes_in": sum(number * taken(*kind) for kind, number in kinds.items()),
        "bytes_out": sum(number * given(*kind) for kind, number in kinds.items()),
        "bad_payload": 0,
        "undecodable": 0,
        "duplicates": 0,
        "replayed": 0,
        "clients": 0,
        "clients_gone": 0,
    }
    rings = line.get("rings")
    # A client binds for each batch, and leaves behind it.
    seen = {**line, **({f"rings.{key}": value for key, value in rings.items()} if isinstance(rings, dict) else {})}
    due["rings.clients"] = len(own)
    for field, count in due.items():
        if seen.get(field) != count:
            yield Finding(None, f"counted.{field}", str(count), f"{seen.get(field)} by {name}'s own count")
    # The last may go behind the line.
    gone = seen.get("rings.clients_gone")
    if not isinstance(gone, int) or not 0 <= gone <= len(own):
        yield Finding(None, "counted.rings.clients_gone", f"at most {len(own)}", f"{gone} by {name}'s own count")


def _dies(run: RunDirectory, name: str) -> bool:
    """Whether a service of a machine ends itself."""
    return any((service.get("options") or {}).get("die") for service in run.jobs.get(name, {}).get("services", []))

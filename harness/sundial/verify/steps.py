# SPDX-License-Identifier: Apache-2.0
"""Calls of traced runs divided into steps: steps.parquet, and whether the steps of each call are its round trip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from pydantic import ValidationError

from sundial.errors import BadInput
from sundial.model.recorded import recorded_experiment
from sundial.observe import RunDirectory
from sundial.observe.rundir import ALLOWED
from sundial.observe.steps import Arrival, Call, Lane, Step, join, lane_of, marked, paths, sums
from sundial.observe.trace import POINTS, TRACE, Trace, read_trace
from sundial.plan.trace import traced_functions
from sundial.seams.trace import Points
from sundial.units import icount_shift
from sundial.verify.directory import traced_machines
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.samples import RunSamples
from sundial.verify.segment import FLIGHTS, network_of, verifiers
from sundial.verify.traces import Difference, check_points, check_stamps, check_stores, check_transmits
from sundial.whole import whole

STEPS = "steps.parquet"
STEP_COLUMNS: dict[str, type[pl.DataType]] = {
    "call": pl.UInt32,
    "node": pl.String,
    "thread": pl.Int32,
    "step": pl.String,
    "occurrence": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "on_path": pl.Boolean,
}
"""Of steps.parquet. `call` is a row of samples.parquet; `node` is a machine, or empty on the wire; `thread` numbers the
contexts of a machine; times in ns since zero."""

OF_A_TRACE = (
    "nodes/*/trace.bin: that a function was entered or left when its stamp says, but that it is whole instructions"
    " after the stamp before; the plugin checks its clock against QEMU's at each HLT",
    "nodes/*/trace.bin: stamps that are missing, or too many, unless a call, a frame or an exit lacks its own",
    "nodes/*/trace.bin: of which function a stamp is, and of which thread, as far as its thread leaves what it entered",
    "nodes/*/trace.bin: the arguments of functions",
    "nodes/*/points.json: where functions are, and their size",
)


@dataclass(frozen=True)
class Divided:
    """The outcome; `summary` is None for a run that was not traced."""

    findings: pl.DataFrame
    summary: dict[str, Any] | None = None
    unproven: tuple[str, ...] = ()


def check_steps(run: RunDirectory, samples: RunSamples, frames: pl.DataFrame, ports: pl.DataFrame) -> Divided:
    """Divide all calls of traced clients, and write steps.parquet. `frames` as captured, with end and fate; `ports` as
    of `headers.ports`."""
    machines = traced_machines(run)
    target = run.path / STEPS
    if not machines:
        target.unlink(missing_ok=True)
        return Divided(none())
    traces: dict[str, Trace] = {}
    rows: list[Finding] = []
    for name in machines:
        try:
            traces[name] = read_trace(run.path / "nodes" / name)
            found = list(_check_trace(run, name, traces[name]))
            if not len(traces[name].stamps):
                found.append((f"nodes/{name}/{TRACE}", ("stamps of a machine that ran", "none")))
        except BadInput as error:
            rows.append(Finding(None, f"nodes/{name}/trace.bin", "a trace", str(error)))
        else:
            rows += [Finding(None, where, *difference) for where, difference in found]
    lanes = {name: lane_of(name, trace) for name, trace in traces.items()}
    arrivals, sent = _wires(frames, ports)
    stored = _flights(run, frames)
    for receiver, *flight in stored.select("receiver", "at_ns", "sender", "sent_ns", "stored_ns", "wakes").iter_rows():
        arrivals.setdefault(receiver, []).append(Arrival(*flight))
    join(lanes, arrivals, sent)
    for name, lane in lanes.items():
        stores = stored.filter(pl.col("exact"), pl.col("sender") == name)["stored_ns"].to_list()
        of_wires = [*check_transmits(lane, sent.get(name, ())), *check_stores(lane, stores, _instruction_ns(run, name))]
        rows += [Finding(None, f"nodes/{name}/{TRACE}", *difference) for difference in of_wires]
    table = samples.table.filter(pl.col("client").is_in(list(lanes)))
    calls = [Call(*each) for each in table.select("id", "client", "start_ns", "end_ns").iter_rows()]
    steps = paths(lanes, calls)
    totals = sums(steps)
    for call in calls:
        expected, seen = call.end_ns - call.start_ns, totals.get(call.number, 0)
        if seen != expected:
            rows.append(Finding(call.number, "steps", f"{expected} ns, the round trip", f"{seen} ns"))
    rows += [
        Finding(number, "trace", "stamps where the call begins and ends", "none") for number in _bare(lanes, table)
    ]
    _write(target, steps)
    summary = {
        "calls": len(calls),
        "exact": sum(totals.get(call.number, 0) == call.end_ns - call.start_ns for call in calls),
        "stamps": sum(len(trace.stamps) for trace in traces.values()),
        "repeated": sum(trace.repeated for trace in traces.values()),
    }
    return Divided(as_table(rows), summary, OF_A_TRACE)


def _check_trace(run: RunDirectory, name: str, trace: Trace) -> Iterator[tuple[str, Difference]]:
    """Differences, each with the file that has it. Raises BadInput for a file of points that is none."""
    file = run.path / "nodes" / name / POINTS
    try:
        points = Points.model_validate_json(file.read_bytes()).points
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise BadInput(f"{where}: {error.errors()[0]['msg']}", file=str(file), allowed=ALLOWED) from None
    planned = traced_functions(recorded_experiment(run.document))[name]
    instruction_ns = _instruction_ns(run, name)
    end_ns = (run.counters or {}).get("virtual_ns")
    for each in check_points(points, planned):
        yield f"nodes/{name}/{POINTS}", each
    for each in check_stamps(trace, points, instruction_ns, end_ns if isinstance(end_ns, int) else None):
        yield f"nodes/{name}/{TRACE}", each


def _instruction_ns(run: RunDirectory, machine: str) -> int:
    return 1 << icount_shift(recorded_experiment(run.document).network.node(machine).mips)


def _bare(lanes: Mapping[str, Lane], table: pl.DataFrame) -> Iterator[int]:
    """Answered calls without stamps of their beginning and end, where others of their step of the job have them: a
    workload that is not traced has steps for itself, divided by what is stamped for others."""
    answered = table.filter(pl.col("ok"))
    for _, part in answered.group_by("client", "node_step", maintain_order=True):
        calls = [Call(*each) for each in part.select("id", "client", "start_ns", "end_ns").iter_rows()]
        bare = [call.number for call in calls if not marked(lanes[call.client], call)]
        if len(bare) < len(calls):
            yield from bare


def _write(target: Any, steps: list[Step]) -> None:
    columns = zip(*steps, strict=True) if steps else ([] for _ in STEP_COLUMNS)
    data = dict(zip(STEP_COLUMNS, columns, strict=True))
    with whole(target) as beside:
        pl.DataFrame(data, schema=STEP_COLUMNS).write_parquet(beside)


def _wires(frames: pl.DataFrame, ports: pl.DataFrame) -> tuple[dict[str, list[Arrival]], dict[str, list[int]]]:
    """By machine: the frames that reached it, each with when which machine sent it; and when its own left.

    A frame at a receiver is the latest that its sender has sent with the same octets.
    """
    machines = ports.filter(~pl.col("joins")).select("end", "machine")
    # What says of itself from where to where it goes is not a frame.
    at_ports = frames.filter(pl.col("fate").is_null(), pl.col("eth_source").is_not_null())
    at_ports = at_ports.join(machines, on="end", how="inner")
    columns = ("eth_source", "octets_hash", "time_ns", "machine")
    outbound = at_ports.filter(pl.col("direction") == OUTBOUND).select(columns).sort("time_ns")
    inbound = at_ports.filter(pl.col("direction") == INBOUND).select(columns).sort("time_ns")
    joined = inbound.join_asof(
        outbound.rename({"machine": "sender"}).with_columns(sent_ns=pl.col("time_ns")),
        on="time_ns",
        by=["eth_source", "octets_hash"],
        strategy="backward",
        check_sortedness=False,
    ).drop_nulls("sent_ns")
    arrivals: dict[str, list[Arrival]] = {}
    for machine, *arrival in joined.select("machine", "time_ns", "sender", "sent_ns").iter_rows():
        arrivals.setdefault(machine, []).append(Arrival(*arrival))
    sent: dict[str, list[int]] = {}
    for machine, time_ns in outbound.select("machine", "time_ns").iter_rows():
        sent.setdefault(machine, []).append(time_ns)
    return arrivals, sent


def _flights(run: RunDirectory, frames: pl.DataFrame) -> pl.DataFrame:
    """FLIGHTS over all segments."""
    network, known = network_of(run), verifiers()
    at_ports = frames.filter(pl.col("fate").is_null())
    segments = {} if network is None else network.segments
    found = [
        known[segment.kind].flights(segment, at_ports.filter(pl.col("capture") == f"wire/{name}.pcapng"))
        for name, segment in segments.items()
        if segment.kind in known
    ]
    return pl.concat([pl.DataFrame(schema=FLIGHTS), *found])

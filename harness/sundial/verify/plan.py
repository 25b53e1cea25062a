# SPDX-License-Identifier: Apache-2.0
"""What was done against what was to be done: each machine's samples against the steps of its job.

A step that calls makes a batch of calls for each of its sizes, and for each of its threads, in this order; each batch
has its calls numbered without a gap, those to warm up first. Fewer, more or others are findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.plan.jobs import default_start
from sundial.units import NS_PER_S
from sundial.verify.boots import kernels
from sundial.verify.findings import Finding, as_table, findings
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of

_NAMED_OTHERWISE = {"operation": "procedure"}
"""Options of steps that a batch shows under another name."""
_LEFT_OUT = {"one_way": False}
"""What an option means that a step does not have, where a batch shows it all the same."""
_DEFAULTS: dict[str, Any] = {"threads": 1, "warmup": 0, "calls": 1}


def check_plan(run: RunDirectory, samples: RunSamples, sampled_as: Mapping[str, str]) -> pl.DataFrame:
    """Findings about steps, batches and rows. `sampled_as`: what samples call a program, where it is not its name."""
    rows = [row for name in run.nodes for row in _node(run, samples, name, sampled_as)]
    return pl.concat([as_table(rows), _rows(run, samples)])


def _node(run: RunDirectory, samples: RunSamples, name: str, sampled_as: Mapping[str, str]) -> Iterator[Finding]:
    job = run.jobs.get(name, {})
    steps = [each for each in job.get("steps", ()) if isinstance(each, dict)]
    records = samples.records.get(name, ())
    network = network_of(run)
    off = network is not None and name in network.offs_ns
    yield from _beginning_and_end(name, job, steps, records, kernels(run, name), _is_starting(run), off)
    yield from _within_steps(name, steps, records, sampled_as)
    planned = [each for number, step in enumerate(steps) for each in _batches(number, step, sampled_as)]
    done = [line for (client, _), line in sorted(samples.batches.items()) if client == name]
    counts = dict(
        samples.table.filter(pl.col("client") == name).group_by("batch").agg(pl.len()).sort("batch").iter_rows()
    )
    for place in range(max(len(planned), len(done))):
        where = f"nodes/{name} batch {place}"
        if place >= len(done):
            yield Finding(None, where, _words(planned[place]), "none")
            return
        if place >= len(planned):
            yield Finding(None, where, "none", _words(done[place]))
            return
        calls, expected = planned[place]["calls"], planned[place]
        for field in expected.keys() - {"calls"}:
            if field in done[place] and str(done[place][field]) != str(expected[field]):
                yield Finding(None, f"{where} {field}", str(expected[field]), str(done[place][field]))
        if counts.get(place, 0) != calls:
            yield Finding(None, f"{where} calls", str(calls), str(counts.get(place, 0)))


def _is_starting(run: RunDirectory) -> bool:
    """A scenario may let its clients begin, and give up, before slow machines are planned to have started services."""
    end_ns = (run.document.get("time") or {}).get("virtual_ns")
    network = network_of(run)
    return run.clock == "virtual" and end_ns is not None and network is not None and end_ns < default_start(network)


def _batches(number: int, step: Mapping[str, Any], sampled_as: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The batches of one step: what the line above each must say, as far as it says it, and `calls`."""
    given = step.get("options") or {}
    options = _DEFAULTS | given
    # What is called without a size makes one batch of calls, of size 0.
    sizes = options.pop("sizes", [0] if "calls" in given else None)
    if sizes is None:
        return
    calls, threads = options.pop("calls") + options["warmup"], options.pop("threads")
    app = str(step.get("app"))
    functions = options.pop("functions", None)
    shared = {_NAMED_OTHERWISE.get(str(name), str(name)): value for name, value in options.items()}
    # What is called by the names of functions makes a batch for each, whose size its kind knows.
    turns = [{"size": size} for size in sizes] if functions is None else [{"procedure": name} for name in functions]
    for turn in turns:
        for thread in range(threads):
            yield {
                **_LEFT_OUT, **shared, "step": number, "app": sampled_as.get(app, app), **turn, "thread": thread,
                "calls": calls,
            }  # fmt: skip


def _beginning_and_end(
    name: str,
    job: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    kernels: Sequence[str],
    starting: bool,
    off: bool,
) -> Iterator[Finding]:
    """The machine says who it is and which clock it reads, that each step has ended well, and that all have. One
    without steps may still be `starting` its services when the run ends. One that is `off` by then may have said less.
    """
    hellos = [each for each in records if each["type"] == "hello"]
    if off and not records:
        return
    if len(hellos) != 1 or records[0] is not hellos[0]:
        yield Finding(None, f"nodes/{name} hello", "once, as the first record", f"{len(hellos)}")
    hello = next(iter(hellos), {})
    for field, expected in (("machine", job.get("machine")), ("clock", job.get("clock")), ("clock_hz", NS_PER_S)):
        if hello.get(field) != expected:
            yield Finding(None, f"nodes/{name} hello {field}", str(expected), str(hello.get(field)))
    if kernels and hello.get("kernel") not in kernels:
        yield Finding(None, f"nodes/{name} hello kernel", ", ".join(kernels), str(hello.get("kernel")))
    ended = [(each.get("step"), each.get("app"), each.get("status")) for each in records if each["type"] == "step"]
    expected = [(number, step.get("app"), 0) for number, step in enumerate(steps)]
    expected = expected[: len(ended)] if off else expected
    for place in range(max(len(ended), len(expected))):
        mine, theirs = (each[place] if place < len(each) else None for each in (expected, ended))
        if mine != theirs:
            yield Finding(None, f"nodes/{name} step {place}", _ending(mine), _ending(theirs))
    over = [each.get("status") for each in records if each["type"] == "done"]
    if over != [0] and (over or not off) and (over or steps or not starting):
        yield Finding(None, f"nodes/{name} done", "once, with status 0", ", ".join(map(str, over)) or "never")
    for each in records:
        if each["type"] == "error":
            yield Finding(None, f"nodes/{name} error", "none", str(each.get("message")))


def _within_steps(
    name: str,
    steps: Sequence[Mapping[str, Any]],
    records: Sequence[Mapping[str, Any]],
    sampled_as: Mapping[str, str],
) -> Iterator[Finding]:
    """What a step records it records before it ends, under its number and its program's name."""
    under_way = 0
    for each in records:
        if each["type"] == "step":
            under_way += 1
        elif each["type"] != "error" and "step" in each:
            app = str(steps[under_way].get("app")) if under_way < len(steps) else "none"
            expected = under_way, sampled_as.get(app, app)
            if (each["step"], each.get("app")) != expected:
                seen = f"step {each['step']}, {each.get('app')}"
                yield Finding(None, f"nodes/{name} {each['type']}", "step {}, {}".format(*expected), seen)


def _ending(step: tuple[Any, Any, Any] | None) -> str:
    return "none" if step is None else f"{step[1]}, step {step[0]}, ended with status {step[2]}"


def _words(batch: Mapping[str, Any]) -> str:
    names = ("step", "app", "transport", "procedure", "series", "size", "thread")
    return ", ".join(f"{name} {batch[name]}" for name in names if name in batch)


def _rows(run: RunDirectory, samples: RunSamples) -> pl.DataFrame:
    """Findings about single rows: numbers without a gap, warm-up first, times in order, a reason for each failure."""
    depths = {
        (name, place): int(line.get("depth") or 1) if line.get("app") else 1
        for (name, place), line in samples.batches.items()
    }
    warmups = {key: int(line.get("warmup") or 0) for key, line in samples.batches.items()}
    keys = list(samples.batches)
    lines = pl.DataFrame(
        {
            "client": [name for name, _ in keys],
            "batch": [place for _, place in keys],
            "depth": [depths[key] for key in keys],
            "planned_warmup": [warmups[key] for key in keys],
        },
        schema={"client": pl.String, "batch": pl.Int64, "depth": pl.Int64, "planned_warmup": pl.Int64},
    )
    table = (
        samples.table.rename({"id": "row", "call": "number"})
        .join(lines, on=["client", "batch"], how="left", maintain_order="left")
        .with_columns(call=pl.col("row"), depth=pl.col("depth").fill_null(1))
        .with_columns(
            place=pl.int_range(pl.len()).over("client", "batch"),
            before=pl.col("end_ns").shift(1).over("client", "thread"),
        )
        .with_columns(before=pl.when(pl.col("depth") == 1).then("before"))
    )
    turns = (
        table.group_by("client", "node_step", "size", "series", "batch", "thread")
        .agg(begun=pl.col("start_ns").min(), over=pl.col("end_ns").max(), call=pl.col("call").first())
        .sort("client", "batch")
    )
    # All threads are done with one size before any begins with the next.
    first = pl.col("thread") == 0
    turns = turns.with_columns(turn=first.cast(pl.Int64).cum_sum().over("client"))
    sizes = (
        turns.group_by("client", "turn")
        .agg(begun=pl.col("begun").min(), over=pl.col("over").max(), call=pl.col("call").first())
        .sort("client", "turn")
        .with_columns(before=pl.col("over").shift(1).over("client"))
    )
    return pl.concat(
        [
            _finding(table, pl.col("number") != pl.col("place"), "number", pl.col("place"), pl.col("number")),
            _finding(
                table,
                pl.col("warmup") != (pl.col("place") < pl.col("planned_warmup")),
                "warmup",
                pl.col("place") < pl.col("planned_warmup"),
                pl.col("warmup"),
            ),
            _finding(table, pl.col("end_ns") < pl.col("start_ns"), "end", pl.col("start_ns"), pl.col("end_ns")),
            _finding(table, pl.col("start_ns") < pl.col("before"), "start", pl.col("before"), pl.col("start_ns")),
            _finding(sizes, pl.col("begun") < pl.col("before"), "start", pl.col("before"), pl.col("begun")),
            _finding(
                table,
                pl.col("rtt_ns") != pl.col("end_ns") - pl.col("start_ns"),
                "rtt",
                pl.col("end_ns") - pl.col("start_ns"),
                pl.col("rtt_ns"),
            ),
            _finding(
                table,
                pl.col("ok") == pl.col("error").is_not_null(),
                "error",
                pl.when("ok").then(pl.lit("none")).otherwise(pl.lit("why it failed")),
                pl.col("error").fill_null("none"),
            ),
            _finding(
                table,
                (pl.col("transport") == "tcp") & (pl.col("retransmits") != 0),
                "retransmits",
                pl.lit("0: TCP sends again, and no client"),
                pl.col("retransmits"),
            ),
        ]
    )


def _finding(table: pl.DataFrame, where: pl.Expr, name: str, expected: pl.Expr, seen: pl.Expr) -> pl.DataFrame:
    return findings(table, where.fill_null(False), pl.lit(f"sample.{name}"), expected, seen, rows=None)

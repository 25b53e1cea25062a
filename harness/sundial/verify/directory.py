# SPDX-License-Identifier: Apache-2.0
"""The directory as a whole: the run came to its end, each file is there and as the run left it, and none is beside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel

from sundial.errors import BadInput, SundialError
from sundial.model.recorded import recorded_experiment, with_numbers
from sundial.model.scenario import Scenario
from sundial.model.topology import Topology
from sundial.observe import SAMPLE_COLUMNS, RunDirectory, is_plain, kept_files
from sundial.observe.programs import output_files
from sundial.plan.trace import traced_functions
from sundial.seams.fate import SEPARATOR
from sundial.verify.findings import Finding, as_table, findings, none
from sundial.verify.segment import further_captures, network_of

SAMPLES = "samples.parquet"
NOT_RESOLVED = {"seed", "scale", "vary", "default_scale"}
"""Of a scenario: what a run does not take from it as it is."""
OF_NODE = ("console.log", "domain.xml", "job.json", "samples.jsonl")
OF_TRACED = ("points.json", "trace.bin")

UNPROVEN = (
    "run.json itself: a change to it, with its digests recomputed, changes what the other files are checked against",
    "run.json: versions, images, host, command and wall time say how the run was made; no capture shows them",
    "nodes/*/console.log: unchanged since the run, but its content is not read",
)


def check_directory(run: RunDirectory) -> pl.DataFrame:
    """A finding for each way in which the directory is not what a whole run leaves."""
    return as_table([*_status(run), *_resolved(run), *_files(run)])


def check_frames(frames: pl.DataFrame) -> pl.DataFrame:
    """A finding where nothing was captured, so that nothing can be said. What adapters dropped is captured, too."""
    return as_table([] if frames.height else [Finding(None, "frames", "at least 1", "0")])


def check_remarks(frames: pl.DataFrame) -> pl.DataFrame:
    """A finding for each comment on a frame at a port: only a fate may have one. `frames` with row and fate."""
    remarks = frames.filter(pl.col("fate").is_null() & pl.col("comment").is_not_null())
    return findings(
        remarks.with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row")),
        pl.lit(True),
        pl.lit("comment"),
        pl.lit("none at a port"),
        pl.col("comment"),
    )


def refuse_older(run: RunDirectory, frames: pl.DataFrame) -> None:
    """Raises BadInput for a run of a Sundial that wrote words alone as comments of fates. `frames` with fate."""
    fates = frames.filter(pl.col("fate").is_not_null()).drop_nulls("comment")
    if fates.height and not fates["comment"].str.contains(SEPARATOR, literal=True).any():
        raise BadInput(
            f"{fates.height} comments of fates have no record, as an earlier version of Sundial wrote them",
            file=str(run.path / fates["capture"][0]),
            field="comment",
            allowed="captures of this version: repeat the run",
        )


def check_order(frames: pl.DataFrame) -> pl.DataFrame:
    """A finding for each record that is behind a later one in its file (harness/schemas/README.md). `frames` with
    fate."""
    ordered = frames.select("row", "capture", "frame", "time_ns")
    if all(_is_in_order(part) for part in ordered.partition_by("capture")):
        return none()
    ordered = ordered.sort("capture", "frame")
    behind = ordered.with_columns(
        pl.col("row", "time_ns").shift().over("capture").name.prefix("before_"), call=pl.lit(None, pl.UInt32)
    )
    late = behind.filter(pl.col("time_ns") < pl.col("before_time_ns"))
    return findings(
        late.with_columns(rows=pl.concat_list("before_row", "row")),
        pl.lit(True),
        pl.lit("order of records"),
        pl.format("not before {} ns, as the one before it", "before_time_ns"),
        pl.format("at {} ns", "time_ns"),
    )


def _is_in_order(frames: pl.DataFrame) -> bool:
    """True if each frame of a capture is there, and none before another with a lower number."""
    number, time_ns = frames["frame"].to_numpy(), frames["time_ns"].to_numpy()
    if frames["time_ns"].null_count() or number.max(initial=0) != len(number):
        return False
    times = np.full(len(number), -1 << 63)
    times[number - 1] = time_ns
    return bool((np.diff(times) >= 0).all())


def check_samples(run: RunDirectory, samples: pl.DataFrame) -> pl.DataFrame:
    """A finding for each column of samples.parquet that does not follow from the nodes' streams: `samples`."""
    file = run.path / SAMPLES
    if not is_plain(file):
        return as_table([])
    rows: list[Finding] = []
    try:
        stored = pl.read_parquet(file)
    except (pl.exceptions.PolarsError, OSError) as error:
        return as_table([Finding(None, SAMPLES, "a Parquet file", str(error).splitlines()[0])])
    if stored.schema != pl.Schema(SAMPLE_COLUMNS):
        here = ", ".join(f"{name} {kind}" for name, kind in stored.schema.items())
        rows.append(Finding(None, SAMPLES, ", ".join(SAMPLE_COLUMNS), here))
    elif stored.height != samples.height:
        rows.append(Finding(None, SAMPLES, f"{samples.height} rows", f"{stored.height} rows"))
    else:
        for name in SAMPLE_COLUMNS:
            differs = stored[name].ne_missing(samples[name]).arg_true()
            if len(differs):
                place = differs[0]
                field = f"{SAMPLES} {name}, row {place}"
                rows.append(Finding(None, field, str(samples[name][place]), str(stored[name][place])))
    return as_table(rows)


def _status(run: RunDirectory) -> Iterator[Finding]:
    status = run.document.get("status")
    if status != "complete":
        error = run.document.get("error")
        words = error.get("message") if isinstance(error, dict) else error
        yield Finding(None, "run", "complete", f"the run is {status}: {words}")


def _resolved(run: RunDirectory) -> Iterator[Finding]:
    """Scenario and topology are written with every default: one that is missing could be any."""
    topology, scenario = run.document.get("topology"), run.document.get("scenario")
    if topology is None:
        return
    try:
        yield from _differing("topology", topology, Topology.model_validate(topology))
        if scenario is not None:
            # What the run chose goes beside what the scenario says.
            own = {name: value for name, value in scenario.items() if name not in ("seed", "scale", "variant")}
            read = {**own, "workloads": [with_numbers(workload) for workload in own["workloads"]]}
            yield from _differing("scenario", own, Scenario.model_validate(read))
    except (SundialError, ValueError, TypeError, KeyError, AttributeError) as error:
        yield Finding(None, "run.json", "a scenario and a topology", str(error).splitlines()[0])


def _differing(what: str, written: dict[str, Any], read: BaseModel) -> Iterator[Finding]:
    resolved = read.model_dump(mode="json", exclude_none=True, exclude=NOT_RESOLVED)
    for name in sorted({*written, *resolved} - NOT_RESOLVED):
        if written.get(name) != resolved.get(name):
            yield Finding(None, f"run.json {what}.{name}", str(resolved.get(name)), str(written.get(name)))


def _files(run: RunDirectory) -> Iterator[Finding]:
    recorded = {**run.captures, **run.files}
    if not run.files:
        yield Finding(
            None, "run.json files", "a sha256 of every file", "none, as runs had it before sundial wrote them"
        )
        return
    there = kept_files(run.path)
    known = set(_known(run))
    for name in sorted(known - recorded.keys()) if run.document.get("status") == "complete" else ():
        yield Finding(None, f"file {name}", "in run.json", "not there")
    for name in sorted({*recorded, *there}):
        if name not in known:
            yield Finding(None, f"file {name}", "no such file", "there" if name in there else "in run.json")
        elif name not in there:
            yield Finding(None, f"file {name}", f"sha256 {recorded[name]}", "missing")
        elif not is_plain(run.path / name):
            yield Finding(None, f"file {name}", "a plain file", "a link, a pipe or a device")
        elif name in recorded and (now := _sha256(run, name)) != recorded[name]:
            yield Finding(None, f"file {name}", f"sha256 {recorded[name]}", f"sha256 {now}")


def _known(run: RunDirectory) -> Iterator[str]:
    """What a run of this topology leaves."""
    network = network_of(run)
    segments = {item.segment for node in run.nodes.values() for item in node.interfaces}
    for segment in sorted(segments if network is None else segments | network.captured.keys()):
        yield f"wire/{segment}.pcapng"
    yield from [] if network is None else further_captures(network)
    yield "wire/counters.json"
    for name in run.nodes:
        yield from (f"nodes/{name}/{file}" for file in OF_NODE)
        yield from (f"nodes/{name}/{file}" for file in output_files(run.jobs.get(name, {})))
    for name in traced_machines(run):
        yield from (f"nodes/{name}/{file}" for file in OF_TRACED)
    if not run.by_hand:
        yield SAMPLES


def traced_machines(run: RunDirectory) -> list[str]:
    """Those that the run's scenario asks to be traced."""
    if run.by_hand:
        return []
    try:
        return list(traced_functions(recorded_experiment(run.document)))
    except SundialError:
        return []  # the plan says so


def _sha256(run: RunDirectory, name: str) -> str:
    with (run.path / name).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

# SPDX-License-Identifier: Apache-2.0
"""Reads a run directory. What is missing becomes an empty table and a remark; only run.json is needed."""

from __future__ import annotations

import json
import mmap
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from sundial.errors import BadInput, SundialError
from sundial.observe import open_run
from sundial.report import registry
from sundial.verify.samples import load_samples

SAMPLES: dict[str, type[pl.DataType]] = {
    "series": pl.Int32, "client": pl.String, "server": pl.String, "transport": pl.String,
    "app": pl.String, "procedure": pl.String, "size": pl.Int64, "thread": pl.Int32, "call": pl.Int64,
    "warmup": pl.Boolean, "node_step": pl.Int32, "start_ns": pl.Int64, "end_ns": pl.Int64, "rtt_ns": pl.Int64,
    "ok": pl.Boolean, "retransmits": pl.Int32, "batch": pl.Int64, "xid": pl.Int64,
}  # fmt: skip
"""The columns of samples.parquet that the report uses."""

NAMES = ("client", "server", "transport", "app", "procedure")
"""Columns of few different words: kept as categories, which makes grouping millions of calls cheap."""

OBSERVED = (
    "client", "server", "batch", "call", "app", "transport", "procedure", "size",
    "call_first_tx_ns", "call_last_rx_ns", "reply_first_tx_ns", "reply_last_rx_ns", "retransmissions",
    "request_packets", "reply_packets", "verdict",
)  # fmt: skip
"""The columns of observed.parquet that the report uses, where they are there."""

CONSOLE_LINES = 30
CONSOLE_BYTES = 16384
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x20-\x7e\t\u00a0-\uffff]")


@dataclass(frozen=True)
class RunData:
    """Everything the report is made of. `remarks` names what is missing or unreadable."""

    directory: Path
    name: str
    run: dict[str, Any]
    samples: pl.DataFrame
    observed: pl.DataFrame
    verify: dict[str, Any] | None = None
    counters: dict[str, Any] | None = None
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Lines of nodes/*/samples.jsonl that are not rows of calls, by type; each with `machine` added."""
    consoles: dict[str, list[str]] = field(default_factory=dict)
    """Last lines of each machine's console."""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """What commands call it: its name, below the reproduction that it belongs to."""
        above = self.directory.absolute().parent.parent
        return f"{_name(above)}/runs/{self.name}" if (above / "reproduce.json").is_file() else self.name


def load(directory: Path) -> RunData:
    """Reads what is there. Raises BadInput where the directory holds no readable run.json."""
    remarks: list[str] = []
    path = directory / "run.json"
    if not path.is_file():
        raise BadInput(
            "is missing, so this is not a run directory", file=str(path), allowed="a directory that 'sundial run' wrote"
        )
    run = _object(path, remarks)
    if run is None:
        raise BadInput("is not a JSON object", file=str(path), allowed="what 'sundial run' wrote")
    nodes = sorted((directory / "nodes").glob("*/")) if (directory / "nodes").is_dir() else []
    records: dict[str, list[dict[str, Any]]] = {}
    consoles, jobs = {}, {}
    for node in nodes:
        for record in _records(node / "samples.jsonl"):
            records.setdefault(str(record.get("type")), []).append({"machine": node.name, **record})
        tail = _tail(node / "console.log")
        if tail:
            consoles[node.name] = tail
        job = _object(node / "job.json", []) if (node / "job.json").is_file() else None
        if job is not None:
            jobs[node.name] = job
    return RunData(
        directory=directory,
        name=_name(directory),
        run=run,
        samples=_samples(directory, remarks),
        observed=_parquet(directory / "observed.parquet", OBSERVED, remarks),
        verify=_object(directory / "verify.json", remarks),
        counters=_object(directory / "wire" / "counters.json", remarks),
        records=records,
        consoles=consoles,
        jobs=jobs,
        remarks=tuple(remarks),
    )


def _name(directory: Path) -> str:
    """Also of one that is being written."""
    return re.sub(r"^\.(.*)\.partial$", r"\1", directory.name)


def _object(path: Path, remarks: list[str]) -> dict[str, Any] | None:
    where = f"{path.parent.name}/{path.name}" if path.name == "counters.json" else path.name
    if not path.is_file():
        remarks.append(f"{where} is missing")
        return None
    try:
        value = json.loads(path.read_bytes())
    except ValueError:
        remarks.append(f"{where} is not readable as JSON")
        return None
    return value if isinstance(value, dict) else None


def _parquet(path: Path, columns: Sequence[str], remarks: list[str]) -> pl.DataFrame:
    if not path.is_file():
        remarks.append(f"{path.name} is missing")
        return pl.DataFrame()
    try:
        present = pl.read_parquet_schema(path)
        table = pl.read_parquet(path, columns=[name for name in columns if name in present])
    except (PolarsError, OSError):
        remarks.append(f"{path.name} is not readable as Parquet")
        return pl.DataFrame()
    return table.with_columns(pl.col(name).cast(pl.Categorical) for name in NAMES if name in table.columns)


def _samples(directory: Path, remarks: list[str]) -> pl.DataFrame:
    """samples.parquet; where there is none, what the nodes' streams hold, as a run that failed early leaves it."""
    path = directory / "samples.parquet"
    table = _streams(directory) if not path.is_file() else None
    if table is None:
        table = _parquet(path, list(SAMPLES), remarks)
    absent = [name for name in SAMPLES if name not in table.columns]
    if absent:
        if table.columns:
            remarks.append(f"{path.name} lacks {', '.join(absent)}")
        table = pl.DataFrame(schema=SAMPLES)
    kinds = {name: pl.Categorical if name in NAMES else kind for name, kind in SAMPLES.items()}
    table = table.select(pl.col(name).cast(kind) for name, kind in kinds.items())
    apart = [app for app, client in registry.CLIENTS.items() if client.first_apart]
    first = pl.col("app").cast(pl.String).is_in(apart) & (pl.col("xid") == 0).fill_null(value=False)
    return table.with_columns(warmup=pl.col("warmup") | first)


def _streams(directory: Path) -> pl.DataFrame | None:
    try:
        return load_samples(open_run(directory)).table
    except SundialError:
        return None


def _records(path: Path) -> list[dict[str, Any]]:
    """JSON objects of a sample stream; calls are skipped without being parsed."""
    if not path.is_file() or path.stat().st_size == 0:
        return []
    found = []
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = 0 if data[:1] == b"{" else data.find(b"\n{") + 1
        while data[at : at + 1] == b"{":
            end = data.find(b"\n", at)
            line = data[at : end if end >= 0 else len(data)]
            try:
                found.append(json.loads(line))
            except ValueError:
                found.append({"type": "garbled", "line": line[:200].decode("utf-8", "replace")})
            at = data.find(b"\n{", at) + 1
            if at == 0:
                break
    return [record for record in found if isinstance(record, dict) and record.get("type") != "alive"]


def _tail(path: Path) -> list[str]:
    if not path.is_file():
        return []
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - CONSOLE_BYTES))
        text = stream.read().decode("utf-8", "replace").replace("\r\n", "\n")
    lines = [_CONTROL.sub("", line).rstrip() for line in text.split("\n")]
    return [line for line in lines if line][-CONSOLE_LINES:]

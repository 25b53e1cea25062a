# SPDX-License-Identifier: Apache-2.0
"""`sundial.open_run`: a run's tables, each read when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from sundial import observe
from sundial.data.tables import FINDING_COLUMNS, FRAME_COLUMNS, OF_CALL, TABLES
from sundial.errors import BadInput
from sundial.model.catalog import WRITTEN
from sundial.observe.fates import fate_columns
from sundial.verify.samples import load_samples

_RENAMED = {
    "port": "interface", "frame_bytes": "frame_length", "fragment_bytes": "fragment_offset",
    "udp_bytes": "udp_length", "tcp_bytes": "tcp_length",
}  # fmt: skip
"""Columns of `observe.read_frames` by their names here."""
_WAYS = {1: "in", 2: "out"}


class Run:
    """A run directory. `document` is its run.json. The tables are polars frames; `.to_pandas()` makes pandas of one."""

    def __init__(self, directory: observe.RunDirectory) -> None:
        self._directory = directory

    def __repr__(self) -> str:
        return f"sundial.open_run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        """The run directory."""
        return self._directory.path

    @property
    def name(self) -> str:
        """Name of the directory."""
        return self.path.resolve().name

    @property
    def document(self) -> dict[str, Any]:
        """run.json: scenario, topology, seed, clock, versions and more."""
        return self._directory.document

    @cached_property
    def verification(self) -> dict[str, Any]:
        """verify.json. Raises BadInput if the run was not verified."""
        path = self.path / "verify.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            hint = f"verify it with: ./sundial verify {self.path}"
            raise BadInput("the run is not verified", file=str(path), hint=hint) from None
        except (OSError, ValueError) as error:
            raise BadInput(f"is not readable JSON: {error}", file=str(path)) from None
        if not isinstance(found, dict):
            raise BadInput("is not a JSON object", file=str(path))
        return found

    @property
    def verdict(self) -> str:
        """`pass`, `fail` or `checked`. Raises BadInput if the run was not verified."""
        return str(self.verification.get("verdict"))

    @cached_property
    def samples(self) -> pl.DataFrame:
        """One row a call, warm-up calls included. Of a run that failed early, what its machines had recorded."""
        path = self.path / "samples.parquet"
        if path.is_file():
            return _parquet(path, TABLES["samples"].columns)
        return load_samples(self._directory).table

    @cached_property
    def frames(self) -> pl.DataFrame:
        """One row a frame and port, in the order of the captures. Raises BadInput for a capture that is not whole."""
        captures = self._directory.capture_files
        missing = [name for path, name in captures if not path.is_file()]
        if missing or not captures:
            what = f"{missing[0]} is missing" if missing else "has no captures"
            raise BadInput(what, file=str(self.path), allowed="a run with its captures")
        table = observe.read_frames(captures, self._directory.epoch_ns)
        fates = fate_columns(table["comment"])["fate"]
        renamed = {name: pl.col(known) for name, known in _RENAMED.items()}
        table = table.with_columns(
            segment=pl.col("capture").str.extract(r"([^/]+)\.pcapng$"),
            direction=pl.col("direction").replace_strict(_WAYS, default=None, return_dtype=pl.String),
            fate=fates,
            **renamed,
        )
        return table.select(pl.col(name).cast(kind) for name, kind in FRAME_COLUMNS.items())

    @cached_property
    def findings(self) -> pl.DataFrame:
        """One row a finding of verify.json. Raises BadInput if the run was not verified."""
        rows = [_finding(each) for each in self.verification.get("problems", [])]
        return pl.DataFrame(rows, schema=FINDING_COLUMNS, orient="row")

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row a step of a traced call. Raises BadInput for a run without traces."""
        path = self.path / "steps.parquet"
        if not path.is_file():
            raise BadInput("has no steps", file=str(self.path), allowed="a run with --trace steps, verified")
        return _parquet(path, TABLES["steps"].columns)

    def table(self, name: str) -> pl.DataFrame:
        """One of `samples`, `frames`, `findings`, `steps`. Raises BadInput."""
        if name not in TABLES:
            raise BadInput(f"there is no table {name!r}", field="--table", allowed=", ".join(TABLES))
        found = getattr(self, name)
        assert isinstance(found, pl.DataFrame)
        return found


def open_run(path: str | PathLike[str]) -> Run:
    """The run in a directory, or of a name below captures/. Raises BadInput for what is not a run directory."""
    place = Path(path)
    if not place.is_dir() and (WRITTEN.captures / place).is_dir():
        place = WRITTEN.captures / place
    return Run(observe.open_run(place))


def _parquet(path: Path, columns: Mapping[str, Any]) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, columns=list(columns))
    except (PolarsError, OSError) as error:
        what = str(error).splitlines()[0]
        raise BadInput(f"is not readable: {what}", file=str(path), allowed="what 'sundial run' wrote") from None


def _finding(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    call = problem.get("call") or {}
    words = [str(problem.get(name)) for name in ("field", "expected", "seen")]
    frames = [int(number) for number in problem.get("frames") or []]
    return (*words, problem.get("capture"), frames, problem.get("filter") or "", *(call.get(name) for name in OF_CALL))

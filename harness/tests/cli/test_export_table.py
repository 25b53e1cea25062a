# SPDX-License-Identifier: Apache-2.0
"""`sundial export --table`: what it writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from click.testing import Result

from tests.compare.test_runs import made

Call = Callable[..., Result]


def test_a_table_is_written(call: Call, captures: Path, tmp_path: Path) -> None:
    made(captures / "one")
    assert call("export", "one", "--table", "samples").stdout.startswith("scenario,series,client,server,")
    assert len(json.loads(call("export", "one", "--table", "samples", "--format", "json").stdout)) == 3
    file = tmp_path / "frames.parquet"
    result = call("export", "latest", "--table", "frames", "-o", str(file))
    assert (result.exit_code, result.stderr) == (0, f"{file}: 12 rows of frames\n")
    assert pl.read_parquet(file).height == 12
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--table", "samples", "lan"), "--table: cannot be combined with a SEGMENT, --at, --all or --follow"),
        (("--table", "samples", "--all"), "--table: cannot be combined with a SEGMENT, --at, --all or --follow"),
        (("--format", "csv"), "--format: is the format of a table; allowed: with --table"),
        (("--table", "findings"), "verify.json: the run is not verified"),
        (("--table", "steps"), "has no steps; allowed: a run with --trace steps, verified"),
        (("--table", "samples", "-o", "/"), "/: -o cannot be written: Is a directory; allowed: a file, or -"),
        (("--table", "samples", "-o", "/nowhere/x.csv"), "-o cannot be written: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(call: Call, captures: Path, words: tuple[str, ...], line: str) -> None:
    made(captures / "one")
    result = call("export", "one", *words)
    assert (result.exit_code, line in result.stderr.splitlines()[0]) == (2, True), result.stderr


def test_unknown_tables_and_runs_are_refused(call: Call, captures: Path) -> None:
    made(captures / "one")
    assert call("export", "one", "--table", "calls").exit_code == 2
    assert call("export", "two", "--table", "samples").exit_code == 2

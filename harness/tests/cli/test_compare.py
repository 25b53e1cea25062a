# SPDX-License-Identifier: Apache-2.0
"""`sundial compare`: what it prints, writes and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sundial.cli import completion
from tests.compare.test_runs import _later, made

Call = Callable[..., Result]


def test_runs_are_compared_by_name(call: Call, captures: Path) -> None:
    made(captures / "one")
    made(captures / "two", seed=2)
    result = call("compare", "one", "two")
    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            "   RUN  CLOCK    SEED  VERDICT",
            "A  one  virtual  1     unverified",
            "B  two  virtual  2     unverified",
            "",
            "INPUT  A  B",
            "seed   1  2",
            "",
            "capture   lan: equal to the byte",
            "figures   1 group of calls with equal figures",
        ],
    )
    found = json.loads(call("compare", "one", "two", "--json").stdout)
    assert [run["label"] for run in found["runs"]] == ["A", "B"]
    assert call("compare", "one", "two", "--csv").stdout.startswith("app,transport,procedure,size,label,run,calls,")
    assert call("compare", "one", "two", "--markdown").stdout.startswith("|  | RUN | CLOCK |")


def test_other_bytes_of_equal_inputs_end_with_status_1(call: Call, captures: Path) -> None:
    made(captures / "one")
    made(captures / "two", _later)
    for form in ((), ("--json",), ("--csv",)):
        result = call("compare", "one", "two", *form)
        assert result.exit_code == 1
        assert result.stderr.endswith("sundial: one and two have the same inputs and other bytes: lan\n")
    assert "./sundial open two lan --all --filter 'frame.number == 5'" in call("compare", "one", "two").stdout


def test_a_page_is_written(call: Call, captures: Path, tmp_path: Path) -> None:
    made(captures / "one")
    made(captures / "two")
    page = tmp_path / "page.html"
    assert call("compare", "one", "two", "--html", str(page)).exit_code == 0
    assert "2 runs compared" in page.read_text()
    result = call("compare", "one", "two", "--html", str(tmp_path))
    assert (result.exit_code, "--html" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "RUN: one run is not a comparison; allowed: two runs or more"),
        (("one",), "RUN: one run is not a comparison; allowed: two runs or more"),
        (("one", "one"), "RUN: one is named twice; allowed: different runs"),
        (("one", "three"), "there is no run 'three'; allowed: a run directory, its name (see 'sundial ls'), or latest"),
        (("one", "big"), "RUN: the runs have nothing in common: no calls with the same app, transport, "
         "procedure, size; allowed: runs of one workload, or other columns: --by transport,size"),
        (("one", "two", "--by", "sise"), "--by: 'sise' is not a column; did you mean 'size'? allowed: app, transport, "
         "procedure, size, client, server, series, thread"),
        (("one", "two", "--csv", "--json"), "--csv, --markdown and --json exclude each other; allowed: one of them"),
        (("one", "two", "--fail-above", "p50"), "--fail-above: 'p50' is not a figure and a bound; allowed: p50 or p99"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(call: Call, captures: Path, words: tuple[str, ...], line: str) -> None:
    made(captures / "one")
    made(captures / "two")
    made(captures / "big", size=200)
    result = call("compare", *words)
    assert result.exit_code == 2
    assert (result.stderr or result.stdout).splitlines()[0].startswith(f"sundial: {line}"[:110])


def test_a_damaged_run_and_one_in_the_making_are_refused(call: Call, captures: Path) -> None:
    made(captures / "one")
    (captures / "half" / "wire").mkdir(parents=True)
    result = call("compare", "one", "half")
    assert (result.exit_code, result.stderr) == (
        2, "sundial: half: has no run.json: it is not a run directory; allowed: what 'sundial run' wrote\n"
    )  # fmt: skip


def test_names_of_runs_are_completed(captures: Path) -> None:
    made(captures / "one")
    (captures / ".half.partial").mkdir()
    assert completion.RUNS(None, None, "") == ["latest", "one"]  # type: ignore[arg-type]
    assert completion.RUNS(None, None, "o") == ["one"]  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""`sundial new`: what it writes, and what to do next. Names that are almost right, in all commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from sundial.cli import new
from sundial.errors import Problem

Call = Callable[..., Result]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_next_three_commands_are_printed_and_taken(call: Call, tmp_path: Path) -> None:
    for words in (
        ("topology", "lab", "--machines", "3"),
        ("scenario", "echo"),
        ("scenario", "in.yaml", "--segment", "hub"),
    ):
        result = call("new", *words)
        assert result.exit_code == 0, result.output
        assert len(result.stderr.splitlines()) == 4
        assert Path(result.stdout.strip()).is_file()
    assert call("topology", "check", "lab.yaml").stdout == "lab.yaml: valid: 3 machines, 1 segment\n"
    assert call("run", "in.yaml", "--dry-run").exit_code == 0
    assert call("new", "scenario", "own", "--topology", "lab.yaml").exit_code == 0
    assert call("run", "own.yaml", "--dry-run").exit_code == 0
    found = json.loads(call("new", "topology", "other", "--json").stdout)
    assert (found["files"], len(found["next"])) == (["other.yaml"], 3)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("topology", "lab"), "lab.yaml: exists already; allowed: another name, or --force"),
        (("topology", "Lab"), "NAME: 'Lab' is invalid; allowed: up to 32"),
        (("topology", "none/lab.yaml"), ""),
        (("scenario", "x", "--topology", "ofice"), "there is no topology 'ofice'; did you mean 'office'? allowed"),
        (("scenario", "x", "--topology", "office", "--machines", "3"), "--topology: cannot be combined with"),
        (("scenario", "x", "--machines", "0"), "--machines: 0 is out of range; allowed: 2 to 64"),
        (("workload", "My-Calc"), "NAME: 'My-Calc' is not a name of a kind; allowed: 2 to 16 lower-case letters"),
    ],
)  # fmt: skip
def test_bad_input_writes_nothing(call: Call, tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    call("new", "topology", "lab")
    before = (tmp_path / "lab.yaml").read_text()
    result = call("new", *words)
    if not line:
        assert (result.exit_code, (tmp_path / "none" / "lab.yaml").is_file()) == (0, True)
        return
    assert (result.exit_code, result.stderr.startswith(f"sundial: {line}")) == (2, True), result.stderr
    assert [path.name for path in tmp_path.glob("*.yaml")] == ["lab.yaml"]
    assert (tmp_path / "lab.yaml").read_text() == before


def test_force_replaces(call: Call, tmp_path: Path) -> None:
    call("new", "topology", "lab")
    assert call("new", "topology", "lab", "--machines", "4", "--force").exit_code == 0
    assert "client3" in (tmp_path / "lab.yaml").read_text()


def test_kinds_are_added_to_the_checkout(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toys = new.ROOT / "harness" / "tests" / "kinds"
    (tmp_path / "harness" / "tests").mkdir(parents=True)
    (tmp_path / "harness" / "tests" / "kinds").symlink_to(toys)
    monkeypatch.setattr(new, "ROOT", tmp_path)
    assert len(call("new", "workload", "calc").stdout.splitlines()) == 11
    assert (tmp_path / "harness/sundial/workloads/calc/verify.py").is_file()
    assert call("new", "image", "mine").exit_code == 0
    result = call("new", "image", "mine")
    assert (result.exit_code, "exists already" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("what", "field", "allowed", "near"),
    [
        ("there is no topology 'ofice'", None, "office, one-host", "office"),
        ("unknown field", "segments.lan.rat", "kind, rate, ports", "rate"),
        ("'klient' is unknown", "x", "client or server", "client"),
        ("'zebra' is unknown", "x", "client, server", None),
        ("'client' is unknown", "x", "client, server", None),
        ("'5' is out of range", "x", "0 to 4", None),
        ("is missing", "rat", "kind, rate", None),
        ("'x' is unknown", "x", None, None),
    ],
)
def test_the_nearest_allowed_word(what: str, field: str | None, allowed: str | None, near: str | None) -> None:
    problem = Problem(what, allowed, field=field)
    assert problem.did_you_mean == near
    assert (f"did you mean {near!r}? allowed: " in str(problem)) is (near is not None)
    assert problem.to_json().get("did_you_mean") == near


def test_a_long_list_is_shortened_beside_the_nearest_word() -> None:
    words = [f"word-{number:02d}" for number in range(40)]
    assert str(Problem("'word-3x' is unknown", ", ".join(words))).endswith("word-11 and 28 more")
    assert str(Problem("'zebra' is unknown", ", ".join(words))).endswith("word-39")
    assert str(Problem("'word-3x' is unknown", ", ".join(words[:13]))).endswith("word-12")

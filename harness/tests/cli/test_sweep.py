# SPDX-License-Identifier: Apache-2.0
"""`sundial sweep` and `sundial search`: what they say, refuse and answer. Runs are those of tests/sweep/side.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.errors import Interrupted
from sundial.sweep import engines, known
from tests.sweep import side
from tests.sweep.bench import InProcess

Call = Callable[..., Result]
GRID = ("loss", "--topology", "two-hosts-wan", "--set", "loss=0,5 %", "--seeds", "1..2")


class Known(side.Known):
    def __init__(self, recipe: str | None, say: object) -> None:
        super().__init__()


@pytest.fixture
def sweep(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """`sundial sweep GRID` with these options."""
    (tmp_path / "asked").mkdir()
    monkeypatch.setenv(side.FOLDER, str(tmp_path / "asked"))
    monkeypatch.setattr(known, "Identities", Known)
    monkeypatch.setattr(engines, "Workers", InProcess)
    monkeypatch.setattr(rooms, "making", lambda: side.MAKING)
    places = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "swept"))
    return lambda *words: call("sweep", *GRID, *places, *words)


def test_a_sweep_is_made_shown_and_gone_on_with(call: Call, sweep: Call, tmp_path: Path) -> None:
    dry = json.loads(sweep("--dry-run", "--json").stdout)
    assert (dry["least"], dry["most"], dry["had"], dry["checks"], dry["s_a_run"]) == (4, 4, 0, 1, None)
    assert not (tmp_path / "swept").exists()
    made = sweep()
    assert made.exit_code == 0
    assert made.stdout.splitlines() == [
        "runs     4 pass, of 4",
        "again    1 of 1 made again with equal bytes",
        f"folder   {tmp_path / 'swept'}",
        f"page     {tmp_path / 'swept' / 'index.html'}",
    ]
    dry = json.loads(sweep("--dry-run", "--json").stdout)
    assert (dry["had"], dry["s_a_run"] is None, dry["bytes"]) == (4, False, 0)
    for verb in ("status", "resume"):
        again = json.loads(call("sweep", verb, str(tmp_path / "swept"), "--json").stdout)
        assert (again["pass"], again["made"], again["checked"]) == (4, 0, 1)
    shown = call("sweep", "show", str(tmp_path / "swept"), "3", "--captures", "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    assert (document["captures"], document["seed"], document["loss"]) == (True, 2, "5 %")
    assert "--set 'segments.wan.impairments.both.loss=\"5 %\"' --seed 2" in document["command"]


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ("bad-2", 1, "2 with mismatches: request.packets: expected 2, seen 1; see: ./sundial sweep show"),
        ("panic-1", 4, "2 failed: server: its kernel panicked; see: ./sundial sweep show"),
        ("lack-1", 3, "hint: go on with: ./sundial sweep resume"),
    ],
)
def test_the_exit_status_is_the_worst(sweep: Call, tmp_path: Path, asked: str, status: int, words: str) -> None:
    (tmp_path / "asked" / asked).touch()
    result = sweep()
    assert result.exit_code == status
    assert words in " ".join(result.stderr.split())


def test_an_interrupted_sweep_says_how_to_go_on(sweep: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any) -> Any:
        raise Interrupted("interrupted by SIGINT")

    monkeypatch.setattr(InProcess, "heard", interrupted)
    result = sweep()
    assert result.exit_code == 130
    assert f"go on with: ./sundial sweep resume {tmp_path / 'swept'}" in " ".join(result.stderr.split())
    monkeypatch.undo()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "slurm"), "--on: 'slurm' is not a place for runs; allowed: local, local:N for N runs"),
        (("--on", "local:65"), "'local:65' is not a place for runs"),
        (("--set", "loss=1"), "--set: loss: is there twice; allowed: each field once"),
        (("--set", "duplicate=1"), "duplicate: '1' has no unit"),
        (("--seeds", "many"), "seeds: 'many' is not a range of seeds; allowed: a seed, or a range such as 1..50"),
    ],
)
def test_bad_options_are_one_line(sweep: Call, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    result = sweep(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())
    assert not (tmp_path / "swept").exists()


def test_a_file_says_itself_which_runs_there_are(call: Call, sweep: Call, tmp_path: Path) -> None:
    result = call("sweep", "tcp-or-udp", "--seeds", "1..2")
    assert (result.exit_code, "--seeds: the file says which runs there are" in result.stderr) == (2, True)
    result = call("sweep", "status", str(tmp_path))
    assert (result.exit_code, "is not a sweep" in result.stderr) == (2, True)
    assert call("sweep", "show", str(tmp_path), "0").exit_code == 2


def test_a_search_ends_with_the_command_that_fails(call: Call, sweep: Call, tmp_path: Path) -> None:
    words = ("search", *GRID, "--store", str(tmp_path / "store"), "--out", str(tmp_path / "searched"))
    passed = call(*words)
    assert (passed.exit_code, passed.stdout.splitlines()[0]) == (0, "runs     4 drawn")
    (tmp_path / "asked" / "bad-2").touch()
    assert call(*words, "--json").exit_code == 0, "what passed is in the store"
    words = (*words[:2], *words[2:-1], str(tmp_path / "other"), "--set", "calls=2")
    result = call(*words)
    assert result.exit_code == 1
    last = result.stdout.splitlines()[-1]
    assert last.startswith("repeat   ./sundial run loss --topology two-hosts-wan --set calls=2")
    assert last.endswith(" --seed 2")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ["sweep", *GRID, "--on", "tcp://10.0.0.1:8786"],
            "'tcp://10.0.0.1:8786' reaches another host without",
        ),
        (["search", *GRID, "--on", "tls://boss:8786"], "--certs: is missing for tls:"),
        (["sweep", "scheduler", "tcp://0.0.0.0:1"], "ADDRESS: 'tcp://0.0.0.0:1' reaches another host without"),
        (["sweep", "worker", "boss"], "ADDRESS: 'boss' is not a place for runs"),
        (["sweep", "worker", "tls://boss:1", "--certs", "/"], "--certs: / has no cert.pem"),
        (["sweep", "certs", "/"], "DIR: / exists"),
    ],
)
def test_what_other_hosts_would_reach_is_refused_in_one_line(call: Call, words: list[str], what: str) -> None:
    result = call(*words)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert what in result.stderr

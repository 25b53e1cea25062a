# SPDX-License-Identifier: Apache-2.0
"""`sundial ls`, `tag`, `note`, `rm`, `gc` and `du`."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Call = Callable[..., Result]
MakeRun = Callable[..., Path]


def old(folder: Path, days: float) -> Path:
    at = (folder / "run.json").stat().st_mtime - days * 86400
    os.utime(folder / "run.json", (at, at))
    return folder


def listed(call: Call, *words: str) -> list[str]:
    return [row["run"] for row in json.loads(call("ls", "--json", *words).stdout)]


def test_runs_are_filtered(call: Call, make_run: MakeRun) -> None:
    old(make_run("one", scenario={"name": "loss"}), 10)
    (make_run("two", scenario={"name": "quickstart"}) / "verify.json").write_text('{"verdict": "fail"}')
    call("tag", "one", "paper")
    assert listed(call, "--since", "7d") == ["two"]
    assert listed(call, "--verdict", "fail") == ["two"]
    assert listed(call, "--scenario", "loss") == listed(call, "--tag", "paper") == ["one"]
    assert call("ls", "--tag", "nothing").stderr == "no run is like that; list all with: ./sundial ls\n"
    assert call("ls", "--verdict", "maybe").exit_code == 2
    result = call("ls", "--since", "yesterday")
    assert (result.exit_code, result.stderr) == (
        2,
        "sundial: --since: 'yesterday' is neither a date nor an age; allowed: a date such as 2026-11-27, or a number "
        "of min, h, d or w, such as 30d\n",
    )


def test_tags_and_notes_are_shown(call: Call, make_run: MakeRun) -> None:
    make_run("one")
    assert call("tag", "one", "paper", "fig-3").stdout == "one: paper, fig-3\n"
    assert call("tag", "latest", "--remove", "fig-3").stdout == "one: paper\n"
    assert call("tag", "one").stdout == "one: paper\n"
    assert call("note", "one", "with the patch").stdout == "one: with the patch\n"
    assert json.loads(call("note", "one", "--json").stdout)["tags"] == ["paper"]
    assert call("ls").stdout.splitlines()[1].endswith("  paper  with the patch")
    assert call("note", "one", "").stdout == "one: no note\n"
    for words in (("tag", "one", "a b"), ("tag", "one", "--remove", "x"), ("note", "one", "a\nb"), ("tag", "two", "x")):
        result = call(*words)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_runs_are_removed_by_name(call: Call, make_run: MakeRun, captures: Path) -> None:
    make_run("one")
    make_run("two")
    result = call("rm", "one", "--dry-run")
    assert (result.exit_code, result.stderr.startswith("would remove 1 run, ")) == (0, True)
    assert (captures / "one").exists()
    found = json.loads(call("rm", "one", "one", "--json").stdout)
    assert ([row["run"] for row in found["removed"]], found["dry_run"]) == (["one"], False)
    assert not (captures / "one").exists()
    call("tag", "two", "keep")
    assert call("rm", "two").exit_code == 2
    assert (captures / "two").exists()
    assert call("rm", "two", "--force").exit_code == 0
    assert list(captures.iterdir()) == []


def test_nothing_is_removed_if_one_name_is_wrong(call: Call, make_run: MakeRun, captures: Path) -> None:
    make_run("one")
    assert call("rm", "one", "two").exit_code == 2
    assert (captures / "one").exists()


@pytest.mark.parametrize("words", [("rm",), ("rm", "one", "--older", "3d"), ("rm", "--older", "3"), ("gc",),
                                   ("gc", "--keep", "0"), ("ls", "--up", "--tag", "x")])  # fmt: skip
def test_bad_input_removes_nothing(call: Call, make_run: MakeRun, captures: Path, words: tuple[str, ...]) -> None:
    make_run("one")
    assert call(*words).exit_code == 2
    assert (captures / "one").exists()


def test_a_damaged_run_can_be_removed_and_other_folders_cannot(call: Call, captures: Path, tmp_path: Path) -> None:
    (captures / "half" / "wire").mkdir(parents=True)
    (captures / "mine").mkdir()
    (tmp_path / "elsewhere" / "wire").mkdir(parents=True)
    assert listed(call) == ["half"]
    assert call("rm", "half").exit_code == 0
    for name in ("mine", str(tmp_path / "elsewhere"), ".", "/"):
        assert call("rm", name).exit_code == 2
    assert (captures / "mine").exists()


def test_gc_and_rm_leave_what_is_being_made(call: Call, make_run: MakeRun, captures: Path) -> None:
    for days, name in enumerate(["c", "b", "a"]):
        old(make_run(name), days)
    half = make_run(".half.partial")
    held = os.open(half, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    result = call("rm", "half")
    assert (result.exit_code, result.stderr) == (
        2, "sundial: half is still running; allowed: a run that has ended (see 'sundial ls')\n"
    )  # fmt: skip
    assert json.loads(call("gc", "--keep", "1", "--dry-run", "--json").stdout)["dry_run"] is True
    assert call("gc", "--keep", "1").exit_code == 0
    assert listed(call) == ["c", "half"]
    assert half.exists()
    os.close(held)


def test_old_runs_are_removed(call: Call, make_run: MakeRun) -> None:
    old(make_run("one"), 40)
    old(make_run("two"), 35)
    make_run("three")
    call("tag", "two", "keep")
    assert [row["run"] for row in json.loads(call("rm", "--older", "30d", "--json").stdout)["removed"]] == ["one"]
    assert listed(call) == ["two", "three"]
    assert call("rm", "--older", "30d").stderr == "removed 0 runs, 0 B\n"


def test_without_captures_the_verdict_stays(
    call: Call, make_run: MakeRun, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_run("one")
    (folder / "verify.json").write_text('{"verdict": "pass"}')
    call("tag", "one", "keep")
    assert call("rm", "one", "--captures-only").exit_code == 0
    assert not list(folder.rglob("*.pcapng"))
    result = call("verify", "one")
    assert (result.exit_code, "its captures were removed on" in result.stderr) == (2, True)
    result = call("report", "one")
    assert (result.exit_code, "the verdict is the one before" in result.stderr) == (0, True)
    assert (folder / "verify.json").exists()
    assert "captures removed" in call("ls").stdout


def test_a_run_verifies_with_notes_and_views_beside_it(call: Call, captures: Path) -> None:
    from sundial.observe import open_run
    from sundial.verify.directory import check_directory
    from tests.compare.test_runs import made

    folder = made(captures / "one")
    before = check_directory(open_run(folder)).rows()
    call("tag", "one", "paper")
    (folder / "views").mkdir()
    (folder / "views" / "lan@client:eth0.pcapng").write_bytes(b"x")
    assert check_directory(open_run(folder)).rows() == before
    (folder / "other").write_bytes(b"x")
    assert len(check_directory(open_run(folder)).rows()) == len(before) + 1


def test_the_use_of_the_disk_is_shown(call: Call, make_run: MakeRun) -> None:
    make_run("one")
    found = {row["what"]: row for row in json.loads(call("du", "--json").stdout)}
    assert (found["runs"]["count"], found["runs"]["bytes"] > 0) == (1, True)
    assert {"images", "snapshots", "caches", "programs", "python"} <= found.keys()
    assert call("du").stdout.splitlines()[0].split() == ["WHAT", "COUNT", "SIZE", "TO", "FREE", "IT"]

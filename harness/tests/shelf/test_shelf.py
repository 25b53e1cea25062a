# SPDX-License-Identifier: Apache-2.0
"""The collection of runs: what is there, what a filter means, what may go, and what removing leaves."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.shelf import choose, notes, remove
from sundial.shelf.entries import Entry, read_entries, read_entry, size_of
from sundial.shelf.notes import Notes
from sundial.shelf.usage import of_captures, of_places

DAY = 86400.0
NOW = 1_800_000_000.0
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(name: str, days_ago: float = 0, tags: tuple[str, ...] = (), record: str = "run.json", **run: Any) -> Path:
        folder = tmp_path / name
        (folder / "wire").mkdir(parents=True)
        (folder / "wire" / "lan.pcapng").write_bytes(bytes(5000))
        (folder / record).write_text(json.dumps({"status": "complete", "scenario": {"name": "s"}, **run}))
        if tags:
            notes.change(folder, lambda before: notes.tagged(before, tags))
        at = NOW - days_ago * DAY
        os.utime(folder / record, (at, at))
        return folder

    return made


def names(entries: list[Entry]) -> list[str]:
    return [entry.name for entry in entries]


def test_entries_are_ordered_by_their_records(make: Make, tmp_path: Path) -> None:
    make("b", 2)
    make("a", 1)
    make("r", 3, record="reproduce.json")
    (tmp_path / "damaged" / "nodes").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / ".x.partial" / "wire").mkdir(parents=True)
    found = read_entries(tmp_path)
    assert [(entry.name, entry.kind, entry.status) for entry in found if entry.kind != "damaged"] == [
        ("r", "reproduction", "complete"),
        ("b", "run", "complete"),
        ("a", "run", "complete"),
    ]
    assert [(entry.name, entry.status) for entry in found if entry.kind == "damaged"] == [("damaged", "damaged")]
    assert read_entries(tmp_path / "nothing") == []


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000])
def test_a_record_that_is_not_readable_is_a_damaged_run(make: Make, text: str) -> None:
    folder = make("a")
    (folder / "run.json").write_text(text)
    entry = read_entry(folder)
    assert entry is not None
    assert entry.kind == "damaged"


def test_notes_are_kept_apart_from_the_record(make: Make) -> None:
    folder = make("a")
    before = (folder / "run.json").read_bytes()
    notes.change(folder, lambda found: notes.tagged(found, ["paper", "x", "paper"]))
    notes.change(folder, lambda found: notes.noted(found, "why"))
    assert notes.read_notes(folder) == Notes(("paper", "x"), "why")
    assert notes.change(folder, lambda found: notes.untagged(found, ["x"])).tags == ("paper",)
    notes.change(folder, lambda found: notes.noted(notes.untagged(found, ["paper"]), ""))
    assert not (folder / "notes.json").exists()
    assert (folder / "run.json").read_bytes() == before
    (folder / "notes.json").write_text('{"tags": [3, "ok"], "note": null}')
    assert notes.read_notes(folder) == Notes(("ok",))


@pytest.mark.parametrize("tag", ["", "-x", "a b", "a" * 33, "ä", "a\n"])
def test_a_bad_tag_is_refused(tag: str) -> None:
    with pytest.raises(BadInput, match="is not a tag"):
        notes.tagged(Notes(), [tag])


def test_a_bad_note_and_a_tag_that_is_not_there_are_refused() -> None:
    for text in ("a\nb", "\x1b[2J", "x" * 501):
        with pytest.raises(BadInput, match="one printable line"):
            notes.noted(Notes(), text)
    with pytest.raises(BadInput, match="has no tag 'y'; allowed: x"):
        notes.untagged(Notes(("x",)), ["y"])


def test_filters(make: Make, tmp_path: Path) -> None:
    make("old", 10)
    folder = make("new", 1, tags=("paper", "x"), scenario={"name": "t"})
    (folder / "verify.json").write_text('{"verdict": "pass"}')
    found = read_entries(tmp_path)

    def taken(**wanted: Any) -> list[str]:
        return [entry.name for entry in found if choose.Filter(**wanted).takes(entry)]

    assert taken() == ["old", "new"]
    assert taken(since_s=NOW - 5 * DAY) == ["new"]
    assert taken(verdict="pass") == ["new"]
    assert taken(verdict="unverified") == ["old"]
    assert taken(scenario="s") == ["old"]
    assert taken(tags=("paper",)) == taken(tags=("x", "paper")) == ["new"]
    assert taken(tags=("paper", "y")) == []


@pytest.mark.parametrize(
    ("text", "seconds"), [("30d", 30 * DAY), ("1.5 h", 5400), ("2w", 14 * DAY), ("10min", 600), ("0d", 0)]
)
def test_ages(text: str, seconds: float) -> None:
    assert choose.parse_age(text, "--older") == seconds
    assert choose.parse_since(text, NOW, "--since") == NOW - seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-3d", "3m", "30 days", "2026-13-01", "9" * 30])
def test_bad_ages_are_one_line(text: str) -> None:
    with pytest.raises(BadInput, match="--older"):
        choose.parse_age(text, "--older")
    with pytest.raises(BadInput, match="neither a date nor an age"):
        choose.parse_since(text, NOW, "--since")


def test_a_date_is_its_first_moment() -> None:
    assert choose.parse_since("2026-11-28", NOW, "--since") - choose.parse_since("2026-11-27", NOW, "--since") == DAY


def test_neither_tagged_runs_nor_the_latest_are_old(make: Make, tmp_path: Path) -> None:
    make("a", 50)
    make("tagged", 45, tags=("keep",))
    make("b", 40)
    make("latest", 35)
    assert names(choose.older(read_entries(tmp_path), NOW, 38 * DAY)) == ["a", "b"]
    assert names(choose.older(read_entries(tmp_path), NOW, 0)) == ["a", "b"]
    assert names(choose.older(read_entries(tmp_path), NOW, 60 * DAY)) == []


@pytest.mark.parametrize(
    ("keep", "gone"), [(1, ["a", "b", "c"]), (2, ["a", "b"]), (4, []), (100, []), (0, ["a", "b", "c"])]
)
def test_gc_keeps_the_latest_and_what_is_tagged(make: Make, tmp_path: Path, keep: int, gone: list[str]) -> None:
    for days, name in enumerate(["d", "c", "b", "a"]):
        make(name, days)
    make("tagged", 9, tags=("keep",))
    (tmp_path / "damaged" / "wire").mkdir(parents=True)
    assert names(choose.surplus(read_entries(tmp_path), keep)) == gone


def test_nothing_of_a_removed_run_is_left(make: Make, tmp_path: Path) -> None:
    entry = read_entry(make("a"))
    assert entry is not None
    remove.remove(entry)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_removal_is_finished(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = read_entry(make("a"))
    assert entry is not None
    real, calls = shutil.rmtree, []

    def interrupted(path: Path, **options: Any) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(path, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remove.remove(entry)
    assert list(tmp_path.iterdir()) == []
    # A killed one is finished by the next command, and is not listed before.
    (tmp_path / ".b.removed" / "wire").mkdir(parents=True)
    assert read_entries(tmp_path) == []
    remove.clean_up(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_captures_alone_are_removed(make: Make) -> None:
    folder = make("a")
    (folder / "wire" / "cells").mkdir()
    (folder / "wire" / "cells" / "lan.cells.pcapng").write_bytes(bytes(5000))
    (folder / "wire" / "counters.json").write_text("{}")
    (folder / "views").mkdir()
    (folder / "views" / "lan@a.pcapng").write_bytes(bytes(5000))
    entry = read_entry(folder)
    assert entry is not None
    assert remove.captures_size(entry) >= 15000
    remove.remove_captures(entry, date(2026, 11, 27))
    left = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert left == ["notes.json", "run.json", "wire/counters.json"]
    assert notes.read_notes(folder).captures_removed == "2026-11-27"


def test_what_is_not_to_be_removed_is_refused(make: Make, tmp_path: Path) -> None:
    folder = make("a", tags=("paper",))
    entry = read_entry(folder)
    assert entry is not None
    with pytest.raises(BadInput, match="is tagged paper; allowed: --force"):
        remove.check_removable(entry, force=False)
    remove.check_removable(entry, force=True)
    (tmp_path / "link").symlink_to(folder)
    linked = read_entry(tmp_path / "link")
    assert linked is not None
    with pytest.raises(BadInput, match="is a link"):
        remove.check_removable(linked, force=True)
    make("r", record="reproduce.json")
    part = read_entry(make("r/runs/x"))
    assert part is not None
    with pytest.raises(BadInput, match="is a part of the reproduction r"):
        remove.check_removable(part, force=True)


def test_sizes_count_a_file_once_and_follow_no_link(make: Make, tmp_path: Path) -> None:
    folder = make("a")
    once = size_of(folder)
    os.link(folder / "wire" / "lan.pcapng", folder / "again")
    (folder / "away").symlink_to("/")
    assert once <= size_of(folder) < once + 4096
    assert size_of(tmp_path / "nothing") == 0


def test_usage_by_kind(make: Make, tmp_path: Path) -> None:
    make("a")
    make("r", record="reproduce.json")
    found = {row.what: row.count for row in of_captures(tmp_path, [])}
    assert found == {"runs": 1, "reproductions": 1, "matrices": 0, "damaged runs": 0, "in the making": 0}
    assert of_places("images", [tmp_path / "nothing", tmp_path], "").places == (tmp_path,)


def test_two_hundred_runs_are_listed_in_one_go(make: Make, tmp_path: Path) -> None:
    for number in range(200):
        make(f"run-{number:03d}", 200 - number)
    found = read_entries(tmp_path)
    assert names(found) == [f"run-{number:03d}" for number in range(200)]
    assert len(choose.surplus(found, 20)) == 180


@pytest.mark.parametrize(
    ("status", "cells", "shown"),
    [
        (0, ["pass", "refused"], ("complete", "pass")),
        (1, ["pass", "fail"], ("complete", "fail")),
        (4, ["failed", "missing"], ("incomplete", "fail")),
        (0, ["missing", "missing"], ("incomplete", None)),
    ],
)
def test_a_matrix_is_an_entry_of_its_own(
    make: Make, tmp_path: Path, status: int, cells: list[str], shown: tuple[str, str | None]
) -> None:
    folder = make(
        "m", record="matrix.json", status=status, scenario="loss", cells=[{"verdict": verdict} for verdict in cells]
    )
    (entry,) = read_entries(tmp_path)
    assert (entry.kind, entry.scenario, (entry.status, entry.verdict)) == ("matrix", "loss", shown)
    inner = folder / "runs" / "01-01-a"
    inner.mkdir(parents=True)
    (inner / "run.json").write_text(json.dumps({"status": "complete"}))
    part = read_entry(inner)
    assert part is not None
    with pytest.raises(BadInput, match="is a part of the matrix m"):
        remove.check_removable(part, force=False)
    remove.remove_captures(entry, date(2026, 11, 27))
    assert notes.read_notes(inner).captures_removed == "2026-11-27"

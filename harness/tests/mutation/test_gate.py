# SPDX-License-Identifier: Apache-2.0
"""The mutation gate: stored runs pass as they are, and a seeded sample of damages to each is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import allowed, expected, runs
from mutation.damage import Copy
from mutation.expected import Row
from mutation.gate import CRASHED, KINDS, PASSED, all_damages, judge, sample
from sundial.verify import verify_run

MANY = 12
"""Random damages of each run."""
SEED = 1
ROWS = expected.load()


@pytest.mark.parametrize("name", runs.stored())
def test_damages_yield_the_expected_fields(name: str, tmp_path: Path) -> None:
    """Damages that do not hide one another's findings share a copy."""
    run = runs.recorded(name, tmp_path)
    assert verify_run(run).problems == []
    damages = {damage.name: damage for damage in all_damages(run)}
    for rows in expected.groups([row for row in ROWS[name] if not row.night]):
        fields = expected.found(run, [damages[row.damage] for row in rows], SEED, tmp_path / "work")
        assert expected.missed(rows, fields) == []


@pytest.mark.night
@pytest.mark.parametrize(
    ("name", "row"), [pytest.param(name, row, id=f"{name} {row.damage}") for name, rows in ROWS.items() for row in rows]
)
def test_a_damage_alone_yields_its_field_and_none_of_the_others_in_its_copy(
    name: str, row: Row, tmp_path: Path
) -> None:
    run = runs.recorded(name, tmp_path)
    damages = {damage.name: damage for damage in all_damages(run)}
    fields = expected.found(run, [damages[row.damage]], SEED, tmp_path / "work")
    assert expected.is_found(row, fields)
    shared = next(group for group in expected.groups(ROWS[name]) if row in group)
    assert [other for other in shared if other != row and expected.is_found(other, fields)] == []


def test_rows_of_a_run_name_one_field_each_and_reach_every_kind_of_damage(tmp_path: Path) -> None:
    reached = set()
    assert list(ROWS) == runs.stored()
    for name, rows in ROWS.items():
        copy = Copy(runs.recorded(name, tmp_path), tmp_path / "copies" / name)
        kinds = {damage.name: kind for kind in KINDS for damage in kind.damages(copy)}
        reached |= {kinds[row.damage] for row in rows}
        assert all((row.field is None) != (row.refused is None) for row in rows)
        for group in expected.groups(rows):
            fields = [row.field for row in group]
            assert len(set(fields)) == len(fields), (name, fields)
    assert reached == set(KINDS)


@pytest.mark.night
@pytest.mark.parametrize("name", runs.stored())
def test_a_sample_of_damages_is_noticed(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, MANY, SEED + 1)


def check(name: str, tmp_path: Path, number: int, seed: int) -> None:
    run = runs.recorded(name, tmp_path)
    assert verify_run(run).problems == []
    outcomes = [judge(run, damage, seed, tmp_path / "work") for damage in sample(all_damages(run), number, seed)]
    entries = allowed.load()
    missed = [
        outcome
        for outcome in outcomes
        if outcome.result == CRASHED
        or (outcome.result == PASSED and not allowed.is_allowed(entries, name, outcome.damage))
    ]
    assert missed == []


def test_each_workload_has_a_run_of_each_clock() -> None:
    names = set(runs.NAMES)
    for name in names:
        workload, _, clock = name.rpartition("-")
        if workload not in (
            "link",
            "link-events",
            "jitter",
            "switch",
            "netem",
            "sss",
            "lane",
            "lane-faults",
            "own",
            "command",
            "dce-loss",
            "trace",
            "vmmc",
            "shrimprpc",
            "vrpc",
            "vrpc-notify",
        ):
            assert f"{workload}-{'real' if clock == 'virtual' else 'virtual'}" in names


def test_each_entry_of_the_allow_list_says_why_and_names_runs_that_there_are() -> None:
    for entry in allowed.load():
        assert len(entry.reason.split()) > 3, entry
        assert entry.damages
        assert any(allowed.Allowed(("*",), entry.runs, "").covers(name, "x") for name in runs.NAMES), entry


@pytest.mark.vm
@pytest.mark.night
@pytest.mark.timeout(600)
def test_a_new_run_is_judged_as_the_stored_one(tmp_path: Path) -> None:
    run = runs.make("sunrpc-virtual", tmp_path)
    entries = allowed.load()
    for damage in sample(all_damages(run), MANY, SEED + 1):
        outcome = judge(run, damage, SEED + 1, tmp_path / "work")
        assert outcome.result != CRASHED, outcome
        assert outcome.result != PASSED or allowed.is_allowed(entries, run.name, damage.name), outcome

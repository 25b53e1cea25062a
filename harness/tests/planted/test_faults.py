# SPDX-License-Identifier: Apache-2.0
"""The planted faults fit the tree and the promises, and what plants them leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from planted.faults import ROOMS, DoesNotFit, Fault, chosen, load
from planted.scratch import Scratch, make_scratch
from planted.trial import Failure, environment, failure_of, run_step, try_fault, until_first_failure

CHECKOUT = Path(__file__).resolve().parents[3]
FAULTS = load()
LEAST, LEAST_HAPPENED, MOST_LATE = 60, 15, 3
LINES_MOST = 3


class Step(NamedTuple):
    suite: str
    argv: tuple[str, ...]


def words(text: str) -> str:
    """Lines are broken differently where a sentence is quoted."""
    return " ".join(text.split())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_fits_its_file_and_its_promise(fault: Fault) -> None:
    text = (CHECKOUT / fault.file).read_text()
    assert fault.planted(text) != text
    assert 1 <= fault.lines <= LINES_MOST
    assert words(fault.promise) in words((CHECKOUT / fault.of).read_text())
    assert fault.happened is None or isinstance(fault.happened, str)


def test_faults_are_many_and_in_every_room() -> None:
    names = Counter(fault.name for fault in FAULTS)
    assert max(names.values()) == 1
    assert len(FAULTS) >= LEAST
    assert sum(fault.happened is not None for fault in FAULTS) >= LEAST_HAPPENED
    assert sum(fault.only_at_night for fault in FAULTS) <= MOST_LATE
    assert {room for room, _ in ROOMS} == {fault.room for fault in FAULTS}


def test_faults_that_happened_name_commits() -> None:
    def git(*command: str, say: str = "") -> str:
        done = subprocess.run(["git", *command], cwd=CHECKOUT, input=say, capture_output=True, text=True, check=False)
        return done.stdout

    if git("rev-parse", "--is-shallow-repository").strip() != "false":
        pytest.skip("the history is not here")
    mends = [fault.happened for fault in FAULTS if fault.happened is not None]
    answers = git("cat-file", "--batch-check=%(objecttype)", say="".join(f"{mend}\n" for mend in mends)).splitlines()
    assert dict(zip(mends, answers, strict=True)) == dict.fromkeys(mends, "commit")


def test_words_choose_faults_by_name_and_room() -> None:
    one = FAULTS[0]
    assert chosen(FAULTS, []) == FAULTS
    assert chosen(FAULTS, [one.name]) == [one]
    assert {fault.room for fault in chosen(FAULTS, ["dce", "verify"])} == {"dce", "verify"}
    with pytest.raises(KeyError):
        chosen(FAULTS, ["no-such-fault"])


FAULT = Fault("wrong-sum", "harness/sundial/cli/sum.py", "return 1 + 1", "return 1 - 1", "it adds")
SOUND = "def two():\n    return 1 + 1\n"


@pytest.fixture
def tree(tmp_path: Path) -> Scratch:
    file = tmp_path / FAULT.file
    file.parent.mkdir(parents=True)
    file.write_text(SOUND)
    os.utime(file, (1, 1))
    return Scratch(tmp_path)


def calls(expected: int) -> Step:
    program = f"from sum import two; assert two() == {expected}, 'not the sum'"
    folder = (CHECKOUT / FAULT.file).parent.relative_to(CHECKOUT)
    return Step("sums", ("sh", "-c", f'cd {folder} && "{sys.executable}" -c "{program}"'))


def test_fault_is_caught_and_reverted_with_a_new_time(tree: Scratch) -> None:
    outcome = try_fault(tree, FAULT, "gate", 60.0, ask=lambda paths, tier: [calls(2)])
    assert (outcome.result, outcome.room) == ("caught", "cli")
    assert outcome.caught_by == ["sums: AssertionError: not the sum"]
    file = tree.root / FAULT.file
    assert file.read_text() == SOUND
    assert file.stat().st_mtime > 1
    assert run_step(tree.root, calls(2), "gate", 60.0) is None


def test_fault_that_nothing_notices_survives(tree: Scratch) -> None:
    outcome = try_fault(tree, FAULT, "gate", 60.0, ask=lambda paths, tier: [calls(0)])
    assert (outcome.result, outcome.caught_by) == ("survives", [])
    assert not outcome.is_noticed


def test_command_without_an_end_counts_as_hung(tree: Scratch) -> None:
    failure = run_step(tree.root, Step("waits", ("sh", "-c", "sleep 1000 & wait")), "gate", 0.2)
    assert failure is not None
    assert (failure.suite, failure.result) == ("waits", "hung")


@pytest.mark.parametrize(("hangs_without_the_fault", "result"), [(False, "hung"), (True, "too slow")])
def test_hang_is_noticed_where_the_clean_tree_does_not_hang(
    tree: Scratch, monkeypatch: pytest.MonkeyPatch, hangs_without_the_fault: bool, result: str
) -> None:
    def run(root: Path, step: Step, *_: object) -> Failure | None:
        is_clean = (root / FAULT.file).read_text() == SOUND
        return None if is_clean and not hangs_without_the_fault else Failure(step.suite, "hung", "hung", step)

    monkeypatch.setattr("planted.trial.run_step", run)
    outcome = try_fault(tree, FAULT, "gate", 60.0, ask=lambda paths, tier: [calls(2)])
    assert (outcome.result, outcome.is_noticed) == (result, not hangs_without_the_fault)


def test_fault_that_does_not_fit_changes_nothing(tree: Scratch) -> None:
    other = Fault("other", FAULT.file, "return 3", "return 4", "it counts")
    with pytest.raises(DoesNotFit), tree.with_fault(other):
        pass
    assert (tree.root / FAULT.file).read_text() == SOUND


@pytest.mark.parametrize(
    ("said", "test", "result"),
    [
        ("FAILED x.py::test_fin[at 1] - assert 1 == 2\n1 failed", "x.py::test_fin[at 1]", "caught"),
        ("test hub::tests::gap ... FAILED\nerror: test failed, to rerun pass `-p x`", "hub::tests::gap", "caught"),
        ("failures:\n\n---- hub::tests::gap stdout ----\nerror: test failed", "hub::tests::gap", "caught"),
        ("x_test.c:7: expected 1, got 2\nmake: *** [x] Error 1\n", "x_test.c:7: expected 1, got 2", "caught"),
        ("x.c:7:3: error: unused x\nmake: *** [x] Error 1\n", "x.c:7:3: error: unused x", "does not build"),
        ("", "no words", "caught"),
    ],
)  # fmt: skip
def test_first_failure_is_read_from_the_output(said: str, test: str, result: str) -> None:
    failure = failure_of(Step("suite", ("true",)), said)
    assert (failure.test, failure.result) == (test, result)


def test_pytest_stops_at_its_first_failure() -> None:
    assert until_first_failure(["python", "-m", "pytest", "images"]) == ["python", "-m", "pytest", "-x", "images"]
    assert until_first_failure(["sh", "-c", "cd x && python -m pytest -q y"])[2] == "cd x && python -m pytest -x -q y"
    assert until_first_failure(["make", "check"]) == ["make", "check"]


def test_environment_is_that_of_the_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAKEFLAGS", "-j4")
    gate, night = environment("gate"), environment("all")
    assert "MAKEFLAGS" not in gate
    assert (gate["PROPERTY_CASES"], night["PROPTEST_CASES"], night["NIGHT"]) == ("200", "10000", "1")
    assert not any(name.startswith("PYTEST_") for name in gate)


def test_scratch_is_the_last_commit_with_the_times_and_builds_of_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "harness/clock/build").mkdir(parents=True)
    (checkout / "harness/clock/build/plugin.so").write_text("built")
    packages = checkout / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "sundial.pth").write_text(f"{checkout}/harness\n")
    (packages / "module.py").write_text("shared")
    (checkout / "file").write_text("committed")
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "file"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], cwd=checkout, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    os.utime(checkout / "file", (5, 5))
    root = make_scratch(checkout, tmp_path / "scratch").root
    assert (root / "file").stat().st_mtime == 5
    assert (root / "harness/clock/build/plugin.so").read_text() == "built"
    there = root / packages.relative_to(checkout)
    assert (there / "sundial.pth").read_text() == f"{root}/harness\n"
    assert (packages / "sundial.pth").read_text() == f"{checkout}/harness\n"
    assert (there / "module.py").stat().st_ino == (packages / "module.py").stat().st_ino

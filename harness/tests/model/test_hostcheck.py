# SPDX-License-Identifier: Apache-2.0
"""The program of `expect.check`, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_experiments

SCENARIO = """\
topology: two-hosts-switched
expect: {{check: {check}}}
workloads: [{{app: raw, transports: [udp], server: server, sizes: [64], calls: 1}}]
"""


def _check(folder: Path, words: str) -> tuple[str, ...] | None:
    file = folder / "own.yaml"
    file.write_text(SCENARIO.format(check=words))
    return load_experiments(str(file))[0].scenario.expect.check


def test_a_path_begins_at_the_folder_of_the_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge").write_text("#!/bin/sh\n")
    (tmp_path / "judge").chmod(0o755)
    monkeypatch.chdir("/")
    assert _check(tmp_path, "[./judge, 3, ./x]") == (str(tmp_path / "judge"), "3", "./x")


def test_a_name_is_searched_in_path(tmp_path: Path) -> None:
    assert _check(tmp_path, "[sh, -c, 'exit 0']") == ("sh", "-c", "exit 0")


@pytest.mark.parametrize(
    ("words", "field", "what"),
    [
        ("[./none]", "expect.check.0", "none is not a file"),
        ("[./own.yaml]", "expect.check.0", "own.yaml is not executable"),
        ("[no-such-program]", "expect.check.0", "'no-such-program' is not in PATH"),
        ("./judge", "expect.check", "is not a list of words"),
        ("[]", "expect.check", "is not a list of words"),
    ],
)
def test_a_program_that_is_not_there_is_refused(tmp_path: Path, words: str, field: str, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        _check(tmp_path, words)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert what in problem.what

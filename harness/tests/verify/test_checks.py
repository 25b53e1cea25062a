# SPDX-License-Identifier: Apache-2.0
"""What the user's own program says about a run, as outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from sundial.verify.checks import check, outcomes

WORDS = ("/home/me/judge.py", "--strict")
RESULT: dict[str, Any] = {
    "version": 1, "argv": list(WORDS), "status": 0, "signal": None, "timed_out": False, "error": None,
    "stdout": "", "stderr": "",
}  # fmt: skip

CASES: list[tuple[dict[str, Any] | None, list[tuple[str, bool, str]]]] = [
    ({}, [("judge.py", True, "status 0")]),
    ({"stdout": "looks\nall is well\n"}, [("judge.py", True, "all is well")]),
    ({"status": 1, "stdout": "key 3 was lost\n"}, [("judge.py", False, "key 3 was lost")]),
    ({"status": 2, "stderr": "Traceback\nKeyError: 3\n"}, [("judge.py", False, "status 2: KeyError: 3")]),
    ({"status": None, "signal": 11}, [("judge.py", False, "signal SIGSEGV ended it")]),
    ({"status": None, "signal": 9, "timed_out": True}, [("judge.py", False, "it did not end in its time")]),
    ({"status": None, "error": "no such file"}, [("judge.py", False, "it cannot be run: no such file")]),
    (
        {"stdout": '{"pass": false, "check": "reads", "words": "one is stale"}\n{"pass": true}\n{"x": 1}\n'},
        [("judge.py reads", False, "one is stale"), ("judge.py", True, ""), ("judge.py", True, '{"x": 1}')],
    ),
    ({"stdout": '{"pass": "no"}\n' + "[" * 100_000}, [("judge.py", True, "[" * 1000)]),
    ({"argv": ["other"]}, [("judge.py", False, "the result is of another program")]),
    (None, [("judge.py", False, "it has not been run")]),
]


@pytest.mark.parametrize(("changes", "expected"), CASES)
def test_outcomes(changes: dict[str, Any] | None, expected: list[tuple[str, bool, str]]) -> None:
    found = outcomes(WORDS, None if changes is None else RESULT | changes)
    assert [(each.check, each.met, each.words) for each in found] == expected
    assert check(found).height == sum(not met for _, met, _ in expected)

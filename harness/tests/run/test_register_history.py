# SPDX-License-Identifier: Apache-2.0
"""The history checker of the scenario `store`: which histories of one register an order explains."""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from types import ModuleType

import pytest

from sundial.model.catalog import FOLDERS


def _checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("register_history", FOLDERS["scenario"] / "register-history.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


CHECKER = _checker()
NEVER = CHECKER.NEVER

HISTORIES = [
    ("a read of the last write", [("w", "1", 0, 1), ("r", "1", 2, 3)], True),
    ("a stale read", [("w", "1", 0, 1), ("w", "2", 2, 3), ("r", "1", 4, 5)], False),
    ("a read beside a write", [("w", "1", 0, 1), ("w", "2", 2, 9), ("r", "1", 3, 4), ("r", "2", 5, 6)], True),
    ("new, then old", [("w", "1", 0, 1), ("w", "2", 2, 9), ("r", "2", 3, 4), ("r", "1", 5, 6)], False),
    ("given up, seen later", [("w", "1", 0, 1), ("w", "2", 2, NEVER), ("r", "1", 3, 4), ("r", "2", 50, 60)], True),
    ("given up, never seen", [("w", "1", 0, 1), ("w", "2", 2, NEVER), ("r", "1", 3, 4)], True),
    ("given up, seen before", [("r", "2", 0, 1), ("w", "2", 2, NEVER)], False),
    ("of nothing", [("r", "", 0, 1)], True),
    ("of a value that was never written", [("r", "7", 0, 1)], False),
]


def _history(steps: list[tuple[str, str, float, float]]) -> list[object]:
    kinds = {"w": "write", "r": "read"}
    return [CHECKER.Operation("c", kinds[kind], value, begin, end) for kind, value, begin, end in steps]


@pytest.mark.parametrize(("name", "steps", "right"), HISTORIES)
def test_histories(name: str, steps: list[tuple[str, str, float, float]], right: bool) -> None:
    history = _history(steps)
    known = sum(end < NEVER for *_, end in steps)
    assert (CHECKER.explained(history) == known) is right


def _by_brute_force(steps: list[tuple[str, str, float, float]]) -> bool:
    """All orders of all operations; one that was given up may be left out."""
    known = [each for each in steps if each[3] < NEVER]
    unknown = [each for each in steps if each[3] == NEVER]
    for count in range(len(unknown) + 1):
        for chosen in itertools.combinations(unknown, count):
            for order in itertools.permutations([*known, *chosen]):
                late = any(b[3] < a[2] for i, a in enumerate(order) for b in order[i + 1 :])
                value, right = "", True
                for kind, seen, _, _ in order:
                    right &= kind == "w" or seen == value
                    value = seen
                if right and not late:
                    return True
    return False


def test_the_search_agrees_with_all_orders() -> None:
    draw = random.Random(1)
    for _ in range(300):
        steps = []
        for number in range(draw.randint(1, 5)):
            begin = draw.randint(0, 9)
            kind = draw.choice("wwr")
            end: float = begin + draw.randint(1, 6)
            end = NEVER if kind == "w" and draw.random() < 0.2 else end
            steps.append((kind, str(number) if kind == "w" else draw.choice(["", "0", "1", "2"]), float(begin), end))
        known = sum(end < NEVER for *_, end in steps)
        assert (CHECKER.explained(_history(steps)) == known) is _by_brute_force(steps), steps


def test_lines_become_operations() -> None:
    said = ["write n1-0", "wrote", "read", "got n1-0", "read", "gave-up", "write x", "gave-up"]
    found = [(each.kind, each.value, each.end) for each in CHECKER.operations("n1", list(enumerate(said)))]
    assert found == [("write", "n1-0", 1), ("read", "n1-0", 3), ("write", "x", NEVER)]
    with pytest.raises(ValueError, match="'wrote' after 'read'"):
        list(CHECKER.operations("n1", [(1, "read"), (2, "wrote")]))

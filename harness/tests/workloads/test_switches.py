# SPDX-License-Identifier: Apache-2.0
"""What programs say of their context switches: it is there, and a call that waited had one."""

from __future__ import annotations

from typing import Any

import pytest

from sundial.verify.findings import Finding
from sundial.workloads.switches import check_batch, check_counters


@pytest.mark.parametrize(
    ("said", "exact", "expected"),
    [(3, True, None), (9, True, None), (2, True, "3 or more"), (0, False, None), (-1, False, "0 or more"),
     (None, False, "0 or more"), (True, False, "0 or more"), ("3", True, "3 or more")],
)  # fmt: skip
def test_of_a_batch(said: object, exact: bool, expected: str | None) -> None:
    found = list(check_batch("batch 0", {"context_switches": said}, 3, exact=exact))
    assert found == ([] if expected is None else [Finding(None, "batch 0 context_switches", expected, str(said))])


@pytest.mark.parametrize(
    ("said", "options", "found"),
    [
        ({"void": 2, "int": 0}, {}, []),
        ({"void": 1, "int": 0}, {}, [("s context_switches of void", "2 or more", "1")]),
        ({"void": 1, "int": 0}, {"alone": False}, []),
        ({"void": 1, "int": 0}, {"exact": False}, []),
        ({"void": -1, "int": 0}, {"exact": False}, [("s context_switches of void", "0 or more", "-1")]),
        ({"void": 2}, {}, [("s context_switches", "of int, void", "void")]),
        ({"void": 2, "int": 0, "long": 0}, {}, [("s context_switches", "of int, void", "int, long, void")]),
        (None, {}, [("s context_switches", "of int, void", "None")]),
    ],
)
def test_of_a_server(said: Any, options: dict[str, bool], found: list[tuple[str, str, str]]) -> None:
    called = {"void": 3, "int": 1, "long": 0}
    seen = check_counters("s", {"context_switches": said}, called, **{"alone": True, "exact": True, **options})
    assert [each[1:4] for each in seen] == found

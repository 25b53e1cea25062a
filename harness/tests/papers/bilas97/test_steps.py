# SPDX-License-Identifier: Apache-2.0
"""A traced call as steps with names: nothing of its time is lost, and what is in no step is said."""

from __future__ import annotations

import polars as pl

from sundial.papers.bilas97.results import CLIENT, HARDWARE, SERVER, Divided
from sundial.papers.bilas97.steps import REMAINDER, divided

ROWS = [
    ("c", "call → handed in", 100, 308),
    ("", "wire", 308, 4558),
    ("s", "receive", 4558, 4871),
    ("s", "shrimp_enter_echo_null → shrimp_enter_echo_null end", 4871, 4919),
    ("s", "shrimp_enter_echo_null end → something new", 4919, 4951),
]
COLUMNS = ("node", "step", "start_ns", "end_ns")


def call(rtt_ns: int, rows: list[tuple[str, str, int, int]], system: str = "shrimprpc") -> Divided:
    table = pl.DataFrame(rows, schema=list(COLUMNS), orient="row").with_columns(on_path=True)
    beside = pl.DataFrame([("s", "serve_next → serve_next end", 0, 900)], schema=list(COLUMNS), orient="row")
    steps = pl.concat([beside.with_columns(on_path=False), table.reverse()])
    return divided(system, steps, {"c": CLIENT, "s": SERVER}, (rtt_ns, 16.0, 8.0))


def test_steps_have_names_instructions_and_functions() -> None:
    found = call(4851, ROWS)
    assert [(part.of, part.ns, part.instructions) for part in found.parts] == [
        (CLIENT, 208, 13.0), (HARDWARE, 4250, None), (SERVER, 313, 39.125), (SERVER, 48, 6.0), (SERVER, 32, 4.0),
    ]  # fmt: skip
    assert [part.function for part in found.parts] == [row[1] for row in ROWS]
    assert [bool(part.step) for part in found.parts] == [True, True, True, True, False]
    assert found.of(CLIENT, SERVER) == (601, 62.125)


def test_the_same_functions_of_another_system_have_other_names() -> None:
    assert call(4851, ROWS).parts[2].step != call(4851, ROWS, "vrpc").parts[2].step
    assert call(4851, ROWS, "udp").parts[2].step == ""


def test_what_is_in_no_step_is_the_last_of_them() -> None:
    assert REMAINDER not in [part.step for part in call(4851, ROWS).parts]
    for rtt_ns, left in ((4852, 1), (4850, -1)):
        found = call(rtt_ns, ROWS)
        assert (found.parts[-1].step, found.parts[-1].ns, found.parts[-1].of) == (REMAINDER, left, "")
        assert sum(part.ns for part in found.parts) == rtt_ns == found.rtt_ns
    (only,) = call(7, []).parts
    assert only.ns == 7

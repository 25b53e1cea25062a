# SPDX-License-Identifier: Apache-2.0
"""Verdicts of santos18 on results made up so that each statement holds, and then one at a time does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import pytest

from sundial.papers.santos18.paper import Place
from sundial.papers.santos18.reproduce import KIND
from sundial.papers.santos18.results import DISTANCE, FIRST_ELEVEN, Case, Cell, Results, calls_table
from sundial.papers.santos18.spread import spread
from sundial.papers.santos18.statements import STATEMENTS
from sundial.reproduce.verdicts import Verdict, judge

PAPER = KIND.paper()
GRPC = {
    "void": 1.0, "boolean": 1.0, "int": 1.0, "long": 1.0, "string_32": 1.1, "string_512": 1.12, "string_1024": 1.15,
    "int_array": 1.3, "float_array": 1.4, "string_array": 2.0, "person": 1.1,
}  # fmt: skip
RPYC = dict.fromkeys(FIRST_ELEVEN, 0.5) | {
    "void": 0.5, "int_array": 0.8, "float_array": 0.81, "string_array": 0.8, "person": 0.82,
}  # fmt: skip
FAR = 8.0


def cell(mean_ms: float, apart: float = 0.01) -> Cell:
    """Times around a mean whose quartiles are so far apart."""
    steps = [round(1e6 * (mean_ms + apart * (place - 8) / 8)) for place in range(17)]
    return Cell(
        "run", (), spread(steps, (0, 100)), tuple(each / 1e6 for each in steps), 6, 9, 950, 400, None, 5.5, 100_000
    )


def holding() -> Results:
    """Each statement holds."""
    results = Results(PAPER, "smoke", Decimal(125))
    for function in FIRST_ELEVEN:
        for place, times, apart in (("local", 1.0, 0.01), ("remote", FAR, 0.5)):
            put(results, "grpc", place, function, GRPC[function] * times, apart)  # type: ignore[arg-type]
        put(results, "rpyc", "local", function, RPYC[function])
        put(results, "rpyc", "remote", function, 20.0 + RPYC[function], 0.5)
    put(results, "grpc", "local", DISTANCE, 1.0)
    for variant in ("numpy", "zip"):
        for container, mean in (("list", 12.0), ("tuple", 1.5)):
            results.cells[Case("rpyc", "local", DISTANCE, container, variant)] = cell(mean)  # type: ignore[arg-type]
    # X3 goes by the greatest ratio, which is RPyC's: 20.5 / 0.5 = 41 is not a ten.
    for function in FIRST_ELEVEN:
        put(results, "rpyc", "remote", function, 17.0 + RPYC[function] / 10, 0.5)
        put(results, "rpyc", "local", function, RPYC[function] * 1.9)
    for function in FIRST_ELEVEN:
        put(results, "grpc", "local", function, GRPC[function] * 1.9)
        put(results, "grpc", "remote", function, GRPC[function] * FAR, 0.5)
    return results


def put(results: Results, system: str, place: Place, function: str, mean_ms: float, apart: float = 0.01) -> None:
    results.cells[Case(system, place, function)] = cell(mean_ms, apart)


def outcomes(results: Results) -> dict[str, str]:
    return {each.statement.id: each.outcome for each in judge(STATEMENTS, results)}


def test_all_statements_hold_of_what_the_paper_describes() -> None:
    assert outcomes(holding()) == {each.id: "met" for each in STATEMENTS}


def test_nothing_is_decided_of_what_was_not_measured() -> None:
    assert set(outcomes(Results(PAPER, "smoke", Decimal(125))).values()) == {"undecidable"}


@pytest.mark.parametrize(
    ("broken", "change"),
    [
        ({"G1"}, lambda results: put(results, "grpc", "local", "int_array", 4.1)),
        ({"G2"}, lambda results: put(results, "grpc", "local", "void", 2.1)),
        ({"G3"}, lambda results: put(results, "grpc", "local", "person", 2.5)),
        ({"G3"}, lambda results: put(results, "grpc", "local", "string_1024", 2.4)),
        ({"G4"}, lambda results: put(results, "grpc", "remote", "boolean", 16.5, 0.5)),
        ({"G5"}, lambda results: put(results, "grpc", "remote", "string_512", 8.7, 0.5)),
        ({"G5"}, lambda results: put(results, "grpc", "remote", "float_array", 10.3, 0.5)),
        ({"G6"}, lambda results: put(results, "grpc", "remote", "person", 10.0, 0.5)),
        ({"R1"}, lambda results: put(results, "rpyc", "local", "float_array", 1.65)),
        ({"R1"}, lambda results: put(results, "rpyc", "local", "long", 1.53)),
        ({"R2"}, lambda results: put(results, "rpyc", "local", "void", 0.8)),
        ({"R3"}, lambda results: put(results, "rpyc", "remote", "long", 19.0, 0.5)),
        ({"R3"}, lambda results: put(results, "rpyc", "remote", "person", 19.5, 0.5)),
        ({"X1"}, lambda results: put(results, "rpyc", "local", "person", 2.2)),
        ({"X2"}, lambda results: put(results, "grpc", "remote", "string_array", 17.5, 0.5)),
        ({"X3"}, lambda results: put(results, "grpc", "remote", "string_array", 16.0, 0.005)),
        ({"D1"}, lambda results: put(results, "grpc", "local", DISTANCE, 0.3)),
        ({"D2"}, lambda results: results.cells.update({Case("rpyc", "local", DISTANCE, "tuple"): cell(3.0)})),
        ({"D2", "D3"}, lambda results: results.cells.update({Case("rpyc", "local", DISTANCE, "tuple"): cell(0.5)})),
    ],
)
def test_one_change_breaks_one_statement(broken: set[str], change: Callable[[Results], None]) -> None:
    results = holding()
    change(results)
    assert {name for name, outcome in outcomes(results).items() if outcome != "met"} == broken


def verdict(results: Results, name: str) -> Verdict:
    return next(each for each in judge(STATEMENTS, results) if each.statement.id == name)


def test_the_object_counts_and_the_reason_says_what_it_takes() -> None:
    results = holding()
    case = Case("rpyc", "remote", "person")
    results.cells[case] = replace(cell(19.5, 0.5), exchanges=5.0)
    found = verdict(results, "R3")
    assert found.outcome == "not met"
    assert found.reason == "person 19.50 ms, void 17.05 ms; without the object, of 5 exchanges, 1.002"


def test_the_distance_without_numpy_is_shown_and_not_judged() -> None:
    results = holding()
    assert verdict(results, "D1").measured == "numpy 12.0 times, zip 12.0 times"
    assert verdict(results, "D2").measured == "numpy 8.0 times, zip 8.0 times"
    for container in ("list", "tuple"):
        del results.cells[Case("rpyc", "local", DISTANCE, container, "zip")]  # type: ignore[arg-type]
    assert [(verdict(results, each).outcome, verdict(results, each).measured) for each in ("D1", "D2")] == [
        ("met", "numpy 12.0 times"), ("met", "numpy 8.0 times"),
    ]  # fmt: skip
    del results.cells[Case("rpyc", "local", DISTANCE, "tuple")]
    found = verdict(results, "D2")
    assert (found.outcome, found.reason) == (
        "undecidable",
        "distance (tuple, numpy) over rpyc was not measured locally",
    )


def test_spread_goes_by_the_times_that_the_paper_keeps() -> None:
    results = holding()
    # What is dropped is so much that all times together spread less than locally.
    near, far = (results.cells[Case("grpc", place, "void")].spread for place in ("local", "remote"))
    results.cells[Case("grpc", "remote", "void")] = replace(
        results.cells[Case("grpc", "remote", "void")], spread=replace(far, quartiles=(8.0, 8.0, 8.0))
    )
    assert near.trimmed_box < far.trimmed_box
    assert verdict(results, "X3").outcome == "met"


def test_a_table_has_a_row_a_case() -> None:
    table = calls_table(holding())
    assert table.height == 4 * 11 + 1 + 4
    assert table.filter(function="distance", system="grpc")["mean_ms"].to_list() == [1.0]

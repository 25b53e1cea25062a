# SPDX-License-Identifier: Apache-2.0
"""Figures, tables and files of santos18, of results made up."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from sundial.papers.santos18 import figures, other_systems
from sundial.papers.santos18.reproduce import KIND
from sundial.papers.santos18.results import DISTANCE, Case, Results, Slope
from sundial.papers.santos18.tables import systems_table
from sundial.report.plotting import Pictures, pictures
from sundial.report.tables import DASH
from sundial.workloads.functions import NAMES
from tests.papers.santos18.test_statements import holding, put


def measured() -> Results:
    results = holding()
    for system, trips in (("grpc", 1.0), ("rpyc", 3.0)):
        points = {delay: 5 + trips * delay for delay in (0.0, 2.0, 4.0)}
        results.slopes[Case(system, "remote", "void")] = Slope(points)
        put(results, system, "remote", DISTANCE, 6.0)
    for place, (word, system) in enumerate(other_systems.SYSTEMS.items()):
        for where, function in itertools.product(system.places, NAMES):
            put(results, word, where, function, 0.1 + place)
    return results


def test_a_distance_without_what_the_paper_shows_is_no_figure(tmp_path: Path) -> None:
    for case, missing in (
        (Case("grpc", "local", DISTANCE), {14, 16}),
        (Case("rpyc", "local", DISTANCE, "list"), {14, 15, 16}),
        (Case("rpyc", "local", DISTANCE, "tuple"), {15, 16}),
        (Case("rpyc", "local", DISTANCE, "list", "zip"), set()),
    ):
        results = measured()
        del results.cells[case]
        with pictures(Pictures(painted=False)):
            drawn = {
                number: figures._draw(results, number, results.paper.figures[number], tmp_path)
                for number in (14, 15, 16)
            }
        assert {number for number, drawing in drawn.items() if drawing is None} == missing


def test_no_two_lines_of_a_system_look_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    results, painted = measured(), []
    results.slopes = {
        Case("rpyc", "remote", *how, nodelay=nodelay): Slope({2.0: 5.0, 4.0: 9.0})
        for nodelay in (False, True)
        for how in (
            ("void",), ("string_1024",), (DISTANCE,), (DISTANCE, "tuple"), (DISTANCE, "list", "zip"),
            (DISTANCE, "tuple", "zip"),
        )
    }  # fmt: skip
    monkeypatch.setattr(figures.plotting, "draw", lambda *given, **_: painted.append(given[-1]))
    figures.draw_slopes(results, Path())
    figure = Figure(figsize=(7, 4))
    painted[0](figure)
    looks = {(line.get_color(), line.get_marker(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == len(results.slopes) == 12


def test_one_table_has_all_systems() -> None:
    table = systems_table(measured())
    assert [column.title for column in table.columns][2:] == [*other_systems.NAMES.values(), "gRPC", "RPyC"]
    assert [row[:2] for row in table.rows] == list(itertools.product(("local", "remote"), NAMES))
    void = dict(zip([column.title for column in table.columns], table.rows[0], strict=True))
    assert (void["plain TCP"], void["Sun RPC, MBCF"], void["DCE RPC"]) == ("0.100", DASH, "4.100")


def test_files_have_what_was_measured() -> None:
    results = measured()
    tables = KIND.outcome(results).tables()
    calls = tables["functions.csv"]
    assert calls.height == len(results.cells)
    void = calls.filter(system="grpc", place="local", function="void").row(0, named=True)
    assert void["mean_ms"] == pytest.approx(1.9)
    assert (void["variant"], void["packets"], void["run"]) == (None, 6, "run")
    assert tables["slopes.csv"].select("system", "round_trips_a_call").unique().sort("system").rows() == [
        ("grpc", 1.0), ("rpyc", 3.0)
    ]  # fmt: skip

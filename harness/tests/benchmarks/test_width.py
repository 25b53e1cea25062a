# SPDX-License-Identifier: Apache-2.0
"""The benchmark of width: what it runs, how it takes a command's parts from its words, and its figure."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.width import CALLS, COUNTS, TRANSPORTS, Wide, _figures, _note, _written
from benchmarks.width_drawing import Point, draw_width
from sundial.model.load import load_experiments


def test_all_nodes_but_one_call_it(tmp_path: Path) -> None:
    (experiment,) = load_experiments(str(_written(tmp_path, COUNTS[-1])))
    assert len(experiment.network.nodes) == 64
    (workload,) = experiment.scenario_json()["workloads"]
    assert (len(workload["clients"]), workload["server"], workload["calls"]) == (63, "n1", CALLS)
    assert workload["transports"] == list(TRANSPORTS)


def test_parts_begin_when_the_command_says_so(tmp_path: Path) -> None:
    log, found = tmp_path / "log", Wide(2)
    _note(found, log, 0.5)
    for now_s, line in ((1.0, "preparing the guests"), (2.0, "running all-call-one on many"), (3.0, "50%  running ")):
        with log.open("a") as said:
            said.write(f"{line}\n")
        _note(found, log, now_s)
    assert found.began_s == [2.0]
    with log.open("a") as said:
        said.write("collecting samples\nverifying the capture\n")
    _note(found, log, 7.0)
    found.wall_s = 9.5
    assert (found.start_s, found.run_s, found.after_s) == (2.0, 5.0, 2.5)


def wide(machines: int, scale: float) -> Wide:
    began = [scale, 3 * scale, 3.5 * scale]
    return Wide(machines, 5 * scale, began, virtual_s=0.5, calls=40, pss=machines * 30_000_000)


def test_figures_are_held_against_the_fewest_machines() -> None:
    two, many = [wide(2, 1.0)], [wide(64, 4.0), wide(64, 6.0)]
    figures = {(figure.name, figure.unit): figure for figure in _figures(many, two)}
    whole = figures["64 machines: the whole command", "s"]
    assert (whole.values, str(whole.against), whole.ratio) == ((20.0, 30.0), "2 machines: 5", 5.0)
    assert figures["64 machines: the run", "wall s / virtual s"].values == (16.0, 24.0)
    assert figures["64 machines: the run", "wall ms a call"].values == (200.0, 300.0)
    assert figures["64 machines: a machine, Pss", "MB"].values == (30.0, 30.0)
    assert figures["64 machines: mismatches", ""].verdict == "pass"
    assert all(figure.against is None or figure.verdict for figure in _figures(two, two) if isinstance(figure, Figure))


def test_the_same_points_are_the_same_drawing(tmp_path: Path) -> None:
    points = [Point(machines, machines, 0.3 * machines, 0.5 * machines, 1.0, 30.0 * machines) for machines in (2, 64)]
    drawn = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        draw_width(tmp_path / name, "width", points, "a host, 2026-01-01")
        drawn.append((tmp_path / name / "width.svg").read_bytes())
    assert drawn[0] == drawn[1]
    assert b"a host, 2026-01-01" in drawn[0]
    assert b"the whole command" in drawn[0]

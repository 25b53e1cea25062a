# SPDX-License-Identifier: Apache-2.0
"""A matrix from its axes to its folder: runs made side by side, or taken as they are, then the page."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sundial.errors import BadInput
from sundial.model import catalog
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.overrides import SET, excluded, leaves_out, matrix_values
from sundial.model.source import Source
from sundial.plan.request import Progress, RunRequest
from sundial.reproduce.matrix import (
    Axis,
    Cell,
    Matrix,
    Verdict,
    axis_of,
    axis_of_runs,
    folder_of,
    label,
    pairs,
    to_csv,
    to_json,
    values_of,
)
from sundial.reproduce.matrix_page import page
from sundial.reproduce.worker import Ended, Makers, Task
from sundial.run.directory import own, run_names
from sundial.whole import whole

RUNS = "runs"
INDEX = "index.html"

Measured = Callable[[Path], tuple[str, float] | None]
"""The measure of a verified run in words, and as a number; None where it has none."""
First = Callable[[str, Mapping[str, Any]], str | None]
"""The first mismatch of a document like verify.json, in words."""


@dataclass(frozen=True)
class Doors:
    """What other rooms do."""

    maker: Makers
    measured: Measured
    first: First


@dataclass(frozen=True)
class Request:
    """What is to be made."""

    scenario: str
    rows: Axis
    columns: Axis
    overrides: tuple[str, ...]
    topology: str | None
    scale: str | None
    seed: int | None
    measure: str
    captures: Path
    out: Path | None
    connect: str
    recipe: str | None
    skip_refused: bool
    command: tuple[str, ...]


@dataclass(frozen=True)
class _Planned:
    """A cell before its run: the experiment, or why there is none."""

    place: tuple[int, int]
    experiment: Experiment | None
    refused: str = ""


def make(request: Request, doors: Doors, progress: Progress) -> tuple[Path, Matrix]:
    """All runs of a matrix and its page; answers the folder. A run that fails does not stop the others.

    Raises BadInput before anything is started; HostLacks, Interrupted.
    """
    planned = _plan(request)
    partial, final = _claim(request.out, request.captures, f"matrix-{Path(request.scenario).stem}")
    lock = own(partial)
    try:
        (partial / RUNS).mkdir()
        cells = {each.place: _unmade(request, each) for each in planned}
        matrix = _so_far(request, partial, cells)
        for each, end in _run(request, doors, planned, partial, progress):
            cells[each.place] = _cell(request, doors, each, partial, end)
            matrix = _so_far(request, partial, cells)  # an interrupted command leaves what was made
    finally:
        _finish(partial, final, lock)
    return final, matrix


def _so_far(request: Request, folder: Path, cells: Mapping[tuple[int, int], Cell]) -> Matrix:
    """Writes the page of what was made."""
    name = Path(request.scenario).stem
    matrix = Matrix(request.rows, request.columns, tuple(cells.values()), name, request.measure, request.command)
    links = {(cell.row, cell.column): f"{cell.run}/report.html" for cell in cells.values() if cell.run}
    _write(folder, matrix, {key: link for key, link in links.items() if (folder / link).is_file()})
    return matrix


def _unmade(request: Request, planned: _Planned) -> Cell:
    row, column = request.rows.labels[planned.place[0]], request.columns.labels[planned.place[1]]
    if planned.experiment is None:
        return Cell(row, column, "refused", first=planned.refused)
    return Cell(row, column, "missing")


def _finish(partial: Path, final: Path, lock: int) -> None:
    """Give the folder its name, or remove it where no run has begun."""
    made = partial / RUNS
    if made.is_dir() and not any(made.iterdir()):
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.rename(final)
    os.close(lock)


def _plan(request: Request) -> list[_Planned]:
    """Every cell's experiment. Raises BadInput for the first that is refused, unless such cells are skipped; in any
    case where all are."""
    source = catalog.find("scenario", request.scenario)  # before any cell
    planned: list[_Planned] = []
    errors: list[tuple[tuple[int, int], BadInput]] = []
    for place in pairs(request.rows, request.columns):
        if _is_excluded(source, request, place):
            planned.append(_Planned(place, None, "excluded by the scenario"))
            continue
        try:
            planned.append(_Planned(place, _experiment(request, place)))
        except BadInput as error:
            errors.append((place, _named(request, error)))
            planned.append(_Planned(place, None, error.problems[0].what))
    possible = any(each.experiment is not None for each in planned)
    if errors and (not possible or not request.skip_refused):
        (row, column), first = errors[0]
        if possible:
            where = f"{request.rows.labels[row]} x {request.columns.labels[column]}"
            first.hint = f"the cell is {where}; --skip-refused leaves such cells empty"
        raise first
    return planned


def _named(request: Request, error: BadInput) -> BadInput:
    """The same error, with the axis in place of `--set` where the axis set the field."""
    axes = {request.rows.key: "--rows", request.columns.key: "--columns"}
    return BadInput.many(
        [
            replace(problem, file=axes.get(problem.field or "", problem.file) if problem.file == SET else problem.file)
            for problem in error.problems
        ]
    )


def axes_of(scenario: str) -> tuple[Axis, Axis]:
    """Those of the scenario's own `vary: {matrix: ...}`. Raises BadInput where it does not have two."""
    matrix = matrix_values(catalog.find("scenario", scenario))
    if len(matrix) != 2:
        what = f"vary.matrix of the scenario has {len(matrix)} fields" if matrix else "the scenario has no vary.matrix"
        raise BadInput(what, file="--rows", allowed="--rows and --columns, or two fields in vary.matrix")
    rows, columns = (axis_of(key, values) for key, values in matrix.items())
    return rows, columns


def _is_excluded(source: Source, request: Request, place: tuple[int, int]) -> bool:
    """Whether the scenario leaves out this cell."""
    labels = {request.rows.key: request.rows.labels[place[0]], request.columns.key: request.columns.labels[place[1]]}
    return any(leaves_out({key: label(value) for key, value in entry.items()}, labels) for entry in excluded(source))


def _experiment(request: Request, place: tuple[int, int]) -> Experiment:
    """Raises BadInput, also where a scenario varies something else."""
    axes = ((request.rows, place[0]), (request.columns, place[1]))
    texts = [f"{axis.key}={axis.values[number]}" for axis, number in axes]
    found = load_experiments(
        request.scenario,
        topology=request.topology,
        overrides=[*request.overrides, *texts],
        scale=request.scale,
        seed=request.seed,
    )
    if len(found) != 1:
        keys = sorted({key for each in found for key in _keys(each.variant)})
        raise BadInput(
            f"the scenario varies {', '.join(keys)}", file="--set", allowed="a value of it by --set, or an axis"
        )
    return found[0]


def _keys(variant: str) -> list[str]:
    return [part.partition("=")[0].strip() for part in variant.split(", ") if "=" in part]


def _run(
    request: Request, doors: Doors, planned: Sequence[_Planned], folder: Path, progress: Progress
) -> Iterator[tuple[_Planned, Ended]]:
    """What became of the run of each cell that has one, as they end."""
    to_make = [each for each in planned if each.experiment is not None]
    tasks = []
    for number, each in enumerate(to_make, 1):
        assert each.experiment is not None
        name = folder_of(request.rows, request.columns, *each.place)
        out = folder / RUNS / name
        axes = zip((request.rows, request.columns), each.place, strict=True)
        sets = [f"{axis.key}={axis.values[at]}" for axis, at in axes]
        words = [word for text in (*request.overrides, *sets) for word in ("--set", text)]
        command = ("sundial", "run", request.scenario, *words, "--seed", str(each.experiment.seed))
        run = RunRequest(each.experiment, out.parent, out, request.connect, False, command, recipe=request.recipe)
        tasks.append((Task(name, run, out), _Numbered(progress, f"{number}/{len(to_make)}")))
    with doors.maker(progress) as maker:
        yield from zip(to_make, maker.make(tasks), strict=True)


@dataclass(frozen=True)
class _Numbered:
    """Says which run a step belongs to."""

    progress: Progress
    number: str

    def say(self, text: str) -> None:
        self.progress.say(f"{self.number}: {text}")

    def share(self, done: float, text: str) -> None:
        self.progress.share(done, text)


def _cell(request: Request, doors: Doors, planned: _Planned, folder: Path, ended: Ended) -> Cell:
    row, column = request.rows.labels[planned.place[0]], request.columns.labels[planned.place[1]]
    name = f"{RUNS}/{folder_of(request.rows, request.columns, *planned.place)}"
    if ended.verdict == "failed":
        there = name if (folder / name / "run.json").is_file() else None
        return Cell(row, column, "failed", there, first=ended.error)
    return _of_run(doors, row, column, folder / name, name)


def _of_run(doors: Doors, row: str, column: str, path: Path, name: str) -> Cell:
    """The cell of a run that was verified."""
    document = _read(path / "verify.json")
    verdict: Verdict = "fail" if document.get("verdict") == "fail" else "pass"
    measured = doors.measured(path)
    return Cell(
        row,
        column,
        verdict,
        name,
        int(document.get("calls") or 0),
        int(document.get("mismatches") or 0),
        sum((document.get("retransmissions") or {}).values()),
        None if measured is None else measured[0],
        None if measured is None else measured[1],
        doors.first(name, document),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def collect(
    runs: Mapping[str, Path], rows: str, columns: str, request: Request, doors: Doors, progress: Progress
) -> tuple[Path, Matrix]:
    """The same of runs that are there, which stay where they are. Raises BadInput for a field that no run has, for two
    runs with the same values, and for a run without a verdict."""
    documents = {name: _read(path / "run.json") for name, path in runs.items()}
    axes = axis_of_runs(rows, "--rows", documents), axis_of_runs(columns, "--columns", documents)
    pairs(*axes)
    placed: dict[tuple[str, str], str] = {}
    for name, document in documents.items():
        values = [next(iter(values_of(document, key)), None) for key in (rows, columns)]
        if None in values:
            raise BadInput(f"{name} has no {(rows, columns)[values.index(None)]}", file="--from", allowed="other runs")
        place = (str(values[0]), str(values[1]))
        if place in placed:
            what = f"{placed[place]} and {name} are both {' x '.join(place)}"
            raise BadInput(what, file="--from", allowed="one of them")
        if document.get("status") == "complete" and not (runs[name] / "verify.json").is_file():
            raise BadInput(f"{name} was not verified", file="--from", hint=f"verify it with: sundial verify {name}")
        placed[place] = name
    progress.say("writing the page")
    partial, final = _claim(request.out, request.captures, "matrix")
    lock = own(partial)
    try:
        cells, links = [], {}
        for row in axes[0].labels:
            for column in axes[1].labels:
                name_of = placed.get((row, column))
                cells.append(_of_name(doors, row, column, name_of, runs, documents))
                report = None if name_of is None else runs[name_of] / "report.html"
                if report is not None and report.is_file():
                    links[row, column] = os.path.relpath(report, final)
        names = (str((each.get("scenario") or {}).get("name")) for each in documents.values())
        scenario = ", ".join(dict.fromkeys(names))
        matrix = Matrix(axes[0], axes[1], tuple(cells), scenario, request.measure, request.command)
        _write(partial, matrix, links)
    finally:
        _finish(partial, final, lock)
    return final, matrix


def _of_name(
    doors: Doors,
    row: str,
    column: str,
    name: str | None,
    runs: Mapping[str, Path],
    documents: Mapping[str, Mapping[str, Any]],
) -> Cell:
    if name is None:
        return Cell(row, column, "missing")
    document = documents[name]
    if document.get("status") != "complete":
        error = document.get("error") or {}
        return Cell(row, column, "failed", name, first=str(error.get("message") or document.get("status")))
    return _of_run(doors, row, column, runs[name], name)


def _claim(out: Path | None, captures: Path, stem: str) -> tuple[Path, Path]:
    """The folder while it is written and its final name. Raises BadInput."""
    if out is not None:
        final = out.absolute()
        if final.exists():
            raise BadInput(f"{out} exists already", file="--out", allowed="a directory that does not exist yet")
        candidates = [final]
    else:
        captures.mkdir(parents=True, exist_ok=True)
        candidates = [captures / name for name in run_names(stem)]
    for final in candidates:
        partial = final.with_name(f".{final.name}.partial")
        if final.exists() or partial.exists():
            continue
        try:
            partial.mkdir()
        except OSError as error:
            raise BadInput(f"{partial} cannot be made: {error.strerror}", file="--out") from error
        return partial, final
    raise BadInput(f"there is no free name for {stem}", file="--out", allowed="a directory that does not exist yet")


def _write(folder: Path, matrix: Matrix, links: Mapping[tuple[str, str], str]) -> None:
    texts = {
        "matrix.json": json.dumps(to_json(matrix), indent=1) + "\n",
        "matrix.csv": to_csv(matrix),
        INDEX: page(matrix, {place: quote(link) for place, link in links.items()}),
    }
    for name, text in texts.items():
        with whole(folder / name) as beside:
            beside.write_text(text, encoding="utf-8")

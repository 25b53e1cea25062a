# SPDX-License-Identifier: Apache-2.0
"""santos18 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sundial.papers.santos18 import experiments, figures, results, tables
from sundial.papers.santos18.paper import Santos18
from sundial.papers.santos18.results import Case, Results
from sundial.papers.santos18.statements import STATEMENTS
from sundial.report.tables import DASH
from sundial.reproduce.declared import Declared


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    for system in ("grpc", "rpyc"):
        near, far = (results.cells.get(Case(system, place, "void")) for place in figures.PLACES)
        if near is not None:
            there = DASH if far is None else f"{far.spread.median:.2f} ms"
            yield f"void, {figures.NAMES[system]}", f"{near.spread.median:.2f} ms", f"median; remote {there}"


KIND = Declared(
    folder=Path(__file__).parent,
    model=Santos18,
    experiments=experiments.perform,
    fields=lambda results: {"mips": f"{results.mips.normalize():f}", "versions": dict(results.versions)},
    files={"functions.csv": results.calls_table, "slopes.csv": results.slopes_table},
    tables={
        "systems": tables.systems_table,
        "functions local": partial(tables.functions_table, place="local"),
        "functions remote": partial(tables.functions_table, place="remote"),
    },
    drawings=figures.draw_all,
    key_figures=_key_figures,
    statements=STATEMENTS,
)

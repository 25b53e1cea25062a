# SPDX-License-Identifier: Apache-2.0
"""khandker as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from sundial.papers.khandker import experiments, figures, results, tables
from sundial.papers.khandker.paper import Khandker
from sundial.papers.khandker.results import NULL, Results
from sundial.papers.khandker.statements import STATEMENTS
from sundial.report.tables import decimal
from sundial.reproduce.declared import Declared


def _mips(results: Results) -> str:
    return f"{results.best.mips.normalize():f}"


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    yield "machine", f"{_mips(results)} mips", "fitted to null and 4016 bytes"
    if "window" not in results.latency:
        return
    latency = results.latency["window"]
    if NULL in latency.sizes:
        yield "null call", f"{decimal(latency.sizes[NULL].mean_us / 1e3, 2)} ms", "printed 6.17 ms"
    if results.costs is None:
        return
    out = [each for each in results.predicted("window") if each.out_of_sample]
    if out:
        worst_sum, worst_replay = max(abs(each.sum_error) for each in out), max(abs(each.replay_error) for each in out)
        yield "worst error, sum", f"{worst_sum:.2f} %", "printed 8.43 %; policy window"
        yield "worst error, replay", f"{worst_replay:.2f} %", "to reach 2 %; policy window"


KIND = Declared(
    folder=Path(__file__).parent,
    model=Khandker,
    experiments=experiments.perform,
    fields=lambda results: {"mips": _mips(results)},
    facts=lambda results: [("machines", f"{_mips(results)} mips are nearest to null and 4016 bytes")],
    files={
        "curves.csv": results.curves_table,
        "steps.csv": results.steps_table,
        "threads.csv": results.threads_table,
    },
    tables={
        "machine": tables.machine_table,
        "latency": tables.latency_table,
        "threads": tables.threads_table,
        "client steps": partial(tables.steps_table, machine="client"),
        "server steps": partial(tables.steps_table, machine="server"),
        "predictions": tables.predictions_table,
        "sum window": partial(tables.sum_table, policy="window"),
        "sum halves": partial(tables.sum_table, policy="halves"),
        "print": tables.print_table,
        "captures": tables.captures_table,
    },
    drawings=figures.draw_all,
    key_figures=_key_figures,
    statements=STATEMENTS,
)

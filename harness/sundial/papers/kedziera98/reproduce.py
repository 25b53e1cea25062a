# SPDX-License-Identifier: Apache-2.0
"""kedziera98 as `sundial reproduce` sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from sundial.papers.kedziera98 import experiments, figure2, names, results, tables
from sundial.papers.kedziera98.curves import Curve
from sundial.papers.kedziera98.drawings import draw_all
from sundial.papers.kedziera98.paper import Kedziera98
from sundial.papers.kedziera98.results import Results
from sundial.papers.kedziera98.statements import STATEMENTS
from sundial.report.tables import Table, decimal
from sundial.reproduce.declared import Declared

PRINTED = (
    (names.ATM, "atm", "ATM"),
    (names.ETHERNET, "ethernet", "Ethernet path"),
    (names.TCP, "linux-tcp", "Linux, TCP"),
    (names.UDP, "linux-udp", "Linux, UDP"),
)
"""Curves with a printed maximum, its id, and a short name."""


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    for key, value, what in PRINTED:
        if key in results.curves and (rates := results.curves[key].rates_kBps):
            printed = f"printed {results.paper.value(value).text}"
            yield what, f"{decimal(max(rates.values()), 0)} kB/s", printed


def _of(*keys: str) -> dict[str, Callable[[Results], Table]]:
    """Both tables of some curves, by what to put before their names."""
    return {
        "": lambda results: tables.curve_table(results.several(*keys)),
        "parts of ": lambda results: tables.parts_table(results.several(*keys)),
    }


def _of_atm(table: Callable[[Curve], Table]) -> Callable[[Results], Table]:
    return lambda results: table(results.curve(names.ATM))


CURVES = {
    "figure 1": (names.ATM, names.LINUX),
    "exchanged": (names.SWAPPED,),
    "figure 3": (names.UDP, names.TCP),
    "figure 4": (names.ATM, names.ETHERNET),
    "two PCs": (names.PCS,),
}
KIND = Declared(
    folder=Path(__file__).parent,
    model=Kedziera98,
    experiments=experiments.perform,
    fields=lambda results: {"mips": {fit.machine: f"{fit.mips.normalize():f}" for fit in results.fits}},
    facts=lambda results: [
        ("machines", ", ".join(f"{fit.machine} {fit.mips.normalize():f}" for fit in results.fits) + " mips")
    ],
    files={"curves.csv": results.curves_table},
    tables={
        **{f"{of}{name}": table for name, keys in CURVES.items() for of, table in _of(*keys).items()},
        "printed": tables.printed_table,
        "speeds": tables.fits_table,
        "windows": _of_atm(figure2.windows_table),
        "fold": _of_atm(figure2.fold_table),
        "ratios": tables.ratios_table,
        "streams": tables.streams_table,
        "control": tables.control_table,
        "captures": tables.captures_table,
    },
    drawings=draw_all,
    key_figures=_key_figures,
    statements=STATEMENTS,
)

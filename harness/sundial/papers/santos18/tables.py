# SPDX-License-Identifier: Apache-2.0
"""Tables of the page of santos18."""

from __future__ import annotations

from sundial.papers.santos18 import figures
from sundial.papers.santos18.paper import Place
from sundial.papers.santos18.results import Case, Cell, Results
from sundial.report.tables import DASH, Table, decimal, numbers, whole, words
from sundial.reproduce.page import CAPTURE, capture_links, report_link
from sundial.workloads.functions import NAMES


def systems_table(results: Results) -> Table:
    """Medians in ms: a row a function and place, a column a system."""
    places = {place: figures.systems_of(results, place) for place in figures.PLACES}
    systems = [name for name in figures.NAMES if any(name in found for found in places.values())]
    rows = []
    for place, found in places.items():
        for function in NAMES if found else ():
            cells = (results.cells.get(Case(name, place, function)) if name in found else None for name in systems)
            rows.append(
                (place, function, *(DASH if cell is None else decimal(cell.spread.median, 3) for cell in cells))
            )
    head = (*words("", "Function"), *numbers(*(figures.NAMES[name] for name in systems)))
    return Table("Median time of a call (ms)", head, tuple(rows))


def functions_table(results: Results, place: Place) -> Table:
    """All that was measured of calls in one place."""
    rows = [_row(case, cell) for case, cell in results if case.place == place]
    head = (
        *words("System", "Function"), *numbers("Mean (ms)", "Standard error", "Untrimmed", "Median (ms)"),
        *words("95 % of the median"),
        *numbers("Quartiles apart", "Exchanges", "Packets", "Frames", "Bytes", "Switches", "Instructions"), CAPTURE,
    )  # fmt: skip
    return Table("", head, tuple(rows))


def _row(case: Case, cell: Cell) -> tuple[str, ...]:
    times = cell.spread
    low, high = times.median_between
    return (
        figures.NAMES.get(case.system, case.system), case.what, report_link(cell.run, decimal(times.mean, 3)),
        decimal(times.standard_error, 4), decimal(times.whole_mean, 3), decimal(times.median, 3),
        f"{low:.3f} to {high:.3f}", decimal(times.box, 3), decimal(cell.exchanges, 1), decimal(cell.packets, 1),
        decimal(cell.frames, 1), whole(cell.message_bytes), decimal(cell.context_switches, 1),
        DASH if cell.instructions is None else whole(cell.instructions),
        capture_links(cell.run, cell.captures),
    )  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""What the report of santos18 shows: statements, the figures by number, and what a call is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sundial.papers.santos18 import figures
from sundial.papers.santos18.paper import Place
from sundial.papers.santos18.results import Case, Cell, Results
from sundial.report.plotting import Drawing
from sundial.report.tables import DASH, Table, decimal, numbers, whole, words
from sundial.reproduce.page import CAPTURE, Page, Section, capture_links, report_link, statements_section
from sundial.reproduce.verdicts import Verdict, counted
from sundial.workloads.functions import NAMES


def make_page(results: Results, verdicts: Sequence[Verdict], folder: Path) -> Page:
    """The page; its figures are drawn into the folder."""
    paper = results.paper
    drawings = {drawing.stem: drawing for drawing in figures.draw_all(results, folder)}
    return Page(
        name=paper.name,
        reference=f"{paper.authors}: {paper.title}. {paper.published}.",
        key_figures=[counted(verdicts), *_key_figures(results)],
        sections=list(_sections(results, verdicts, drawings)),
        drawings=drawings,
        files=("functions.csv", "slopes.csv", "statements.csv"),
    )


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    for system in ("grpc", "rpyc"):
        near, far = (results.cells.get(Case(system, place, "void")) for place in figures.PLACES)
        if near is not None:
            there = DASH if far is None else f"{far.spread.median:.2f} ms"
            yield f"void, {figures.NAMES[system]}", f"{near.spread.median:.2f} ms", f"median; remote {there}"


def _sections(results: Results, verdicts: Sequence[Verdict], drawings: dict[str, Drawing]) -> Iterator[Section]:
    yield statements_section(
        verdicts,
        "Each is judged by code from the runs below, by the paper's own statistic: the mean, and where X3 asks how far "
        "times spread the quartiles, of what is within "
        f"percentiles {results.paper.percentiles[0]:g} and {results.paper.percentiles[1]:g}. Nothing is fitted. The "
        "reasons are below the table.",
    )
    yield Section("machines", "Machines, libraries, choices", "Choices", _choices(results))
    for number in results.paper.figures:
        stem = f"figure-{number}"
        if stem in drawings:
            yield Section(stem, drawings[stem].title, f"Figure {number}", figure=stem)
    if "slopes" in drawings:
        yield Section(
            "slopes", "Round trips in a call", "Round trips",
            "A call waits for so many round trips of the link as its time grows by with them: of gRPC one; of RPyC "
            "one each for the attribute, the call and the release of what the attribute's reference was; more where "
            "the server calls back for each element.",
            "slopes",
        )  # fmt: skip
    if "systems" in drawings:
        yield Section(
            "systems", figures.SYSTEMS_TITLE, "Other decades",
            "The same twelve functions over what came before and beside: each system says its values as it does (XDR, "
            "NDR, protobuf, brine), plain TCP not at all. gRPC and RPyC are in Python, the others in C, gRPC in C++ "
            "too. RPyC's lists stay where they are (functions 8 to 10). MBCF, whose packets are Ethernet's, runs "
            "between machines alone; where a message has several, those that jitter has turned round are sent again.",
            "systems", systems_table(results),
        )  # fmt: skip
    for place in figures.PLACES:
        table = functions_table(results, place)
        prose = _EXCHANGES + (_INSTRUCTIONS if place == "local" else "")
        yield Section(f"functions-{place}", f"All functions, {place}", f"All, {place}", prose, table=table)


_EXCHANGES = (
    "Exchanges: requests that have an answer. Of RPyC they are those of both sides, as captured, with what the "
    "collector of garbage gives back behind the calls; of each other system a call is one."
)
_INSTRUCTIONS = (
    " Instructions: the median time by the machine's speed. A call that waits for a timer (over RPyC with lists: "
    "Nagle's algorithm for a delayed acknowledgement) has instructions here that were never executed."
)


def _choices(results: Results) -> str:
    paper = results.paper
    used = ", ".join(f"{name} {version}" for name, version in sorted(results.versions.items()))
    said = ", ".join(f"{name} {version}" for name, version in paper.libraries.items())
    return (
        f"The paper: {paper.machines.one}; {paper.machines.two}; {said}. Here: machines of "
        f"{results.mips.normalize():f} million instructions a second with one processor each, on which an instruction "
        f"costs the same whatever it does and a change of process costs its instructions; {used}. Remotely a link of "
        "54 Mbit/s with a delay of 1 ms and jitter. The paper does not say: how calls were warmed up (here: once), "
        "what is within the time of a call (here: the call alone, not the connection), threads of the server (here: "
        "one), the values, and which function computes the distance with which container. Functions 8 to 11 run with "
        "lists and an object; tuples with the distance alone, as there."
    )


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

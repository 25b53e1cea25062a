# SPDX-License-Identifier: Apache-2.0
"""What the report of khandker shows: statements, each table and figure printed beside measured, and what the print gets
wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from sundial.papers.khandker import figures, tables
from sundial.papers.khandker.results import NULL, Results
from sundial.report.plotting import Drawing
from sundial.report.tables import Table, decimal
from sundial.reproduce.page import Page, Section, statements_section
from sundial.reproduce.verdicts import Undecidable, Verdict, counted

DRAWN: Sequence[Callable[[Results, Path], Drawing | None]] = (
    figures.draw_latency, figures.draw_threads, figures.draw_path, figures.draw_errors
)  # fmt: skip


def make_page(results: Results, verdicts: Sequence[Verdict], folder: Path) -> Page:
    """The page; its figures are drawn into the folder."""
    paper = results.paper
    drawings = [drawing for draw in DRAWN if (drawing := draw(results, folder)) is not None]
    return Page(
        name=paper.name,
        reference=f"{paper.authors}: {paper.title}. {paper.published}.",
        key_figures=[counted(verdicts), *_key_figures(results)],
        sections=list(_sections(results, verdicts)),
        drawings={drawing.stem: drawing for drawing in drawings},
        files=("curves.csv", "steps.csv", "threads.csv", "statements.csv"),
    )


def _key_figures(results: Results) -> Iterator[tuple[str, str, str]]:
    yield "machine", f"{results.best.mips.normalize():f} mips", "fitted to null and 4016 bytes"
    if "window" not in results.latency:
        return
    latency = results.latency["window"]
    if NULL in latency.sizes:
        yield "null call", f"{decimal(latency.sizes[NULL].mean_us / 1e3, 2)} ms", "printed 6.17 ms"
    if results.costs is None:
        return
    out = [each for each in results.predicted("window") if each.out_of_sample]
    if out:
        yield "worst error, sum", f"{max(abs(each.sum_error) for each in out):.2f} %", "printed 8.43 %; policy window"
        yield (
            "worst error, replay",
            f"{max(abs(each.replay_error) for each in out):.2f} %",
            "to reach 2 %; policy window",
        )


def _sections(results: Results, verdicts: Sequence[Verdict]) -> Iterator[Section]:
    yield statements_section(
        verdicts,
        "Each is judged by code from the runs below. Nothing but the machines' speed was fitted. The reasons are "
        "below the table.",
    )
    yield _machine(results)
    yield Section(
        "figure-3", "Figure 3: size and round trip", "Figure 3",
        f"Scale {results.scale}. Fixed arrays of bytes in, nothing out; a procedure for each of 27 sizes; string "
        "binding. The first call of an activity holds the server's question who_are_you, and pages that are touched "
        "for the first time.",
        "figure-3", _of(results, tables.latency_table),
    )  # fmt: skip
    yield Section(
        "figure-4", "Table 1 and figure 4: caller threads", "Threads",
        "All threads are of one process, each an activity of its own; the machines have one processor each, and are "
        "equally fast, where the paper's server is the faster one. On the link both ends can send at a time, so what "
        "it gains is what waiting and collisions cost on the hub.",
        "figure-4", tables.threads_table(results),
    )  # fmt: skip
    yield _steps(results, 1, "client")
    yield _steps(results, 2, "server")
    yield Section("figure-5", "Figure 5: the round trip path", "Figure 5", figure="figure-5")
    yield from _sums(results)
    yield Section(
        "print", "Faults of the print", "The print",
        "What the paper says in two ways, found by code from its own numbers (papers/khandker/table2.py).",
        table=tables.print_table(results),
    )  # fmt: skip
    yield Section("captures", "Captures", "Captures", table=tables.captures_table(results))


def _of(results: Results, table: Callable[[Results], Table]) -> Table:
    """Without rows where its run failed."""
    try:
        return table(results)
    except Undecidable as error:
        return Table(str(error), (), ())


def _machine(results: Results) -> Section:
    paper = results.paper
    prose = (
        f"The paper measured between {paper.machines.client} (client) and {paper.machines.server} (server). Here "
        f"both are one number: {results.best.mips.normalize():f} million instructions a second, an instruction costs "
        "the same whatever it does. Of the speeds that virtual time can have, powers of two, this one is nearest to "
        "table 2's measured round trips of a null call and of 4016 bytes (least squares of the logarithm of "
        "measured by printed). Nothing else is fitted."
    )
    return Section("machine", "The machine model", "Machine", prose, table=tables.machine_table(results))


def _steps(results: Results, figure: int, machine: str) -> Section:
    prose = (
        "From stamps that cost the guest nothing: a step is what is between two of them, less the interrupts in it, "
        "which are steps of their own. The clock's interrupts, 250 a second, and what the kernel's own threads do "
        "meanwhile are listed below the paper's steps; on a machine this slow they take a part that the paper does "
        "not mention."
        if figure == 1
        else ""
    )
    return Section(
        f"figure-{figure}", f"Figure {figure}: steps of the {machine}", f"Figure {figure}", prose,
        table=_of(results, partial(tables.steps_table, machine=machine)),
    )  # fmt: skip


def _sums(results: Results) -> Iterator[Section]:
    yield Section(
        "table-2", "Table 2: the round trip as a sum of steps", "Table 2",
        "Unit costs are means of a run of its own, of calls of 0, 1392 and 4016 bytes (S15 and C22, which no call of "
        "one PDU has, of 4017). The sum has the path by a rule: of each burst the first PDU, and of every further "
        "one what is slowest, client, wire or server. The replay has two processors and a wire, with unit costs as "
        "service times. Text and table differ on when a sender asks for an acknowledgement, so there are two "
        "policies: window is the text's, halves is what table 2 counts.",
        "errors", _of(results, tables.predictions_table),
    )  # fmt: skip
    for policy in results.latency:
        yield Section(
            f"table-2-{policy}", f"Table 2, policy {policy}", f"Table 2, {policy}",
            table=_of(results, partial(tables.sum_table, policy=policy)),
        )  # fmt: skip

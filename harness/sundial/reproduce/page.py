# SPDX-License-Identifier: Apache-2.0
"""report.html of a reproduction: sections of prose, figures and tables, in the style of run reports."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sundial.report import palette, plotting
from sundial.report.plotting import Drawing
from sundial.report.tables import DASH, Column, Table, decimal, numbers, whole, words
from sundial.reproduce.cells import Cell, Row
from sundial.reproduce.prose import markdown
from sundial.reproduce.runs import RUNS, Bench, Made
from sundial.reproduce.verdicts import MET, Verdict
from sundial.whole import whole as whole_file

HERE = Path(__file__).parent
STYLE = HERE.parent / "report"
CAPTURE = Column("Capture", "word")
SHARES = numbers("Wire (us)", "Client (us)", "Server (us)", "Instructions", "Frames", "Bytes on wire")


@dataclass(frozen=True)
class Section:
    """A heading and what is below it, in this order; what is empty is left out."""

    anchor: str
    title: str
    link: str
    """In the list of contents."""
    prose: str = ""
    figure: str = ""
    """Stem of a drawing."""
    table: Table | None = None
    """Without rows: a sentence says that nothing was measured."""
    parts: Table | None = None
    """With a heading of its own, where it has rows."""
    remarks: str = ""
    reasons: Sequence[str] = ()
    """Behind a fold."""
    reasons_title: str = ""


@dataclass(frozen=True)
class Page:
    """What is particular to a paper on its page."""

    name: str
    reference: str
    """Authors, title and where it was published."""
    key_figures: Sequence[tuple[str, str, str]]
    """Title, value, note."""
    sections: Sequence[Section]
    drawings: Mapping[str, Drawing]
    files: Sequence[str]
    """CSV files to link."""


def write_page(folder: Path, page: Page, bench: Bench, command: Sequence[str]) -> Path:
    """Write report.html; the figures are there already."""
    path = folder / "report.html"
    with whole_file(path) as beside:
        beside.write_text(_html(folder, page, bench, command), encoding="utf-8")
    return path


def _html(folder: Path, page: Page, bench: Bench, command: Sequence[str]) -> str:
    environment = Environment(
        loader=FileSystemLoader([HERE, STYLE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["markdown"] = markdown
    style = (STYLE / "style.css").read_text(encoding="utf-8")
    style = style.replace("LIGHT-COLOURS", palette.css_variables(dark=False))
    style = style.replace("DARK-COLOURS", palette.css_variables(dark=True))
    bad = [made for made in bench.made if made.verdict != "pass"]
    return environment.get_template("page.html.j2").render(
        style=Markup(style),
        name=folder.name.removeprefix(".").removesuffix(".partial"),
        page=page,
        made=bench.made,
        seed=bench.seed,
        good=not bad,
        bad=bad,
        calls=whole(sum(made.calls for made in bench.made)),
        inline={stem: Markup(plotting.inline(made)) for stem, made in page.drawings.items()},
        runs=_runs(bench.made),
        command=" ".join(shlex.quote(word) for word in command),
    )


def report_link(run: str, text: str) -> Markup:
    """A link to the report of the run behind a number."""
    return Markup('<a href="{}">{}</a>').format(f"{RUNS}/{run}/report.html", text)


def capture_links(run: str, captures: Sequence[str]) -> Markup:
    """Links to the captures of the run behind a number, each by its segment where there are several."""
    link = Markup('<a href="{}">{}</a>')
    names = [Path(path).name.removesuffix(".pcapng") for path in captures] if len(captures) > 1 else ["pcapng"]
    made = [link.format(f"{RUNS}/{run}/{path}", name) for path, name in zip(captures, names, strict=False)]
    return Markup(", ").join(made)


def shares(cell: Cell | None) -> tuple[str, ...]:
    """The columns SHARES of one value."""
    if cell is None or cell.parts is None:
        return (DASH,) * len(SHARES)
    parts = cell.parts
    times = (decimal(value / 1e3) for value in (parts.wire_ns, parts.client_ns, parts.server_ns))
    return (*times, whole(cell.instructions), whole(parts.frames), whole(parts.wire_bytes))


def table_of_captures(runs: Iterable[tuple[str, Sequence[str], Sequence[str]]], *titles: str) -> Table:
    """Runs, what is in each by the titles, and their captures."""
    rows = tuple((report_link(run, run), *what, capture_links(run, captures)) for run, what, captures in runs)
    return Table("Captures", (*words("Run", *titles), CAPTURE), rows)


def table_of_rows(rows: Sequence[Row], first: str, second: str) -> Table:
    """Values beyond the paper, with what they are made of (times) or their median round trip (rates)."""
    timed = any(row.cell.parts is not None for row in rows)
    body = []
    for row in rows:
        cell = row.cell
        rest = shares(cell) if timed else (decimal(cell.rtt_us), whole(cell.calls))
        value = report_link(cell.run, decimal(cell.value))
        body.append((row.names[0], whole(int(row.names[1])), value, *rest, capture_links(cell.run, cell.captures)))
    more = SHARES if timed else numbers("Median round trip (us)", "Calls")
    unit = rows[0].cell.unit if rows else "us"
    head = (Column(first, "word"), *numbers(second, f"Measured ({unit})"), *more, CAPTURE)
    return Table("", head, tuple(body))


def statements_table(verdicts: Sequence[Verdict]) -> Table:
    """Expected, measured, and whether it is so; what is not met is marked."""
    rows = tuple(
        (each.statement.id, each.statement.figure, each.statement.text, each.statement.expected, each.measured,
         each.outcome)
        for each in verdicts
    )  # fmt: skip
    head = (
        *words("", "Figure"), Column("The paper says", "prose"), Column("Expected here", "prose"),
        Column("Measured", "prose"), *words("Verdict"),
    )  # fmt: skip
    return Table("Statements", head, rows, frozenset(at for at, each in enumerate(verdicts) if each.outcome != MET))


def _runs(listed: Sequence[Made]) -> Table:
    rows = tuple(
        (
            report_link(made.name, made.name),
            made.about,
            made.verdict,
            whole(made.calls),
            whole(made.mismatches),
            made.error,
        )
        for made in listed
    )
    bad = frozenset(number for number, made in enumerate(listed) if made.verdict != "pass")
    head = (
        *words("Run"),
        Column("What", "prose"),
        *words("Verdict"),
        *numbers("Calls", "Mismatches"),
        Column("", "prose"),
    )
    return Table("All runs", head, rows, bad)

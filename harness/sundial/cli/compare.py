# SPDX-License-Identifier: Apache-2.0
"""`sundial compare`: what differs between runs, in inputs, captures and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_run, reference_to
from sundial.cli.talk import Verb, as_json, print_json, print_table, say
from sundial.errors import BadInput, VerificationFailed
from sundial.model.catalog import typed
from sundial.units import counted

DEFAULT_BY = "app,transport,procedure,size"


@click.command(cls=Verb)
@click.argument("runs", nargs=-1, metavar="RUN RUN...", shell_complete=completion.RUNS)
@click.option(
    "--by",
    metavar="COLUMNS",
    default=DEFAULT_BY,
    show_default=True,
    help="Columns of samples by which calls are grouped.",
)
@click.option(
    "--fail-above",
    "limits",
    metavar="BOUND",
    multiple=True,
    help="Exit with 1 if a figure is this much above the first run's, such as 'p50 5 %'; may be repeated.",
)
@click.option("--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="Also write a page.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the figures as CSV.")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print everything as Markdown.")
@as_json
def compare(
    runs: tuple[str, ...],
    by: str,
    limits: tuple[str, ...],
    page: Path | None,
    as_csv: bool,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Compare each RUN (a directory, a name from `sundial ls`, or latest) with the first.

    Shows the inputs that differ, the first frame of each capture that differs, and the figures of groups of calls.
    Under the virtual clock equal inputs must give equal captures; if they do not, the exit status is 1. Under the real
    clock differences have a confidence interval.

    \b
    sundial compare quickstart-two-hosts-10base-t-1-001 latest
    sundial compare before after --by transport,size --fail-above "p50 5 %" --html compare.html
    """
    if sum((as_csv, as_markdown, as_json)) > 1:
        raise BadInput("--csv, --markdown and --json exclude each other", allowed="one of them")
    folders = [find_run(run) for run in runs]
    _check_page(page)
    columns = [column.strip() for column in by.split(",")]
    found = rooms.compare([(folder, reference_to(folder)) for folder in folders], columns, limits)
    if page is not None:
        rooms.write_comparison(found, page)
    if as_json:
        print_json(found.document())
    elif as_csv:
        click.echo(rooms.comparison_text(found, "csv_text"), nl=False)
    elif as_markdown:
        click.echo(typed(rooms.comparison_text(found, "markdown")), nl=False)
    else:
        _print(found)
    if page is not None:
        say(f"page: {page}")
    if found.alarms:
        raise VerificationFailed("; ".join(found.alarms))
    if found.exceeded:
        raise VerificationFailed(
            f"{counted(len(found.exceeded), 'figure')} above the bound, the first: {found.exceeded[0]}"
        )


def _check_page(page: Path | None) -> None:
    if page is not None and (page.is_dir() or not page.absolute().parent.is_dir()):
        raise BadInput(f"{page} is not a file in a folder that exists", field="--html", allowed="the name of a file")


def _print(found: Any) -> None:
    text = rooms.comparison_words()
    print_table(text.run_rows(found))
    click.echo()
    if found.inputs:
        print_table(text.input_rows(found))
    else:
        click.echo("inputs    equal")
    click.echo()
    for line, commands in text.capture_lines(found):
        click.echo(f"capture   {line}")
        for command in commands:
            click.echo(f"          {command}")
    for label, names in found.files.items():
        if names:
            click.echo(f"files     {counted(len(names), 'other file')} of {label} differ: {', '.join(names)}")
    groups, equal, left_out = text.shown_groups(found)
    if equal:
        click.echo(f"figures   {counted(equal, 'group')} of calls with equal figures")
    if groups:
        click.echo()
        print_table(text.figure_rows(found, groups))
    if left_out:
        say(f"{counted(left_out, 'group')} whose medians differ less are left out; --csv has all")
    if found.method:
        say(f"{found.method}.")
    for line in (*found.remarks, *found.exceeded):
        say(line)

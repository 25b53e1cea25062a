# SPDX-License-Identifier: Apache-2.0
"""`sundial report`: verify a run again and write its report."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, print_json, say
from sundial.errors import BadInput


@click.command(cls=Verb)
@click.argument("run")
@click.option("--png", is_flag=True, help="Also write each figure as PNG.")
@as_json
def report(run: str, png: bool, as_json: bool) -> None:
    """Verify RUN (a directory, a name from `sundial ls`, or latest) and write its report.

    The report is report.html, summary.csv and figures/. RUN is always verified again, because its files may have
    changed since the last verdict.
    """
    folder = find_run(run)
    removed = rooms.captures_removed(folder)
    try:
        if removed:
            say(f"not verified again: the captures were removed on {removed}; the verdict is the one before")
        else:
            rooms.verify_run(folder)
    except BadInput as error:
        rooms.forget_verdict(folder)
        say(f"not verified: {error.message}")
    written = rooms.build_report(folder, png=png)
    if as_json:
        print_json({"report": str(written)})
    else:
        click.echo(str(written))

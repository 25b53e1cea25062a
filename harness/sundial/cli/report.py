# SPDX-License-Identifier: Apache-2.0
"""`sundial report`: write the report of a run again."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, print_json


@click.command(cls=Verb, short_help="Write the report of a run again.")
@click.argument("run")
@as_json
def report(run: str, as_json: bool) -> None:
    """Write report.html, summary.csv and figures/ of RUN (a directory, a name from `sundial ls`, or latest)."""
    written = rooms.build_report(find_run(run))
    if as_json:
        print_json({"report": str(written)})
    else:
        click.echo(str(written))

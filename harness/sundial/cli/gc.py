# SPDX-License-Identifier: Apache-2.0
"""`sundial gc`: remove all runs but the latest."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.rm import remove
from sundial.cli.talk import Verb, as_json


@click.command(cls=Verb)
@click.option("--keep", type=click.IntRange(min=1), required=True, metavar="N", help="The latest N stay.")
@click.option("--captures-only", is_flag=True, help="Keep reports, samples and run.json; remove captures and views.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed and remove nothing.")
@as_json
def gc(keep: int, captures_only: bool, dry_run: bool, as_json: bool) -> None:
    """Remove all runs and reproductions but the latest N. Tagged ones stay and are not counted.

    Runs in the making and damaged runs are not touched.

    \b
    sundial gc --keep 20 --dry-run
    sundial gc --keep 5 --captures-only
    """
    chosen = rooms.shelf("choose").surplus(rooms.entries(), keep)
    remove(chosen, captures_only=captures_only, dry_run=dry_run, as_json=as_json)

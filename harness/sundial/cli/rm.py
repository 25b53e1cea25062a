# SPDX-License-Identifier: Apache-2.0
"""`sundial rm`: remove runs, or only their captures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_entry
from sundial.cli.talk import Verb, as_json, in_bytes, print_json, print_table, say
from sundial.errors import BadInput
from sundial.units import counted


@click.command(cls=Verb)
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=completion.RUNS)
@click.option(
    "--older", metavar="AGE", help="All that are older than this, such as 30d; not the latest nor tagged ones."
)
@click.option("--captures-only", is_flag=True, help="Keep reports, samples and run.json; remove captures and views.")
@click.option("--force", is_flag=True, help="Remove a RUN that is tagged, too.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed and remove nothing.")
@as_json
def rm(
    runs: tuple[str, ...], older: str | None, captures_only: bool, force: bool, dry_run: bool, as_json: bool
) -> None:
    """Remove each RUN (a run, a reproduction, or a damaged run), or all that are older.

    Runs in the making are never removed. Runs without captures keep their verdict and cannot be verified again.

    \b
    sundial rm quickstart-two-hosts-10base-t-1-001
    sundial rm --older 30d --captures-only --dry-run
    """
    if bool(runs) == (older is not None):
        raise BadInput("names nothing to remove" if not runs else "RUN and --older exclude each other",
                       field="RUN", allowed="names of runs, or --older AGE")  # fmt: skip
    if older is not None:
        choose = rooms.shelf("choose")
        chosen = choose.older(rooms.entries(), time.time(), choose.parse_age(older, "--older"))
    else:
        found = {entry.path.absolute(): entry for entry in map(find_entry, runs)}
        chosen = list(found.values())
        for entry in chosen:
            rooms.shelf("remove").check_removable(entry, force=force or captures_only)
    remove(chosen, captures_only=captures_only, dry_run=dry_run, as_json=as_json)


def remove(chosen: Sequence[Any], *, captures_only: bool, dry_run: bool, as_json: bool) -> None:
    """Remove entries, or their captures, and print what was removed."""
    room, size_of = rooms.shelf("remove"), rooms.shelf("entries").size_of
    sizes = [room.captures_size(entry) if captures_only else size_of(entry.path) for entry in chosen]
    if not dry_run:
        room.clean_up(rooms.CAPTURES)
        for entry in chosen:
            if captures_only:
                room.remove_captures(entry, date.today())
            else:
                room.remove(entry)
    rows = [{"run": entry.name, "bytes": size} for entry, size in zip(chosen, sizes, strict=True)]
    if as_json:
        print_json({"removed": rows, "bytes": sum(sizes), "captures_only": captures_only, "dry_run": dry_run})
        return
    if rows:
        print_table([[str(row["run"]), in_bytes(row["bytes"])] for row in rows])
    what = f"{'captures of ' if captures_only else ''}{counted(len(rows), 'run')}, {in_bytes(sum(sizes))}"
    say(f"would remove {what}" if dry_run else f"removed {what}")

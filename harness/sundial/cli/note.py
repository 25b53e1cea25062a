# SPDX-License-Identifier: Apache-2.0
"""`sundial note`: a note about a run."""

from __future__ import annotations

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_entry
from sundial.cli.talk import Verb, as_json, print_json
from sundial.printable import printable


@click.command(cls=Verb)
@click.argument("run", shell_complete=completion.RUNS)
@click.argument("text", required=False)
@as_json
def note(run: str, text: str | None, as_json: bool) -> None:
    """Write TEXT as the note of RUN, or print the note that it has. An empty TEXT removes it.

    \b
    sundial note latest "with the patched libtirpc"
    sundial note quickstart-two-hosts-10base-t-1-001 ""
    """
    entry, room = find_entry(run), rooms.shelf("notes")
    notes = entry.notes if text is None else room.change(entry.path, lambda before: room.noted(before, text))
    if as_json:
        print_json({"run": entry.name, **notes.to_json()})
    else:
        click.echo(f"{entry.name}: {printable(notes.note) or 'no note'}")

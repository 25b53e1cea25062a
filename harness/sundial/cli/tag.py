# SPDX-License-Identifier: Apache-2.0
"""`sundial tag`: tags of a run."""

from __future__ import annotations

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_entry
from sundial.cli.talk import Verb, as_json, print_json


@click.command(cls=Verb)
@click.argument("run", shell_complete=completion.RUNS)
@click.argument("tags", nargs=-1, metavar="[TAG]...")
@click.option("--remove", "removed", metavar="TAG", multiple=True, help="Remove a tag; may be repeated.")
@as_json
def tag(run: str, tags: tuple[str, ...], removed: tuple[str, ...], as_json: bool) -> None:
    """Give RUN tags, and print those that it has. `sundial gc` and `rm --older` keep tagged runs.

    \b
    sundial tag latest paper figure-3
    sundial tag quickstart-two-hosts-10base-t-1-001 --remove paper
    """
    entry, room = find_entry(run), rooms.shelf("notes")
    notes = entry.notes
    if tags or removed:
        notes = room.change(entry.path, lambda before: room.tagged(room.untagged(before, removed), tags))
    if as_json:
        print_json({"run": entry.name, **notes.to_json()})
    else:
        click.echo(f"{entry.name}: {', '.join(notes.tags) or 'no tags'}")

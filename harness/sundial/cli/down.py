# SPDX-License-Identifier: Apache-2.0
"""`sundial down`: take down machines that are up."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb, as_json, print_json, say


@click.command(cls=Verb)
@click.argument("topology", required=False)
@as_json
def down(topology: str | None, as_json: bool) -> None:
    """Take down TOPOLOGY, or everything that is up."""
    ended = rooms.down(topology)
    if as_json:
        print_json(ended)
        return
    for name in ended:
        click.echo(name)
    if not ended:
        say("nothing was up")

# SPDX-License-Identifier: Apache-2.0
"""`sundial console`: join the terminal with a machine's console."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb


@click.command(cls=Verb)
@click.argument("machine")
@click.option("--topology", metavar="T", help="Which one, where several are up.")
def console(machine: str, topology: str | None) -> None:
    """Join this terminal with the console of MACHINE; Ctrl-] leaves it."""
    rooms.console(machine, topology)

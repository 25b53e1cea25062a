# SPDX-License-Identifier: Apache-2.0
"""`sundial console`: connect the terminal to a machine's console."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb


@click.command(cls=Verb)
@click.argument("machine")
@click.option("--topology", metavar="T", help="The topology, if several are up.")
def console(machine: str, topology: str | None) -> None:
    """Connect this terminal to the console of MACHINE. Leave with Ctrl-]."""
    rooms.console(machine, topology)

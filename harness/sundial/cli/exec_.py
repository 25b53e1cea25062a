# SPDX-License-Identifier: Apache-2.0
"""`sundial exec`: run a command in a machine that is up."""

from __future__ import annotations

import sys

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb, as_json, print_json


@click.command(
    name="exec",
    cls=Verb,
    short_help="Run a command in a machine that is up.",
    context_settings={"ignore_unknown_options": True},
)
@click.option("--topology", metavar="T", help="Which one, where several are up.")
@as_json
@click.argument("machine")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.pass_context
def exec_(ctx: click.Context, topology: str | None, as_json: bool, machine: str, argv: tuple[str, ...]) -> None:
    """Run COMMAND in MACHINE; its output is passed through, its exit status becomes that of this command."""
    result = rooms.exec_(machine, argv, topology)
    if as_json:
        output = {name: getattr(result, name).decode(errors="replace") for name in ("stdout", "stderr")}
        print_json({"status": result.status, **output, "dropped": result.dropped})
    else:
        sys.stdout.buffer.write(result.stdout)
        sys.stdout.buffer.flush()
        sys.stderr.buffer.write(result.stderr)
        sys.stderr.buffer.flush()
        if result.dropped:
            new_line = "" if (result.stdout + result.stderr).endswith(b"\n") else "\n"
            dropped = f"{result.dropped} bytes of output were dropped: more than the guest keeps"
            click.echo(f"{new_line}{machine}: {dropped}", err=True)
    ctx.exit(result.status)

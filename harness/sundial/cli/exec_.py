# SPDX-License-Identifier: Apache-2.0
"""`sundial exec`: run a command in a machine that is up."""

from __future__ import annotations

import os
import signal
import sys

import click

from sundial.cli import rooms
from sundial.cli.talk import Verb, as_json, print_json, say
from sundial.errors import BadInput
from sundial.units import NS_PER_S, TIME

_TIMEOUT = TIME.between(least="1 ms", example="10 s")


@click.command(
    name="exec",
    cls=Verb,
    # Words after the machine belong to the command, options too.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--topology", metavar="T", help="The topology, if several are up.")
@click.option("-t", "--terminal", is_flag=True, help="Give the command a terminal, for editors and shells.")
@click.option(
    "--timeout", metavar="TIME", help="Kill the command after this time, such as 10 s; the exit status is then 124."
)
@as_json
@click.argument("machine")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] COMMAND...")
@click.pass_context
def exec_(
    ctx: click.Context,
    topology: str | None,
    terminal: bool,
    timeout: str | None,
    as_json: bool,
    machine: str,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND in MACHINE. Standard input and signals are forwarded; output and exit status are returned.

    Ctrl-C interrupts the command; a second Ctrl-C kills it.
    """
    command = argv[1:] if argv[0] == "--" else argv
    if not command:
        raise BadInput("is missing", field="COMMAND", allowed="a program and its arguments")
    input_fd = _input()
    if terminal and (input_fd is None or not os.isatty(input_fd)):
        raise BadInput("standard input is not a terminal", field="--terminal", allowed="only in a terminal")
    if terminal and as_json:
        raise BadInput("cannot be combined with --json", field="--terminal")
    asked = rooms.Exec(machine, command, topology, terminal, _seconds(timeout), input_fd)
    if as_json:
        result = rooms.exec_gathered(asked)
        output = {name: getattr(result, name).decode(errors="replace") for name in ("stdout", "stderr")}
        print_json({"status": result.status, **output, "dropped": result.dropped})
        ctx.exit(result.status)
    try:
        end = rooms.exec_(asked)
    except BrokenPipeError:
        # The reader of the output is gone: end as the command itself would.
        ctx.exit(128 + signal.SIGPIPE)
    if end.dropped:
        say(f"{machine}: {end.dropped} bytes of output were dropped: the guest keeps no more")
    if end.timed_out:
        say(f"{machine}: {command[0]} did not end within {timeout}")
    ctx.exit(end.status)


def _seconds(timeout: str | None) -> float | None:
    if timeout is None:
        return None
    try:
        return _TIMEOUT.parse(timeout) / NS_PER_S
    except BadInput as error:
        raise error.within(field="--timeout") from None


def _input() -> int | None:
    """File descriptor of standard input; None if it is closed or if this is a background job of its terminal."""
    try:
        fd = sys.stdin.fileno()
        background = os.isatty(fd) and os.tcgetpgrp(fd) != os.getpgrp()
    except (AttributeError, OSError, ValueError):
        return None
    return None if background else fd

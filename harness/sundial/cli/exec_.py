# SPDX-License-Identifier: Apache-2.0
"""`sundial exec`: run a command in machines that are up."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, say, show_error
from sundial.errors import BadInput, RunFailed
from sundial.units import NS_PER_S, TIME

_TIMEOUT = TIME.between(least="1 ms", example="10 s")


@click.command(
    name="exec",
    cls=Verb,
    # Words after the machine belong to the command, options too.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--topology", metavar="T", shell_complete=completion.UP, help="The topology, if several are up.")
@click.option("--all", "all_", is_flag=True, help="Run it in all machines of the topology; no MACHINE is named.")
@click.option("-t", "--terminal", is_flag=True, help="Give the command a terminal, for editors and shells.")
@click.option(
    "--timeout", metavar="TIME", help="Kill the command after this time, such as 10 s; the exit status is then 124."
)
@as_json
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[MACHINE[,MACHINE]...] [--] COMMAND...",
    shell_complete=completion.MACHINES,
)
@click.pass_context
def exec_(
    ctx: click.Context,
    topology: str | None,
    all_: bool,
    terminal: bool,
    timeout: str | None,
    as_json: bool,
    words: tuple[str, ...],
) -> None:
    """Run COMMAND in MACHINE. Standard input and signals are forwarded; output and exit status are returned.

    Ctrl-C interrupts the command; a second Ctrl-C kills it. In several machines the command runs at once and without
    input. Each line of output has its machine in front, and the exit status is the largest.

    \b
    sundial exec client -- ping -c 3 server
    sundial exec client,server -- cat /proc/loadavg
    """
    machines, command = _divided(words, all_)
    seconds = _seconds(timeout)
    if machines is None or len(machines) > 1:
        if terminal:
            raise BadInput("cannot be combined with several machines", field="--terminal", allowed="one machine")
        ctx.exit(_in_all(machines, command, topology, seconds, as_json))
    input_fd = _input()
    if terminal and (input_fd is None or not os.isatty(input_fd)):
        raise BadInput("standard input is not a terminal", field="--terminal", allowed="only in a terminal")
    if terminal and as_json:
        raise BadInput("cannot be combined with --json", field="--terminal")
    asked = rooms.Exec(machines[0], command, topology, terminal, seconds, input_fd)
    if as_json:
        result = rooms.exec_gathered(asked)
        print_json({"status": result.status, **_output(result), "dropped": result.dropped})
        ctx.exit(result.status)
    try:
        end = rooms.exec_(asked)
    except BrokenPipeError:
        # The reader of the output is gone: end as the command itself would.
        ctx.exit(128 + signal.SIGPIPE)
    _say_end(machines[0], command[0], end, timeout)
    ctx.exit(end.status)


def _divided(words: tuple[str, ...], all_: bool) -> tuple[list[str] | None, tuple[str, ...]]:
    """The machines (None: all) and the command. Raises BadInput."""
    machines = None
    if not all_:
        if not words or words[0] == "--":
            raise BadInput("is missing", field="MACHINE", allowed="machines with commas between, or --all")
        machines, words = words[0].split(","), words[1:]
        if not all(machines):
            raise BadInput(f"{','.join(machines)!r} has an empty name", field="MACHINE", allowed="such as n1,n2")
    command = words[1:] if words and words[0] == "--" else words
    if not command:
        raise BadInput("is missing", field="COMMAND", allowed="a program and its arguments")
    return machines, command


def _in_all(
    machines: list[str] | None, command: tuple[str, ...], topology: str | None, seconds: float | None, as_json: bool
) -> int:
    """The largest status of all machines."""
    try:
        ends = rooms.exec_all(machines, command, topology, seconds, gathered=as_json)
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    failed = {name: end for name, end in ends.items() if isinstance(end, RunFailed)}
    status = max(end.exit_code if isinstance(end, RunFailed) else end.status for end in ends.values())
    if as_json:
        found: dict[str, Any] = {name: end.to_json() for name, end in failed.items()}
        for name, end in ends.items():
            if name not in failed:
                found[name] = {"status": end.status, **_output(end), "dropped": end.dropped}
        print_json({"status": status, "machines": {name: found[name] for name in ends}})
        return int(status)
    for name, end in ends.items():
        if name in failed:
            show_error(failed[name], as_json=False)
        else:
            _say_end(name, command[0], end, None if seconds is None else f"{seconds:g} s")
    return int(status)


def _output(result: Any) -> dict[str, str]:
    return {name: getattr(result, name).decode(errors="replace") for name in ("stdout", "stderr")}


def _say_end(machine: str, program: str, end: Any, timeout: str | None) -> None:
    if end.dropped:
        say(f"{machine}: {end.dropped} bytes of output were dropped: the guest keeps no more")
    if getattr(end, "timed_out", False):
        say(f"{machine}: {program} did not end within {timeout}")


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

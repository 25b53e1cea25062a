# SPDX-License-Identifier: Apache-2.0
"""The command `sundial`: all verbs in one group."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from sundial import faults
from sundial.cli import rooms
from sundial.cli.talk import show_error
from sundial.errors import BadInput, Interrupted, SundialError

COMMANDS = {
    "doctor": "Check what a run needs from this host.",
    "images": "Guest images: build, fetch, list.",
    "topology": "Topologies: list, show, check, graph.",
    "up": "Boot a topology and leave it up.",
    "exec": "Run a command in a machine that is up.",
    "console": "Join the terminal with a machine's console.",
    "virsh": "Ask libvirt about machines that are up, as virsh does.",
    "down": "End what was left up.",
    "run": "Run a scenario, verify it, write its report.",
    "verify": "Compare a capture with what the protocol says.",
    "report": "Write the report of a run again.",
    "reproduce": "Run a paper's experiments again, beside what it printed.",
    "open": "Look at a capture in Wireshark.",
    "ls": "List runs, or what is up.",
}
"""In the order in which one meets them, each with what the list of commands says of it. The command NAME is NAME, or
`NAME_` where Python has such a word, in the module of that name."""
WORDS_OF_PYTHON = ("exec", "open")


class Commands(click.Group):
    """Imports a command when it is asked for: no command waits for what others need."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if cmd_name in WORDS_OF_PYTHON else cmd_name
        command = getattr(import_module(f"sundial.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        click.echo(import_module("sundial.cli.version").text())
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the versions of Sundial and of its parts, and exit.",
)
def sundial() -> None:
    """Run RPC systems on emulated networks, record every frame, and prove what went over the wire.

    \b
    Exit status: 0 ran and verified; 1 ran, and verification found a mismatch; 2 bad usage or bad input,
    nothing was started; 3 the host lacks something; 4 the run failed; 70 a fault of sundial itself;
    130 interrupted.
    """


def main() -> None:
    """The program; leaves with the exit status."""
    status = status_of(sundial)
    # What follows takes down what is left of a session; it must not be cut short, and is soon over.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def status_of(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; its exit status. Click's own way gives 1 to what is not a mismatch."""
    try:
        status = command.main(arguments, prog_name="sundial", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # Who read our output has left, such as `head`; click leaves with 1 then, and for no other reason.
        if isinstance(error, SystemExit) and error.code != 1:
            raise
        # Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
    except click.ClickException as error:
        error.show()
        return BadInput.exit_code
    except (click.Abort, KeyboardInterrupt):
        known: SundialError = Interrupted()
    except Exception as error:
        known = faults.known(error, rooms.LOGS)
    else:
        return status if isinstance(status, int) else 0
    show_error(known, as_json=False)
    return known.exit_code

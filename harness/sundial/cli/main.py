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
    "new": "Write a new topology, scenario, workload or image.",
    "rpc": "Server, client and scenario of your own interface (.x).",
    "up": "Boot a topology's machines and keep them up.",
    "exec": "Run a command in a machine that is up.",
    "cp": "Copy files to or from a machine that is up.",
    "console": "Connect the terminal to a machine's console.",
    "impair": "Impair frames of a segment that is up.",
    "cut": "Cut a port or segment that is up.",
    "heal": "Heal what is cut or partitioned.",
    "partition": "Partition a segment that is up.",
    "power": "Cut the power of a machine that is up, or boot it again.",
    "virsh": "Query machines that are up with virsh's commands.",
    "down": "Take down machines that are up.",
    "run": "Run a scenario, verify it, and write its report.",
    "try": "Run one program a machine, and print the scenario to keep.",
    "verify": "Verify a run or a capture against its protocol.",
    "replay": "Make a run again up to an instant or a frame.",
    "explain": "Explain a rule of verification.",
    "matrix": "Run all against all: rows by columns, one page.",
    "sweep": "Make many runs of a scenario, and tables of them.",
    "search": "Draw runs until one fails, and make it small.",
    "report": "Verify a run again and write its report.",
    "reproduce": "Repeat a paper's experiments; compare with its numbers.",
    "show": "Draw the ladder diagram of a call.",
    "watch": "Print frames as they pass, or the counters of ports.",
    "open": "Open a capture in Wireshark.",
    "wireshark": "Make Wireshark list Sundial's ports as interfaces.",
    "export": "Write the view of one port as a capture.",
    "compare": "Compare runs: inputs, captures, figures.",
    "ls": "List runs, or topologies that are up.",
    "tag": "Give a run tags, which keep it.",
    "note": "Write a note about a run.",
    "rm": "Remove runs, or only their captures.",
    "gc": "Remove all runs but the latest.",
    "du": "Show what takes how much of the disk.",
}
"""Commands in the order of use, with their texts in the list of commands. The command NAME is NAME in the module of
that name, or `NAME_` if NAME is a word of Python."""
WORDS_OF_PYTHON = ("exec", "open", "try")
MODULES = dict.fromkeys(("cut", "heal", "partition", "power"), "impair")
"""Modules of commands that have none of their own name."""


class Commands(click.Group):
    """Imports a command only when it is used, so that no command waits for the imports of others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = f"{cmd_name}_" if cmd_name in WORDS_OF_PYTHON else cmd_name
        command = getattr(import_module(f"sundial.cli.{MODULES.get(name, name)}"), name)
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
    """Run RPC systems on emulated networks, capture every frame, and verify what went over the wire.

    \b
    Exit status: 0 ran and verified; 1 ran, and verification found a mismatch; 2 bad usage or bad input,
    nothing was started; 3 the host lacks something; 4 the run failed; 70 internal error of sundial;
    130 interrupted.
    """


def main() -> None:
    """The program; leaves with the exit status."""
    status = status_of(sundial)
    # The clean-up that follows is short and must not be interrupted.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def status_of(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Exit status of a command line that is run here; click itself would give 1 to errors that are not mismatches."""
    try:
        status = command.main(arguments, prog_name="sundial", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # The reader of the output is gone, such as `head`; click exits with 1 then, and for no other reason.
        if isinstance(error, SystemExit) and error.code != 1:
            raise
        # Python would report it again when it flushes at exit.
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

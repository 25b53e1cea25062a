# SPDX-License-Identifier: Apache-2.0
"""The command `sundial`: all verbs in one group."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import click

from sundial import __version__, faults
from sundial.cli import rooms
from sundial.cli.console import console
from sundial.cli.doctor import doctor
from sundial.cli.down import down
from sundial.cli.exec_ import exec_
from sundial.cli.images import images
from sundial.cli.ls import ls
from sundial.cli.open_ import open_
from sundial.cli.report import report
from sundial.cli.reproduce import reproduce
from sundial.cli.run import run
from sundial.cli.talk import show_error
from sundial.cli.topology import topology
from sundial.cli.up import up
from sundial.cli.verify import verify
from sundial.cli.virsh import virsh
from sundial.errors import BadInput, Interrupted, SundialError


class InOrder(click.Group):
    """Lists its commands in the order in which one meets them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="sundial")
def sundial() -> None:
    """Run RPC systems on emulated networks, record every frame, and prove what went over the wire.

    \b
    Exit status: 0 ran and verified; 1 ran, and verification found a mismatch; 2 bad usage or bad input,
    nothing was started; 3 the host lacks something; 4 the run failed; 70 a fault of sundial itself;
    130 interrupted.
    """


for command in (doctor, images, topology, up, exec_, console, virsh, down, run, verify, report, reproduce, open_, ls):
    sundial.add_command(command)


def main() -> None:
    """The program; leaves with the exit status."""
    status = status_of(sundial)
    # What follows takes down what is left of a session; it must not be cut short, and is soon over.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(status)


def status_of(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a command line; its exit status. Click's own way gives 1 to what is no mismatch."""
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

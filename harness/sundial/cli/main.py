# SPDX-License-Identifier: Apache-2.0
"""The command `sundial`: all verbs in one group."""

from __future__ import annotations

import click

from sundial import __version__
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
from sundial.cli.topology import topology
from sundial.cli.up import up
from sundial.cli.verify import verify


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
    nothing was started; 3 the host lacks something; 4 the run failed; 130 interrupted.
    """


for command in (doctor, images, topology, up, exec_, console, down, run, verify, report, reproduce, open_, ls):
    sundial.add_command(command)


def main() -> None:
    """The program; leaves with the exit status."""
    sundial(prog_name="sundial")

# SPDX-License-Identifier: Apache-2.0
"""`sundial virsh`: virsh's commands for machines that are up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import click

from sundial.cli import completion, rooms
from sundial.cli.options import checked_connect
from sundial.cli.talk import Verb
from sundial.errors import HostLacks
from sundial.model.daemon import parse_daemon
from sundial.plan.request import EMBEDDED


@click.command(
    cls=Verb,
    # Words after the first belong to virsh, options too.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--topology", metavar="T", help="The topology, if several are up.")
@click.option("--connect", metavar="URI", help="libvirt daemon to use. Default: the topology's.")
@click.argument(
    "argv",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[COMMAND] [ARG]...",
    shell_complete=completion.of(rooms.virsh_commands),
)
@click.pass_context
def virsh(ctx: click.Context, topology: str | None, connect: str | None, argv: tuple[str, ...]) -> None:
    """Run virsh's COMMAND on machines that are up. Without COMMAND: list the commands.

    virsh cannot reach the embedded driver, so `sundial virsh` implements the commands that only read. Name a machine
    as in the topology or as in libvirt. With a daemon, virsh itself runs, with all its commands.

    \b
    sundial virsh list
    sundial virsh dominfo client
    sundial virsh qemu-monitor-command client --hmp info network
    """
    if not argv and connect is None:
        click.echo(rooms.virsh_overview(), nl=False)
        return
    where = checked_connect(connect) if connect is not None else rooms.connected(topology)
    if where == EMBEDDED:
        click.echo(rooms.virsh(argv, topology), nl=False)
        return
    program = shutil.which("virsh")
    if program is None:
        raise HostLacks("virsh is not installed", hint="apt-get install libvirt-clients")
    sys.stdout.flush()
    if parse_daemon(where).transport == "ssh":
        with rooms.ssh_uri(where) as uri:
            ctx.exit(subprocess.run(["virsh", "-c", uri, *argv], executable=program, check=False).returncode)
    os.execv(program, ["virsh", "-c", where, *argv])

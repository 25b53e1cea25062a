# SPDX-License-Identifier: Apache-2.0
"""`sundial virsh`: what libvirt knows of the machines that are up."""

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
    # What stands behind the first word is virsh's, options too.
    context_settings={"allow_interspersed_args": False},
)
@click.option("--topology", metavar="T", help="Which one, where several are up.")
@click.option("--connect", metavar="URI", help="A libvirt daemon; otherwise where the topology's machines are.")
@click.argument(
    "argv",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[COMMAND] [ARG]...",
    shell_complete=completion.of(rooms.virsh_commands),
)
@click.pass_context
def virsh(ctx: click.Context, topology: str | None, connect: str | None, argv: tuple[str, ...]) -> None:
    """Answer COMMAND as virsh does, about machines that are up; without COMMAND: list what there is.

    Of the embedded driver, which virsh cannot reach, `sundial virsh` shows what can be read; a machine is named as in
    the topology, or as libvirt does. Under a daemon it is virsh itself, with everything that it can do.

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

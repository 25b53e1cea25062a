# SPDX-License-Identifier: Apache-2.0
"""`sundial doctor`: what the host has, what it lacks, and how to mend that."""

from __future__ import annotations

import click

from sundial.cli import rooms
from sundial.cli.checks import Check, Host, State, check_all
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress
from sundial.errors import BadInput, HostLacks

_WORDS = {State.GOOD: "ok", State.OPTIONAL: "no (optional)", State.LACKING: "LACKING"}


@click.command(cls=Verb)
@click.option("--certify", is_flag=True, help="Only certify this QEMU for virtual time: short runs that must be equal.")
@click.option("--if-needed", is_flag=True, help="Unless it is known. With --certify.")
@as_json
def doctor(certify: bool, if_needed: bool, as_json: bool) -> None:
    """Check everything that a run needs from this host."""
    if if_needed and not certify:
        raise BadInput("has no effect without --certify", file="--if-needed", allowed="together with --certify")
    if certify:
        _certify(if_needed, as_json)
        return
    checks = check_all(Host())
    if as_json:
        print_json([{"name": c.name, "state": c.state.value, "found": c.found, "mend": c.mend} for c in checks])
    else:
        print_table([[c.name, _WORDS[c.state], c.found] for c in checks])
        for check in checks:
            if check.mend and check.state is not State.GOOD:
                click.echo(f"{check.name}: {check.mend}")
    lacking = [check for check in checks if check.state is State.LACKING]
    if lacking and not as_json:
        raise HostLacks(_sentence(lacking), hint=lacking[0].mend)
    if lacking:
        click.get_current_context().exit(HostLacks.exit_code)


def _certify(if_needed: bool, as_json: bool) -> None:
    with progress(quiet=as_json) as shown:
        found = rooms.certify(shown, again=not if_needed)
    if as_json:
        print_json(found)
    else:
        click.echo(f"QEMU {found['version']} keeps virtual time ({'tested' if found['tested'] else 'certified'})")


def _sentence(lacking: list[Check]) -> str:
    return f"this host lacks {', '.join(check.name for check in lacking)}"

# SPDX-License-Identifier: Apache-2.0
"""`sundial doctor`: what the host has, what it lacks, and how to mend that."""

from __future__ import annotations

import click

from sundial.cli.checks import Check, Host, State, check_all
from sundial.cli.talk import Verb, as_json, print_json, print_table
from sundial.errors import HostLacks

_WORDS = {State.GOOD: "ok", State.OPTIONAL: "no (optional)", State.LACKING: "LACKING"}


@click.command(cls=Verb)
@as_json
def doctor(as_json: bool) -> None:
    """Check everything that a run needs from this host."""
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


def _sentence(lacking: list[Check]) -> str:
    return f"this host lacks {', '.join(check.name for check in lacking)}"

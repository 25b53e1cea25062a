# SPDX-License-Identifier: Apache-2.0
"""`sundial search`: draw runs until one fails, and make it small."""

from __future__ import annotations

import click

from sundial.cli import rooms, sweep_rooms
from sundial.cli.sweep import asking, resumable
from sundial.cli.talk import Verb, as_json, print_json, progress
from sundial.errors import RunFailed, VerificationFailed


@click.command(cls=Verb)
@asking("Value, or several, the simplest first.", "Seeds to draw from. Default: all from 1.")
@as_json
def search(asked: sweep_rooms.SweepAsked, as_json: bool) -> None:
    """Draw runs of a sweep's FILE or of SCENARIO until one fails; then leave out and simplify what it does not need.

    The last line is the command that fails in the same way. The exit status is 0 if no run failed.

    \b
    sundial search my.yaml
    sundial search loss --topology two-hosts-wan --set "loss=0,5,20 %" --set "duplicate=0,10 %" --set calls=1,100
    """
    with progress(quiet=as_json) as shown:
        searching = sweep_rooms.sweeping(asked, shown, searching=True)
        with resumable("give the same command again: what was made is kept"):
            swept = searching.perform(rooms.making(), shown)
    found = swept.found
    if as_json:
        print_json({**swept.to_json(), "found": found})
    else:
        probes = "" if found is None else f", {found['probes']} to make it small"
        click.echo(f"runs     {len(swept.rows)} drawn{probes}")
        click.echo(f"folder   {swept.folder}")
        if found is not None:
            click.echo(f"fault    {found['fault']}")
            click.echo(f"run      {found['path']}")
            click.echo(f"repeat   {found['command']}")
    if found is not None:
        error = RunFailed if found["fault"].startswith("failed: ") else VerificationFailed
        raise error(f"run {found['draws']} of the search: {found['fault']}")
    if swept.given_up:
        raise RunFailed(f"{len(swept.given_up)} runs were not made: {next(iter(swept.given_up.values()))}")

# SPDX-License-Identifier: Apache-2.0
"""`sundial search`: draw runs until one fails, and make it small."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sundial.cli import completion, rooms
from sundial.cli.options import checked_connect, checked_out, connect_option, recipe_option
from sundial.cli.sweep import checked_on, on_option, resumable, store_option
from sundial.cli.talk import Verb, as_json, print_json, progress
from sundial.errors import RunFailed, VerificationFailed
from sundial.model.catalog import COMMAND


@click.command(cls=Verb)
@click.argument("reference", metavar="FILE|SCENARIO")
@click.option("--topology", metavar="T", shell_complete=completion.TOPOLOGIES, help="Name or file of the topology.")
@click.option("--set", "settings", metavar="KEY=V,...", multiple=True, help="Value, or several, the simplest first.")
@click.option("--seeds", metavar="N..M", help="Seeds to draw from. Default: all from 1.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder to write.")
@store_option
@on_option
@connect_option
@recipe_option
@as_json
def search(
    reference: str,
    topology: str | None,
    settings: tuple[str, ...],
    seeds: str | None,
    out: Path | None,
    store: Path | None,
    on: str,
    connect: str,
    recipe: str | None,
    as_json: bool,
) -> None:
    """Draw runs of a sweep's FILE or of SCENARIO until one fails; then leave out and simplify what it does not need.

    The last line is the command that fails in the same way. The exit status is 0 if no run failed.

    \b
    sundial search my.yaml
    sundial search loss --topology two-hosts-wan --set "loss=0,5,20 %" --set "duplicate=0,10 %" --set calls=1,100
    """
    source = rooms.sweep_source(reference, topology, settings, seeds)
    asked = rooms.SweepAsked(
        source, checked_out(out), store, checked_on(on), checked_connect(connect), recipe, (COMMAND, *sys.argv[1:])
    )
    with progress(quiet=as_json) as shown:
        searching = rooms.sweeping(asked, shown, searching=True)
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

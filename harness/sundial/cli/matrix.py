# SPDX-License-Identifier: Apache-2.0
"""`sundial matrix`: runs of one scenario in rows and columns, on one page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sundial.cli import completion, rooms
from sundial.cli.options import (
    certs_option,
    checked_connect,
    checked_out,
    checked_place,
    connect_option,
    jobs_option,
    on_option,
    recipe_option,
)
from sundial.cli.runs import find_run, reference_to
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress
from sundial.errors import BadInput, RunFailed, VerificationFailed
from sundial.model.catalog import COMMAND
from sundial.model.scenario import SEED_MOST


@click.command(cls=Verb)
@click.argument("scenario", required=False, shell_complete=completion.SCENARIOS)
@click.option("--rows", metavar="KEY=VALUE,...", help="Field and values of the rows; KEY alone with --from.")
@click.option("--columns", metavar="KEY=VALUE,...", help="The same of the columns. Default: those of vary.matrix.")
@click.option("--from", "runs", metavar="RUN", multiple=True, help="Take this run instead of making runs; repeat it.")
@click.option("--measure", default="p50(rtt_us)", metavar="M", help="Figure of each cell. Default: p50(rtt_us).")
@click.option("--topology", metavar="T", shell_complete=completion.TOPOLOGIES, help="Name or file of the topology.")
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a field in all runs.")
@click.option("--scale", metavar="S", help="Scale: smoke, quick or paper, if the scenario has it.")
@click.option("--seed", type=click.IntRange(0, SEED_MOST), metavar="N", help="Seed. Default: the scenario's.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder to write.")
@jobs_option
@on_option
@certs_option
@click.option("--skip-refused", is_flag=True, help="Leave cells empty whose values do not go together.")
@connect_option
@recipe_option
@as_json
def matrix(
    scenario: str | None,
    rows: str | None,
    columns: str | None,
    runs: tuple[str, ...],
    measure: str,
    topology: str | None,
    overrides: tuple[str, ...],
    scale: str | None,
    seed: int | None,
    out: Path | None,
    jobs: int | None,
    on: str,
    certs: Path | None,
    skip_refused: bool,
    connect: str,
    recipe: str | None,
    as_json: bool,
) -> None:
    """Run SCENARIO once for each pair of a row's and a column's value, and write one page.

    The folder has index.html, matrix.json, matrix.csv and runs/. The exit status is the worst of all runs.

    \b
    sundial matrix loss --rows "segments.wan.impairments.both.loss=0 %,1 %,5 %" --columns sizes=64,1024
    sundial matrix quickstart --rows transports=udp,tcp --columns mtu=576,1500 --measure "p99(rtt_us)"
    sundial matrix --from RUN --from RUN --rows mtu --columns seed
    """
    connect, out, place = checked_connect(connect), checked_out(out), checked_place(on, certs, jobs)
    if (scenario is None) == (not runs):
        raise click.UsageError("give either SCENARIO or --from RUN")
    if (rows is None) != (columns is None) or (runs and rows is None):
        raise click.UsageError("give both --rows and --columns")
    if runs and (overrides or topology or scale or seed is not None or skip_refused):
        raise BadInput(
            "runs that are there cannot be changed", file="--from", allowed="--rows, --columns, --measure, --out"
        )
    folders = [find_run(each) for each in dict.fromkeys(runs)]
    command = (COMMAND, *sys.argv[1:])
    asked = rooms.MatrixAsked(
        scenario, {reference_to(each): each for each in folders}, rows, columns, overrides, topology, scale, seed,
        measure, out, connect, recipe, skip_refused, place, command,
    )  # fmt: skip
    with progress(quiet=as_json) as shown:
        folder, document, table = rooms.matrix(asked, shown)
    if as_json:
        print_json({"folder": str(folder), "page": str(folder / "index.html"), **document})
    else:
        print_table(table)
        click.echo(f"folder   {folder}")
        click.echo(f"page     {folder / 'index.html'}")
    names = [f"{cell['row']} x {cell['column']}" for cell in document["cells"] if cell["verdict"] in ("fail", "failed")]
    if document["status"] == RunFailed.exit_code:
        raise RunFailed(f"not all runs are right: {', '.join(names)}", hint=f"see {folder / 'index.html'}")
    if document["status"] == VerificationFailed.exit_code:
        raise VerificationFailed(f"verification failed: {', '.join(names)}")

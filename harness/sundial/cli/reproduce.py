# SPDX-License-Identifier: Apache-2.0
"""`sundial reproduce`: repeat a paper's experiments and compare them with its published numbers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from sundial import kinds
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
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress
from sundial.errors import BadInput, RunFailed, VerificationFailed
from sundial.model.scenario import SEED_MOST

_PAPERS = kinds.having("papers", "reproduce")


@click.command(
    cls=Verb,
    epilog=f"Papers: {', '.join(_PAPERS)}.",
)
@click.argument("paper", required=False, shell_complete=completion.of(lambda: _PAPERS))
@click.option("--quick", is_flag=True, help="The same as --scale quick: fewer calls, fewer points.")
@click.option("--scale", metavar="S", help="Scale: smoke, quick, full or paper, if the paper has it. Default: full.")
@click.option(
    "--seed", type=click.IntRange(0, SEED_MOST), default=1, metavar="N", help="Seed for all random choices. Default: 1."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder to write.")
@jobs_option
@on_option
@certs_option
@connect_option
@recipe_option
@as_json
def reproduce(
    paper: str | None,
    quick: bool,
    scale: str | None,
    seed: int,
    out: Path | None,
    connect: str,
    recipe: str | None,
    jobs: int | None,
    on: str,
    certs: Path | None,
    as_json: bool,
) -> None:
    """Repeat the experiments of PAPER in virtual time. The report shows its tables, published and measured.

    Without PAPER: list the papers.
    """
    if paper is None:
        _list(as_json)
        return
    if quick and scale not in (None, "quick"):
        raise BadInput(f"--quick and --scale {scale} cannot be combined", allowed="one of them")
    extent = "quick" if quick else scale or "full"
    command = ("sundial", *sys.argv[1:])
    connect, out, place = checked_connect(connect), checked_out(out), checked_place(on, certs, jobs)
    with progress(quiet=as_json) as shown:
        done = rooms.reproduce(paper, extent, seed, out, connect, recipe, place, command, shown)
    if as_json:
        print_json(_summary(done))
    else:
        click.echo(f"folder   {done.folder}")
        for name, fact in done.outcome.facts():
            click.echo(f"{name:<9}{fact}")
        click.echo(f"runs     {len(done.made)}: {len(done.failed)} failed, {len(done.mismatched)} with mismatches")
        click.echo(f"report   {done.folder / 'report.html'}")
    if done.failed:
        names = ", ".join(made.name for made in done.failed)
        raise RunFailed(f"these runs failed: {names}", hint=f"see {done.folder / 'report.html'}#runs")
    if done.mismatched:
        names = ", ".join(made.name for made in done.mismatched)
        raise VerificationFailed(f"verification of these runs failed: {names}")


def _list(as_json: bool) -> None:
    found = rooms.papers()
    if as_json:
        print_json(
            [
                {"name": paper.name, "title": paper.title, "tables": len(paper.tables), "scales": scales}
                for paper, scales in found
            ]
        )
    else:
        print_table([[paper.name, f"{paper.authors}: {paper.title} ({paper.published})"] for paper, _ in found])


def _summary(done: Any) -> dict[str, Any]:
    return {
        "folder": str(done.folder),
        **done.outcome.index(),
        "runs": len(done.made),
        "failed": [made.name for made in done.failed],
        "mismatched": [made.name for made in done.mismatched],
        "report": str(done.folder / "report.html"),
    }

# SPDX-License-Identifier: Apache-2.0
"""`python -m mutation [RUN...]`: damage recorded runs in every way, and print what verification does not notice."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click

from mutation import allowed, runs
from mutation.gate import CRASHED, PASSED, Outcome, all_damages, judge_all, sample


@click.command()
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--sample", "number", type=int, metavar="N", help="So many damages of each run instead of all.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of frames, values and samples.")
@click.option("--only", metavar="TEXT", default="", help="Damages whose names hold this.")
@click.option("--record", is_flag=True, help="Boot guests, make the runs again and store them; damage nothing.")
@click.option("--new", is_flag=True, help="Boot guests for the runs instead of taking those that are stored.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write every outcome there.")
def main(
    names: tuple[str, ...], number: int | None, seed: int, only: str, record: bool, new: bool, file: Path | None
) -> None:
    """Exit status 1 where something passed that is not allowed to, or a pattern of allowed.yaml is of no use."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as work:
        folder = Path(work)
        if record:
            for name in names or runs.NAMES:
                runs.keep(runs.make(name, folder))
            return
        entries = allowed.load()
        found: dict[str, list[Outcome]] = {}
        for name in names or (runs.NAMES if new else runs.stored()):
            run = runs.make(name, folder) if new else runs.recorded(name, folder)
            found[name] = _one(run, number, seed, only)
            _print(name, found[name], entries)
        if file is not None:
            document = {name: [vars(outcome) for outcome in each] for name, each in found.items()}
            file.write_text(json.dumps(document, indent=1) + "\n")
    passed = [(name, each.damage) for name, outcomes in found.items() for each in outcomes if each.result == PASSED]
    bad = [each for each in passed if not allowed.is_allowed(entries, *each)]
    crashed = [each for outcomes in found.values() for each in outcomes if each.result == CRASHED]
    whole = number is None and not only and not names
    unused = allowed.unused(entries, passed) if whole else []
    for pattern in unused:
        click.echo(f"allowed.yaml: nothing passes under {pattern!r}")
    sys.exit(1 if bad or crashed or unused else 0)


def _one(run: Path, number: int | None, seed: int, only: str) -> list[Outcome]:
    chosen = [damage for damage in all_damages(run) if only in damage.name]
    if number is not None:
        chosen = sample(chosen, number, seed)
    return list(judge_all(run, chosen, seed))


def _print(name: str, outcomes: list[Outcome], entries: list[allowed.Allowed]) -> None:
    count = Counter(outcome.result for outcome in outcomes)
    passed = [outcome for outcome in outcomes if outcome.result == PASSED]
    bad = [outcome for outcome in passed if not allowed.is_allowed(entries, name, outcome.damage)]
    click.echo(
        f"{name}: {len(outcomes)} damages: {count['caught']} caught, {count['nothing']} changed nothing, "
        f"{len(passed) - len(bad)} allowed, {len(bad)} survive, {count[CRASHED]} crashed"
    )
    for outcome in bad:
        click.echo(f"  survives: {outcome.damage}")
    for outcome in outcomes:
        if outcome.result == CRASHED:
            click.echo(f"  crashed:  {outcome.damage}: {outcome.words.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main(prog_name="mutation")

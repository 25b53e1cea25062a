# SPDX-License-Identifier: Apache-2.0
"""`python -m planted [NAME...]`: plant faults in copies of the checkout, and print which tests notice them."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue

import click

from planted.faults import Fault, chosen, load
from planted.scratch import Scratch, make_scratch
from planted.trial import Failure, Outcome, Tier, asked, run_steps, try_fault

CHECKOUT = Path(__file__).resolve().parents[2]
HEADS = ("name", "room", "result", "caught by", "seconds")


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--tier", type=click.Choice(["gate", "all"]), default="gate", show_default=True, help="Tests that run.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Copies of the checkout.")
@click.option(
    "--limit", "limit_s", type=click.FloatRange(1), default=1800.0, show_default=True, help="Seconds a command."
)
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write outcomes there, each when it is known.")
@click.option("--list", "only_list", is_flag=True, help="Print the faults and their promises; plant nothing.")
@click.option("--clean", is_flag=True, help="Run the commands of these faults without any fault.")
@click.option("--keep-going", is_flag=True, help="Run all commands of a fault, and name all that fail.")
def main(
    names: tuple[str, ...],
    tier: Tier,
    jobs: int,
    limit_s: float,
    file: Path | None,
    only_list: bool,
    clean: bool,
    keep_going: bool,
) -> None:
    """Plant the faults of these names or rooms (without names, all) in copies of the last commit.

    Exit status 1 where a fault survives that the tier is expected to catch, where one does not build, or where a
    command fails without any fault.
    """
    try:
        faults = chosen(load(), names)
    except KeyError as error:
        raise click.UsageError(f"no fault or room is called {error}; --list lists them") from None
    if only_list:
        _list(faults)
        return
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        Path(folder).chmod(0o755)  # QEMU reads the copies' images as another user
        if clean:
            sys.exit(_clean(make_scratch(CHECKOUT, Path(folder) / "0"), faults, tier, limit_s))
        copies: SimpleQueue[Scratch] = SimpleQueue()
        for number in range(min(jobs, len(faults))):
            copies.put(make_scratch(CHECKOUT, Path(folder) / str(number)))
        outcomes = _try_all(copies, jobs, faults, tier, limit_s, keep_going, file)
    late = {fault.name for fault in faults if fault.only_at_night and tier == "gate"}
    _summarise(outcomes, late)
    sys.exit(1 if any(not each.is_noticed and each.name not in late for each in outcomes) else 0)


def _try_all(
    copies: SimpleQueue[Scratch],
    jobs: int,
    faults: Sequence[Fault],
    tier: Tier,
    limit_s: float,
    keep_going: bool,
    file: Path | None,
) -> list[Outcome]:
    """Each fault in a copy that is free; the outcomes in the order in which they are known."""

    def one(fault: Fault) -> Outcome:
        scratch = copies.get()
        try:
            return try_fault(scratch, fault, tier, limit_s, keep_going=keep_going)
        finally:
            copies.put(scratch)

    outcomes: list[Outcome] = []
    widths = (max(len(fault.name) for fault in faults), 9, 14)
    _print_row(HEADS, widths)
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(one, fault) for fault in faults]):
            outcome = done.result()
            outcomes.append(outcome)
            caught_by = "; ".join(outcome.caught_by) or "-"
            _print_row((outcome.name, outcome.room, outcome.result, caught_by, f"{outcome.seconds:.0f}"), widths)
            if file is not None:
                file.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    return outcomes


def _print_row(cells: Sequence[str], widths: Sequence[int]) -> None:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=False)]
    click.echo("  ".join([*padded, *cells[len(widths) :]]))


def _summarise(outcomes: Sequence[Outcome], late: Iterable[str]) -> None:
    noticed = [each for each in outcomes if each.is_noticed]
    real = [each for each in noticed if each.happened]
    click.echo(f"\n{len(noticed)} of {len(outcomes)} caught, {len(real)} of them faults that happened")
    for each in outcomes:
        if not each.is_noticed:
            click.echo(f"  {each.result}: {each.name}{' (expected at night)' if each.name in late else ''}")


def _list(faults: Sequence[Fault]) -> None:
    for fault in faults:
        happened = f", happened: {fault.happened}" if fault.happened else ""
        click.echo(f"{fault.name}  ({fault.room}, {fault.file}{happened})")
        click.echo(f"    {fault.of}: {' '.join(fault.promise.split())}")


def _clean(scratch: Scratch, faults: Sequence[Fault], tier: Tier, limit_s: float) -> int:
    """Run each command once, without a fault; the exit status."""
    steps = {step.argv: step for fault in faults for step in asked([fault.file], tier)}
    failures: list[Failure] = run_steps(scratch.root, list(steps.values()), tier, limit_s, keep_going=True)
    for failure in failures:
        click.echo(f"fails without a fault: {failure.suite}: {failure.test}")
    click.echo(f"{len(steps) - len(failures)} of {len(steps)} commands pass")
    return 1 if failures else 0


if __name__ == "__main__":
    main(prog_name="planted")

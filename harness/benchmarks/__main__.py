# SPDX-License-Identifier: Apache-2.0
"""`python -m benchmarks [NAME ...] [--quick] [--json FILE]`: measure, then print one table.

Exit status 0 when everything that was asked for has been measured, whether or not the targets were reached: a shared
host must not turn a figure into a failure. 1 when something could not be measured.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks.figure import Figure, Outcome
from benchmarks.host import host_line
from benchmarks.registry import BENCHMARKS, meter_of_this_host, run_benchmark
from benchmarks.table import print_table, write_json

NAMES = [benchmark.name for benchmark in BENCHMARKS]


@click.command(epilog="\n".join(["\b", *(f"{item.name:13} {item.what}" for item in BENCHMARKS)]))
@click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME]...")
@click.option("--quick", is_flag=True, help="Two short repeats: to see that it works, not to quote.")
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there too.")
def main(names: tuple[str, ...], quick: bool, file: Path | None) -> None:
    """Measure the figures that this project promises, side by side."""
    hosts = [f"host at the start: {host_line()}"]
    outcomes: list[Outcome] = []
    meter = meter_of_this_host()
    try:
        for benchmark in BENCHMARKS:
            if not names or benchmark.name in names:
                outcomes.extend(run_benchmark(benchmark, quick, meter))
    finally:
        hosts.append(f"host at the end:   {host_line()}")
        hosts.append(meter.line())
        if outcomes:
            print_table(outcomes, hosts, meter.best)
        if file is not None:
            write_json(file, outcomes, hosts, meter.best, quick=quick)
    sys.exit(0 if all(isinstance(item, Figure) for item in outcomes) else 1)


if __name__ == "__main__":
    main(prog_name="benchmarks")

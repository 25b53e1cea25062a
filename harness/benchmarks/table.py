# SPDX-License-Identifier: Apache-2.0
"""The one table at the end, and the same as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figure import Figure, Outcome, Target, number

MARKS = {"pass": "[green]pass[/]", "fail": "[red]FAIL[/]", None: ""}
PLAIN_WIDTH = 180


def print_table(outcomes: Sequence[Outcome], hosts: Sequence[str], best: float | None) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    table = Table(title=None, header_style="bold", pad_edge=False)
    for name in ("figure", "measured", "lowest to highest", "unit", "target or peer", "ratio", "", "host: free (best)"):
        table.add_column(name, justify="right" if name in ("measured", "ratio") else "left")
    subject = ""
    for outcome in outcomes:
        if outcome.subject != subject:
            subject = outcome.subject
            table.add_section()
            table.add_row(f"[bold]{subject}[/]")
        if isinstance(outcome, Figure):
            table.add_row(*_row(outcome, best))
        else:
            table.add_row(f"  {outcome.name}", "", "", "", "", "", "[yellow]not measured[/]", "")
    console.print(table)
    for outcome in outcomes:
        if not isinstance(outcome, Figure):
            console.print(f"not measured: {outcome.subject}, {outcome.name}: {outcome.why}", highlight=False)
    for line in hosts:
        console.print(line, highlight=False)
    console.print(_count(outcomes), highlight=False)


def write_json(
    path: Path, outcomes: Sequence[Outcome], hosts: Sequence[str], best: float | None, *, quick: bool
) -> None:
    figures = [item.to_json(best) for item in outcomes]
    document = {"version": 2, "hosts": list(hosts), "free_running_best": best, "quick": quick, "figures": figures}
    path.write_text(json.dumps(document, indent=1) + "\n")


def _row(figure: Figure, best: float | None) -> list[str]:
    low, high = figure.spread
    name = f"  {figure.name}" + (f" [dim]({figure.note})[/]" if figure.note else "")
    against = "" if figure.against is None else str(figure.against)
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    spread = f"{number(low)} to {number(high)}" if len(figure.values) > 1 else "once"
    host = figure.host(best)
    shown = f"[yellow]{host}[/]" if host.startswith("loaded") else host
    return [name, number(figure.median), spread, figure.unit, against, ratio, MARKS[figure.verdict], shown]


def _count(outcomes: Sequence[Outcome]) -> str:
    held = [item for item in outcomes if isinstance(item, Figure) and isinstance(item.against, Target)]
    passed = sum(item.verdict == "pass" for item in held)
    missing = sum(not isinstance(item, Figure) for item in outcomes)
    return f"{passed} of {len(held)} targets reached, {missing} not measured; measured are medians"

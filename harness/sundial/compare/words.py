# SPDX-License-Identifier: Apache-2.0
"""A comparison as text: for a terminal, as Markdown, as CSV. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from sundial.seams.compare import CapturePair, ComparedGroup, Comparison, Figures

MOST_GROUPS = 20
"""Of the terminal's table: those whose medians differ most."""
_SHOWN = 40
DASH = "-"
Rows = list[list[str]]


def run_rows(found: Comparison) -> Rows:
    """One row a run."""
    rows = [["", "RUN", "CLOCK", "SEED", "VERDICT"]]
    for run in found.runs:
        verdict = run.verdict or ("unverified" if run.status == "complete" else run.status or DASH)
        rows.append([run.label, run.run, run.clock or DASH, str(run.seed), verdict])
    return rows


def input_rows(found: Comparison) -> Rows:
    """One row an input that differs."""
    rows = [["INPUT", *(run.label for run in found.runs)]]
    for each in found.inputs:
        rows.append([each.key + ("" if each.wire else " (not on the wire)"), *map(value_text, each.values)])
    return rows


def capture_lines(found: Comparison) -> Iterator[tuple[str, list[str]]]:
    """Each capture in words, and the commands that show its first difference."""
    several = len(found.runs) > 2
    for pair in found.captures:
        name = f"{pair.capture} of {pair.label}" if several else pair.capture
        commands = [side.open for side in _sides(pair) if side is not None]
        yield f"{name}: {_in_words(pair)}", commands


def figure_rows(found: Comparison, groups: Sequence[ComparedGroup], *, blanked: bool = True) -> Rows:
    """One row a group and run; what repeats is left out if `blanked`."""
    real = found.method is not None
    head = [
        *(name.upper() for name in found.by),
        "RUN",
        "CALLS",
        "P50 µs",
        "RATIO",
        "P99 µs",
        "RATIO",
        "RETRANS",
        "ERRORS",
    ]
    rows = [[*head, "P50 DIFFERENCE µs"] if real else head]
    for group in groups:
        keys = [str(value) for value in group.key.values()]
        for place, (run, figures) in enumerate(zip(found.runs, group.runs, strict=True)):
            shown = [""] * len(keys) if blanked and place else keys
            rows.append([*shown, run.label, *_cells(figures), *([_interval(figures)] if real else [])])
    return rows


def shown_groups(found: Comparison) -> tuple[list[ComparedGroup], int, int]:
    """The groups for a terminal, in order: those that are not equal. How many are equal, and how many are left out."""
    unequal = [group for group in found.groups if not _equal(group)]
    ranked = sorted(range(len(unequal)), key=lambda place: -_distance(unequal[place]))
    chosen = sorted(ranked[:MOST_GROUPS])
    left_out = len(unequal) - len(chosen)
    return [unequal[place] for place in chosen], len(found.groups) - len(unequal), left_out


def markdown(found: Comparison) -> str:
    """The whole comparison, for a pull request or `$GITHUB_STEP_SUMMARY`."""
    parts = [_table(run_rows(found))]
    parts += [f"**{line}**" for line in (*found.alarms, *found.exceeded)]
    parts.append(_table(input_rows(found)) if found.inputs else "The inputs are equal.")
    parts.append("\n".join(f"- {line}" for line, _ in capture_lines(found)))
    if found.groups:
        parts.append(_table(figure_rows(found, found.groups, blanked=False)))
    parts += [f"{found.method}."] if found.method else []
    parts += [f"- {line}" for line in found.remarks]
    return "\n\n".join(part for part in parts if part) + "\n"


def csv_text(found: Comparison) -> str:
    """The figures: one line a group and run, numbers in full."""
    text = io.StringIO()
    names = [name for name in Figures.model_fields if name != "interval"]
    writer = csv.writer(text, lineterminator="\n")
    bounds = ["method", "p50_low_us", "p50_high_us", "p99_low_us", "p99_high_us"]
    writer.writerow([*found.by, "label", "run", *names, *bounds])
    for group in found.groups:
        for run, figures in zip(found.runs, group.runs, strict=True):
            if figures is None:
                continue
            interval = figures.interval
            ends = [interval.method, *interval.p50_us, *interval.p99_us] if interval else [""] * len(bounds)
            numbers = ["" if value is None else value for value in (getattr(figures, name) for name in names)]
            writer.writerow([*group.key.values(), run.label, run.run, *numbers, *ends])
    return text.getvalue()


def value_text(value: Any) -> str:
    """A value of run.json."""
    if value is None:
        return DASH
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _sides(pair: CapturePair) -> tuple[Any, ...]:
    return () if pair.difference is None else (pair.difference.first, pair.difference.other)


def _in_words(pair: CapturePair) -> str:
    if pair.equal:
        return "equal to the byte"
    if pair.difference is None:
        return "ports and octets of all frames are equal; their times differ"
    side = pair.difference.first or pair.difference.other
    if side is None:
        return pair.difference.words
    other = pair.difference.other
    where = f"frame {side.number} ({side.port}, {side.t_ns / 10**9:.9f} s"
    if other is not None and other is not side and other.port != side.port:
        where += f" | {other.port}, {other.t_ns / 10**9:.9f} s"
    counts = " | ".join(map(str, pair.frames))
    return f"differs from {where}): {pair.difference.words}; frames {counts}"


def _cells(figures: Figures | None) -> list[str]:
    if figures is None:
        return [DASH] * 7
    return [
        str(figures.calls),
        _number(figures.p50_us, 1),
        _number(figures.p50_ratio, 3),
        _number(figures.p99_us, 1),
        _number(figures.p99_ratio, 3),
        str(figures.retransmissions),
        str(figures.errors),
    ]


def _interval(figures: Figures | None) -> str:
    if figures is None or figures.interval is None:
        return DASH
    low, high = figures.interval.p50_us
    return f"{low:+.1f} to {high:+.1f} ({figures.interval.method})"


def _number(value: float | None, digits: int) -> str:
    return DASH if value is None else f"{value:.{digits}f}"


def _equal(group: ComparedGroup) -> bool:
    """True if all runs have the same figures."""
    names = ("calls", "errors", "retransmissions", "p50_us", "p99_us")
    figures = [None if each is None else [getattr(each, name) for name in names] for each in group.runs]
    return all(each == figures[0] for each in figures[1:])


def _distance(group: ComparedGroup) -> float:
    ratios = [figures.p50_ratio for figures in group.runs[1:] if figures is not None and figures.p50_ratio]
    return max((max(ratio, 1 / ratio) for ratio in ratios), default=float("inf"))


def _table(rows: Rows) -> str:
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

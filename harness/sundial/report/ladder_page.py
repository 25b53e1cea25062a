# SPDX-License-Identifier: Apache-2.0
"""The ladders of a report: of the slowest call, and of the call with the mismatch to begin with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from markupsafe import Markup

from sundial.errors import SundialError
from sundial.observe import RunDirectory, open_run
from sundial.report import ladder_svg, palette, topology_svg
from sundial.report.ladder_read import calls_of, first_finding, ladder_of, slowest
from sundial.verify.words import to_show
from sundial.whole import whole

MOST_BYTES = 256 << 20
"""Captures of a run whose ladders are drawn unasked."""
MOST_ROWS = 80
"""Of a ladder in a page, which would be longer than the rest of it otherwise."""
_LEAST_SCALE = 0.9
"""Its words are small: on a narrow screen it scrolls."""
_NAMES = ("client", "server", "app", "transport", "procedure", "size", "series", "thread", "batch", "call")


@dataclass(frozen=True)
class Shown:
    """One ladder in the page."""

    stem: str
    title: str
    number: int
    call: str
    outcome: str
    svg: Markup
    cut: int
    """Rows at its end that are not drawn."""


def draw(directory: Path, verify: Mapping[str, Any] | None, folder: Path) -> list[Shown]:
    """Draws the ladders and writes each as STEM.svg; none if the run has no calls, no captures, or too large ones."""
    try:
        run = open_run(directory)
        size = sum((directory / name).stat().st_size for name in run.captures if (directory / name).is_file())
        if size > MOST_BYTES:
            return []
        calls = calls_of(run)
    except SundialError:
        return []
    return list(_draw(run, calls, verify, folder))


def _draw(run: RunDirectory, calls: pl.DataFrame, verify: Mapping[str, Any] | None, folder: Path) -> Iterator[Shown]:
    numbers = {
        "ladder-finding": ("The call of the mismatch", _finding(calls, verify)),
        "ladder-slowest": ("The slowest call", slowest(calls)),
    }
    for stem, (title, number) in numbers.items():
        if number is None:
            continue
        try:
            ladder = ladder_of(run, calls, number)
        except SundialError:
            continue
        if not ladder.arrows:
            continue
        cut = max(0, len(ladder.rows) - MOST_ROWS)
        svg = ladder_svg.draw(replace(ladder, rows=ladder.rows[:MOST_ROWS]))
        with whole(folder / f"{stem}.svg") as beside:
            beside.write_text(svg, encoding="utf-8")
        width = topology_svg.natural_width(svg)
        inline = palette.themed(svg, stem, ladder_svg.in_words(ladder), width, _LEAST_SCALE)
        yield Shown(stem, title, number, _begun(ladder.title), _begun(ladder.outcome), Markup(inline), cut)


def _begun(words: str) -> str:
    """As the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def _finding(calls: pl.DataFrame, verify: Mapping[str, Any] | None) -> int | None:
    """The call of the mismatch that the page begins with; without one, the first call that failed."""
    problem = to_show((verify or {}).get("problems") or [])
    named = (problem or {}).get("call")
    if isinstance(named, Mapping):
        known = [pl.col(name).eq_missing(pl.lit(named[name])) for name in _NAMES if name in named]
        found = calls.filter(pl.all_horizontal(known)) if known else calls.clear()
        if not found.is_empty():
            return int(found["id"][0])
    return first_finding(calls)

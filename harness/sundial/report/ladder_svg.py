# SPDX-License-Identifier: Apache-2.0
"""A ladder as SVG text: time runs downwards, each frame is a line from its first bit at the sender to its last at the
receiver. Pure: the same ladder gives the same bytes.

Long pauses are shortened, and instants that are near each other are moved apart, so that all words can be read.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sundial.report import palette
from sundial.report.ladder import Arrow, Ladder, Row, in_time
from sundial.report.topology_svg import document

MARGIN = 14.0
TIME_WIDTH = 84.0
LANE = 128.0
LANE_LEAST = 96.0
LANES_WIDTH = 400.0
"""All lanes together, px, where there are several."""
WORDS_GAP = 16.0
WORDS_WIDTH = 380.0
CHAR = 6.1
"""Width of an average character at 11 px, px."""
LINE = 14.5
HEAD = 42.0
_LEAST, _MOST, _USUAL = 4.0, 46.0, 24.0
"""Between two instants, px: the least, the most, and that of a long one: four of five are shorter."""
_HEAD = 7.0
_LOST = 5.0


def draw(ladder: Ladder) -> str:
    """The ladder as one SVG document, in paper colours."""
    sheet = _sheet(ladder)
    parts = [*_lifelines(ladder, sheet)]
    for row in ladder.rows:
        parts += _row(ladder, sheet, row)
    return document(sheet.width, sheet.height, parts)


def in_words(ladder: Ladder) -> str:
    """The ladder for those who do not see it."""
    lost = sum(arrow.lost for arrow in ladder.arrows)
    again = sum(arrow.again for arrow in ladder.arrows)
    frames = len(ladder.arrows)
    counted = f"{frames} frame{'s' if frames != 1 else ''} between {', '.join(ladder.parties)}"
    return f"Ladder diagram of {ladder.title}; {ladder.outcome}. {counted}; {lost} lost, {again} sent again"


@dataclass(frozen=True)
class _Sheet:
    """Where everything is, in px. `y` is the height of each instant."""

    x: Mapping[str, float]
    y: Mapping[int, float]
    words_x: float
    width: float
    height: float
    pauses: tuple[tuple[float, float], ...]
    """Heights between which a pause is shortened."""


def _sheet(ladder: Ladder) -> _Sheet:
    lanes = max(1, len(ladder.parties) - 1)
    lane = LANE if lanes == 1 else max(LANE_LEAST, min(LANE, LANES_WIDTH / lanes))
    begin = MARGIN + TIME_WIDTH
    x = {name: begin + place * lane for place, name in enumerate(ladder.parties)}
    words_x = begin + lane * lanes + WORDS_GAP
    y, pauses = _heights(ladder)
    height = max(y.values(), default=HEAD) + max((LINE * len(_lines(row)) for row in ladder.rows[-1:]), default=0)
    return _Sheet(x, y, words_x, words_x + WORDS_WIDTH + MARGIN, height + 2 * MARGIN, tuple(pauses))


def _heights(ladder: Ladder) -> tuple[dict[int, float], list[tuple[float, float]]]:
    words: dict[int, float] = {}
    instants = set()
    for row in ladder.rows:
        words[row.at_ns] = words.get(row.at_ns, 0.0) + LINE * len(_lines(row)) + 3.0
        instants.add(row.at_ns)
        if row.arrow is not None and row.arrow.arrived_ns is not None:
            instants.add(row.arrow.arrived_ns)
    ordered = sorted(instants)
    gaps = sorted(later - earlier for earlier, later in itertools.pairwise(ordered))
    scale = _USUAL / max(1, gaps[len(gaps) * 4 // 5]) if gaps else 1.0
    y: dict[int, float] = {}
    pauses = []
    at, free = HEAD + 16.0, 0.0
    for place, instant in enumerate(ordered):
        above = at
        if place:
            wanted = (instant - ordered[place - 1]) * scale
            at += max(_LEAST, min(_MOST, wanted))
            if wanted > 4 * _MOST:
                pauses.append((above + 5, max(at, free if instant in words else at) - 5))
        if instant in words:
            at = max(at, free)
            free = at + words[instant]
        y[instant] = at
    return y, pauses


def _lifelines(ladder: Ladder, sheet: _Sheet) -> Iterator[str]:
    for name, x in sheet.x.items():
        role = palette.CLIENT if name == ladder.parties[0] else palette.INK
        role = palette.SERVER if name == ladder.parties[-1] else role
        yield _text(x, MARGIN + 12, name, anchor="middle", colour=palette.INK, size=12.5, bold=True)
        yield f'<rect x="{x - 3:.1f}" y="{MARGIN + 18:.1f}" width="6" height="6" fill="{role}"/>'
        at = MARGIN + 24
        for begin, end in sheet.pauses:
            yield _line(x, at, x, begin, palette.WIRE, 1.2)
            yield _line(x, begin, x, end, palette.WIRE, 1.2, dashes="2 4")
            at = end
        yield _line(x, at, x, sheet.height - MARGIN, palette.WIRE, 1.2)


def _row(ladder: Ladder, sheet: _Sheet, row: Row) -> Iterator[str]:
    y = sheet.y[row.at_ns]
    # Rows of one instant stand below each other.
    same = [each for each in ladder.rows if each.at_ns == row.at_ns]
    before = same[: next(place for place, each in enumerate(same) if each is row)]
    words_y = y + sum(LINE * len(_lines(each)) + 3.0 for each in before)
    at = in_time(row.at_ns - ladder.zero_ns)
    if not before:
        yield _text(MARGIN + TIME_WIDTH - 12, y + 3.5, at, anchor="end", colour=palette.MUTED, size=10.5)
    if row.arrow is None and not row.party:
        yield _line(min(sheet.x.values()), y, max(sheet.x.values()), y, palette.WIRE, 1, dashes="2 4")
    elif row.arrow is None:
        yield f'<circle cx="{sheet.x[row.party]:.1f}" cy="{y:.1f}" r="4" fill="{palette.INK}"/>'
    else:
        yield from _arrow(ladder, sheet, row.arrow, y, summary=row.count > 1)
    for place, (words, alarm) in enumerate(_lines(row)):
        colour = palette.ALARM if alarm else palette.INK if row.arrow else palette.MUTED
        yield _text(sheet.words_x, words_y + 3.5 + LINE * place, words, colour=colour, size=11)


def _arrow(ladder: Ladder, sheet: _Sheet, arrow: Arrow, y: float, *, summary: bool) -> Iterator[str]:
    begin = sheet.x[arrow.source]
    end = sheet.x[_end(ladder, arrow)]
    colour = palette.ALARM if arrow.lost or arrow.notes else palette.INK
    dashes = "1.5 3.5" if summary else "6 3" if arrow.again else ""
    if arrow.arrived_ns is None:
        middle, below = (begin + end) / 2, y + 8
        yield _line(begin, y, middle, below, colour, 1.5, dashes=dashes)
        if arrow.lost:
            for slope in (-_LOST, _LOST):
                yield _line(middle - _LOST, below - slope, middle + _LOST, below + slope, colour, 2)
        return
    arrived = sheet.y[arrow.arrived_ns]
    side = _HEAD if end > begin else -_HEAD
    yield _line(begin, y, end - side / 2, arrived, colour, 1.5, dashes=dashes)
    tip = f"{end:.1f},{arrived:.1f} {end - side:.1f},{arrived - 3.6:.1f} {end - side:.1f},{arrived + 3.6:.1f}"
    yield f'<polygon points="{tip}" fill="{colour}"/>'


def _end(ladder: Ladder, arrow: Arrow) -> str:
    """The lifeline that the arrow points at; without a known one, the next towards the other end."""
    if arrow.target in ladder.parties and arrow.target != arrow.source:
        return str(arrow.target)
    place = ladder.parties.index(arrow.source)
    return ladder.parties[place - 1 if place == len(ladder.parties) - 1 and place else place + 1]


def _together(words: str) -> str:
    """The same, never broken into lines."""
    return words.replace(" ", "\N{NO-BREAK SPACE}")


def _lines(row: Row) -> list[tuple[str, bool]]:
    """The words of a row, broken into lines, and whether they say that something happened to the frame."""
    if row.arrow is None:
        return [(row.event, False)]
    arrow = row.arrow
    if row.count > 1:
        return [(f"{row.count} more like it{', ' if row.also else ''}{row.also}", False)]
    again = "sent again: " if arrow.again else ""
    time = f" +{_together(in_time(arrow.transit_ns))}" if arrow.transit_ns is not None else ""
    unknown = "" if arrow.lost or arrow.arrived_ns is not None else " (its arrival is not in the capture)"
    room = int(WORDS_WIDTH / CHAR)
    lines = [(line, False) for line in textwrap.wrap(f"{again}{arrow.words or arrow.head.words}{time}{unknown}", room)]
    return lines + [(line, True) for note in arrow.remarks for line in textwrap.wrap(note, room)]


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{dashed}/>'
    )


def _text(
    x: float, y: float, words: str, *, colour: str, size: float, anchor: str = "start", bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"{weight}>'
        f"{escape(words)}</text>"
    )

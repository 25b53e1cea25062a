# SPDX-License-Identifier: Apache-2.0
"""A ladder in a terminal: times on the left, a lifeline for each party, words on the right. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from sundial.report.ladder import Arrow, Ladder, Row, in_time

WIDTH = 80
"""Columns where there is no terminal."""
_TIME = 13
"""Columns of the time and the space behind it."""
_LANE, _LANE_LEAST = 16, 10
"""Columns from one lifeline to the next; narrower lanes leave room for words."""
_WORDS_LEAST = 30
_TOGETHER = "\N{NO-BREAK SPACE}"
"""A space at which a line is not broken."""


@dataclass(frozen=True)
class Marks:
    """Characters to draw with."""

    line: str
    dash: str
    again: str
    right: str
    left: str
    lost: str
    event: str
    more: str
    indent: str


UNICODE = Marks("│", "─", "╌", "▶", "◀", "✕", "●", "┄", "└ ")
ASCII = Marks("|", "-", "=", ">", "<", "X", "*", ".", "`- ")


def draw(ladder: Ladder, *, width: int = WIDTH, unicode: bool = True) -> str:
    """The ladder as lines of at most `width` columns, if that is possible at all."""
    marks = UNICODE if unicode else ASCII
    lanes = max(1, len(ladder.parties) - 1)
    lane = max(_LANE_LEAST, min(_LANE, (width - _TIME - _WORDS_LEAST) // lanes))
    paper = _Paper(ladder, marks, lane, width)
    lines = [*paper.text(ladder.title), *paper.text(ladder.outcome), "", paper.head()]
    for row in ladder.rows:
        lines += paper.row(row)
    if ladder.hidden:
        lines += ["", *paper.text(f"{ladder.hidden} like frames are summarised; --all draws each.")]
    for remark in ladder.remarks:
        lines += ["", *paper.text(remark)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


@dataclass(frozen=True)
class _Paper:
    ladder: Ladder
    marks: Marks
    lane: int
    width: int

    @property
    def indent(self) -> int:
        """Columns in front of the words."""
        return _TIME + self.lane * (len(self.ladder.parties) - 1) + 3

    def text(self, words: str) -> list[str]:
        return textwrap.wrap(words, self.width) or [""]

    def head(self) -> str:
        """The names of the parties above their lifelines."""
        line = "time".rjust(_TIME - 2) + "  "
        for place, name in enumerate(self.ladder.parties):
            last = place == len(self.ladder.parties) - 1
            room = self.width - len(line) if last else self.lane - 1
            line = line.ljust(_TIME + self.lane * place) + _short(name, room)
        return line

    def row(self, row: Row) -> list[str]:
        """The line of a row, and lines for what does not fit beside it."""
        at = in_time(row.at_ns - self.ladder.zero_ns).rjust(_TIME - 2)
        if row.arrow is None:
            place = self.ladder.parties.index(row.party) if row.party else None
            return self._with_words(at, self._lifelines(place), [row.event])
        if row.count > 1:
            until = in_time(row.last_ns - self.ladder.zero_ns)
            words = [f"{row.count} more like it, until {until}", *([row.also] if row.also else [])]
            return self._with_words(at, self._arrow(row.arrow, self.marks.more), words)
        return self._with_words(at, self._arrow(row.arrow, None), _words(row.arrow))

    def _lifelines(self, event: int | None = None) -> list[str]:
        line = [" "] * (self.lane * (len(self.ladder.parties) - 1) + 1)
        for place in range(len(self.ladder.parties)):
            line[place * self.lane] = self.marks.event if place == event else self.marks.line
        return line

    def _arrow(self, arrow: Arrow, dash: str | None) -> list[str]:
        marks, parties = self.marks, self.ladder.parties
        line = self._lifelines()
        begin = parties.index(arrow.source)
        end = self._end(arrow)
        step = 1 if end > begin else -1
        first, last = begin * self.lane + step, end * self.lane - step
        shaft = dash or (marks.again if arrow.again else marks.dash)
        if arrow.arrived_ns is None:
            last = (first + last) // 2
        for at in range(first, last + step, step):
            if at % self.lane:
                line[at] = shaft
        if arrow.lost:
            line[last] = marks.lost
        else:
            line[last] = marks.right if step > 0 else marks.left
        return line

    def _end(self, arrow: Arrow) -> int:
        """The lifeline that the arrow points at; without a known one, the next towards the other end."""
        parties = self.ladder.parties
        begin = parties.index(arrow.source)
        if arrow.target in parties and arrow.target != arrow.source:
            return parties.index(str(arrow.target))
        return begin - 1 if begin == len(parties) - 1 and begin else begin + 1

    def _with_words(self, at: str, drawn: Sequence[str], words: Sequence[str]) -> list[str]:
        room = max(self.width - self.indent, 20)
        lines = []
        for place, each in enumerate(words):
            mark = self.marks.indent if place else ""
            lines += textwrap.wrap(each, room, initial_indent=mark, subsequent_indent="  " if place else "") or [""]
        first, *others = [line.replace(_TOGETHER, " ") for line in lines] or [""]
        blank = "".join(self._lifelines())
        result = [f"{at}  {''.join(drawn)}  {first}"]
        result += [f"{'':{_TIME}}{blank}  {each}" for each in others]
        return result


def _words(arrow: Arrow) -> list[str]:
    """What the frame is and how long it took; then each thing that happened to it."""
    again = "sent again: " if arrow.again else ""
    time = f" +{in_time(arrow.transit_ns).replace(' ', _TOGETHER)}" if arrow.transit_ns is not None else ""
    unknown = "" if arrow.lost or arrow.arrived_ns is not None else " (its arrival is not in the capture)"
    return [f"{again}{arrow.words or arrow.head.words}{time}{unknown}", *arrow.remarks]


def _short(name: str, room: int) -> str:
    return name if len(name) <= room else name[: max(1, room - 1)] + "~"

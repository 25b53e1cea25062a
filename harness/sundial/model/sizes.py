# SPDX-License-Identifier: Apache-2.0
"""Argument sizes as written: numbers, ranges `FIRST:LAST:STEP`, and the words `edges` and `cell-edges`.

`edges` means every size at and next to a change in the number of packets, `cell-edges` the same for cells. `expect`
computes these sizes once the wires are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import Marker

SIZE_MOST = 1 << 20
"""Largest argument of any transport, in bytes."""
COUNT_MOST = 10_000
EDGES = "edges"
CELL_EDGES = "cell-edges"
WORDS = (EDGES, CELL_EDGES)
ALLOWED = (
    f"bytes from 0 to {SIZE_MOST}, ranges FIRST:LAST:STEP, and the words 'edges' and 'cell-edges', "
    "in a list or separated by commas"
)

_RANGE = re.compile(r"([0-9]{1,9}):([0-9]{1,9})(?::([0-9]{1,9}))?")

SizeItem = int | range | str
"""A size, a range with its last size included, or one of WORDS."""


class Sizes(Marker):
    """A list of SizeItem; the value is a tuple in the order written."""

    def parse(self, value: object) -> tuple[SizeItem, ...]:
        if isinstance(value, str):
            value = value.split(",")
        if isinstance(value, int) and not isinstance(value, bool):
            value = [value]
        if not isinstance(value, list | tuple):
            raise BadInput(f"{value!r} is not a list of sizes", allowed=ALLOWED)
        items = tuple(_item(part) for part in value)
        if not items:
            raise BadInput("the list of sizes is empty", allowed=ALLOWED)
        count = sum(len(item) if isinstance(item, range) else 1 for item in items)
        if count > COUNT_MOST:
            raise BadInput(f"{count} sizes are too many", allowed=f"up to {COUNT_MOST}")
        return items

    def show(self, value: tuple[SizeItem, ...]) -> list[int | str]:
        return [f"{item[0]}:{item[-1]}:{item.step}" if isinstance(item, range) else item for item in value]

    def schema(self) -> dict[str, Any]:
        item: dict[str, Any] = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": SIZE_MOST}, {"type": "string"}]}
        every: list[dict[str, Any]] = [*item["anyOf"], {"type": "array", "items": item, "minItems": 1}]
        return {"anyOf": every, "x-allowed": ALLOWED}


def _item(part: object) -> SizeItem:
    if isinstance(part, int) and not isinstance(part, bool):
        return _size(part)
    text = str(part).strip() if isinstance(part, str) else ""
    if text in WORDS:
        return text
    if text.isdecimal() and len(text) < 10:
        return _size(int(text))
    match = _RANGE.fullmatch(text)
    if match is None:
        raise BadInput(f"{part!r} is not a size", allowed=ALLOWED)
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if first > last or step == 0:
        raise BadInput(f"{part!r} is not a range", allowed="FIRST:LAST:STEP with FIRST <= LAST and STEP >= 1")
    _size(first)
    _size(last)
    return range(first, last + 1, step)


def _size(size: int) -> int:
    if not 0 <= size <= SIZE_MOST:
        raise BadInput(f"{size} is out of range", allowed=ALLOWED)
    return size


Search = Callable[[int, int], list[int]]
"""(smallest, largest) to the sizes next to a change between them."""


def expand(items: Sequence[SizeItem], searches: Mapping[str, Search], fallback: tuple[int, int]) -> list[int]:
    """All sizes, ascending, each once.

    `searches` find the sizes of words, between the least and the greatest size that is written, or between those of
    `fallback` if only words are written.
    """
    plain: set[int] = set()
    for item in items:
        plain.update(item if isinstance(item, range) else [] if isinstance(item, str) else [item])
    smallest, largest = (min(plain), max(plain)) if plain else fallback
    for word in dict.fromkeys(item for item in items if isinstance(item, str)):
        plain.update(searches[word](smallest, largest))
    return sorted(plain)

# SPDX-License-Identifier: Apache-2.0
"""Words of programs: field types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import Marker

WORDS_MOST = 250


class Word(Marker):
    """Text for a program without NUL; a number is its digits."""

    ALLOWED = "text without NUL, or a number"

    def __init__(self, least: int = 0) -> None:
        self._least = least

    def parse(self, value: object) -> str:
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or "\0" in value or len(value) < self._least:
            raise BadInput(f"{value!r} is not text", allowed=self.ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["string", "number"], "minLength": self._least, "x-allowed": self.ALLOWED}


class Argv(Marker):
    """A program and its arguments as a list of words."""

    ALLOWED = f"a list of 1 to {WORDS_MOST} words: the program and its arguments"

    def parse(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= WORDS_MOST:
            raise BadInput(f"{value!r} is not a list of words", allowed=self.ALLOWED)
        words = tuple(Word().parse(each) for each in value)
        if not words[0]:
            raise BadInput("the program is empty", allowed=self.ALLOWED)
        return words

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": Word().schema(), "minItems": 1, "x-allowed": self.ALLOWED}

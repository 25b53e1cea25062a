# SPDX-License-Identifier: Apache-2.0
"""Field types of programs."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import NAME, Marker, Text

WORDS_MOST = 250
PORT_MOST = 65535

VARIABLE = Text(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), "a name such as LANG", 64)
FILE = Text(re.compile(r"(?:/[\w.+@-]+)+"), "an absolute path such as /srv/index.html", 250)


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


class Names(Marker):
    """Names in a list or with commas between."""

    ALLOWED = "names of programs"

    def parse(self, value: object) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            raise BadInput(f"{value!r} is not a list of names", allowed=self.ALLOWED)
        names = [part.strip() for part in parts]
        for name in names:
            if not NAME.fullmatch(name):
                raise BadInput(f"{name!r} is not a name", allowed=self.ALLOWED)
        return tuple(dict.fromkeys(names))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "array", "items": text}], "x-allowed": self.ALLOWED}


class PortOrName(Marker):
    """A port by its number, or by a name of `ports`."""

    ALLOWED = f"a number from 1 to {PORT_MOST}, or a name of `ports`"

    def parse(self, value: object) -> int | str:
        if isinstance(value, str) and NAME.fullmatch(value):
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= PORT_MOST:
            raise BadInput(f"{value!r} is not a port", allowed=self.ALLOWED)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": ["integer", "string"], "x-allowed": self.ALLOWED}


class Pattern(Marker):
    """A regular expression of Python."""

    ALLOWED = "a regular expression"

    def parse(self, value: object) -> str:
        if not isinstance(value, str) or not value:
            raise BadInput(f"{value!r} is not a regular expression", allowed=self.ALLOWED)
        try:
            re.compile(value)
        except re.error as error:
            raise BadInput(f"{value!r} is not a regular expression: {error}", allowed=self.ALLOWED) from None
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "x-allowed": self.ALLOWED}


class Unused(Marker):
    """A field of other workloads that this one does not have: it keeps its default."""

    def __init__(self, name: str, default: object, instead: str) -> None:
        self._name, self._default, self._instead = name, default, instead

    def parse(self, value: object) -> Any:
        if value != self._default:
            raise BadInput(f"app: command has no field {self._name}", allowed=self._instead)
        return self._default

    def schema(self) -> dict[str, Any]:
        return {"const": self._default, "x-allowed": self._instead}

# SPDX-License-Identifier: Apache-2.0
"""The options of one program: the JSON object in argv[1].

Anything wrong is reported on the record stream with the option's name and what is allowed, and ends the program with status 2: an
experiment must never run with other settings than were asked for.

    SPEC = {"server": Text(), "port": Integer(1, 65535, absent=18861), "container": Word("list", "tuple")}
    chosen = read(options, SPEC)      # chosen.port is 18861 where it was left out
"""

import json
import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol

from sundial_guest.samples import refuse


class Kind(Protocol):
    """What an option can be."""

    @property
    def allowed(self) -> str:
        """What it must be, as an error line says it."""

    @property
    def absent(self) -> Any:
        """Its value where it is left out or null; `REQUIRED` where it must not be."""

    def takes(self, value: Any) -> bool:
        """Whether it may be this."""


REQUIRED = object()


class Integer:
    """A whole number from `least` to `most`."""

    def __init__(self, least: int, most: int, *, absent: Any = REQUIRED) -> None:
        self._least, self._most, self.absent = least, most, absent
        self.allowed = f"an integer from {least} to {most}"

    def takes(self, value: Any) -> bool:
        return type(value) is int and self._least <= value <= self._most


class Boolean:
    """true or false."""

    allowed = "true or false"

    def __init__(self, *, absent: bool) -> None:
        self.absent = absent

    def takes(self, value: Any) -> bool:
        return type(value) is bool


class Text:
    """Characters, at least one."""

    allowed = "a text"

    def __init__(self, *, absent: Any = REQUIRED) -> None:
        self.absent = absent

    def takes(self, value: Any) -> bool:
        return isinstance(value, str) and value != ""


class Word:
    """One of some words; the first where it is left out."""

    def __init__(self, *words: str) -> None:
        self._words, self.absent = words, words[0]
        self.allowed = "one of " + ", ".join(f'"{word}"' for word in words)

    def takes(self, value: Any) -> bool:
        return isinstance(value, str) and value in self._words


class Words:
    """An array of some words, each any number of times; at least one."""

    def __init__(self, *words: str, absent: Any = REQUIRED) -> None:
        self._word, self.absent = Word(*words), absent
        self.allowed = "an array of words, each " + self._word.allowed

    def takes(self, value: Any) -> bool:
        return isinstance(value, list) and value != [] and all(map(self._word.takes, value))


def parse(arguments: list[str]) -> dict[str, Any]:
    """The object in argv[1]; ends the program where it is none."""
    if len(arguments) != 2:
        refuse(f"usage: {arguments[0]} OPTIONS (one JSON object)")
    try:
        options = json.loads(arguments[1], object_pairs_hook=_object)
    except ValueError as error:
        refuse(f"options: {error}")
    if not isinstance(options, dict):
        refuse("options: must be a JSON object")
    return options


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice")
    return found


def read(options: Mapping[str, Any], spec: Mapping[str, Kind]) -> SimpleNamespace:
    """Every option of `spec` by its name. With SUNDIAL_CHECK_OPTIONS in the environment the program ends here."""
    chosen = {}
    for name, kind in spec.items():
        value = options.get(name)
        if value is None:
            value = kind.absent
            if value is REQUIRED:
                refuse(f"option {name}: must be {kind.allowed}")
        elif not kind.takes(value):
            refuse(f"option {name}: must be {kind.allowed}")
        chosen[name] = value
    for name in options:
        if name not in spec:
            refuse(f"option {name}: unknown; there are {', '.join(spec)}")
    if "SUNDIAL_CHECK_OPTIONS" in os.environ:
        sys.exit(0)
    return SimpleNamespace(**chosen)

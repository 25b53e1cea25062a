# SPDX-License-Identifier: Apache-2.0
"""Field types of workloads: numbers of calls, words of a fixed set, names of machines."""

from __future__ import annotations

import re
from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import NAMED, Marker, Whole

CALLS_MOST = 1_000_000
EVERYONE = "*"

_CALLS = Whole(1, CALLS_MOST)


class Calls(Marker):
    """Calls for each size: one number, or a mapping from sizes to numbers, each for its size and larger ones.

    The value is a tuple of (size, calls), ascending, beginning at 0.
    """

    ALLOWED = f"{_CALLS.allowed}, or a mapping such as {{0: 3000, 1024: 1000}}: calls from that size upward"

    def parse(self, value: object) -> tuple[tuple[int, int], ...]:
        if isinstance(value, int) and not isinstance(value, bool):
            return ((0, _CALLS.parse(value)),)
        if not isinstance(value, dict) or 0 not in value:
            raise BadInput(f"{value!r} is not a number of calls", allowed=self.ALLOWED)
        steps = []
        for size, calls in value.items():
            if not isinstance(size, int) or size < 0:
                raise BadInput(f"{size!r} is not a size", allowed=self.ALLOWED)
            steps.append((size, _CALLS.parse(calls)))
        return tuple(sorted(steps))

    def show(self, value: tuple[tuple[int, int], ...]) -> int | dict[int, int]:
        return value[0][1] if len(value) == 1 else dict(value)

    def schema(self) -> dict[str, Any]:
        one = _CALLS.schema()
        steps = {"type": "object", "propertyNames": {"pattern": "^[0-9]+$"}, "additionalProperties": one}
        return {"anyOf": [one, steps], "x-allowed": self.ALLOWED}


class Words(Marker):
    """One or more words of a fixed set, in a list or with commas between; the value is a tuple, each once.

    YAML reads a bare `null` as no value; it becomes the word if `null` is one of the words.
    """

    def __init__(self, *words: str) -> None:
        self.words = words
        self.allowed = f"one or more of {', '.join(words)}"

    def parse(self, value: object) -> tuple[str, ...]:
        items = value if isinstance(value, list | tuple) else [value]
        named = ["null" if item is None and "null" in self.words else item for item in items]
        for item in named:
            if not isinstance(item, str):
                raise BadInput(f"{item!r} is unknown", allowed=self.allowed)
        given = _listed(named) if isinstance(value, list | tuple) else _listed(named[0])
        for word in given:
            if word not in self.words:
                raise BadInput(f"{word!r} is unknown", allowed=self.allowed)
        if not given:
            raise BadInput("the list is empty", allowed=self.allowed)
        return tuple(dict.fromkeys(given))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        one = {"enum": [*self.words, None] if "null" in self.words else list(self.words)}
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}], "x-allowed": self.allowed}


class Trace(Marker):
    """`none`, `steps`, or names of functions in a list: `NAME` of a program or the kernel, `kernel:NAME` of the kernel.

    The value is the word, or a tuple of the names, each once.
    """

    WORDS = ("none", "steps")
    ALLOWED = "none, steps, or a list of up to 256 functions, such as [clnt_dg_call, kernel:udp_sendmsg]"
    MOST = 256
    _NAME = re.compile(r"(kernel:)?[A-Za-z_.][\w.$]{0,127}")

    def parse(self, value: object) -> str | tuple[str, ...]:
        if isinstance(value, str) and value in self.WORDS:
            return value
        if not isinstance(value, list | tuple) or not 0 < len(value) <= self.MOST:
            raise BadInput(f"{value!r} is invalid", allowed=self.ALLOWED)
        for name in value:
            if not isinstance(name, str) or not self._NAME.fullmatch(name):
                raise BadInput(f"{name!r} is not a valid function name", allowed=self.ALLOWED)
        return tuple(dict.fromkeys(value))

    def show(self, value: str | tuple[str, ...]) -> str | list[str]:
        return value if isinstance(value, str) else list(value)

    def schema(self) -> dict[str, Any]:
        name = {"type": "string", "pattern": f"^{self._NAME.pattern}$"}
        names = {"type": "array", "items": name, "minItems": 1, "maxItems": self.MOST}
        return {"anyOf": [{"enum": list(self.WORDS)}, names], "x-allowed": self.ALLOWED}


class Machines(Marker):
    """Names of machines in a list or with commas between, or `*`; the value is a tuple, each once."""

    ALLOWED = f"names of machines, or '{EVERYONE}': every host except the server"

    def parse(self, value: object) -> tuple[str, ...]:
        given = _listed(value)
        if not given:
            raise BadInput(f"{value!r} is not a name of a machine", allowed=self.ALLOWED)
        if given == [EVERYONE]:
            return (EVERYONE,)
        for name in given:
            NAMED.parse(name)
        return tuple(dict.fromkeys(given))

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        text = {"type": "string"}
        return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}], "x-allowed": self.ALLOWED}


def _listed(value: object) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        return []
    return [part.strip() for part in parts]

# SPDX-License-Identifier: Apache-2.0
"""The twelve functions as scenarios name them."""

from __future__ import annotations

from typing import Any

from sundial.errors import BadInput
from sundial.model.fields import Marker
from sundial.workloads import functions

ALL = "all"


class FunctionWords(Marker):
    """`all`, names, or numbers of functions, in a list or with commas between; the value is a tuple of names, each
    once."""

    ALLOWED = f"all, or one or more of {', '.join(functions.NAMES)}, or their numbers from 1 to {len(functions.NAMES)}"

    def parse(self, value: object) -> tuple[str, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        items = parts if isinstance(parts, list | tuple) else [parts]
        names = [self._name(item.strip() if isinstance(item, str) else item) for item in items]
        if not names:
            raise BadInput("the list is empty", allowed=self.ALLOWED)
        return functions.NAMES if ALL in names else tuple(dict.fromkeys(names))

    def _name(self, item: object) -> str:
        if isinstance(item, str) and item.isdecimal():
            item = int(item)
        if isinstance(item, int) and not isinstance(item, bool) and 1 <= item <= len(functions.NAMES):
            return functions.NAMES[item - 1]
        if isinstance(item, str) and (item == ALL or item in functions.BY_NAME):
            return item
        raise BadInput(f"{item!r} is unknown", allowed=self.ALLOWED)

    def show(self, value: tuple[str, ...]) -> list[str]:
        return list(value)

    def schema(self) -> dict[str, Any]:
        one = {
            "anyOf": [
                {"enum": list(functions.NAMES)},
                {"type": "integer", "minimum": 1, "maximum": len(functions.NAMES)},
            ]
        }
        many = {"type": "array", "items": one, "minItems": 1}
        return {"anyOf": [{"const": ALL}, {"type": "string"}, one, many], "x-allowed": self.ALLOWED}

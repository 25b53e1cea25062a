# SPDX-License-Identifier: Apache-2.0
"""Templates in the words of programs: names in braces. Pure text."""

from __future__ import annotations

import re
from collections.abc import Callable

from sundial.errors import BadInput

_PARTS = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\{")
ALLOWED = "{{ and }} for braces"


def filled(text: str, value: Callable[[str], str | None], known: Callable[[], str]) -> str:
    """`text` with each {NAME} replaced by its value. `known`: what can be written, for the message.

    Raises BadInput for a name without value (`value` answers None) and for an open brace.
    """

    def part(found: re.Match[str]) -> str:
        piece, name = found.group(), found.group(1)
        if piece in ("{{", "}}"):
            return piece[0]
        if name is None:
            raise BadInput(f"{{ in {_short(text)} is not closed", allowed=ALLOWED)
        answer = value(name)
        if answer is None:
            raise BadInput(f"{piece} is unknown", allowed=f"{known()}; {ALLOWED}")
        return answer

    return _PARTS.sub(part, text)


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")

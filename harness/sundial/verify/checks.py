# SPDX-License-Identifier: Apache-2.0
"""What the user's own program said about a run (`expect.check`, check.json). Pure.

Exit status 0 is pass. A line of its standard output may be a JSON object with `pass` (true or false), and perhaps
`check` (a name) and `words`: each such line is an outcome of its own. The last other line says what the program found.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

import polars as pl

from sundial.verify.findings import Finding, as_table

FIELD = "check"
"""Fields of findings begin with it (rule `expect.check`)."""
LISTED = 1000
WORDS_MOST = 1000


@dataclass(frozen=True)
class Outcome:
    """One property that the program judged, or the program itself."""

    check: str
    met: bool
    words: str

    def to_json(self) -> dict[str, Any]:
        """As verify.json has it."""
        return asdict(self)


def outcomes(words: Sequence[str], result: Mapping[str, Any] | None) -> list[Outcome]:
    """What the program came to. `words`: of the scenario; `result`: check.json, None where there is none."""
    name = PurePath(words[0]).name
    if result is None:
        return [Outcome(name, False, "it has not been run")]
    if result.get("argv") != list(words):
        return [Outcome(name, False, "the result is of another program")]
    plain: list[str] = []
    found = list(_of_lines(name, str(result.get("stdout")), plain))
    return [*found[:LISTED], _of_program(name, result, plain)]


def _of_lines(name: str, text: str, plain: list[str]) -> Iterator[Outcome]:
    """Outcomes of JSON lines; other lines with text go to `plain`."""
    for line in text.splitlines():
        said = _object(line)
        if said is not None:
            yield Outcome(
                f"{name} {said.get('check', '')}".strip(), said["pass"], str(said.get("words", ""))[:WORDS_MOST]
            )
        elif line.strip():
            plain.append(line.strip())


def _object(line: str) -> dict[str, Any] | None:
    try:
        said = json.loads(line) if line.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and isinstance(said.get("pass"), bool) else None


def _of_program(name: str, result: Mapping[str, Any], plain: Sequence[str]) -> Outcome:
    errors = [line.strip() for line in str(result.get("stderr")).splitlines() if line.strip()]
    status, number = result.get("status"), result.get("signal")
    if result.get("timed_out"):
        end = "it did not end in its time"
    elif result.get("error"):
        end = f"it cannot be run: {result['error']}"
    elif number is not None:
        end = f"signal {_signal(number)} ended it"
    else:
        end = "" if status in (0, 1) else f"status {status}"
    said = (plain if plain and status in (0, 1) else errors or plain)[-1:]
    words = ": ".join([*([end] if end else []), *said])[:WORDS_MOST]
    return Outcome(name, status == 0 and not result.get("timed_out"), words or f"status {status}")


def _signal(number: Any) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def check(found: Sequence[Outcome]) -> pl.DataFrame:
    """A finding for each outcome that is not pass."""
    return as_table(Finding(None, f"{FIELD} {each.check}", "pass", each.words) for each in found if not each.met)

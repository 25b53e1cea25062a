# SPDX-License-Identifier: Apache-2.0
"""Verdicts as Markdown, for the summary page of a CI system. Pure: documents in, text out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from sundial.units import counted
from sundial.verify.junit import Ended
from sundial.verify.words import grouped, in_words, open_command

LISTED = 5
DASH = "-"
_BAR = "\\|"


def document(ended: Sequence[Ended]) -> str:
    """A table of the runs, then what each came to."""
    lines = ["## Sundial", "", "| run | verdict | calls | mismatches |", "| --- | --- | ---: | ---: |"]
    lines += [_row(each) for each in ended]
    for each in ended:
        lines += ["", *_details(each)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _row(ended: Ended) -> str:
    verdict = ended.verdict or {}
    error = ended.failure
    words = str(verdict.get("verdict")) if error is None else f"error ({error.get('exit_code', 'run')})"
    mark = "✅" if ended.passed else "❌"
    numbers = (str(verdict.get(name, DASH)) for name in ("calls", "mismatches"))
    return f"| {_cell(ended.name)} | {mark} {words} | {' | '.join(numbers)} |"


def _details(ended: Ended) -> Iterator[str]:
    yield f"### {_cell(ended.name)}"
    yield ""
    if ended.failure is not None:
        yield from (f"- {_code(line)}" for line in str(ended.failure.get("message")).splitlines())
        yield ""
    verdict = ended.verdict or {}
    bounds = verdict.get("bounds") or []
    if bounds:
        yield "| bound | | seen |"
        yield "| --- | --- | --- |"
        for each in bounds:
            mark = "✅" if each["met"] else "❌"
            yield f"| {_code(each['bound']).replace('|', _BAR)} | {mark} | {each['words']} |"
        yield ""
    checks = verdict.get("checks") or []
    if checks:
        yield "| check | | words |"
        yield "| --- | --- | --- |"
        for each in checks:
            yield f"| {_cell(each['check'])} | {'✅' if each['met'] else '❌'} | {_plain(each['words'])} |"
        yield ""
    shown = grouped(verdict.get("problems") or [])
    for problem in shown[:LISTED]:
        yield f"- {_plain(in_words(problem))}"
        command = open_command(ended.reference or "latest", problem)
        if command:
            yield f"  {_code(command)}"
    if len(shown) > LISTED:
        yield f"- and {counted(len(shown) - LISTED, 'more line')} in verify.json"
    if ended.command:
        yield ""
        yield f"Repeat it: {_code(shlex.join(ended.command))}"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _plain(text: str) -> str:
    """Text without anything that Markdown would take for markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in " ".join(text.split()))


def _code(text: str) -> str:
    """As code, with as many back quotes around it as it takes."""
    words = " ".join(text.split())
    if "`" not in words:
        return f"`{words}`"
    quotes = "`" * (1 + max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0))
    return f"{quotes} {words} {quotes}"

# SPDX-License-Identifier: Apache-2.0
"""page.md of a paper: what its page says, in Markdown, with the numbers of the results filled in by Jinja.

`## ANCHOR` begins the prose of a section, `### Remarks` what is below its tables, any other `###` paragraphs behind a
fold with that title.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateSyntaxError, meta
from markdown_it import MarkdownIt
from markupsafe import Markup

from sundial.errors import BadInput
from sundial.report.tables import decimal, whole

REMARKS = "Remarks"
GIVEN = ("paper", "results")
"""What page.md may name."""
_MARKDOWN = MarkdownIt("commonmark", {"html": False})
_HEADING = re.compile(r"^(##|###) (.+)$")


@dataclass
class Prose:
    """Of one section; each text is one paragraph of Markdown."""

    text: str = ""
    remarks: str = ""
    reasons: list[str] = field(default_factory=list)
    reasons_title: str = ""


def markdown(text: str) -> Markup:
    """A paragraph as HTML."""
    return Markup(_MARKDOWN.renderInline(text))


def check_prose(path: Path, anchors: Sequence[str]) -> None:
    """Raises BadInput for a heading without a section, and for what Jinja cannot fill in."""
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        heading = _HEADING.match(line)
        if heading and heading[1] == "##" and heading[2] not in anchors:
            raise BadInput(f"no section {heading[2]!r}", file=str(path), line=number, allowed=", ".join(anchors))
    try:
        unknown = meta.find_undeclared_variables(_environment().parse(text)) - set(GIVEN)
    except TemplateSyntaxError as error:
        raise BadInput(f"is not Jinja: {error.message}", file=str(path), line=error.lineno) from error
    if unknown:
        name = min(unknown)
        at = next(number for number, line in enumerate(text.splitlines(), 1) if re.search(rf"\b{name}\b", line))
        raise BadInput(f"unknown name {name!r}", file=str(path), line=at, allowed=", ".join(GIVEN))


def written(path: Path, **given: Any) -> Mapping[str, Prose]:
    """The prose of each section that has some, by anchor."""
    found: dict[str, Prose] = {}
    text = _environment().from_string(path.read_text(encoding="utf-8")).render(given)
    prose, title = Prose(), ""
    for level, part in _parts(text):
        if level == "##":
            prose, title = found.setdefault(part, Prose()), ""
        elif level == "###":
            title = part
        elif not title:
            prose.text = part
        elif title == REMARKS:
            prose.remarks = part
        else:
            prose.reasons.append(part)
            prose.reasons_title = title
    return found


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Headings with their marks, and paragraphs, each on one line."""
    for block in re.split(r"\n\s*\n", text):
        line = " ".join(block.split())
        heading = _HEADING.match(line)
        if heading:
            yield heading[1], heading[2]
        elif line:
            yield "", line


def _environment() -> Environment:
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(decimal=decimal, whole=whole, mips=lambda mips: f"{mips.normalize():f}")
    return environment

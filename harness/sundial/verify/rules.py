# SPDX-License-Identifier: Apache-2.0
"""Rules: what each finding is about, by the field that it names.

A rule is a section of a Markdown page: `verify/rule_pages/*.md` has those of this room, `rules.md` in the folder of a
kind of segment or workload those of the kind. No finding names its rule: the field of a finding decides, by the
patterns that rules declare, where `*` is any text. Of several patterns that fit, the one with most letters counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from sundial import kinds

Severity = Literal["critical", "error", "unmet"]
SEVERITIES: dict[str, str] = {
    "critical": "The record of the run is incomplete, changed or contradicts itself. Look at these first.",
    "error": "A frame, a call, a counter or a time is not what a standard, the topology or another record says.",
    "unmet": "The scenario asks for more than the protocol does, and the run does not meet it.",
}
"""What each severity means. Any finding makes verification fail, whatever its severity."""

PARTS = ("Checked", "Source", "Causes", "In Wireshark")
"""What each rule says, in this order."""
PAGE = "rules.md"
"""The page of a kind, in its folder."""
OF_THIS_ROOM = Path(__file__).parent / "rule_pages"
OTHER = "other"
"""The rule of a field that no rule names."""

_HEADING = re.compile(r"^## (?P<name>\S+)\n\n`(?P<severity>\w+)` · (?P<fields>.+?)\n\n(?P<text>.*)", re.DOTALL)
_FIELD = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")


@dataclass(frozen=True)
class Rule:
    """One rule, as its page has it."""

    name: str
    severity: Severity
    fields: tuple[str, ...]
    """Patterns of the fields of its findings."""
    parts: dict[str, str]
    """Markdown, by PARTS."""
    page: str
    """The file that declares it, below the package."""

    def to_json(self) -> dict[str, Any]:
        """As `sundial explain --json` prints it."""
        return {
            "rule": self.name,
            "severity": self.severity,
            "fields": list(self.fields),
            **{name.lower().replace(" ", "_"): text for name, text in self.parts.items()},
        }

    def markdown(self, level: int = 1) -> str:
        """The rule as a page, or as a section of one."""
        patterns = ", ".join(f"`{field}`" for field in self.fields)
        lines = [f"{'#' * level} {self.name}", f"Severity **{self.severity}**: {SEVERITIES[self.severity]}"]
        lines += [f"Fields: {patterns}", *(f"**{name}.** {text}" for name, text in self.parts.items())]
        return "\n\n".join(lines) + "\n"


def parse(text: str, page: str) -> list[Rule]:
    """The rules of a page. Raises ValueError for a section of another form."""
    return [_section(f"## {section}", page) for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]]


def _section(text: str, page: str) -> Rule:
    match = _HEADING.match(text)
    if match is None or not _NAME.fullmatch(match["name"]):
        raise ValueError(f"{page}: {text.splitlines()[0]}: a rule begins with its name, `severity` · `fields`")
    if match["severity"] not in get_args(Severity):
        raise ValueError(f"{page}: {match['name']}: severity {match['severity']!r}; allowed: {', '.join(SEVERITIES)}")
    paragraphs = [" ".join(part.split()) for part in match["text"].strip().split("\n\n")]
    parts = {}
    for paragraph in paragraphs:
        label, _, words = paragraph.removeprefix("**").partition(".** ")
        parts[label] = words
    if tuple(parts) != PARTS or not all(parts.values()):
        raise ValueError(f"{page}: {match['name']} has {', '.join(parts)}; it must have {', '.join(PARTS)}")
    severity: Any = match["severity"]
    return Rule(match["name"], severity, tuple(_FIELD.findall(match["fields"])), parts, page)


@cache
def rules() -> dict[str, Rule]:
    """All rules by name: this room's, then those of kinds. Raises ValueError for two of one name."""
    found: dict[str, Rule] = {}
    for path in _pages():
        for rule in parse(path.read_text(encoding="utf-8"), str(path.relative_to(OF_THIS_ROOM.parents[1]))):
            if rule.name in found:
                raise ValueError(f"rule {rule.name} is in {found[rule.name].page} and in {rule.page}")
            found[rule.name] = rule
    return found


def _pages() -> Iterator[Path]:
    yield from sorted(OF_THIS_ROOM.glob("*.md"))
    for family in ("segments", "workloads"):
        folder = Path(str(import_module(f"sundial.{family}").__file__)).parent
        for kind in kinds.names(family):
            page = folder / kind / PAGE
            if page.is_file():
                yield page


@cache
def _patterns() -> list[tuple[int, re.Pattern[str], str]]:
    """How many letters a pattern has, what it matches, and its rule; the longest first."""
    found = []
    for rule in rules().values():
        for field in rule.fields:
            expression = ".*".join(re.escape(part) for part in field.split("*"))
            found.append((len(field.replace("*", "")), re.compile(expression, re.DOTALL), rule.name))
    return sorted(found, key=lambda each: -each[0])


@cache
def rule_of(field: str) -> Rule:
    """The rule of a finding's field."""
    return rules()[next((name for _, pattern, name in _patterns() if pattern.fullmatch(field)), OTHER)]


def claims(field: str) -> list[str]:
    """The rules that claim a field equally well: one, or none where only `other` fits."""
    fitting = [(letters, name) for letters, pattern, name in _patterns() if pattern.fullmatch(field)]
    return sorted({name for letters, name in fitting if letters == fitting[0][0] and name != OTHER})

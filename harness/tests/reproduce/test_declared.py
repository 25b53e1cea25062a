# SPDX-License-Identifier: Apache-2.0
"""A wrong paper.yaml or page.md is one line: file, line, field, what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.report.tables import Table
from sundial.reproduce.declared import Declared
from sundial.reproduce.paper import Paper

YAML = """\
name: toy
title: Toys
authors: Toymaker
published: The Toy Review, 1998
scales: {full: {calls: 2}}
sections:
  - {anchor: toys, title: Toys, link: Toys, table: trips}
"""
PAGE = """\
## toys

{{ paper.name }} at {{ results.scale }}, *slowly*.

### Remarks

None.
{% if results.scale == "quick" %}

### Why

Toys are slow.

Since 1998.
{% endif %}
"""


@dataclass(frozen=True)
class Results:
    paper: Paper
    scale: str


def declared(folder: Path, yaml: str = YAML, page: str = PAGE) -> Declared[Paper, Results]:
    (folder / "paper.yaml").write_text(yaml)
    (folder / "page.md").write_text(page)
    return Declared(
        folder, Paper, lambda paper, bench, extent, scale: Results(paper, scale), lambda results: {}, {},
        {"trips": lambda results: Table("", (), ())},
    )  # fmt: skip


def test_prose_goes_to_its_section(tmp_path: Path) -> None:
    kind = declared(tmp_path)
    for scale, reasons, title in (("full", [], ""), ("quick", ["Toys are slow.", "Since 1998."], "Why")):
        (section,) = kind.outcome(Results(kind.paper(), scale)).page(tmp_path).sections
        assert (section.prose, section.remarks) == (f"toy at {scale}, *slowly*.", "None.")
        assert (section.reasons, section.reasons_title) == (reasons, title)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("link: Toys", "link: Toys, tabel: x", r"paper\.yaml:7: sections\.0\.tabel: "),
        ("table: trips", "table: trip", r"paper\.yaml:7: sections\.0\.table: unknown table 'trip'; allowed: trips$"),
        ("full:", "large:", r"paper\.yaml:5: scales.*allowed: smoke, quick, full, paper"),
        ("title: Toys, link", "link", r"paper\.yaml:7: sections\.0: a section without a title needs a figure"),
        ("## toys", "## toy", r"page\.md:1: no section 'toy'; allowed: toys$"),
        ("paper.name", "papers.name", r"page\.md:3: unknown name 'papers'; did you mean 'paper'\? allowed: paper, res"),
        ("{% endif %}", "", r"page\.md:\d+: is not Jinja: "),
    ],
)
def test_bad_input(tmp_path: Path, old: str, new: str, what: str) -> None:
    assert (old in YAML) + (old in PAGE) == 1
    with pytest.raises(BadInput, match=what) as error:
        declared(tmp_path, YAML.replace(old, new, 1), PAGE.replace(old, new, 1)).paper()
    assert len(str(error.value).splitlines()) == 1

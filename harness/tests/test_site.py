# SPDX-License-Identifier: Apache-2.0
"""The documentation site, as far as mkdocs is not needed: what docs/site.py collects and writes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from sundial.cli.main import COMMANDS
from sundial.model.catalog import ROOT
from sundial.verify.rules import rules
from tests.test_pages import LINK, without_code


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def written(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write(folder)
    return folder


def test_links_lead_to_files_of_the_site(written: Path) -> None:
    missing = [
        f"{page.relative_to(written)}: {link}"
        for page in written.rglob("*.md")
        for link in LINK.findall(without_code(page.read_text()))
        if ":" not in link and link[0] != "#" and not (page.parent / link.partition("#")[0]).is_file()
    ]
    assert missing == []


def test_pages_of_the_menu_are_in_the_site(written: Path) -> None:
    menu = re.findall(r"^ +- [^\n]*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert len(menu) > 20
    assert [page for page in menu if not (written / page).is_file()] == []


def test_reference_has_every_command(written: Path) -> None:
    text = (written / "reference" / "commands.md").read_text()
    assert [name for name in COMMANDS if f"\n## sundial {name}\n" not in text] == []


def test_reference_has_fields_with_their_types(site: ModuleType) -> None:
    schema = {
        "title": "Top",
        "required": ["a"],
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/$defs/Part"}, "description": "Some\nparts."},
            "b": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}], "default": "x"},
        },
        "$defs": {"Part": {"type": "string", "description": "A part."}},
    }
    assert "".join(site.fields(schema)).splitlines()[4:] == [
        "| field | type | default | meaning |",
        "| --- | --- | --- | --- |",
        "| `a` | list of [Part](#part) | required | Some parts. |",
        '| `b` | `x`, `y` or null | `"x"` |  |',
        "## Part",
        "",
        "A part.",
        "",
        "string",
    ]


def test_reference_has_every_rule(written: Path) -> None:
    text = (written / "reference" / "rules.md").read_text()
    assert [name for name in rules() if f"\n## {name}\n" not in text] == []


def test_the_page_of_columns_is_current(site: ModuleType) -> None:
    assert site.COLUMNS.read_text() == site.columns_page(), "python docs/site.py columns"

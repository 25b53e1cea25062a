# SPDX-License-Identifier: Apache-2.0
"""The pages for users: links lead somewhere, and commands name what there is."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from sundial.cli.main import COMMANDS, sundial
from sundial.model.catalog import ROOT, names
from sundial.model.load import load_topology

PAGES = sorted(
    subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
)
FOR_USERS = ["README.md", *(page for page in PAGES if page.startswith("docs/"))]
README_LINES = 100
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """As GitHub makes them of headings."""
    headings = HEADING.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    missing = []
    for link in LINK.findall(without_code((ROOT / page).read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", FOR_USERS)
def test_commands_of_a_page_name_what_there_is(page: str) -> None:
    text = (ROOT / page).read_text()
    assert set(re.findall(r"\./sundial ([a-z]+)", text)) <= set(COMMANDS)
    assert set(re.findall(r"TOPOLOGY=([a-z][\w-]*)|--topology ([a-z][\w-]*)", text)) <= {
        pair for name in names("topology") for pair in ((name, ""), ("", name))
    }
    assert set(re.findall(r"\./sundial run ([a-z][\w-]*)(?![\w./-])", text)) <= set(names("scenario"))


def runs_of(text: str) -> set[str]:
    """Command lines of shipped scenarios in blocks of shell, without comments."""
    lines = re.findall(r"^\$ \./sundial (run .*?[^\\])$", text, re.MULTILINE | re.DOTALL)
    whole = {re.sub(r"\s+#.*$|\\\n", "", line) for line in lines}
    return {line for line in whole if shlex.split(line)[1] in names("scenario")}


@pytest.mark.parametrize("page", [page for page in FOR_USERS if runs_of((ROOT / page).read_text())])
def test_runs_of_a_page_are_accepted(page: str) -> None:
    for line in sorted(runs_of((ROOT / page).read_text())):
        result = CliRunner().invoke(sundial, [*shlex.split(line), "--dry-run"])
        assert result.exit_code == 0, f"{line}: {result.output[-300:]}"


def changes_by_hand(text: str) -> list[tuple[str, str, str]]:
    """Topology, verb and place of each command that changes a wire of a topology that its section brought up before."""
    found = []
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE):
        topology = ""
        for up, verb, place in re.findall(
            r"(?:TOPOLOGY=|\./sundial up )([a-z][\w-]*)|\./sundial (impair|cut|heal|partition) ([a-z][\w:-]*)", section
        ):
            topology = up or topology
            if verb and topology:
                found.append((topology, verb, place))
    return found


def test_changes_by_hand_suit_the_topology_that_a_page_brought_up() -> None:
    commands = {command for page in FOR_USERS for command in changes_by_hand((ROOT / page).read_text())}
    assert ("two-hosts-wan", "cut", "server:eth0") in commands
    for name, verb, place in sorted(commands):
        segments = load_topology(name).segments
        at = [each for each in segments.values() if place in each.ports] or [segments[place]]
        assert {"cut" if verb == "heal" else verb} <= at[0].knobs, f"{verb} {place} of {name}"


def test_scenarios_are_all_described() -> None:
    text = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in names("scenario") if f"`{name}" not in text] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES

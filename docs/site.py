# SPDX-License-Identifier: Apache-2.0
"""What mkdocs builds the site from. `make docs` calls it.

`python docs/site.py DIR` copies all pages to DIR, as they are in the repository, with the files that they link, and
writes the reference beside them: from the commands' help and from the schemas.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sundial.cli.main import sundial
from sundial.model.catalog import ROOT
from sundial.model.tables import TABLES
from sundial.verify.rules import SEVERITIES, rules

COLUMNS = ROOT / "docs" / "columns.md"
LINK_OR_CODE = re.compile(r"(!?\[(?:`[^`\n]*`|[^\]`])*\])\(([^)\s]+)\)|```.*?```|`[^`\n]*`", re.DOTALL)
"""Code has what only looks like links; a link may have code in its words."""
SCHEMAS = {
    "topologies": ("topologies/topology.schema.json", "Topologies", "topologies/README.md"),
    "scenarios": ("harness/scenarios/scenario.schema.json", "Scenarios", "harness/scenarios/README.md"),
    "images": ("images/image.schema.json", "Images", "images/README.md"),
    "run": ("harness/schemas/run.schema.json", "run.json", "harness/schemas/README.md"),
    "verify": ("harness/schemas/verify.schema.json", "verify.json", "harness/schemas/README.md"),
}
"""Pages of the reference: the schema, the title, the page that explains it."""


def pages() -> list[str]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def linked(page: str, text: str, site: Path) -> str:
    """`text` with links that lead somewhere in the site: a folder's to its README, else its words alone.

    Files that a link names are copied.
    """

    def replaced(match: re.Match[str]) -> str:
        words, link = match.groups()
        if link is None:
            return match[0]
        path, _, anchor = link.partition("#")
        if not path or ":" in path or path.endswith(".md"):
            return match[0]
        target = Path(os.path.normpath(ROOT / page / ".." / path))
        name = target.relative_to(ROOT)
        hidden = name.parts[0].startswith(".")
        if hidden or (target.is_dir() and not (target / "README.md").is_file()):
            return words[1:-1]
        if target.is_dir():
            return f"{words}({path.rstrip('/')}/README.md{'#' + anchor if anchor else ''})"
        copy = site / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        return match[0]

    return LINK_OR_CODE.sub(replaced, text)


def helps(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[str]:
    """A heading and the help of a command, then those of its subcommands."""
    with click.Context(command, info_name=name.rsplit(" ", 1)[-1], parent=parent, max_content_width=100) as context:
        yield f"## {name}\n\n```text\n{command.get_help(context)}\n```\n"
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                inner = command.get_command(context, each)
                assert inner is not None
                yield from helps(inner, f"{name} {each}", context)


def fields(schema: dict[str, Any]) -> Iterator[str]:
    """A heading and a table of fields for each object of a schema, the document's own first."""
    for name, part in {schema.get("title", "Document"): schema, **schema.get("$defs", {})}.items():
        about = one_line(part.get("description") or "")
        if "properties" not in part:
            yield f"## {name}\n\n{about}\n\n{type_of(part)}\n"
            continue
        rows = [
            f"| `{field}` | {type_of(of)} | {default_of(field, of, part)} | {one_line(of.get('description', ''))} |"
            for field, of in part["properties"].items()
        ]
        head = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
        yield "\n".join([f"## {name}\n", about + "\n", *head, *rows, ""])


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def default_of(field: str, of: dict[str, Any], part: dict[str, Any]) -> str:
    if field in part.get("required", []):
        return "required"
    default = of.get("default")
    # A whole object's are at its own table.
    return "" if default is None or isinstance(default, dict) else f"`{one_line(json.dumps(default))}`"


def type_of(of: dict[str, Any]) -> str:
    """In words, with links to other objects."""
    if "$ref" in of:
        name = of["$ref"].rsplit("/", 1)[-1]
        if not of["$ref"].startswith("#"):
            return f"the fields of `{name}`"
        return f"[{name}](#{name.lower()})"
    if "else" in of:
        return f"{type_of(of['else'])}, or {type_of(of['then'])}"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in of:
            return " or ".join(dict.fromkeys(map(type_of, of[several])))
    if "const" in of:
        return f"`{of['const']}`"
    if "enum" in of:
        return ", ".join(f"`{value}`" for value in of["enum"])
    if of.get("type") == "array":
        return f"list of {type_of(of['items'])}" if of.get("items") else "list"
    if of.get("type") == "object" and isinstance(of.get("additionalProperties"), dict):
        return f"mapping to {type_of(of['additionalProperties'])}"
    kind = of.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def write(site: Path) -> None:
    """Raises OSError."""
    shutil.rmtree(site, ignore_errors=True)
    for page in pages():
        place = site / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(linked(page, (ROOT / page).read_text(), site))
    reference = site / "reference"
    reference.mkdir()
    (reference / "commands.md").write_text("# Commands\n\n" + "\n".join(helps(sundial, "sundial")))
    (reference / "rules.md").write_text(rules_page())
    for name, (path, title, about) in SCHEMAS.items():
        schema = json.loads((ROOT / path).read_text())
        words = f"# {title}\n\nFrom `{path}`; [what the fields are for](../{about}).\n\n"
        (reference / f"{name}.md").write_text(words + "\n".join(fields(schema)))


def columns_page() -> str:
    """docs/columns.md: the tables that bounds may be about. `python docs/site.py columns` writes it."""
    lines = ["# Columns for bounds\n", "[Bounds](../harness/scenarios/README.md#bounds) are about these tables.\n"]
    for name, columns in TABLES.items():
        lines += [f"## {name}\n", "| column | values | meaning |", "| --- | --- | --- |"]
        lines += [
            f"| `{column}` | {of.kind}{f' in {of.unit}' if of.unit else ''} | {of.meaning} |"
            for column, of in columns.items()
        ]
        lines.append("")
    return "\n".join(lines)


def rules_page() -> str:
    """What `sundial explain` prints, by page of the sources."""
    lines = ["# Rules of verification\n", "Each finding names a rule. `sundial explain RULE` prints the same.\n"]
    lines += ["| severity | meaning |", "| --- | --- |", *(f"| {name} | {text} |" for name, text in SEVERITIES.items())]
    return "\n".join([*lines, "", *(rule.markdown(2) for rule in rules().values())])


if __name__ == "__main__":
    if sys.argv[1] == "columns":
        COLUMNS.write_text(columns_page())
    else:
        write(Path(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""`sundial explain`: what a rule of verification checks."""

from __future__ import annotations

import difflib
import shutil
import textwrap
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, print_table
from sundial.errors import BadInput

WIDEST = 100
"""Columns of text, on a wider terminal too."""


@click.command(cls=Verb)
@click.argument("rule", required=False, shell_complete=completion.of(lambda: rooms.rules()))
@as_json
def explain(rule: str | None, as_json: bool) -> None:
    """Explain RULE: what it checks, from which source, usual causes, and what to look at in Wireshark.

    RULE is the name in brackets behind a mismatch, or the field of a finding. Without RULE: list all rules.

    \b
    sundial explain call.packets
    sundial explain "nodes/server counters calls"
    """
    known = rooms.rules()
    if rule is None:
        if as_json:
            print_json([each.to_json() for each in known.values()])
        else:
            print_table([[each.name, each.severity, _first_sentence(each.parts["Checked"])] for each in known.values()])
        return
    found = _find(rule, known)
    if as_json:
        print_json(found.to_json())
        return
    click.echo(f"{found.name} ({found.severity})\n")
    for name, text in found.parts.items():
        _paragraph(f"{name}: {text}")
    _paragraph(f"Fields: {', '.join(found.fields)}")


def _find(rule: str, known: dict[str, Any]) -> Any:
    """By its name, or by a field. Raises BadInput, with the names that are close."""
    if rule in known:
        return known[rule]
    by_field = rooms.rule_of(rule)
    if by_field.name != rooms.OTHER_RULE:
        return by_field
    close = difflib.get_close_matches(rule, known, n=3) or [name for name in known if rule in name][:3]
    raise BadInput(
        f"there is no rule {rule!r}",
        allowed=f"did you mean {' or '.join(close)}?" if close else "a name of 'sundial explain', or a finding's field",
    )


def _paragraph(text: str) -> None:
    width = min(shutil.get_terminal_size().columns, WIDEST)
    click.echo(textwrap.fill(text.replace("`", ""), width, subsequent_indent="  ", break_on_hyphens=False) + "\n")


def _first_sentence(text: str) -> str:
    sentence = text.replace("`", "").partition(". ")[0].rstrip(".")
    return sentence if len(sentence) <= 90 else sentence[:87] + "..."

# SPDX-License-Identifier: Apache-2.0
"""Which recipe images are made by: what a command asks for, else the environment, else what was chosen last.

`images/out/recipe.json` holds the choice; without it each image is made by the first recipe that it declares.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput
from sundial.model.catalog import OUT, shown
from sundial.whole import whole

CHOICE = OUT / "recipe.json"
RECIPE, RELEASE = "SUNDIAL_RECIPE", "SUNDIAL_BUILDROOT"
"""Variables of the environment."""


@dataclass(frozen=True)
class Choice:
    """A recipe; None is the first of each image."""

    recipe: str | None = None
    release: Path | None = None
    """The Buildroot release that the recipe builds from, where it needs one."""


def chosen(state: Path, environment: Mapping[str, str] = os.environ) -> Choice:
    """The choice where a command asks for none. Raises BadInput for a file that is not one."""
    if recipe := environment.get(RECIPE):
        release = environment.get(RELEASE)
        return Choice(recipe, Path(release).absolute() if release else _release_of(recipe, _kept(state)))
    return _kept(state)


def asked(state: Path, recipe: str | None, environment: Mapping[str, str] = os.environ) -> Choice:
    """The choice for one command, `recipe` being its `--recipe`, which goes before a file that is damaged.

    Raises BadInput.
    """
    if recipe is None:
        return chosen(state, environment)
    try:
        return Choice(recipe, _release_of(recipe, chosen(state, environment)))
    except BadInput:
        return Choice(recipe)


def choose(state: Path, choice: Choice) -> None:
    """Keep the choice for the commands to come."""
    path = state / CHOICE
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"recipe": choice.recipe} | ({"release": str(choice.release)} if choice.release else {})
    with whole(path) as written:
        written.write_text(json.dumps(document) + "\n")


def _release_of(recipe: str, usual: Choice) -> Path | None:
    return usual.release if usual.recipe == recipe else None


def _kept(state: Path) -> Choice:
    path = state / CHOICE
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        recipe, release = document["recipe"], document.get("release")
    except FileNotFoundError:
        return Choice()
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        recipe = release = None
    if not isinstance(recipe, str) or not isinstance(release, str | None):
        allowed = '{"recipe": NAME}, as ./sundial images build --recipe NAME writes it'
        raise BadInput("is not a choice of a recipe", file=shown(path), allowed=allowed)
    return Choice(recipe, None if release is None else Path(release))

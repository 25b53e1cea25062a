# SPDX-License-Identifier: Apache-2.0
"""Shell completion of names; they are looked up only when the shell asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from sundial.model import catalog

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def of(names: Callable[[], Iterable[str]]) -> Complete:
    """Completes any of these names."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return complete


SCENARIOS = of(lambda: catalog.names("scenario"))
TOPOLOGIES = of(lambda: catalog.names("topology"))


def _runs() -> Iterable[str]:
    from sundial.cli.runs import LATEST, list_runs

    return [LATEST, *(folder.name for folder, _ in list_runs())]


def _kept() -> Iterable[str]:
    from sundial.cli import rooms

    return [kept.topology for kept in rooms.kept()]


RUNS = of(_runs)
RUNS_OR_KEPT = of(lambda: [*_kept(), *_runs()])


def _recipes() -> Iterable[str]:
    from sundial.model.images import IMAGES

    return dict.fromkeys(recipe for kind in IMAGES.values() for recipe in kind.recipes)


RECIPES = of(_recipes)


def _machines() -> Iterable[str]:
    from sundial.cli import rooms

    return dict.fromkeys(machine.name for kept in rooms.kept() for machine in kept.machines)


def _segments() -> Iterable[str]:
    from sundial.draft.texts import SEGMENTS

    return SEGMENTS


SEGMENTS = of(_segments)
UP = of(_kept)
MACHINES = of(_machines)

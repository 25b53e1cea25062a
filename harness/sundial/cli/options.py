# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from sundial.cli import completion
from sundial.errors import BadInput
from sundial.plan.request import EMBEDDED

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

connect_option: Callable[[Decorated], Decorated] = click.option(
    "--connect", metavar="URI", default=EMBEDDED, help="Use this libvirt daemon instead of the embedded driver."
)

recipe_option: Callable[[Decorated], Decorated] = click.option(
    "--recipe",
    metavar="R",
    shell_complete=completion.RECIPES,
    help="Boot images of this recipe, not of the chosen one (see sundial images list).",
)

jobs_option: Callable[[Decorated], Decorated] = click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of parallel runs. Default: as many as this host has cores for.",
)


def checked_out(out: Path | None) -> Path | None:
    """The value of `--out`. Raises BadInput for a path that libvirt's XML, or a file of lines, cannot hold."""
    if out is not None and not str(out.absolute()).isprintable():
        raise BadInput(f"{out.absolute()} has unprintable characters", file="--out", allowed="another directory")
    return out


def checked_connect(connect: str) -> str:
    """The value of `--connect`. Raises BadInput for what is neither the embedded driver nor a daemon's URI."""
    if connect != EMBEDDED:
        from sundial.model.daemon import parse_daemon

        try:
            parse_daemon(connect)
        except BadInput as error:
            raise error.within(field="--connect") from None
    return connect

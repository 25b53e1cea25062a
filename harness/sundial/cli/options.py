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
from sundial.sweep.place import Place, place_of

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
    help="Number of parallel runs on this host. Default: as many as it has cores for.",
)

_PLACE = (
    "Where runs are made: local, local:N (runs at a time), tcp://127.0.0.1:PORT, tls://HOST:PORT, ssh:HOST,HOST, "
    "slurm:JOBS, k8s:PODS."
)
on_option: Callable[[Decorated], Decorated] = click.option("--on", default="local", metavar="PLACE", help=_PLACE)
certs_option: Callable[[Decorated], Decorated] = click.option(
    "--certs", type=click.Path(path_type=Path), metavar="DIR", help="Certificate and key for tls://, ssh: and slurm:."
)


def checked_place(on: str, certs: Path | None, jobs: int | None) -> Place:
    """The place of `--on`, or of `--jobs`. Raises BadInput."""
    if jobs is None:
        return place_of(on, certs)
    if on != "local":
        raise BadInput("has no effect with --on", field="--jobs", allowed="--jobs N, or --on PLACE")
    return Place(jobs)


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

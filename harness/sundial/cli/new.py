# SPDX-License-Identifier: Apache-2.0
"""`sundial new`: first files of the user's own."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, show_written
from sundial.errors import BadInput
from sundial.model.catalog import ROOT, find
from sundial.model.fields import NAMED

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Files = Mapping[Path, tuple[str, int]]
MODE = 0o644
DEFAULT_TOPOLOGY = "two-hosts-10base-t"

_machines: Callable[[Decorated], Decorated] = click.option(
    "--machines", type=int, metavar="N", help="Number of machines, 2 to 64; the last one is the server."
)
_segment: Callable[[Decorated], Decorated] = click.option(
    "--segment", metavar="KIND", shell_complete=completion.SEGMENTS, help="Kind of the segment between them."
)
_force: Callable[[Decorated], Decorated] = click.option("--force", is_flag=True, help="Replace a file that is there.")


@click.group()
def new() -> None:
    """New files that run as they are: topology, scenario, workload, image.

    \b
    sundial new topology lab --machines 5 --segment hub
    sundial new scenario echo && sundial run echo.yaml
    """


@new.command(cls=Verb)
@click.argument("name")
@_machines
@_segment
@_force
@as_json
def topology(name: str, machines: int | None, segment: str | None, force: bool, as_json: bool) -> None:
    """Write the topology NAME.yaml: machines on one segment.

    \b
    sundial new topology lab
    sundial new topology lab --machines 5 --segment hub
    """
    texts = rooms.draft("texts")
    path = _checked(texts.file_of(name))
    text = texts.topology(2 if machines is None else machines, segment)
    shown = shlex.quote(_as_file(path))
    more = [f"topology show {shown}", f"run quickstart --topology {shown}", f"up {shown}"]
    _write({path: (text, MODE)}, more, force=force, as_json=as_json)


@new.command(cls=Verb)
@click.argument("name")
@click.option("--topology", metavar="T", shell_complete=completion.TOPOLOGIES, help="Name or file of its topology.")
@_machines
@_segment
@_force
@as_json
def scenario(
    name: str, topology: str | None, machines: int | None, segment: str | None, force: bool, as_json: bool
) -> None:
    """Write the scenario NAME.yaml. With --machines or --segment its topology is inside.

    \b
    sundial new scenario echo
    sundial new scenario echo --machines 3 --segment hub
    """
    if topology is not None:
        if machines is not None or segment is not None:
            raise BadInput("cannot be combined with --machines or --segment", field="--topology")
        find("topology", topology)
    texts = rooms.draft("texts")
    path = _checked(texts.file_of(name))
    place = topology and str(Path(topology).absolute()) if topology and "." in topology else topology
    text = texts.scenario(machines, segment, place or DEFAULT_TOPOLOGY)
    shown = shlex.quote(_as_file(path))
    more = [f"run {shown} --dry-run", f"run {shown}", f"run {shown} --set calls=100 --seed 2"]
    _write({path: (text, MODE)}, more, force=force, as_json=as_json)


@new.command(cls=Verb)
@click.argument("name")
@as_json
def workload(name: str, as_json: bool) -> None:
    """Add the kind of workload NAME to this checkout: datagrams that come back, in C and Python, with a scenario.

    \b
    sundial new workload calc
    sundial new workload calc --json
    """
    files = rooms.draft("kinds").files("workload", name, ROOT)
    _write(_in_checkout(files), ["images build linux", f"run {name}", "verify latest --unproven"], as_json=as_json)


@new.command(cls=Verb)
@click.argument("name")
@as_json
def image(name: str, as_json: bool) -> None:
    """Add the image NAME to this checkout: Linux under another name, to be changed.

    \b
    sundial new image mine
    sundial new image mine --json
    """
    files = rooms.draft("kinds").files("image", name, ROOT)
    more = [f"images build {name}", f"up {DEFAULT_TOPOLOGY} --set defaults.image={name}", "images list"]
    _write(_in_checkout(files), more, as_json=as_json)


def _in_checkout(files: Files) -> Files:
    return {ROOT / path: file for path, file in files.items()}


def _checked(path: Path) -> Path:
    """Raises BadInput if the file's name cannot be that of a topology or scenario."""
    try:
        NAMED.parse(path.stem)
    except BadInput as error:
        raise error.within(field="NAME") from None
    return path


def _as_file(path: Path) -> str:
    """As commands take it: with its ending."""
    return str(path)


def _write(files: Files, commands: Sequence[str], *, as_json: bool, force: bool = False) -> None:
    rooms.draft("write").write(files, force=force)
    lines = [f"./sundial {command}" for command in commands]
    show_written(files, lines, as_json=as_json)

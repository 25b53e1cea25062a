# SPDX-License-Identifier: Apache-2.0
"""A reproduction from its name to its folder: runs, report, tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sundial.errors import BadInput, RunFailed
from sundial.plan.request import Progress
from sundial.reproduce.page import write_page
from sundial.reproduce.paper import Outcome, Reproduction, reproduction
from sundial.reproduce.runs import Bench, Doors, Made
from sundial.reproduce.worker import Maker
from sundial.run.directory import own, run_names, take_up_abandoned
from sundial.whole import whole

VERSION = 1
DIGITS = 6
"""Of CSV files, behind the point: a time in ms is exact to the nanosecond."""


@dataclass(frozen=True)
class Request:
    """What is to be reproduced, and how."""

    name: str
    scale: str
    seed: int
    captures: Path
    out: Path | None
    """The folder to write, if the user named it; it must not exist yet."""
    connect: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Reproduced:
    """A folder that is complete."""

    folder: Path
    outcome: Outcome
    made: tuple[Made, ...]

    @property
    def failed(self) -> list[Made]:
        """Runs that did not end."""
        return [made for made in self.made if made.verdict == "failed"]

    @property
    def mismatched(self) -> list[Made]:
        """Runs whose capture does not match the protocol."""
        return [made for made in self.made if made.verdict not in ("pass", "failed")]


def perform(request: Request, doors: Doors, progress: Progress) -> Reproduced:
    """All runs of a paper, and their report. A run that fails is named and does not stop the others.

    Raises BadInput, HostLacks, Interrupted; RunFailed where so much failed that there is nothing to show.
    """
    paper = reproduction(request.name)
    scales = paper.paper().scales
    if request.scale not in scales:
        what = f"{request.name} has no scale {request.scale!r}"
        raise BadInput(what, file="--scale", allowed=", ".join(scales))
    with doors.maker(progress) as maker:
        return _performed(paper, request, doors, maker, progress)


def _performed(paper: Reproduction, request: Request, doors: Doors, maker: Maker, progress: Progress) -> Reproduced:
    partial, final = _claim(request)
    lock = own(partial)
    _index(partial, [], {}, request.command, "interrupted", {})
    bench = Bench(partial, request.seed, request.connect, doors, progress, maker)
    try:
        bench.pin_images()
        outcome = paper.perform(bench, scale=request.scale)
        progress.say("writing the report")
        _write(partial, outcome, bench, request.command)
    except BaseException:
        _index(partial, bench.made, bench.images, request.command, "failed", {})
        raise
    finally:
        bench.drop_images()
        partial.rename(final)
        os.close(lock)
    return Reproduced(final, outcome, tuple(bench.made))


def _claim(request: Request) -> tuple[Path, Path]:
    """The folder while it is written and its final name. Raises BadInput."""
    if request.out is not None:
        final = request.out.absolute()
        if final.exists():
            raise BadInput(f"{request.out} exists", file="--out", allowed="a directory that does not exist yet")
        partial = final.with_name(f".{final.name}.partial")
        try:
            partial.mkdir()
        except OSError as error:
            raise BadInput(f"{request.out} cannot be made: {error.strerror}", file="--out") from error
        return partial, final
    request.captures.mkdir(parents=True, exist_ok=True)
    take_up_abandoned(request.captures)
    for name in run_names(f"reproduce-{request.name}-{request.seed}"):
        final = request.captures / name
        partial = final.with_name(f".{name}.partial")
        if not final.exists() and not partial.exists():
            partial.mkdir()
            return partial, final
    raise RunFailed(f"no free number for reproduce-{request.name}-{request.seed} in {request.captures}")


def _write(folder: Path, outcome: Outcome, bench: Bench, command: Sequence[str]) -> None:
    for name, table in outcome.tables().items():
        with whole(folder / name) as beside:
            table.write_csv(beside, float_precision=DIGITS)
    figures = folder / "figures"
    figures.mkdir()
    write_page(folder, outcome.page(figures), bench, command)
    _index(folder, bench.made, bench.images, command, "complete", outcome.index())


def _index(
    folder: Path,
    made: Sequence[Made],
    images: Mapping[str, Mapping[str, str]],
    command: Sequence[str],
    status: str,
    particular: Mapping[str, Any],
) -> None:
    """reproduce.json: the runs and what became of each."""
    document = {
        "version": VERSION,
        "status": status,
        "command": list(command),
        "images": {name: dict(sha256) for name, sha256 in images.items()},
        **particular,
        "runs": [asdict(each) for each in made],
    }
    with whole(folder / "reproduce.json") as beside:
        beside.write_text(json.dumps(document, indent=1) + "\n")

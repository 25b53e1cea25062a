# SPDX-License-Identifier: Apache-2.0
"""`--junit FILE` and `--summary FILE`: what a command came to, for CI systems, whatever its exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from sundial.cli import rooms
from sundial.cli.runs import read_json, reference_to
from sundial.cli.talk import say
from sundial.errors import BadInput, InternalError, Interrupted, SundialError, VerificationFailed
from sundial.model.catalog import COMMAND
from sundial.whole import whole

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def options(command: Decorated) -> Decorated:
    """Both options, for a command that takes `junit` and `summary`."""
    path = click.Path(path_type=Path)
    summary = click.option(
        "--summary", type=path, metavar="FILE", help="Append a summary in Markdown to FILE, whatever the exit status."
    )
    junit = click.option(
        "--junit", type=path, metavar="FILE", help="Write JUnit XML to FILE, whatever the exit status."
    )
    return junit(summary(command))


@dataclass
class Outcome:
    """The runs of a command as they end."""

    junit: Path | None
    summary: Path | None
    name: str
    ended: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_asked_for(self) -> bool:
        """Whether anything is written at all."""
        return self.junit is not None or self.summary is not None

    def add(
        self,
        name: str,
        verdict: dict[str, Any] | None,
        folder: Path | None = None,
        error: SundialError | None = None,
        seconds: float = 0.0,
    ) -> None:
        """One run, with what run.json says of it."""
        if not self.is_asked_for:
            return
        run = read_json(folder / "run.json") if folder is not None and (folder / "run.json").is_file() else {}
        self.ended.append(
            {
                "name": name,
                "reference": None if folder is None else reference_to(folder),
                "run": run,
                "verdict": verdict,
                "error": None if error is None else error.to_json(),
                "command": repeating(run),
                "seconds": seconds,
            }
        )

    def write(self) -> None:
        """Both files. Raises BadInput for a place that cannot be written to."""
        for path, append, text in ((self.junit, False, rooms.junit), (self.summary, True, rooms.summary)):
            if path is not None:
                _write(path, text(self.ended), append=append)


def _write(path: Path, text: str, *, append: bool) -> None:
    stream = path.exists() and not path.is_file()  # such as /dev/stdout
    try:
        if append or stream:
            with path.open("a", encoding="utf-8") as file:
                file.write(text)
        else:
            with whole(path) as beside:
                beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot be written: {error.strerror}", file=str(path)) from error


def repeating(run: dict[str, Any]) -> list[str]:
    """The command that made a run, with this checkout's launcher; of what has none, this command."""
    words = [str(word) for word in run.get("command") or sys.argv]
    own = words and (words[0].endswith("__main__.py") or Path(words[0]).name == "sundial")
    return [COMMAND, *words[1:]] if own else words


@contextmanager
def written(junit: Path | None, summary: Path | None, name: str) -> Iterator[Outcome]:
    """Collects what a command comes to and writes the files at its end, also when it fails or is refused.

    Raises BadInput at once for a FILE whose folder does not exist. A command's own error comes before one of writing.
    """
    for option, path in (("--junit", junit), ("--summary", summary)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            what = "is a directory" if path.is_dir() else f"{path.parent} is not a directory"
            raise BadInput(what, file=option, allowed="a file in an existing directory")
    outcome = Outcome(junit, summary, name)
    try:
        yield outcome
    except BaseException as error:
        known = _known(error)
        if known is not None and not any(each["error"] == known.to_json() for each in outcome.ended):
            outcome.add(name, None, error=known)
        try:
            outcome.write()
        except BadInput as unwritten:
            say(f"sundial: {unwritten.message}")
        raise
    outcome.write()


def _known(error: BaseException) -> SundialError | None:
    """What an exception says of the command; None where the runs say it already."""
    match error:
        case VerificationFailed():
            return None
        case SundialError():
            return error
        case KeyboardInterrupt():
            return Interrupted()
        case click.ClickException():
            return BadInput(error.format_message())
    return InternalError(f"internal error: {error!r}")

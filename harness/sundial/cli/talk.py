# SPDX-License-Identifier: Apache-2.0
"""Output of the command line: data on stdout, messages on stderr, the verdict in the exit status.

Progress is drawn on a terminal and is plain lines elsewhere. NO_COLOR is honoured (by rich, which is imported only if
there is something to draw).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sundial import faults
from sundial.cli import rooms
from sundial.errors import Interrupted, RunFailed, SundialError, VerificationFailed
from sundial.model.catalog import typed
from sundial.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

as_json: Callable[[Decorated], Decorated] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on stdout, errors too."
)

PLAIN_PAUSE_S = 5.0
"""Without a terminal, shares of a step are printed at most this often."""


class Verb(click.Command):
    """A command whose errors become one clear line and an exit status, internal errors of Sundial too."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SundialError as error:
            known = error
        except KeyboardInterrupt:
            known = Interrupted()
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except Exception as error:
            known = faults.known(error, rooms.LOGS)
        show_error(known, as_json=bool(ctx.params.get("as_json")))
        ctx.exit(known.exit_code)


def show_error(error: SundialError, *, as_json: bool) -> None:
    """Print one line a problem on stderr, then the console's last lines and the hint; with `--json` JSON on stdout.

    A failed verification has printed its JSON already.
    """
    if as_json and not isinstance(error, VerificationFailed):
        print_json(error.to_json())
    talk = _stderr()
    for line in error.message.splitlines():
        talk.print(f"[bold red]sundial:[/] {_plain(line)}")
    if isinstance(error, RunFailed) and error.console_tail is not None:
        of = f" of {error.machine}" if error.machine else ""
        talk.print(f"last lines of the console{of}:" if error.console_tail else f"the console{of} is empty")
        for line in error.console_tail:
            talk.print(f"    {_plain(line)}")
    if error.hint:
        talk.print(f"[bold]hint:[/] {_plain(typed(error.hint))}")


def say(text: str) -> None:
    """Print one line on stderr."""
    text = typed(text)
    if _is_drawn():
        _stderr().print(_plain(text))
    else:
        click.echo(printable(text), err=True)


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout."""
    click.echo(json.dumps(value, indent=2))


def show_written(files: Iterable[Path], commands: Sequence[str], *, as_json: bool) -> None:
    """Files that a verb has written, and the commands to give next."""
    if as_json:
        print_json({"files": [str(path) for path in files], "next": list(commands)})
        return
    for path in files:
        click.echo(str(path))
    say("next:")
    for command in commands:
        say(f"  {command}")


def in_bytes(amount: float) -> str:
    """A size for people: powers of 1000, as disks are sold."""
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns, two spaces between them; the last column is not padded."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


class PlainProgress:
    """Progress as lines, for logs."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._said = now()

    def say(self, text: str) -> None:
        self._said = self._now()
        say(text)

    def share(self, done: float, text: str) -> None:
        if self._now() - self._said >= PLAIN_PAUSE_S:
            self.say(f"{done:4.0%}  {text}")


class DrawnProgress:
    """Progress on a terminal: the current step with a spinner, finished ones above it."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._step = ""

    def say(self, text: str) -> None:
        self.finish()
        self._step = text
        self._status.update(_plain(text))

    def share(self, done: float, text: str) -> None:
        self._status.update(f"{_plain(self._step)}  [bold]{done:4.0%}[/]  {_plain(text)}")

    def finish(self) -> None:
        """Leave the current step's line behind."""
        if self._step:
            self._console.print(f"[green]-[/] {_plain(self._step)}")
        self._step = ""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[PlainProgress | DrawnProgress]:
    """Drawn on a terminal, plain lines elsewhere or when `quiet` (machine-readable output was asked for)."""
    if quiet or not _is_drawn() or not (console := _stderr()).is_terminal:
        yield PlainProgress()
        return
    with console.status("") as status:
        drawn = DrawnProgress(console, status)
        yield drawn
        drawn.finish()


def _plain(text: str) -> str:
    """The text without rich's markup and without control characters of the terminal."""
    from rich.markup import escape

    return escape(printable(text))


def _is_drawn() -> bool:
    """True if rich may draw: on a terminal, or if a variable makes it act as on one."""
    return sys.stderr.isatty() or any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE"))


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

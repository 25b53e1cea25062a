# SPDX-License-Identifier: Apache-2.0
"""`sundial show`: a call of a run as a ladder diagram."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_run, reference_to
from sundial.cli.talk import Verb, as_json, print_json, print_table, say
from sundial.errors import BadInput
from sundial.model.catalog import COMMAND
from sundial.printable import printable


@click.command(cls=Verb)
@click.argument("run", shell_complete=completion.RUNS)
@click.option("--call", "asked", metavar="N", help="The call: its number in the run, slowest or finding.")
@click.option("--all", "everything", is_flag=True, help="Draw each frame, also of many that are alike.")
@click.option(
    "--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the diagram as SVG."
)
@click.option("--width", type=click.IntRange(40, 1000), help="Columns. Default: those of the terminal, 80 without one.")
@as_json
def show(run: str, asked: str | None, everything: bool, svg: Path | None, width: int | None, as_json: bool) -> None:
    """Draw the ladder diagram of a call: each frame in time at each port, and what happened to it.

    Without --call the calls that are worth a look are listed: those with a finding, a failure or a retransmission,
    and the slowest. Numbers count the rows of samples.parquet from 0.

    \b
    Examples:
      sundial show latest
      sundial show latest --call slowest
      sundial show latest --call 17 --all --svg call-17.svg
    """
    folder = find_run(run)
    if asked is None:
        if svg is not None or everything:
            raise BadInput("--svg and --all need a call", field="--call", allowed="its number, slowest or finding")
        _list(folder, as_json)
        return
    ladder = rooms.ladder(folder, asked, everything=everything)
    if svg is not None:
        _write(svg, rooms.ladder_svg(ladder))
    if as_json:
        print_json(rooms.ladder_json(ladder))
    elif svg is None:
        columns = width or (shutil.get_terminal_size().columns if sys.stdout.isatty() else 80)
        text = rooms.ladder_text(ladder, width=columns, unicode=_takes_unicode())
        click.echo("\n".join(map(printable, text.splitlines())))
    if svg is not None:
        say(f"{svg}: {ladder.title}")


def _takes_unicode() -> bool:
    """True if standard output can show the characters of a drawing."""
    try:
        "│▶✕●".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--svg cannot be written: {error.strerror}", file=str(path), allowed="a file") from error


def _list(folder: Path, as_json: bool) -> None:
    calls: list[dict[str, Any]] = rooms.notable_calls(folder)
    if as_json:
        print_json(calls)
        return
    if not calls:
        say("the run has no calls")
        return
    shown = [["CALL", "CLIENT", "SERVER", "TRANSPORT", "PROCEDURE", "BYTES", "ROUND TRIP", "SENT AGAIN", "VERDICT"]]
    for call in calls:
        trip = "-" if call["rtt_ns"] is None else f"{call['rtt_ns'] / 1000:.3f} us"
        again = "-" if call["retransmissions"] is None else str(call["retransmissions"])
        verdict = "failed" if not call["ok"] else call["verdict"] or "-"
        names = [str(call[name]) for name in ("id", "client", "server", "transport", "procedure", "size")]
        shown.append([*names, trip, again, verdict])
    print_table(shown)
    say(f"draw one with: {COMMAND} show {reference_to(folder)} --call {calls[0]['id']}")

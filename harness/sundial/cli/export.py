# SPDX-License-Identifier: Apache-2.0
"""`sundial export`: a capture from one port's point of view, or a table of a run, as a file or a stream."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sundial.cli import completion, rooms
from sundial.cli.points import all_ports, at_port, find_point
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, say
from sundial.errors import BadInput

STREAM = "-"
TABLES = ("samples", "frames", "findings", "steps")
FORMATS = ("csv", "parquet", "json")


@click.command(cls=Verb)
@click.argument("run", metavar="RUN|TOPOLOGY", shell_complete=completion.RUNS)
@click.argument("segment", required=False)
@at_port
@all_ports
@click.option("--table", type=click.Choice(TABLES), help="Write this table of RUN instead of a capture.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: FILE's ending, otherwise csv.")
@click.option("-o", "--output", metavar="FILE", default=STREAM, help="The file to write. Default: -, standard output.")
@click.option("--follow", is_flag=True, help="With a TOPOLOGY that is up: go on until it is down.")
def export(
    run: str,
    segment: str | None,
    port: str | None,
    all_: bool,
    table: str | None,
    form: str | None,
    output: str,
    follow: bool,
) -> None:
    """Write the capture of RUN's SEGMENT as one port saw it (pcapng), or a table of RUN.

    Each frame has the number that it has in the run's capture (frame.packet_id), and a comment on what became of it.

    \b
    sundial export latest --at server:eth0 -o server.pcapng
    sundial export latest --table samples -o samples.csv
    """
    if table is not None:
        if segment is not None or port is not None or all_ or follow:
            raise BadInput("cannot be combined with a SEGMENT, --at, --all or --follow", field="--table")
        _export_table(find_run(run), table, form, output)
        return
    if form is not None:
        raise BadInput("is the format of a table", field="--format", allowed="with --table")
    point = find_point(run, segment, port, all_=all_)
    if follow and point.kept is None:
        raise BadInput("--follow: the run has ended", file=run, allowed="the name of a topology that is up")
    keeper_pid = point.kept.pid if follow and point.kept is not None else None
    if output == STREAM:
        if sys.stdout.isatty():
            raise BadInput("standard output is a terminal", allowed="-o FILE, or a pipe")
        rooms.stream_view(point.capture, point.port, sys.stdout.buffer, keeper_pid)
    else:
        try:
            _write(point.capture, point.port, Path(output), keeper_pid)
        except (IsADirectoryError, NotADirectoryError, FileNotFoundError, PermissionError) as error:
            raise BadInput(f"-o cannot be written: {error.strerror}", file=output, allowed="a file, or -") from error
        say(f"{output}: {point.in_words().removeprefix('showing ')}")


def _export_table(folder: Path, table: str, form: str | None, output: str) -> None:
    if output == STREAM and form == "parquet" and sys.stdout.isatty():
        raise BadInput("standard output is a terminal", allowed="-o FILE, or a pipe")
    try:
        rows = rooms.export_table(folder, table, form, None if output == STREAM else Path(output))
    except (IsADirectoryError, NotADirectoryError, FileNotFoundError, PermissionError) as error:
        raise BadInput(f"-o cannot be written: {error.strerror}", file=output, allowed="a file, or -") from error
    if output != STREAM:
        say(f"{output}: {rows} rows of {table}")


def _write(capture: Path, port: str | None, output: Path, keeper_pid: int | None) -> None:
    if output.exists() and not output.is_file():  # a pipe or a device
        with output.open("wb") as file:
            rooms.stream_view(capture, port, file, keeper_pid)
    else:
        rooms.write_view(capture, port, output, keeper_pid)

# SPDX-License-Identifier: Apache-2.0
"""`sundial rpc`: programs of your own interface, and their messages down to XDR."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, print_json, show_written
from sundial.cli.verify import check_captures
from sundial.errors import VerificationFailed
from sundial.model.catalog import LAUNCHER
from sundial.units import counted

SHOWN = 10


@click.group()
def rpc() -> None:
    """Your own RPC interface in a FILE.x: server, client and scenario; verification of its messages.

    \b
    sundial rpc new calc.x && make -C calc && sundial run calc/calc.yaml
    sundial rpc verify calc.x latest
    """


@rpc.command(cls=Verb)
@click.argument("file", metavar="FILE.x", type=click.Path(path_type=Path))
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Folder of the files. Default: FILE.")
@click.option("--update", is_flag=True, help="Write again what is there, except server.c, client.c and the scenario.")
@as_json
def new(file: Path, out: Path | None, update: bool, as_json: bool) -> None:
    """Write a server and a client in C and a scenario for the interface in FILE.x (RFC 4506, RFC 5531).

    The scenario runs as it is: it calls each procedure over UDP and TCP. Put your own code in server.c and client.c.

    \b
    sundial rpc new calc.x
    sundial rpc new calc.x --update
    """
    project = rooms.named_room("sundial.interface.project")
    texts = project.project(file, str(LAUNCHER))
    folder = Path(file.stem) if out is None else out
    scenario = folder / f"{project.scenario_name(file.stem)}.yaml"
    files = {folder / name: text for name, text in texts.items()}
    if update:
        files = {path: text for path, text in files.items() if not (project.is_yours(path.name) and path.exists())}
    if (folder / file.name).resolve() == file.resolve():
        del files[folder / file.name]
    rooms.draft("write").write(files, force=update, option="--update")
    lines = [f"make -C {shlex.quote(str(folder))}", f"./sundial run {shlex.quote(str(scenario))}"]
    show_written(files, lines, as_json=as_json)


@rpc.command(cls=Verb)
@click.argument("file", metavar="FILE.x", type=click.Path(path_type=Path))
@click.argument("run", metavar="RUN", shell_complete=completion.RUNS)
@click.option(
    "--port", type=click.IntRange(1, 65535), help="The server's port. Default: those that the scenario names."
)
@click.option("--lines", is_flag=True, help="Print JSON lines, as expect.check reads them.")
@as_json
def verify(file: Path, run: str, port: int | None, lines: bool, as_json: bool) -> None:
    """Verify the messages of RUN: calls, replies and record marks, each argument and result down to its XDR.

    \b
    sundial rpc verify calc.x latest
    sundial rpc verify nlm.x captures/mine --port 4045
    """
    _, interface = rooms.named_room("sundial.interface.project").read_interface(file)
    folder = find_run(run)
    check_captures(folder)
    judged, compared = rooms.able_room("sundial.interface.capture").judge_run(interface, folder, port)
    document = _document(judged, compared)
    if as_json:
        print_json(document)
    elif lines:
        _print_lines(document)
    else:
        _print(document)
    if document["findings"]:
        raise VerificationFailed(f"{run}: verification failed: {counted(len(document['findings']), 'mismatch')}")


def _document(judged: Any, compared: int) -> dict[str, Any]:
    procedures = [
        {"name": name, "calls": calls, **_times(judged.times_ns.get(name, []))} for name, calls in judged.calls.items()
    ]
    return {
        "verdict": "fail" if judged.findings else "pass",
        "calls": sum(judged.calls.values()),
        "octets": judged.octets,
        "compared": compared,
        "procedures": procedures,
        "findings": [str(each) for each in judged.findings],
    }


def _times(times_ns: list[int]) -> dict[str, float]:
    """Round trips in us, as clients measured them."""
    if not times_ns:
        return {}
    ordered = sorted(times_ns)
    places = (("least_us", 0), ("median_us", (len(ordered) - 1) // 2), ("most_us", -1))
    return {name: ordered[place] / 1000 for name, place in places}


def _summary(each: dict[str, Any]) -> str:
    words = counted(each["calls"], "call")
    if "least_us" in each:
        words += f", {each['least_us']:.1f} to {each['most_us']:.1f} us, median {each['median_us']:.1f}"
    return words


def _values(document: dict[str, Any]) -> str:
    return (
        f"{counted(document['calls'], 'call')}, {document['octets']} bytes of XDR, "
        f"{counted(document['compared'], 'call')} compared with values that clients printed"
    )


def _print(document: dict[str, Any]) -> None:
    click.echo(f"{document['verdict']}: {_values(document)}")
    for each in document["procedures"]:
        click.echo(f"  {each['name']}: {_summary(each)}")
    for words in document["findings"][:SHOWN]:
        click.echo(f"  {words}")
    if len(document["findings"]) > SHOWN:
        click.echo(f"  and {len(document['findings']) - SHOWN} more; --json lists them")


def _print_lines(document: dict[str, Any]) -> None:
    rows = [{"pass": True, "check": each["name"], "words": _summary(each)} for each in document["procedures"]]
    rows += [{"pass": False, "check": "xdr", "words": words} for words in document["findings"][:SHOWN]]
    for row in rows:
        click.echo(json.dumps(row))
    click.echo(_values(document))

# SPDX-License-Identifier: Apache-2.0
"""`sundial verify`: compare a capture with what the protocol says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from sundial.cli import rooms
from sundial.cli.runs import find_run
from sundial.cli.talk import Verb, as_json, print_json
from sundial.errors import VerificationFailed
from sundial.model.segment import MTU_LEAST, MTU_MOST

SHOWN = 10


class _Protocol(click.ParamType[str]):
    """What a capture may hold. Kinds of workloads say so, and they are asked only when it is needed."""

    name = "protocol"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(rooms.verifiable())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(rooms.verifiable()).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in rooms.verifiable() if name.startswith(incomplete)]


@click.command(cls=Verb, short_help="Compare a capture with what the protocol says.")
@click.argument("run", required=False)
@click.option("--pcap", type=click.Path(path_type=Path), metavar="FILE", help="A capture from elsewhere.")
@click.option("--protocol", type=_Protocol(), help="What the capture holds.")
@click.option("--mtu", type=click.IntRange(MTU_LEAST, MTU_MOST), default=1500, help="Of the wire it was taken on.")
@click.option("--port", type=click.IntRange(1, 65535), help="The server's port, where it is not found by itself.")
@as_json
def verify(run: str | None, pcap: Path | None, protocol: str | None, mtu: int, port: int | None, as_json: bool) -> None:
    """Verify RUN (a directory, a name from `sundial ls`, or latest), or a capture with --pcap and --protocol."""
    if (run is None) == (pcap is None):
        raise click.UsageError("give either RUN or --pcap FILE")
    if pcap is not None:
        if protocol is None:
            raise click.UsageError(f"--pcap needs --protocol: one of {', '.join(rooms.verifiable())}")
        name, document = str(pcap), rooms.verify_pcap(pcap, protocol, mtu, port)
    else:
        folder = find_run(run or "")
        name, document = str(folder), rooms.verify_run(folder)
    if as_json:
        print_json(document)
    else:
        _print(name, document)
    if document["verdict"] != "pass":
        raise VerificationFailed(f"{name}: the capture is not what the protocol says")


def _print(name: str, document: dict[str, Any]) -> None:
    names = ("calls", "packets", "fragments", "retransmissions", "mismatches")
    counts = ", ".join(f"{document[what]} {what}" for what in names if isinstance(document.get(what), int))
    click.echo(f"{name}: {document['verdict']}: {counts}")
    problems = document.get("problems") or []
    for problem in problems[:SHOWN]:
        frames = " ".join(str(frame) for frame in problem.get("frames") or [])
        click.echo(f"  {problem.get('capture')} frames {frames or '-'}: {problem.get('field')}")
        click.echo(f"    expected {problem.get('expected')}, seen {problem.get('seen')}")
        click.echo(f"    filter   {problem.get('filter')}")
    if len(problems) > SHOWN:
        click.echo(f"  and {len(problems) - SHOWN} more in verify.json")

# SPDX-License-Identifier: Apache-2.0
"""`sundial verify`: verify a run or a capture against its protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from sundial.cli import outcome, rooms
from sundial.cli.runs import find_run, reference_to
from sundial.cli.talk import Verb, as_json, print_json
from sundial.errors import BadInput, VerificationFailed
from sundial.model.catalog import typed
from sundial.model.segment import MTU_LEAST, MTU_MOST
from sundial.units import counted

SHOWN = 10
COUNTS = {
    "calls": "call",
    "packets": "packet",
    "fragments": "fragment",
    "retransmissions": "retransmission",
    "mismatches": "mismatch",
}
"""Numbers of a verdict, with the noun of each."""


class _Protocol(click.ParamType[str]):
    """Protocols of a capture. They come from the kinds of workloads, which are imported only if needed."""

    name = "protocol"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(rooms.verifiable())}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(rooms.verifiable()).convert(value, param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in rooms.verifiable() if name.startswith(incomplete)]


@click.command(cls=Verb)
@click.argument("run", required=False)
@click.option("--pcap", type=click.Path(path_type=Path), metavar="FILE", help="Verify a capture file instead of a run.")
@click.option("--protocol", type=_Protocol(), help="Protocol of the capture.")
@click.option(
    "--mtu",
    type=click.IntRange(MTU_LEAST, MTU_MOST),
    help="MTU of the wire of the capture. Default: the largest packet of each direction.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Server's port, if it is not found automatically.")
@click.option("--unproven", is_flag=True, help="Also list what was not verified.")
@outcome.options
@as_json
def verify(
    run: str | None,
    pcap: Path | None,
    protocol: str | None,
    mtu: int | None,
    port: int | None,
    unproven: bool,
    junit: Path | None,
    summary: Path | None,
    as_json: bool,
) -> None:
    """Verify RUN (a directory, a name from `sundial ls`, or latest), or a capture with --pcap and --protocol."""
    if (run is None) == (pcap is None):
        raise click.UsageError("give either RUN or --pcap FILE")
    with outcome.written(junit, summary, str(pcap or run)) as ended:
        if pcap is not None:
            if protocol is None:
                raise click.UsageError(f"--pcap needs --protocol: one of {', '.join(rooms.verifiable())}")
            _check_plain(pcap)
            name, document = str(pcap), rooms.verify_pcap(pcap, protocol, mtu, port)
            ended.add(name, document)
        else:
            folder = find_run(run or "")
            check_captures(folder)
            name, document = str(folder), rooms.verify_run(folder)
            ended.add(reference_to(folder), document, folder)
        if as_json:
            print_json(document)
        else:
            _print(name, document, unproven, None if pcap else run)
        if document["verdict"] == "fail":
            raise VerificationFailed(f"{name}: verification failed: {counted(document['mismatches'], 'mismatch')}")


def check_captures(folder: Path) -> None:
    """Raises BadInput for a run whose captures the user has removed."""
    removed = rooms.captures_removed(folder)
    if removed:
        what = f"its captures were removed on {removed} (sundial rm --captures-only)"
        raise BadInput(what, file=folder.name, allowed="a run with captures; verify.json has the verdict")


def _check_plain(pcap: Path) -> None:
    """Raises BadInput for what is not a file: a pipe would block, and a device may have no end."""
    if pcap.exists() and not pcap.is_file():
        raise BadInput("is not a regular file", file=str(pcap), allowed="a pcapng or pcap file")


def _print(name: str, document: dict[str, Any], unproven: bool, run: str | None) -> None:
    counts = ", ".join(
        counted(document[name], noun) for name, noun in COUNTS.items() if isinstance(document.get(name), int)
    )
    click.echo(f"{name}: {document['verdict']}: {counts}")
    if document["verdict"] == "checked":
        click.echo(
            "  interactive session, so there are no calls to verify; headers, wire timing and files are consistent"
        )
    for bound in document.get("bounds") or ():
        click.echo(f"  {bound_line(bound)}")
    for check in document.get("checks") or ():
        click.echo(f"  {check_line(check)}")
    shown = rooms.mismatches(run or "", document, SHOWN)
    for each in shown:
        click.echo(f"  {each.words}")
        if run is not None and each.open is not None:
            click.echo(f"    {each.open}")
    _print_rules(shown)
    for line in document.get("remarks", ()):
        click.echo(f"  {line}")
    rest = document["mismatches"] - sum(each.joined for each in shown)
    if rest > 0:
        click.echo(f"  and {rest} more{' in verify.json' if run else ''}")
    open_points = document.get("unproven") or []
    if unproven:
        for line in open_points:
            click.echo(f"  unproven: {line}")
    else:
        click.echo(f"  unproven: {len(open_points)} properties; list them with --unproven")


def _print_rules(shown: Sequence[rooms.Mismatch]) -> None:
    """How to read about the rules of what was listed."""
    for name in dict.fromkeys(each.rule for each in shown if each.rule):
        click.echo(typed(f"  about {name}: ./sundial explain {name}"))


def bound_line(bound: dict[str, Any]) -> str:
    """A bound of the scenario, and what was seen."""
    return f"{'met' if bound['met'] else 'NOT MET'}: {bound['bound']}: {bound['words']}"


def check_line(check: dict[str, Any]) -> str:
    """What the scenario's own check said."""
    return f"{'pass' if check['met'] else 'FAIL'}: {check['check']}: {check['words']}"

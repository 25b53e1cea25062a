# SPDX-License-Identifier: Apache-2.0
"""`sundial sweep`: many runs of a scenario, kept by their keys."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms, sweep_rooms
from sundial.cli.options import certs_option, checked_connect, checked_out, connect_option, on_option, recipe_option
from sundial.cli.talk import Verb, as_json, in_bytes, print_json, print_table, progress, say
from sundial.errors import HostLacks, Interrupted, RunFailed, VerificationFailed
from sundial.model.catalog import COMMAND, typed
from sundial.sweep.place import Place, place_of, scheduler_of
from sundial.units import counted

MAKE = "make"
_ADDRESSES = "tcp://127.0.0.1:PORT, or tls://HOST:PORT with --certs"


class _Sweep(click.Group):
    """`sundial sweep NAME` without a command makes NAME."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = [MAKE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Sweep)
def sweep() -> None:
    """Make many runs of one scenario: a grid, points, seeds until an interval is narrow, a threshold.

    A result is kept by the key of its run, so the same command goes on where it was interrupted.

    \b
    sundial sweep tcp-or-udp
    sundial sweep my.yaml --on local:2
    sundial sweep loss --topology two-hosts-wan --set "loss=0,1,5 %" --seeds 1..8
    sundial sweep resume captures/sweep-loss-1a2b3c4d
    """


@contextmanager
def resumable(hint: str) -> Iterator[None]:
    """The hint of what ends the runs from outside."""
    try:
        yield
    except (Interrupted, HostLacks) as ended:
        ended.hint = ended.hint or hint
        raise


def asking(settings_help: str, seeds_help: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Options of a command that makes runs of a file or a scenario; the command gets them as `asked`."""
    options = (
        click.argument("reference", metavar="FILE|SCENARIO"),
        click.option(
            "--topology", metavar="T", shell_complete=completion.TOPOLOGIES, help="Name or file of the topology."
        ),
        click.option("--set", "settings", metavar="KEY=V,...", multiple=True, help=settings_help),
        click.option("--seeds", metavar="N..M", help=seeds_help),
        click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder to write."),
        click.option(
            "--store",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder of results. Default: that of this checkout.",
        ),
        on_option,
        certs_option,
        connect_option,
        recipe_option,
    )

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def parsed(
            reference: str,
            topology: str | None,
            settings: tuple[str, ...],
            seeds: str | None,
            out: Path | None,
            store: Path | None,
            on: str,
            certs: Path | None,
            connect: str,
            recipe: str | None,
            **others: Any,
        ) -> None:
            source = sweep_rooms.sweep_source(reference, topology, settings, seeds)
            where = (checked_out(out), store, place_of(on, certs), checked_connect(connect), recipe)
            command(sweep_rooms.SweepAsked(source, *where, (COMMAND, *sys.argv[1:])), **others)

        for option in reversed(options):
            parsed = option(parsed)
        return parsed

    return decorate


@sweep.command(MAKE, cls=Verb)
@asking("Value, or several: an axis.", "Seeds of each point.")
@click.option("--dry-run", is_flag=True, help="Say how many runs there are, and what they take; start nothing.")
@as_json
def make(asked: sweep_rooms.SweepAsked, dry_run: bool, as_json: bool) -> None:
    """Make the runs of a sweep's FILE, or a grid of SCENARIO. The command if none is named."""
    _make(asked, dry_run=dry_run, as_json=as_json)


@sweep.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@on_option
@certs_option
@connect_option
@as_json
def resume(folder: Path, on: str, certs: Path | None, connect: str, as_json: bool) -> None:
    """Make the runs of a sweep's folder that are not there yet."""
    asked = sweep_rooms.sweep_again(folder, place_of(on, certs), checked_connect(connect))
    _make(asked, dry_run=False, as_json=as_json)


@sweep.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@as_json
def status(folder: Path, as_json: bool) -> None:
    """Say what of a sweep is in the store."""
    swept = sweep_rooms.sweep_status(sweep_rooms.sweep_again(folder, Place(), "embedded"))
    _show(swept, as_json=as_json)


@sweep.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.argument("number", type=click.IntRange(0), metavar="N")
@click.option("--captures", is_flag=True, help="Make the run again if its captures were dropped, and compare it.")
@connect_option
@as_json
def show(folder: Path, number: int, captures: bool, connect: str, as_json: bool) -> None:
    """Show run N of a sweep: what became of it, its folder, and the command that makes it."""
    with progress(quiet=as_json) as shown:
        found = sweep_rooms.sweep_show(
            sweep_rooms.sweep_again(folder, Place(1), checked_connect(connect)),
            number,
            captures=captures,
            progress=shown,
        )
    if as_json:
        print_json(found)
    else:
        print_table([[name, str(value)] for name, value in found.items() if value is not None])
    if found["differs"]:
        raise VerificationFailed(f"run {number} was made again, and these differ: {found['differs']}")


@sweep.command(cls=Verb)
@click.argument("address", metavar="ADDRESS")
@certs_option
def scheduler(address: str, certs: Path | None) -> None:
    """Be the scheduler at ADDRESS, until Ctrl-C: tcp://127.0.0.1:PORT, or tls://HOST:PORT with --certs.

    What reaches it with the key of --certs can run any program on it, its workers and its clients.
    """
    sweep_rooms.scheduler(*scheduler_of(address, certs, "ADDRESS", _ADDRESSES), say)


@sweep.command(cls=Verb)
@click.argument("address", metavar="ADDRESS")
@click.option("--slots", type=click.IntRange(1, 64), metavar="N", help="Runs at a time. Default: for the cores.")
@click.option("--store", type=click.Path(path_type=Path), metavar="DIR", help="Folder of results on this host.")
@certs_option
def worker(address: str, slots: int | None, store: Path | None, certs: Path | None) -> None:
    """Make runs for the scheduler at ADDRESS, until Ctrl-C; waits for it while it is not there."""
    place = scheduler_of(address, certs, "ADDRESS", _ADDRESSES)
    sweep_rooms.worker(*place, slots, store, say)


@sweep.command(cls=Verb)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def certs(folder: Path) -> None:
    """Make DIR with a certificate and its key, for a scheduler, all its workers and all its clients.

    Copy it to each of them by a way that other users cannot read.
    """
    sweep_rooms.certs(folder)


def _make(asked: sweep_rooms.SweepAsked, *, dry_run: bool, as_json: bool) -> None:
    with progress(quiet=as_json) as shown:
        sweeping = sweep_rooms.sweeping(asked, shown, building=not dry_run)
        if dry_run:
            estimate = sweeping.estimate()
        else:
            with resumable(f"go on with: ./sundial sweep resume {sweeping.folder}"):
                swept = sweeping.perform(rooms.making(), shown)
    if dry_run:
        _print_estimate(estimate, as_json=as_json)
    else:
        _show(swept, as_json=as_json)


def _print_estimate(found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    runs = f"{found['least']}" if found["least"] == found["most"] else f"{found['least']} to {found['most']}"
    click.echo(f"runs     {runs}: {found['had']} are in the store")
    click.echo(f"checks   {found['checks']} are made again and compared")
    if found["s_a_run"] is None:
        click.echo("time     not known: the store has no run of this sweep")
    else:
        click.echo(f"time     {found['s']:.0f} s: {found['s_a_run']:.1f} s a run, {found['slots']} at a time")
        click.echo(f"disk     {in_bytes(found['bytes'])}")
    click.echo(f"folder   {found['folder']}")


def _show(swept: Any, *, as_json: bool) -> None:
    """What a sweep came to; raises for an exit status."""
    verdicts = {name: len(swept.having(name)) for name in ("pass", "differs", "fail", "failed")}
    if as_json:
        print_json(swept.to_json())
    else:
        words = ", ".join(f"{count} {name}" for name, count in verdicts.items() if count) or "none is there"
        click.echo(f"runs     {words}, of {swept.counts.wanted}")
        click.echo(f"again    {swept.checked} of {swept.to_check} made again with equal bytes")
        for crossing in filter(None, swept.crossings):
            click.echo(f"at       {crossing.words}")
        click.echo(f"folder   {swept.folder}")
        if (swept.folder / "index.html").is_file():
            click.echo(f"page     {swept.folder / 'index.html'}")
    meanings = {"differs": "made twice with other bytes", "fail": "with mismatches", "failed": "failed"}
    for name, meaning in meanings.items():
        rows = swept.having(name)
        if rows:
            show_it = typed(f"./sundial sweep show {swept.folder} {rows[0].number}")
            say(f"{len(rows)} {meaning}: {rows[0].first}; see: {show_it}")
    for point, why in list(swept.given_up.items())[:1]:
        say(f"{len(swept.given_up)} not made: seed {point.seed}: {why}")
    if swept.status == RunFailed.exit_code:
        raise RunFailed(f"{counted(verdicts['failed'] + len(swept.given_up), 'run')} failed")
    if swept.status:
        raise VerificationFailed("not all runs are right")

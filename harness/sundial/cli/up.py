# SPDX-License-Identifier: Apache-2.0
"""`sundial up`: boot a topology's machines and keep them up."""

from __future__ import annotations

import click

from sundial.cli import completion, rooms
from sundial.cli.options import checked_connect, connect_option, recipe_option
from sundial.cli.talk import Verb, as_json, print_json, print_table, progress, say
from sundial.model.catalog import typed
from sundial.model.load import load_live
from sundial.model.network import build_network
from sundial.model.scenario import SEED_MOST
from sundial.model.topology import Clock
from sundial.plan.request import UpRequest


@click.command(cls=Verb)
@click.argument("topology", shell_complete=completion.TOPOLOGIES)
@click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a field; may be repeated.")
@click.option(
    "--seed", type=click.IntRange(0, SEED_MOST), default=1, metavar="N", help="Seed for all random choices. Default: 1."
)
@click.option(
    "--clock",
    type=click.Choice(["virtual", "real"]),
    help="Clock to use. Default: real, or virtual if a segment supports nothing else. "
    "Virtual time runs on between commands.",
)
@connect_option
@recipe_option
@as_json
def up(
    topology: str,
    overrides: tuple[str, ...],
    seed: int,
    clock: Clock | None,
    connect: str,
    recipe: str | None,
    as_json: bool,
) -> None:
    """Boot the machines of TOPOLOGY and keep them up until `sundial down`."""
    loaded = load_live(topology, overrides, clock)
    request = UpRequest(loaded, build_network(loaded), loaded.clock, seed, checked_connect(connect), recipe)
    with progress(quiet=as_json) as shown:
        kept = rooms.up(request, shown)
    if as_json:
        print_json(kept.to_json())
        return
    print_table([["MACHINE", "ADDRESS"], *([machine.name, machine.address] for machine in kept.machines)])
    click.echo(f"captures  {kept.captures}")
    click.echo(typed(f"libvirt   {kept.connect}: ./sundial virsh --topology {kept.topology} list"))
    for name, uri in kept.hosts.items():
        click.echo(typed(f"host {name}: ./sundial virsh --connect '{uri}' list"))
    say(f"watch the captures with: ./sundial open {kept.topology}; after down they are in {kept.final}")
    first = kept.machines[0].name
    say(
        f"use the machines with: ./sundial exec {first} -- COMMAND, ./sundial console {first}; end with: ./sundial down"
    )

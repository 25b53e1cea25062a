# SPDX-License-Identifier: Apache-2.0
"""`sundial impair`, `cut`, `heal`, `partition` and `power`: change a topology that is up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, print_table, say
from sundial.errors import BadInput
from sundial.model.machine_events import MACHINE_VERBS, POWER_OFF, POWER_ON
from sundial.model.overrides import parse_override
from sundial.model.source import Source, validate
from sundial.model.timeline import CUT, HEAL, IMPAIR, PARTITION, WIRE_VERBS, Event, Happened

_up = click.option("--topology", metavar="T", shell_complete=completion.UP, help="The topology, if several are up.")


@click.command(cls=Verb)
@click.argument("segment", required=False)
@click.argument("values", metavar="[PORT] [KEY=VALUE]...", nargs=-1)
@click.option("--reset", is_flag=True, help="First back to the impairments of the topology.")
@click.option("--show", "is_shown", is_flag=True, help="Print what is in force, and change nothing.")
@_up
@as_json
def impair(
    segment: str | None, values: tuple[str, ...], reset: bool, is_shown: bool, topology: str | None, as_json: bool
) -> None:
    """Impair frames of SEGMENT that PORT sends (default: all ports), by the names of tc-netem.

    Impairments that are not named stay. What an adapter or a queue already holds passes as before; the line that is
    printed has the instant. The capture and run.json have each change, as from `timeline:` of a scenario.

    \b
    sundial impair wan loss=5% delay=10ms
    sundial impair wan client:eth0 rate=2Mbit/s
    """
    if is_shown:
        if segment is not None or values or reset:
            raise BadInput("--show takes no segment and no value", field="--show", allowed="sundial impair --show")
        _show(rooms.change(None, topology)["segments"], as_json=as_json)
        return
    if segment is None:
        raise BadInput("missing", field="SEGMENT", allowed="a segment of the topology, or --show")
    ports = [value for value in values if "=" not in value]
    if ports[1:] or any(":" not in port for port in ports):
        raise BadInput(
            f"{ports[-1]!r} is neither a port nor KEY=VALUE",
            field="PORT, KEY=VALUE",
            allowed="one MACHINE:INTERFACE, and KEY=VALUE, such as loss=5%",
        )
    written: dict[str, Any] = {IMPAIR: segment}
    if ports:
        written["from"] = ports[0]
    if reset:
        written["reset"] = True
    _change(written, [value for value in values if "=" in value], topology, as_json=as_json)


@click.command(cls=Verb)
@click.argument("place")
@_up
@as_json
def cut(place: str, topology: str | None, as_json: bool) -> None:
    """Cut the cable of PLACE, a port (MACHINE:INTERFACE) or a segment. Its frames are lost; carriers stay on.

    \b
    sundial cut server:eth0
    sundial cut lan
    """
    _change({CUT: place}, (), topology, as_json=as_json)


@click.command(cls=Verb)
@click.argument("place")
@_up
@as_json
def heal(place: str, topology: str | None, as_json: bool) -> None:
    """Heal a port that is cut, or a segment: its cut ports and its partition.

    \b
    sundial heal server:eth0
    sundial heal lan
    """
    _change({HEAL: place}, (), topology, as_json=as_json)


@click.command(cls=Verb)
@click.argument("segment")
@click.argument("groups", metavar="NAME,... NAME,...", nargs=-1, required=True)
@_up
@as_json
def partition(segment: str, groups: tuple[str, ...], topology: str | None, as_json: bool) -> None:
    """Partition SEGMENT into groups of machines and devices. Frames from group to group are lost until `heal`.

    \b
    sundial partition lan n1 n2,n3
    sundial partition lan client1,client2 server
    """
    written = {PARTITION: [group.split(",") for group in groups], "segment": segment}
    _change(written, (), topology, as_json=as_json)


@click.command(cls=Verb)
@click.argument("state", type=click.Choice(["off", "on"]))
@click.argument("machine", shell_complete=completion.MACHINES)
@_up
@as_json
def power(state: str, machine: str, topology: str | None, as_json: bool) -> None:
    """Cut the power of MACHINE, as if its plug were pulled, or boot it again. Frames to one that is off are lost.

    \b
    sundial power off server
    sundial power on server
    """
    _change({POWER_OFF if state == "off" else POWER_ON: machine}, (), topology, as_json=as_json)


def _change(written: Mapping[str, Any], values: Sequence[str], topology: str | None, *, as_json: bool) -> None:
    verb = next(verb for verb in (*WIRE_VERBS, *MACHINE_VERBS) if verb in written)
    source = Source("", verb, {"at": "0 ns", **written})
    for value in values:
        override = parse_override(value, verb, "loss=5%")
        source.put(override.path, override.value, override.origin)
    asked = validate(source, Event).model_dump(mode="json", exclude_none=True, exclude={"at_"})
    made = rooms.change(asked, topology)["event"]
    if as_json:
        print_json(made)
        return
    event = Happened.model_validate(made)
    click.echo(f"{event.words}, from {event.at / 1e9:.9f} s")


def _show(segments: Mapping[str, Mapping[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(segments)
        return
    rows = [["SEGMENT", "PORT", "IN FORCE"]]
    for name, state in segments.items():
        if state["partition"]:
            rows.append([name, "", "partition " + " | ".join(" ".join(group) for group in state["partition"])])
        for port in sorted({*state["cut"], *state["off"], *state["impairments"]}):
            what = [word for word in ("cut", "off") if port in state[word]]
            what += [f"{key} {value}" for key, value in state["impairments"].get(port, {}).items()]
            rows.append([name, port, ", ".join(what)])
    if len(rows) == 1:
        say("no impairment is in force" if segments else "no segment of this topology can change")
    else:
        print_table(rows)

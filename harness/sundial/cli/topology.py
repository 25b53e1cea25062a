# SPDX-License-Identifier: Apache-2.0
"""`sundial topology`: list, show, check and draw topologies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from sundial.cli import completion, rooms
from sundial.cli.talk import Verb, as_json, print_json, print_table
from sundial.errors import BadInput
from sundial.model.catalog import find, names
from sundial.model.load import load_topology
from sundial.model.network import Network, Node, build_network
from sundial.model.topology import SEGMENT_KINDS, Segment
from sundial.units import RATE, SIZE, counted

_set = click.option("--set", "overrides", metavar="KEY=VALUE", multiple=True, help="Change a field; may be repeated.")


def _kinds() -> str:
    """The kinds of segments, one a line."""
    written = {name: kind.model for name, kind in SEGMENT_KINDS.items() if kind.model is not None}
    lines = [f"  {name}: {model.__doc__}" for name, model in written.items()]
    return "\n".join(["\b", "Segments (kind):", *lines])


@click.group(epilog=_kinds())
def topology() -> None:
    """Topologies: list, show, check, graph."""


@topology.command(name="list", cls=Verb)
@as_json
def list_(as_json: bool) -> None:
    """List the topologies that come with the checkout."""
    found = {name: str(find("topology", name).data.get("description", "")) for name in names("topology")}
    if as_json:
        print_json([{"name": name, "description": text} for name, text in found.items()])
    else:
        print_table([[name, text] for name, text in found.items()])


@topology.command(cls=Verb)
@click.argument("name", shell_complete=completion.TOPOLOGIES)
@_set
@click.option("--svg", "as_svg", is_flag=True, help="Print only the drawing, as SVG.")
@as_json
def show(name: str, overrides: tuple[str, ...], as_svg: bool, as_json: bool) -> None:
    """Show a topology with all derived values (addresses, MAC addresses, ports) and a drawing."""
    loaded = load_topology(name, overrides)
    network = build_network(loaded)
    if as_svg:
        click.echo(rooms.topology_drawing(network, as_svg=True), nl=False)
        return
    if as_json:
        print_json({**loaded.model_dump(mode="json", exclude_none=True), "resolved": _resolved(network)})
        return
    described = f": {loaded.description}" if loaded.description else ""
    click.echo(f"{loaded.name}{described} ({loaded.clock} clock)\n")
    rows = [["MACHINE", "MIPS", "MEMORY", "INTERFACE", "ADDRESS", "MAC", "MTU", "SEGMENT"]]
    for node in network.nodes:
        for nic in node.nics:
            first = [node.name, f"{node.mips:f}", SIZE.show(node.memory)] if nic.index == 0 else ["", "", ""]
            rows.append([*first, nic.device, str(nic.address or "-"), nic.mac, str(nic.mtu), nic.segment])
    print_table(rows)
    click.echo()
    own = [[f"{node.name}:", words] for node in network.nodes for words in _own(node)]
    own += [[f"{node.name}:", f"on host {node.host}"] for node in network.nodes if node.host is not None]
    own += [[f"{name}:", uri.shown] for name, uri in network.hosts.items()]
    if own:
        print_table(own)
        click.echo()
    if network.devices:
        rows = [["DEVICE", "KIND", "INTERFACE", "MAC", "SEGMENT"]]
        for device in network.devices:
            for port in device.ports:
                label, kind = (device.name, device.kind) if port.index == 0 else ("", "")
                rows.append([label, kind, port.interface, port.mac, port.segment])
        print_table(rows)
        click.echo()
    rows = [["SEGMENT", "KIND", "RATE", "MTU", "PORTS"]]
    for label, segment in network.segments.items():
        rows.append([label, segment.kind, _rate(segment), str(segment.mtu), " ".join(segment.ports)])
    print_table(rows)
    click.echo(f"\n{rooms.topology_drawing(network, as_svg=False)}", nl=False)


@topology.command(cls=Verb)
@click.argument("file", shell_complete=completion.TOPOLOGIES)
@_set
@as_json
def check(file: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Check a topology file. Each problem is one line with file, line and field."""
    if not Path(file).exists() and file not in names("topology"):
        raise BadInput("does not exist", file=file, allowed="a file, or a name from 'sundial topology list'")
    loaded = load_topology(file, overrides)
    counts = {"machines": len(loaded.machines), "devices": len(loaded.devices), "segments": len(loaded.segments)}
    if as_json:
        print_json({"name": loaded.name, "sound": True, **counts})
    else:
        nouns = ", ".join(counted(count, name[:-1]) for name, count in counts.items() if count)
        click.echo(f"{file}: valid: {nouns}")


@topology.command(cls=Verb)
@click.argument("name", shell_complete=completion.TOPOLOGIES)
@_set
def graph(name: str, overrides: tuple[str, ...]) -> None:
    """Print a topology as a Graphviz graph, for `dot -Tsvg`."""
    network = build_network(load_topology(name, overrides))
    click.echo(f'graph "{network.name}" {{')
    for node in network.nodes:
        click.echo(f'  "{node.name}" [shape=box];')
    for device in network.devices:
        click.echo(f'  "{device.name}" [shape=diamond];')
    for label, segment in network.segments.items():
        click.echo(f'  "segment {label}" [shape=ellipse, label="{label}\\n{segment.kind} {_rate(segment)}"];')
    for nic in network.nics():
        text = f"{nic.device} {nic.address.ip}" if nic.address else nic.device
        click.echo(f'  "{nic.machine}" -- "segment {nic.segment}" [label="{text}"];')
    for device in network.devices:
        for port in device.ports:
            click.echo(f'  "{device.name}" -- "segment {port.segment}" [label="{port.interface}"];')
    click.echo("}")


def _rate(segment: Segment) -> str:
    rates = sorted({segment.rate_bps(port) for port in segment.ports})
    return " ".join(RATE.show(rate) for rate in rates)


def _own(node: Node) -> Iterator[str]:
    """What a machine boots beside its image, one a line."""
    for what, value in (("kernel", node.kernel), ("initrd", node.initrd), ("command line, added", node.cmdline)):
        if value is not None:
            yield f"{what} {value}"
    if node.root is not None:
        sources = {
            "packages": ", ".join(node.root.packages),
            "oci": node.root.oci,
            "folder": node.root.folder,
            "modules": ", ".join(node.root.modules),
        }
        yield from (f"root, in {node.root.held}: {what} {value}" for what, value in sources.items() if value)
    for path, laid in node.files:
        content = "content in the topology" if laid.source is None else f"from {laid.source}"
        yield f"file {path} ({laid.mode:04o}) {content}"


def _resolved(network: Network) -> list[dict[str, Any]]:
    return [
        {
            "machine": nic.machine,
            "device": nic.device,
            "address": str(nic.address) if nic.address else None,
            "mac": nic.mac,
            "mtu": nic.mtu,
            "segment": nic.segment,
            "port": nic.port,
        }
        for nic in network.nics()
    ]

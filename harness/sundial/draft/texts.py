# SPDX-License-Identifier: Apache-2.0
"""The text of a topology and of a scenario. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sundial.errors import BadInput
from sundial.model.catalog import FOLDERS, Kind

MACHINES_LEAST, MACHINES_MOST = 2, 64
SEGMENTS = {
    "switch": """\
    kind: switch                  # a learning store-and-forward switch
    rate: 100 Mbit/s              # one for all ports, or by port
    # forwarding_latency: 5 us
    # queue_frames: 128           # places of an output queue; what finds none is dropped""",
    "hub": """\
    kind: hub                     # a repeater, half duplex: CSMA/CD with collisions
    rate: 10 Mbit/s               # or 100 Mbit/s
    # cable_delay: 25 ns          # 5 ns a metre; one for all, or by port""",
    "link": """\
    kind: link                    # two ports, full duplex
    rate: 100 Mbit/s
    # propagation: 25 ns          # 5 ns a metre
    # impairments:                # tc-netem's, by sending port or both
    #   both: {delay: 10 ms, jitter: 1 ms, loss: 1 %}""",
    "atm": """\
    kind: atm                     # adapters and a switch, cell by cell
    line: oc-3c                   # or atm-25, taxi-100, a rate
    # encapsulation: lane         # or bridged, bridged-fcs, routed
    # queue: {cells: 1024, discard: epd, epd_above: 512}""",
}
"""The fields of each kind of segment that a draft can have."""
_TOPOLOGY = """\
{schema}
#
# {words}. Each field that is left out has a default. An editor that reads the line
# above completes fields and explains them; topologies/README.md explains all of them.
{body}"""
_SCENARIO = """\
{schema}
#
# Echo calls of Sun RPC, and datagrams beside them. An editor that reads the line above completes
# fields and explains them; harness/scenarios/README.md explains all of them.
# description: what this is for    # optional
{topology}
# seed: 1                          # of all random choices
# deadline: 10 min                 # of each client, in virtual time

workloads:                         # one after the other, on each client
  - app: sunrpc                    # `sundial run --help` lists the others
    transports: [udp, tcp]
    procedures: [echo]
    sizes: [0, 16, 1024, edges]    # edges: each size at which one more packet is needed
    calls: 10                      # for each size, after the warm-up calls
    # server: server               # the machine that serves; the others call
    # clients: "*"
  - app: raw
    transports: [udp]
    sizes: ["256:2048:256"]        # from, to, step
    calls: 10

# vary:                            # one run for each
#   - {{seed: 1, mtu: 1500}}
#   - {{seed: 2, mtu: 576}}

# expect:
#   retransmissions: explained     # or none, allowed
#   failures: none                 # or allowed
"""


def schema_line(kind: Kind) -> str:
    """The comment that names the schema to an editor, wherever the file is."""
    return f"# yaml-language-server: $schema={FOLDERS[kind] / f'{kind}.schema.json'}"


def names(machines: int) -> list[str]:
    """Clients, and the server last."""
    if machines == MACHINES_LEAST:
        return ["client", "server"]
    return [*(f"client{number}" for number in range(1, machines)), "server"]


def check(machines: int, segment: str) -> None:
    """Raises BadInput."""
    if segment not in SEGMENTS:
        raise BadInput(f"{segment!r} cannot be drafted", field="--segment", allowed=", ".join(SEGMENTS))
    if not MACHINES_LEAST <= machines <= MACHINES_MOST:
        allowed = f"{MACHINES_LEAST} to {MACHINES_MOST}"
        raise BadInput(f"{machines} is out of range", field="--machines", allowed=allowed)
    if segment == "link" and machines != MACHINES_LEAST:
        raise BadInput(f"a link cannot join {machines} machines", field="--machines", allowed="2, or another --segment")


def topology(machines: int, segment: str | None) -> str:
    """A topology of so many machines on one segment, the first of SEGMENTS by default. Raises BadInput."""
    segment = next(iter(SEGMENTS)) if segment is None else segment
    check(machines, segment)
    words = f"{machines} machines on one {segment}"
    description = f"description: {words}    # optional\n"
    return _TOPOLOGY.format(
        schema=schema_line("topology"), words=words, body=description + "\n" + _body(machines, segment)
    )


def scenario(machines: int | None, segment: str | None, default: str) -> str:
    """A scenario on the topology `default`, or with one inside if machines or a segment are given. Raises BadInput."""
    if machines is None and segment is None:
        written = f"topology: {default:<24} # a name, a file, or the fields of one"
    else:
        machines = MACHINES_LEAST if machines is None else machines
        segment = next(iter(SEGMENTS)) if segment is None else segment
        check(machines, segment)
        inside = "\n".join(f"  {line}" if line else "" for line in _body(machines, segment).splitlines())
        written = f"topology:                          # inside; or a name, or a file\n{inside}\n"
    return _SCENARIO.format(schema=schema_line("scenario"), topology=written)


def _body(machines: int, segment: str) -> str:
    parts = ["# clock: virtual                 # or real", "defaults:"]
    parts += ["  mips: 125                       # instructions of a machine in a microsecond"]
    parts += ["  # memory: 96 MiB", "  # image: linux                  # `sundial images list`", "", "machines:"]
    for number, name in enumerate(names(machines), start=1):
        parts += [f"  {name}:", "    interfaces:", f"      eth0: {{address: 10.0.0.{number}/24}}"]
        if number == 1:
            parts += ['    # files: {/etc/motd: {content: "hello"}}   # your own files']
    ports = [f'"{name}:eth0"' for name in names(machines)]
    return "\n".join([*parts, "", "segments:", "  lan:", SEGMENTS[segment], *_ports(ports), ""])


def _ports(ports: Sequence[str]) -> list[str]:
    if len(ports) <= 4:
        return [f"    ports: [{', '.join(ports)}]"]
    return ["    ports:", *(f"      - {port}" for port in ports)]


def file_of(name: str) -> Path:
    """The file that a name or a path means."""
    return Path(name) if name.endswith((".yaml", ".yml")) else Path(f"{name}.yaml")

# SPDX-License-Identifier: Apache-2.0
"""`job.json`: what the harness tells one machine to be and to do; served to the guest by fw_cfg, padded with newlines.

Parsed in the guests by guest-apps/job. The order of fields here is the order in which they are written.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from sundial.seams.form import Address, Device, Form, Instant, Items, Mac, Network

JOB_BYTES = 65536
"""What fw_cfg serves, padding included."""

NodeId = Annotated[int, Field(ge=1, le=64)]
Epoch = Annotated[int, Field(ge=1, le=2**32 - 1)]
Path = Annotated[str, Field(pattern=r"^/", max_length=255)]
App = Annotated[str, Field(pattern=r"^[^./][^/]{0,30}$")]


class Neighbour(Form):
    """An entry of a static ARP table."""

    address: Address
    mac: Mac


class Interface(Form):
    """One network interface."""

    device: Device
    mac: Mac | None = None
    """Absent: the one it has."""
    mtu: Annotated[int, Field(ge=68, le=65535)] | None = None
    """Absent: the one it has. SSS-CORE takes 576 to 1500."""
    offloads: bool = False
    """True leaves segmentation and checksum offloads as the driver sets them. Linux only."""
    address: Network | None = None
    """Absent on machines that only forward."""
    neighbours: Items[Neighbour] = ()
    """Static ARP entries; without any, the machine asks."""


class Bridge(Form):
    """Makes a machine forward between its interfaces. Linux only."""

    ports: Items[Device]
    netem: dict[str, str]
    """For each device, arguments of tc-netem for what leaves there; empty: no queueing discipline."""


class Route(Form):
    """The way to a network that no interface is on."""

    to: Network
    via: Address


class Node(Form):
    """Another node of memory-based communication that frames from eth0 reach."""

    node: NodeId
    machine: str
    mac: Mac


class Endpoint(Form):
    """What makes a process on Linux a node of memory-based communication: the option `endpoint` of its programs."""

    device: Device
    node: NodeId
    epoch: Epoch
    nodes: Items[Node]


class Task(Form):
    """A service or a step: a program of the image."""

    app: App
    options: dict[str, Any] = Field(default_factory=dict)
    """Handed to the program as JSON text in argv[1]; it refuses what it does not know."""


class Service(Task):
    """A program that serves until the machine ends. The next one starts once it is ready."""

    restart: bool = False
    """Start it again whenever it ends. SSS-CORE only."""


class Job(Form):
    """The job of one machine."""

    version: Literal[1]
    wait: bool = False
    """True: this is not a job yet. Say ready and read the job again every 10 ms until it has changed."""
    machine: Annotated[str, Field(pattern=r"^[^\s\"\\\x7f]{0,63}$")] = ""
    seed: Instant = 0
    """Of everything random inside the machine."""
    clock: Literal["tsc", "monotonic"] = "monotonic"
    """What timestamps are read from: the TSC under virtual time, else CLOCK_MONOTONIC_RAW."""
    interfaces: Items[Interface] = ()
    bridge: Bridge | None = None
    routes: Items[Route] = ()
    """Linux only."""
    forward: bool = False
    """Forward packets of others between the interfaces. Linux only."""
    node: NodeId | None = None
    """Which node this machine is, with `epoch` and `nodes`. SSS-CORE only."""
    epoch: Epoch | None = None
    """Differs for each incarnation of the node, so that frames of an earlier one are not taken for the new one's."""
    nodes: Items[Node] = ()
    """All other nodes that frames from eth0 reach."""
    files: dict[Path, str] = Field(default_factory=dict)
    """Absolute path to content, written before any service starts. Linux only."""
    services: Items[Service] = ()
    """Started in order, each once the one before it is ready."""
    start_ns: Instant = 0
    """Steps begin no earlier than this on the run's axis. Virtual time only."""
    zero_ns: Instant = 0
    """The machine's clock at zero of the run's axis."""
    steps: Items[Task] = ()
    """Run in order, one at a time, each to its end."""
    interactive: bool = False
    """Serve a shell on the console and commands on the port `sundial.exec`."""

    def document(self) -> dict[str, Any]:
        """The job with the fields that were given, in the order in which they are written."""
        return self.model_dump(mode="json", exclude_unset=True)

    def text(self) -> bytes:
        """The text that fw_cfg serves, without its padding."""
        return json.dumps(self.document(), separators=(",", ":")).encode()

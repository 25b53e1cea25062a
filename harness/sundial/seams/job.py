# SPDX-License-Identifier: Apache-2.0
"""`job.json`: configuration and work of one machine; served to the guest by fw_cfg, padded with newlines.

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
    """MAC address. Absent: unchanged."""
    mtu: Annotated[int, Field(ge=68, le=65535)] | None = None
    """MTU. Absent: unchanged. SSS-CORE takes 576 to 1500."""
    offloads: bool = False
    """True: segmentation and checksum offloads as the driver sets them. Linux only."""
    address: Network | None = None
    """Address; absent on machines that only forward."""
    neighbours: Items[Neighbour] = ()
    """Static ARP entries; without any, the machine asks."""


class Bridge(Form):
    """Forwarding between a machine's interfaces. Linux only."""

    ports: Items[Device]
    netem: dict[str, str]
    """Arguments of tc-netem for frames that leave, by interface; empty: no queueing discipline."""


class Route(Form):
    """Route to a network that the machine has no interface on."""

    to: Network
    via: Address


class Node(Form):
    """Another node of memory-based communication that frames from eth0 reach."""

    node: NodeId
    machine: str
    mac: Mac


class Endpoint(Form):
    """Settings of a process on Linux as a node of memory-based communication: option `endpoint` of its programs."""

    device: Device
    node: NodeId
    epoch: Epoch
    nodes: Items[Node]


class Task(Form):
    """A service or a step: a program of the image."""

    app: App
    options: dict[str, Any] = Field(default_factory=dict)
    """Options, passed to the program as JSON text in argv[1]; it rejects unknown ones."""


class Service(Task):
    """A program that serves until the machine ends. The next one starts when it is ready."""

    restart: bool = False
    """True: restart it after each end. SSS-CORE only."""


class Job(Form):
    """The job of one machine."""

    version: Literal[1]
    wait: bool = False
    """True: this is not a job yet. Report ready, and read the job again every 10 ms until it has changed."""
    machine: Annotated[str, Field(pattern=r"^[^\s\"\\\x7f]{0,63}$")] = ""
    seed: Instant = 0
    """Seed for all random choices inside the machine."""
    clock: Literal["tsc", "monotonic"] = "monotonic"
    """Source of timestamps: the TSC under virtual time, otherwise CLOCK_MONOTONIC_RAW."""
    interfaces: Items[Interface] = ()
    bridge: Bridge | None = None
    routes: Items[Route] = ()
    """Linux only."""
    forward: bool = False
    """True: forward packets between the interfaces. Linux only."""
    node: NodeId | None = None
    """Number of this machine as a node, with `epoch` and `nodes`. SSS-CORE only."""
    epoch: Epoch | None = None
    """Number that differs for each incarnation of the node, so that frames of an earlier one are recognised."""
    nodes: Items[Node] = ()
    """Other nodes that frames from eth0 reach."""
    files: dict[Path, str] = Field(default_factory=dict)
    """Files to write before any service starts: content by absolute path. Linux only."""
    services: Items[Service] = ()
    """Services, started in order, each when the one before is ready."""
    start_ns: Instant = 0
    """Earliest start of the steps on the run's time axis, in ns. Virtual time only."""
    zero_ns: Instant = 0
    """Reading of the machine's clock at zero of the run's time axis."""
    steps: Items[Task] = ()
    """Steps, run in order, each to its end."""
    interactive: bool = False
    """True: serve a shell on the console, and commands on the port `sundial.exec`."""

    def document(self) -> dict[str, Any]:
        """The job with the fields that were given, in the order in which they are written."""
        return self.model_dump(mode="json", exclude_unset=True)

    def text(self) -> bytes:
        """The text that fw_cfg serves, without its padding."""
        return json.dumps(self.document(), separators=(",", ":")).encode()

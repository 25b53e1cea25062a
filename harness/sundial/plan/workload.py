# SPDX-License-Identifier: Apache-2.0
"""What the plan asks of a workload kind: the services of a server, and the steps of a client."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from typing import Any, Protocol, TypeVar, runtime_checkable

from sundial.errors import BadInput
from sundial.model.images import IMAGES, ImageKind
from sundial.model.network import Network, Node
from sundial.model.workload import WorkloadBase
from sundial.plan.cluster import node_id

Options = dict[str, Any]
"""What a program of a guest is started with, in the order of the job."""


@dataclass(frozen=True)
class Host:
    """One machine of a network that serves or calls."""

    network: Network
    node: Node

    @property
    def image(self) -> ImageKind:
        """What it boots."""
        return IMAGES[self.node.image]


@dataclass(frozen=True)
class Way:
    """One client of a workload and its server, which it reaches."""

    client: Host
    server: str
    seed: int
    """Of the run."""

    @property
    def server_address(self) -> IPv4Address:
        """Of the server's interface that the client reaches."""
        route = self.client.network.route(self.client.node.name, self.server)
        if route is None or route[1].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        return route[1].address.ip

    @property
    def broadcast_address(self) -> IPv4Address:
        """Of the network in which the client reaches its server."""
        route = self.client.network.route(self.client.node.name, self.server)
        if route is None or route[0].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        return route[0].address.network.broadcast_address

    @property
    def server_node(self) -> int:
        """How memory-based communication names the server."""
        return node_id(self.client.network.node(self.server))


@dataclass(frozen=True)
class Service:
    """One program that serves."""

    app: str
    options: Options
    bound: bool = False
    """Clients find it through the machine's binder, which is started before it."""
    endpoint: bool = False
    """The process is a node of memory-based communication."""
    restart: bool = False
    """It is restarted when it has ended."""
    instance: str = ""
    """Services of one app on one machine that differ in this are processes of their own."""

    def merged(self, other: Service, machine: str) -> Service:
        """One service for two workloads that have the same server: with the transports of both.

        Raises BadInput where any other option differs.
        """
        mine, theirs = _apart(self.options), _apart(other.options)
        if mine[1] != theirs[1]:
            raise BadInput(
                f"two workloads configure {self.app} on {machine!r} differently",
                allowed="the same buffers, tcp_nodelay, semantics and so on, or another server",
            )
        transports = list(dict.fromkeys([*mine[0], *theirs[0]]))
        options = {**mine[1], "transports": transports} if transports else mine[1]
        return replace(self, options=options, restart=self.restart or other.restart)


def _apart(options: Options) -> tuple[list[str], Options]:
    """The transports, and all other options."""
    return options.get("transports", []), {name: value for name, value in options.items() if name != "transports"}


@dataclass(frozen=True)
class Step:
    """One program that a client runs to its end."""

    app: str
    options: Options
    endpoint: bool = False
    """The process is a node of memory-based communication."""


WorkloadT_contra = TypeVar("WorkloadT_contra", bound=WorkloadBase, contravariant=True)


@runtime_checkable
class WorkloadPlan(Protocol[WorkloadT_contra]):
    """A kind of workload, as the plan asks for it. Options that are None are left out of the job."""

    def services(self, workload: WorkloadT_contra, server: Host) -> Iterator[Service]:
        """What its server runs."""

    def steps(self, workload: WorkloadT_contra, way: Way) -> Iterator[Step]:
        """What one of its clients runs, in order."""

    def idle_services(self, host: Host) -> Iterator[Service]:
        """What a host that is only brought up serves for anyone; asked for images on which the kind runs."""

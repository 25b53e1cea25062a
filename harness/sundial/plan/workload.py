# SPDX-License-Identifier: Apache-2.0
"""The interface of a workload kind to the plan: the services of a server, and the steps of a client."""

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
"""Options of a guest's program, in the order of the job."""


@dataclass(frozen=True)
class Host:
    """One machine of a network that serves or calls."""

    network: Network
    node: Node

    @property
    def image(self) -> ImageKind:
        """Its image."""
        return IMAGES[self.node.image]


@dataclass(frozen=True)
class Way:
    """One client of a workload and its server."""

    client: Host
    server: str
    seed: int
    """Seed of the run."""
    workload: int = 0
    """Place of the workload in the scenario."""

    @property
    def server_address(self) -> IPv4Address:
        """Address of the server's interface that the client reaches."""
        route = self.client.network.route(self.client.node.name, self.server)
        if route is None or route[1].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        return route[1].address.ip

    @property
    def broadcast_address(self) -> IPv4Address:
        """Broadcast address of the network in which the client reaches its server."""
        route = self.client.network.route(self.client.node.name, self.server)
        if route is None or route[0].address is None:
            raise AssertionError("resolve_workloads refuses clients that do not reach their server")
        return route[0].address.network.broadcast_address

    @property
    def server_node(self) -> int:
        """The server's node id in memory-based communication."""
        return node_id(self.client.network.node(self.server))


@dataclass(frozen=True)
class Service:
    """One program that serves."""

    app: str
    options: Options
    bound: bool = False
    """True if clients find it through the machine's binder, which is started before it."""
    endpoint: bool = False
    """The process is a node of memory-based communication."""
    restart: bool = False
    """True if it is restarted after its end."""
    instance: str = ""
    """Services of one app on one machine are separate processes if this differs."""

    def merged(self, other: Service, machine: str) -> Service:
        """One service for two workloads with the same server, with the transports of both.

        Raises BadInput if any other option differs.
        """
        mine, theirs = _apart(self.options), _apart(other.options)
        if mine[1] != theirs[1]:
            raise BadInput(
                f"two workloads configure {self.app} on {machine!r} differently",
                allowed="equal options (buffers, tcp_nodelay, semantics and others), or another server",
            )
        transports = list(dict.fromkeys([*mine[0], *theirs[0]]))
        options = {**mine[1], "transports": transports} if transports else mine[1]
        return replace(self, options=options, restart=self.restart or other.restart)


def _apart(options: Options) -> tuple[list[str], Options]:
    """The transports, and all other options."""
    return options.get("transports", []), {name: value for name, value in options.items() if name != "transports"}


@dataclass(frozen=True)
class Step:
    """One program of a client, run to its end."""

    app: str
    options: Options
    endpoint: bool = False
    """The process is a node of memory-based communication."""


WorkloadT_contra = TypeVar("WorkloadT_contra", bound=WorkloadBase, contravariant=True)


@runtime_checkable
class WorkloadPlan(Protocol[WorkloadT_contra]):
    """A kind of workload for the plan. Options that are None are left out of the job."""

    def services(self, workload: WorkloadT_contra, server: Host) -> Iterator[Service]:
        """Services of its server."""

    def steps(self, workload: WorkloadT_contra, way: Way) -> Iterator[Step]:
        """Steps of one of its clients, in order."""

    def idle_services(self, host: Host) -> Iterator[Service]:
        """Services of a host that stays up; called for images that support the kind."""

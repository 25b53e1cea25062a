# SPDX-License-Identifier: Apache-2.0
"""The interface of a workload kind to the model, and the fields that kinds share.

A kind is a folder in `sundial/workloads`, named as its word in `app`; `model.py` there has the `KIND`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field

from sundial.expect.ip import PerPacket
from sundial.model.fields import NAMED, Flag, In, Strict, Whole, written
from sundial.model.images import IMAGES, ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import EVERYONE, Calls, Machines, Trace
from sundial.model.network import Network
from sundial.model.sizes import SizeItem, Sizes
from sundial.units import SIZE, Quantity

MILLISECONDS = Quantity(
    "a time in whole ms", {"ms": 1, "s": 1000, "min": 60_000}, least=1, most=3_600_000, example="500 ms"
)

Millis = Annotated[int, In(MILLISECONDS)]
Buffer = Annotated[int, In(SIZE.between("100", "16 MiB", example="4000"))]
SizesField = Annotated[tuple[SizeItem, ...], Sizes()]
CallsField = Annotated[tuple[tuple[int, int], ...], Calls()]
Warmup = Annotated[int, Whole(0, 10_000)]
Series = Annotated[int, Whole(1, 1000)]

Order = Literal["ascending", "seeded"]
Semantics = Literal["at_least_once", "at_most_once", "exactly_once"]
"""How often a call is executed (kamesawa98 section 3.2)."""


@dataclass(frozen=True)
class Transport:
    """One transport of workloads."""

    name: str
    """The word in `transports` and in samples."""
    semantics: tuple[Semantics, ...]
    """Semantics of calls over it; the first is the default."""
    reliable: bool = True
    """True if lost packets are retransmitted below the caller."""
    between_nodes: bool = False
    """True if its ends are nodes of memory-based communication, which have ids instead of addresses."""


@dataclass(frozen=True)
class Ends:
    """The machines of one workload; all are hosts of `network` with an image that supports the workload."""

    network: Network
    server: str
    clients: tuple[str, ...]

    def image(self, machine: str) -> ImageKind:
        """The image of a machine."""
        return IMAGES[self.network.node(machine).image]

    @property
    def images(self) -> dict[str, ImageKind]:
        """Images by machine, the server's first."""
        return {name: self.image(name) for name in (self.server, *self.clients)}

    def mtus(self, client: str) -> list[int]:
        """MTUs of the client's and the server's interface, ascending, each once."""
        route = self.network.route(client, self.server)
        return sorted({nic.mtu for nic in route}) if route else []

    def cells(self, client: str) -> list[PerPacket]:
        """Number of cells of a packet by its length, for each segment with cells between a client and the server."""
        way = [name for hop in self.network.passed(client, self.server) for name in self.network.way(*hop)]
        counts = (self.network.captured[name].packet_cells for name in way)
        return [count for count in counts if count is not None]


class Serving(Strict):
    """Socket options of the server that differ from the client's."""

    tcp_nodelay: Annotated[bool, Flag()] | None = None
    """TCP_NODELAY on accepted connections."""
    send_buffer: Buffer | None = None
    """Send buffer of the record stream (Sun RPC over TCP)."""
    recv_buffer: Buffer | None = None
    """Receive buffer of the record stream (Sun RPC over TCP)."""
    socket_buffer: Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF."""


@dataclass(frozen=True)
class Named:
    """A program that is searched by its name."""

    machine: str
    name: str
    path: Path
    """The field that has it, in the workload."""


class WorkloadBase(Strict):
    """Fields of every workload."""

    clients: Annotated[tuple[str, ...], Machines()] = written(EVERYONE)
    """Who calls."""
    server: Annotated[str, NAMED] = "server"
    """Who answers."""
    series: Series = 1
    """Number of repetitions; they are numbered from 0."""

    if TYPE_CHECKING:  # each kind has these as fields or properties of its own, with its own words

        @property
        def app(self) -> str: ...

        @property
        def transports(self) -> tuple[str, ...]: ...

    @property
    def machines(self) -> tuple[str, ...]:
        """Machines of a workload without one server: it runs on each of them. Empty: on `clients` and `server`."""
        return ()

    @property
    def parties(self) -> tuple[str, ...]:
        """All machines that have a part in it. `clients` is resolved."""
        return self.machines or tuple(dict.fromkeys((*self.clients, self.server)))

    @property
    def commands(self) -> Sequence[Named]:
        """Programs that it starts by a name, where nothing can have written them before."""
        return ()

    @property
    def tcp_ports(self) -> Mapping[int, object]:
        """TCP ports of its servers, each with the settings that two workloads on one server must share."""
        return {}


NO_TRACE = "none"


class Traced(WorkloadBase):
    """Fields of workloads that can be traced (`plan_trace.py` of the kind)."""

    trace: Annotated[str | tuple[str, ...], Trace()] = Field(
        default=NO_TRACE, exclude_if=lambda value: value == NO_TRACE
    )
    """Functions to trace in exact virtual time; does not change the run. steps: the functions that break a call's time
    into steps; or names of functions."""


class OverSockets(WorkloadBase):
    """Fields of workloads over UDP and TCP."""

    socket_buffer: Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF. Default: the kernel's."""
    tcp_nodelay: Annotated[bool, Flag()] = True
    """TCP_NODELAY on both ends."""
    serving: Serving = Serving()
    """Options of the server that differ."""


class Sized(WorkloadBase):
    """Fields of workloads that take sizes in sequence."""

    sizes: SizesField
    """Argument sizes in bytes."""
    calls: CallsField = written(10)  # type: ignore[arg-type]
    """Measured calls for each size."""
    warmup: Warmup = 1
    """Calls for each size before the measured ones."""
    order: Order = "ascending"
    """Order of the sizes in a series; `seeded` shuffles them differently in each series."""


class Calling(Sized, OverSockets):
    """Fields of workloads that call by size."""

    connection: Literal["per-size", "one"] = "per-size"
    """A new connection for each size, or one for all."""
    threads: Annotated[int, Whole(1, 64)] = 1
    """Threads that call in parallel, each on its own connection."""
    retry_timeout: Millis = written("1 s")
    """Time after which a call without reply is retransmitted (UDP, and MBCF except exactly once)."""
    total_timeout: Millis = written("25 s")
    """Time after which a call without reply fails."""


WorkloadT = TypeVar("WorkloadT", bound=WorkloadBase)


@runtime_checkable
class WorkloadKind(Protocol[WorkloadT]):
    """A kind of workload for the model."""

    @property
    def order(self) -> int:
        """Sort key of the kind in lists, ascending."""

    @property
    def model(self) -> type[WorkloadT]:
        """Fields of the workload in a scenario; its field `app` takes only the name of the kind's folder."""

    @property
    def transports(self) -> tuple[Transport, ...]:
        """Transports that it supports."""

    def runs_on(self, image: ImageKind) -> bool:
        """True if both ends can be machines that boot `image`."""

    def check(self, workload: WorkloadT, ends: Ends, path: Path) -> Iterator[Invalid]:
        """Invalid fields where its transports, or the images at its ends, do not support the workload."""

    def resolve(self, workload: WorkloadT, ends: Ends, path: Path) -> tuple[WorkloadT, list[Invalid]]:
        """The workload with explicit sizes, and findings about them; called if `check` found nothing."""

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        """Invalid fields where workloads of a scenario exclude each other; all are given, of every kind."""


def check_one_client(workloads: Sequence[WorkloadBase], kind: type[WorkloadBase]) -> Iterator[Invalid]:
    """A server of `kind` serves one client at a time, and clients start together."""
    clients: dict[str, str] = {}
    for number, workload in enumerate(workloads):
        if not isinstance(workload, kind):
            continue
        client = clients.setdefault(workload.server, workload.clients[0])
        other = next((name for name in workload.clients if name != client), None)
        if other is not None:
            ends = f"{client!r} and {other!r} use {workload.server!r} at the same time"
            what = f"{ends}, which {workload.app} does not support"
            yield Invalid(("workloads", number, "clients"), what, "one client for each server")

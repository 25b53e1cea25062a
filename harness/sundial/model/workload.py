# SPDX-License-Identifier: Apache-2.0
"""What the model asks of a workload kind, and the vocabulary that kinds share.

A kind is a folder in `sundial/workloads`, called as its word in `app`; `model.py` there has the `KIND`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import Field

from sundial.expect.ip import PerPacket
from sundial.model.fields import NAMED, Flag, In, Strict, Whole, written
from sundial.model.finding import Finding, Path
from sundial.model.images import IMAGES, ImageKind
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
    """One way for messages to travel, as workloads offer it."""

    name: str
    """The word in `transports` and in samples."""
    semantics: tuple[Semantics, ...]
    """How often a call over it can be executed; the first is what it gives by itself."""
    reliable: bool = True
    """What is lost on the wire is sent again below the caller."""
    between_nodes: bool = False
    """Its ends are nodes of memory-based communication, which have ids, and not addresses."""


@dataclass(frozen=True)
class Ends:
    """The machines of one workload; all of them are hosts of `network` and boot an image that the workload runs on."""

    network: Network
    server: str
    clients: tuple[str, ...]

    def image(self, machine: str) -> ImageKind:
        """What a machine boots."""
        return IMAGES[self.network.node(machine).image]

    @property
    def images(self) -> dict[str, ImageKind]:
        """By machine, the server first."""
        return {name: self.image(name) for name in (self.server, *self.clients)}

    def mtus(self, client: str) -> list[int]:
        """MTUs of both ends of the way from a client to the server, ascending, each once."""
        route = self.network.route(client, self.server)
        return sorted({nic.mtu for nic in route}) if route else []

    def cells(self, client: str) -> list[PerPacket]:
        """Cells of a packet by its length, for each segment from a client to the server that carries cells."""
        way = [name for hop in self.network.passed(client, self.server) for name in self.network.way(*hop)]
        counts = (self.network.segments[name].packet_cells for name in way)
        return [count for count in counts if count is not None]


class Serving(Strict):
    """Socket options of the server's end where they differ from the client's."""

    tcp_nodelay: Annotated[bool, Flag()] | None = None
    """TCP_NODELAY on accepted connections."""
    send_buffer: Buffer | None = None
    """Send buffer of the record stream (Sun RPC over TCP)."""
    recv_buffer: Buffer | None = None
    """Receive buffer of the record stream (Sun RPC over TCP)."""
    socket_buffer: Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF."""


class WorkloadBase(Strict):
    """What every workload has."""

    clients: Annotated[tuple[str, ...], Machines()] = written(EVERYONE)
    """Who calls."""
    server: Annotated[str, NAMED] = "server"
    """Who answers."""
    series: Series = 1
    """Times the whole is repeated, numbered from 0."""

    if TYPE_CHECKING:  # each kind has these as fields or properties of its own, with its own words

        @property
        def app(self) -> str: ...

        @property
        def transports(self) -> tuple[str, ...]: ...

    @property
    def tcp_ports(self) -> Mapping[int, object]:
        """TCP ports that its servers have from the scenario or from their programs, each with what must be equal of
        two workloads that share the server there."""
        return {}


NO_TRACE = "none"


class Traced(WorkloadBase):
    """What workloads have whose programs and kernels have functions worth a stamp (`plan_trace.py` of the kind)."""

    trace: Annotated[str | tuple[str, ...], Trace()] = Field(
        default=NO_TRACE, exclude_if=lambda value: value == NO_TRACE
    )
    """Functions of its machines that are stamped in exact virtual time, which changes nothing of the run. steps: those
    between which a call's time divides; or their names."""


class OverSockets(WorkloadBase):
    """What workloads over UDP and TCP have."""

    socket_buffer: Buffer | None = None
    """SO_SNDBUF and SO_RCVBUF; left out: the kernel's."""
    tcp_nodelay: Annotated[bool, Flag()] = True
    """TCP_NODELAY on both ends."""
    serving: Serving = Serving()
    """The server's end where it differs."""


class Sized(WorkloadBase):
    """What workloads have that take sizes one after the other."""

    sizes: SizesField
    """Argument sizes in bytes."""
    calls: CallsField = written(10)  # type: ignore[arg-type]
    """Measured calls for each size."""
    warmup: Warmup = 1
    """Calls for each size before those measured."""
    order: Order = "ascending"
    """Of the sizes in a series; `seeded` shuffles them, for each series another way."""


class Calling(Sized, OverSockets):
    """What workloads have that call by size."""

    connection: Literal["per-size", "one"] = "per-size"
    """A new connection for every size, or one for all."""
    threads: Annotated[int, Whole(1, 64)] = 1
    """Threads that call at the same time, each on its own connection."""
    retry_timeout: Millis = written("1 s")
    """UDP, and MBCF unless exactly once: a call without reply is sent again after this."""
    total_timeout: Millis = written("25 s")
    """A call without reply fails after this."""


WorkloadT = TypeVar("WorkloadT", bound=WorkloadBase)


@runtime_checkable
class WorkloadKind(Protocol[WorkloadT]):
    """A kind of workload, as the model asks for it."""

    @property
    def order(self) -> int:
        """Place among the kinds wherever they are listed, the least first."""

    @property
    def model(self) -> type[WorkloadT]:
        """What a scenario may say of it; its field `app` takes the name of the kind's folder alone."""

    @property
    def transports(self) -> tuple[Transport, ...]:
        """What it can run over."""

    def runs_on(self, image: ImageKind) -> bool:
        """Whether both ends can be machines that boot `image`."""

    def check(self, workload: WorkloadT, ends: Ends, path: Path) -> Iterator[Finding]:
        """What its transports and the images at its ends cannot do."""

    def resolve(self, workload: WorkloadT, ends: Ends, path: Path) -> tuple[WorkloadT, list[Finding]]:
        """The workload with its sizes explicit, and what is wrong with them; asked when `check` found nothing."""

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Finding]:
        """What workloads of a scenario cannot do beside one another; all are given, of whatever kind."""

# SPDX-License-Identifier: Apache-2.0
"""Raw sockets in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.expect.ip import MAX_UDP_PAYLOAD, PerPacket
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, check_timeouts, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.sizes import SIZE_MOST
from sundial.model.workload import Ends, WorkloadBase, WorkloadKind
from sundial.workloads import sockets
from sundial.workloads.function_calls import FunctionCalling, check_functions
from sundial.workloads.raw.expect import TCP_LEAST, edge_sizes

PROCEDURE = "echo"
PORT = 1026
"""Ports of the server's program, UDP and TCP."""


class Raw(FunctionCalling):
    """The same echo, or the twelve functions, over plain sockets."""

    app: Literal["raw"]
    """Raw socket echo."""
    transports: Annotated[tuple[str, ...], Words("udp", "tcp")]
    """Transports, in sequence."""

    @property
    def tcp_ports(self) -> dict[int, object]:
        return {PORT: self.app} if "tcp" in self.transports else {}


def size_limit(transport: str) -> Limit:
    """Argument sizes that a transport can carry."""
    if transport == "udp":
        return Limit(0, MAX_UDP_PAYLOAD, "one UDP datagram")
    return Limit(TCP_LEAST, SIZE_MOST, "at least the payload's header")


class RawKind:
    """Raw sockets, as the model asks for them."""

    order = 2
    model = Raw
    transports = sockets.TRANSPORTS

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX

    def check(self, workload: Raw, ends: Ends, path: Path) -> Iterator[Invalid]:
        yield from check_functions(workload, path)
        if "tcp" in workload.transports:
            yield from sockets.check_tcp_mtu(ends, path, otherwise=", or only udp")
        yield from sockets.check_fixed_sockets(workload, ends, path)
        yield from sockets.check_options_used(workload, path)
        yield from sockets.check_own_buffers(workload, ends, path)
        yield from check_timeouts(workload, path)

    def resolve(self, workload: Raw, ends: Ends, path: Path) -> tuple[Raw, list[Invalid]]:
        def edges(
            transport: str, client: str, mtu: int, smallest: int, largest: int, cells: PerPacket | None
        ) -> list[int]:
            return edge_sizes(transport, mtu, smallest, largest, cells=cells)

        if workload.functions is not None:
            return workload, []
        return resolve_sizes(
            workload,
            ends,
            path,
            procedures=(PROCEDURE,),
            limit=lambda transport, procedure, client: size_limit(transport),
            edges=edges,
            least=TCP_LEAST if "tcp" in workload.transports else 0,
        )

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


KIND: WorkloadKind[Raw] = RawKind()

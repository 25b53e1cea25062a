# SPDX-License-Identifier: Apache-2.0
"""iperf3 in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import In, Whole, written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import MILLISECONDS, Ends, OverSockets, WorkloadBase, WorkloadKind, check_one_client
from sundial.units import RATE
from sundial.workloads import sockets

SOCKET_BUFFER_MOST = 425_984
"""What Linux grants: twice `net.core.wmem_max` and `rmem_max`, as the kernel sets them (sock.c). iperf3 gives up where
it gets less than it asked for (IESETBUF2)."""
PORT = 5201
"""Port of the server: of its control connection, and of its tests over either transport."""


class Iperf3(OverSockets):
    """iperf3 from each client to the server."""

    app: Literal["iperf3"]
    """Bulk throughput."""
    transports: Annotated[tuple[str, ...], Words("udp", "tcp")]
    """Transports, in sequence."""
    duration: Annotated[int, In(MILLISECONDS.between("1 s", "10 min", example="2 s"))] = written("2 s")
    """Duration of each test, in whole seconds."""
    rate: Annotated[int, In(RATE)] | None = None
    """Rate of UDP. Default: iperf3's 1 Mbit/s."""
    streams: Annotated[int, Whole(1, 16)] = 1
    """Parallel streams."""

    @property
    def tcp_ports(self) -> dict[int, object]:
        return {PORT: self.app}


class Iperf3Kind:
    """iperf3, as the model asks for it."""

    order = 3
    model = Iperf3
    transports = sockets.TRANSPORTS

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX

    def check(self, workload: Iperf3, ends: Ends, path: Path) -> Iterator[Invalid]:
        """Over UDP it has a connection over TCP, too; it knows whole seconds only."""
        if workload.duration % 1000 != 0:
            yield Invalid(
                (*path, "duration"), f"{workload.duration} ms is not a whole number of seconds", "whole seconds"
            )
        if ends.server in ends.clients:
            yield Invalid(
                (*path, "clients"),
                f"iperf3 from {ends.server!r} to itself is not supported",
                "clients on other machines",
            )
        yield from sockets.check_tcp_mtu(ends, path) or sockets.check_fixed_sockets(workload, ends, path)
        yield from sockets.check_options_used(workload, path)
        for name, value in workload.serving:
            if value is None:
                continue
            what = f"serving.{name} has no effect: an iperf3 server uses its client's value"
            yield Invalid((*path, "serving", name), what, f"{name} for both ends")
        if workload.socket_buffer is not None and workload.socket_buffer > SOCKET_BUFFER_MOST:
            what = f"{workload.socket_buffer} bytes are more than Linux grants"
            yield Invalid((*path, "socket_buffer"), what, f"up to {SOCKET_BUFFER_MOST}")
        if workload.rate is not None and "udp" not in workload.transports:
            yield Invalid((*path, "rate"), "rate has no effect over tcp", "transports: udp")

    def resolve(self, workload: Iperf3, ends: Ends, path: Path) -> tuple[Iperf3, list[Invalid]]:
        return workload, []

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        """A server answers other clients ACCESS_DENIED while a test runs."""
        return check_one_client(workloads, Iperf3)


KIND: WorkloadKind[Iperf3] = Iperf3Kind()

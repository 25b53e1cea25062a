# SPDX-License-Identifier: Apache-2.0
"""Operations of memory-based communication in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, check_edges_known, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Sized, Traced, WorkloadBase, WorkloadKind, check_one_client
from sundial.workloads.mbcf import transports as over_mbcf
from sundial.workloads.mbcf.wire import SIGNAL_MOST

SEGMENT_MOST = 131072
"""The largest segment of one operation."""
ATOMIC_SIZE = 8

_ATOMIC = ("swap", "cas", "fetch_add")
_WITHOUT_RESULT = ("write", "fifo", "signal")


class Mbcf(Traced, Sized):
    """Memory-based communication without RPC: operations on a server's memory."""

    app: Literal["mbcf"]
    """Remote memory operations."""
    operations: Annotated[tuple[str, ...], Words("write", "read", "fifo", "signal", "swap", "cas", "fetch_add")] = (
        written("write")
    )
    """Operations, in sequence; swap, cas (compare and swap) and fetch_add take 8 bytes."""
    modes: Annotated[tuple[str, ...], Words("round_trip", "stream")] = written("round_trip")
    """round_trip waits for the acknowledgement of each operation; stream only for that of the last."""
    total_timeout: Millis = written("25 s")
    """Time after which an operation without result fails."""

    @property
    def transports(self) -> tuple[str, ...]:
        """Its names in samples."""
        return (over_mbcf.OPERATIONS.name,)


def size_limit(operation: str) -> Limit:
    """Sizes that an operation can carry."""
    if operation in _ATOMIC:
        return Limit(ATOMIC_SIZE, ATOMIC_SIZE, "one word")
    if operation == "signal":
        return Limit(0, SIGNAL_MOST, "one packet")
    return Limit(0, SEGMENT_MOST, "one segment")


class MbcfKind:
    """Operations, as the model asks for them."""

    order = 4
    model = Mbcf
    transports = (over_mbcf.OPERATIONS,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform in over_mbcf.PLATFORMS

    def check(self, workload: Mbcf, ends: Ends, path: Path) -> Iterator[Invalid]:
        waiting = [name for name in workload.operations if name not in _WITHOUT_RESULT]
        if "stream" in workload.modes and waiting:
            what = f"{waiting[0]} cannot be a stream: each operation waits for its result"
            yield Invalid((*path, "modes"), what, f"round_trip, or the operations {', '.join(_WITHOUT_RESULT)}")
        yield from over_mbcf.check_wires(ends, path)
        yield from check_edges_known(workload, "MBCF", path)

    def resolve(self, workload: Mbcf, ends: Ends, path: Path) -> tuple[Mbcf, list[Invalid]]:
        return resolve_sizes(
            workload,
            ends,
            path,
            procedures=workload.operations,
            limit=lambda transport, operation, client: size_limit(operation),
            edges=lambda *_: [],
        )

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        yield from over_mbcf.check_one_node_a_machine(workloads, network)
        yield from check_one_client(workloads, Mbcf)


KIND: WorkloadKind[Mbcf] = MbcfKind()

# SPDX-License-Identifier: Apache-2.0
"""Explicit sizes of a workload, checked against the limits of its transports.

The workload's kind defines these limits, and the sizes at which the number of packets changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sundial.expect.ip import PerPacket
from sundial.model.invalid import Invalid, Path
from sundial.model.sizes import CELL_EDGES, EDGES, WORDS, expand
from sundial.model.workload import Calling, Ends, Sized

LARGEST = 8192
"""Largest size, in bytes, at which `edges` alone looks for edges."""

SizedT = TypeVar("SizedT", bound=Sized)

EdgeSizes = Callable[[str, str, int, int, int, PerPacket | None], list[int]]
"""(transport, client, mtu, smallest, largest, cells) to the sizes at and next to each change in the number of packets;
with `cells`, those of a packet by its length, in the number of cells."""


@dataclass(frozen=True)
class Limit:
    """Allowed sizes, and the reason for the limit."""

    least: int
    most: int
    why: str

    @property
    def allowed(self) -> str:
        return f"{self.least} to {self.most} bytes ({self.why})"


def resolve_sizes(
    workload: SizedT,
    ends: Ends,
    path: Path,
    *,
    procedures: Sequence[str],
    limit: Callable[[str, str, str], Limit],
    edges: EdgeSizes,
    least: int = 0,
) -> tuple[SizedT, list[Invalid]]:
    """The workload with ascending sizes, each once, and findings about them.

    `procedures`: those that take sizes; `limit` answers for (transport, procedure, client); `least`: from which size
    `edges` alone looks for edges.
    """

    if CELL_EDGES in workload.sizes:
        whole = [client for client in ends.clients if not ends.cells(client)]
        if whole:
            what = f"cell-edges needs a segment with cells, and there is none between {whole[0]!r} and {ends.server!r}"
            return workload, [Invalid((*path, "sizes"), what, "sizes, ranges FIRST:LAST:STEP and the word 'edges'")]

    def expanded(transport: str, client: str, mtu: int) -> list[int]:
        def of_packets(low: int, high: int) -> list[int]:
            return edges(transport, client, mtu, low, high, None)

        def of_cells(low: int, high: int) -> list[int]:
            return [size for cells in ends.cells(client) for size in edges(transport, client, mtu, low, high, cells)]

        return expand(workload.sizes, {EDGES: of_packets, CELL_EDGES: of_cells}, (least, LARGEST))

    sizes = sorted(
        {
            size
            for transport in workload.transports
            for client in ends.clients
            for mtu in ends.mtus(client)
            for size in expanded(transport, client, mtu)
        }
    )
    for transport in workload.transports:
        for procedure in procedures:
            limits = [limit(transport, procedure, client) for client in ends.clients]
            narrowest = min(limits, key=lambda candidate: candidate.most)
            outside = [size for size in (sizes[0], sizes[-1]) if not narrowest.least <= size <= narrowest.most]
            if outside:
                what = f"{outside[-1]} bytes do not fit {workload.app} {procedure} over {transport}"
                return workload, [Invalid((*path, "sizes"), what, narrowest.allowed)]
    return workload.model_copy(update={"sizes": tuple(sizes)}), []


def check_edges_known(workload: Sized, unknown: str, path: Path) -> list[Invalid]:
    """A finding if a word for edges is written; `unknown` names a transport without known edges."""
    return [
        Invalid(
            (*path, "sizes"),
            f"{word} is not supported over {unknown}, only over udp and tcp",
            "sizes and ranges FIRST:LAST:STEP",
        )
        for word in WORDS
        if word in workload.sizes
    ]


def check_timeouts(workload: Calling, path: Path) -> list[Invalid]:
    """A finding if no call would ever be retransmitted."""
    if workload.retry_timeout <= workload.total_timeout:
        return []
    what = "retry_timeout is longer than total_timeout, so no call would be retransmitted"
    return [Invalid((*path, "retry_timeout"), what, "up to total_timeout")]

# SPDX-License-Identifier: Apache-2.0
"""ShrimpRPC in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, check_edges_known, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Sized, Traced, Transport, WorkloadBase, WorkloadKind
from sundial.workloads.shrimprpc.expect import ECHO_LIMIT, FIXED, FIXED_PROCEDURES, NULL, PROCEDURES
from sundial.workloads.vmmc.model import SEMANTICS, check_backplane

TRANSPORT = Transport("shrimprpc", SEMANTICS, between_nodes=True)
SIZES = Limit(0, ECHO_LIMIT, "ECHO_LIMIT of guest-apps/shrimp/echo.x")


class ShrimpRpc(Traced, Sized):
    """ShrimpRPC: calls whose arguments and results are stored where the other side reads them, over a backplane
    (SHRIMP)."""

    app: Literal["shrimprpc"]
    """ShrimpRPC by shrimpgen's stubs."""
    procedures: Annotated[tuple[str, ...], Words(*PROCEDURES)] = written("inout")
    """Procedures, in sequence: data in, out, both. Those with 64 take opaque[64] and no other size; null takes none."""
    wait: Literal["poll", "notify"] = "poll"
    """How both sides wait: they poll memory, or sleep until a packet notifies them."""
    total_timeout: Millis = written("25 s")
    """Time after which a call without reply fails."""

    @property
    def transports(self) -> tuple[str, ...]:
        """Its name in samples."""
        return (TRANSPORT.name,)


def fixed_size(procedure: str) -> int | None:
    """The only size of a procedure; None: any."""
    return 0 if procedure == NULL else FIXED if procedure in FIXED_PROCEDURES else None


class ShrimpRpcKind:
    """ShrimpRPC, as the model asks for it."""

    order = 9
    model = ShrimpRpc
    transports = (TRANSPORT,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.maps_adapters

    def check(self, workload: ShrimpRpc, ends: Ends, path: Path) -> Iterator[Invalid]:
        yield from check_backplane(ends, path)
        yield from check_edges_known(workload, "a backplane", path)

    def resolve(self, workload: ShrimpRpc, ends: Ends, path: Path) -> tuple[ShrimpRpc, list[Invalid]]:
        return resolve_sizes(
            workload,
            ends,
            path,
            procedures=[name for name in workload.procedures if fixed_size(name) is None],
            limit=lambda transport, procedure, client: SIZES,
            edges=lambda *_: [],
        )

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


KIND: WorkloadKind[ShrimpRpc] = ShrimpRpcKind()

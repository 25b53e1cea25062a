# SPDX-License-Identifier: Apache-2.0
"""Automatic and deliberate updates in scenarios, and what everything over a backplane needs of machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.model.fields import written
from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, check_edges_known, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Millis, Semantics, Sized, Transport, WorkloadBase, WorkloadKind
from sundial.segments.vmmc.wire import WORD

SEMANTICS: tuple[Semantics, ...] = ("exactly_once",)
"""A backplane loses nothing."""
OPERATIONS = ("au", "au-combined", "du")
MODES = ("round_trip", "stream")
SIZES = Limit(WORD, 65536, "one transfer")


class Vmmc(Sized):
    """Virtual memory-mapped communication without RPC: stores and transfers into a server's memory, over a backplane
    (SHRIMP)."""

    app: Literal["vmmc"]
    """Automatic and deliberate updates."""
    operations: Annotated[tuple[str, ...], Words(*OPERATIONS)] = written("au")
    """au: automatic update, a packet for each store; au-combined: consecutive stores in one packet; du: deliberate
    update, a transfer that one store starts. Samples have it as transport."""
    modes: Annotated[tuple[str, ...], Words(*MODES)] = written("round_trip")
    """round_trip: there and the same size back; stream: `calls` transfers one after the other, one sample for all.
    Samples have it as procedure."""
    total_timeout: Millis = written("25 s")
    """Time after which a call fails."""

    @property
    def transports(self) -> tuple[str, ...]:
        """Its names in samples."""
        return self.operations


class VmmcKind:
    """Updates, as the model asks for them."""

    order = 8
    model = Vmmc
    transports = tuple(Transport(name, SEMANTICS, between_nodes=True) for name in OPERATIONS)

    def runs_on(self, image: ImageKind) -> bool:
        return image.maps_adapters

    def check(self, workload: Vmmc, ends: Ends, path: Path) -> Iterator[Invalid]:
        yield from check_backplane(ends, path)
        yield from check_edges_known(workload, "a backplane", path)

    def resolve(self, workload: Vmmc, ends: Ends, path: Path) -> tuple[Vmmc, list[Invalid]]:
        resolved, findings = resolve_sizes(
            workload,
            ends,
            path,
            procedures=workload.modes,
            limit=lambda transport, mode, client: SIZES,
            edges=lambda *_: [],
            least=WORD,
        )
        if not findings:
            findings = [
                Invalid((*path, "sizes"), f"{size} bytes is not a multiple of {WORD}", f"multiples of {WORD}")
                for size in resolved.sizes
                if isinstance(size, int) and size % WORD
            ][:1]
        return resolved, findings

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


def check_backplane(ends: Ends, path: Path) -> Iterator[Invalid]:
    """Invalid fields where a client has no interface on the server's backplane."""
    for client in ends.clients:
        finding = backplane_between(ends.network, client, ends.server, path)
        if finding is not None:
            yield finding
            return


def backplane_between(network: Network, client: str, server: str, path: Path) -> Invalid | None:
    """A finding if a client cannot store into a server's memory; None: it can. `path` is the workload's."""
    near, far = network.node(client).mapped, network.node(server).mapped
    allowed = "machines with interfaces in one segment of kind vmmc"
    for field, name, nic in (("server", server, far), ("clients", client, near)):
        if nic is None:
            return Invalid((*path, field), f"{name!r} has no interface on a backplane", allowed)
    if near is not None and far is not None and near.segment != far.segment:
        what = f"{near.end} is in {near.segment!r}, and {far.end} in {far.segment!r}"
        return Invalid((*path, "clients"), what, allowed)
    return None


KIND: WorkloadKind[Vmmc] = VmmcKind()

# SPDX-License-Identifier: Apache-2.0
"""Toys in scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from sundial.workloads.toy.expect import HEADER, LARGEST

from sundial.model.images import ImageKind
from sundial.model.invalid import Invalid, Path
from sundial.model.limits import Limit, check_edges_known, resolve_sizes
from sundial.model.lists import Words
from sundial.model.network import Network
from sundial.model.workload import Ends, Sized, WorkloadBase, WorkloadKind
from sundial.workloads import sockets

PROCEDURE = "echo"


class Toy(Sized):
    """Datagrams that come back."""

    app: Literal["toy"]
    """Toys that come back."""
    transports: Annotated[tuple[str, ...], Words("udp")] = ("udp",)
    """Datagrams only."""


class ToyKind:
    """Toys, as the model asks for them."""

    order = 9
    model = Toy
    transports = (sockets.UDP,)

    def runs_on(self, image: ImageKind) -> bool:
        return image.platform == sockets.LINUX

    def check(self, workload: Toy, ends: Ends, path: Path) -> Iterator[Invalid]:
        yield from check_edges_known(workload, "toys", path)

    def resolve(self, workload: Toy, ends: Ends, path: Path) -> tuple[Toy, list[Invalid]]:
        return resolve_sizes(
            workload,
            ends,
            path,
            procedures=(PROCEDURE,),
            limit=lambda transport, procedure, client: Limit(HEADER, LARGEST, "one datagram with its header"),
            edges=lambda *_: [],
            least=HEADER,
        )

    def check_all(self, workloads: Sequence[WorkloadBase], network: Network) -> Iterator[Invalid]:
        return iter(())


KIND: WorkloadKind[Toy] = ToyKind()

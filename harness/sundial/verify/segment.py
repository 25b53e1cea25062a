# SPDX-License-Identifier: Apache-2.0
"""What verification asks of a kind of segment: when the wire in front of a port was taken, and who hears what."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import polars as pl

from sundial import kinds
from sundial.errors import SundialError
from sundial.model.network import Network, build_network
from sundial.model.topology import Segment, Topology
from sundial.observe import RunDirectory
from sundial.verify.contention import Contention


@runtime_checkable
class SegmentVerifier(Protocol):
    """`KIND` of `sundial.segments.NAME.verify`; what takes the wire of a kind without one is unknown."""

    def contention(self, segment: Segment, port: str, frames: pl.DataFrame) -> Contention | None:
        """What took the wire in front of `port`; None where its rate is unknown. `frames` of the segment's capture,
        with fate."""

    def hears_all(self, segment: Segment) -> bool:
        """Whether each port hears what is for another one, too."""

    def keeps_order(self, segment: Segment, port: str) -> bool:
        """Whether what `port` sends arrives in the order in which it was sent."""


def network_of(run: RunDirectory) -> Network | None:
    """The topology of a run; None where this version cannot read it."""
    try:
        return build_network(Topology.model_validate(run.document.get("topology")))
    except (SundialError, ValueError, TypeError, KeyError):
        return None


def contentions(network: Network, frames: pl.DataFrame) -> dict[str, Contention]:
    """Of each port by its name, as `n1:eth0`, where it is known. `frames` with fate."""
    verifiers = kinds.load("segments", "verify", SegmentVerifier)
    by_port: dict[str, Contention] = {}
    for name, segment in network.segments.items():
        captured = frames.filter(pl.col("capture") == f"wire/{name}.pcapng")
        for port in segment.ports:
            verifier = verifiers.get(segment.kind)
            contention = None if verifier is None else verifier.contention(segment, port, captured)
            if contention is not None:
                by_port[port] = contention
    return by_port


def hearing(network: Network) -> tuple[dict[str, bool], dict[str, bool]]:
    """`hears_all` by capture, and `keeps_order` by port, of segments whose kind can be asked."""
    verifiers = kinds.load("segments", "verify", SegmentVerifier)
    asked = {name: (verifiers[each.kind], each) for name, each in network.segments.items() if each.kind in verifiers}
    return (
        {f"wire/{name}.pcapng": kind.hears_all(segment) for name, (kind, segment) in asked.items()},
        {port: kind.keeps_order(segment, port) for kind, segment in asked.values() for port in segment.ports},
    )

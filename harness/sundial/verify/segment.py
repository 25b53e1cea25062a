# SPDX-License-Identifier: Apache-2.0
"""What verification asks of a kind of segment: its law of time, when the wire in front of a port was taken, and who
hears what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

import polars as pl

from sundial import kinds
from sundial.errors import BadInput
from sundial.model.network import Network, Node
from sundial.model.recorded import recorded_network
from sundial.model.segment import SegmentBase
from sundial.observe import RunDirectory
from sundial.verify.contention import Contention
from sundial.verify.handed_in import on_the_wire
from sundial.verify.law import Law
from sundial.verify.learning import Behind
from sundial.verify.offered import check_not_before
from sundial.verify.wire import Passages, Wire

Waits = Callable[[str], Contention | None]
"""When the wire in front of a port was taken, where that is known."""

SegmentT = TypeVar("SegmentT", bound=SegmentBase, contravariant=True)


FLIGHTS: Mapping[str, pl.DataType] = {
    "sender": pl.String(), "receiver": pl.String(), "stored_ns": pl.Int64(), "sent_ns": pl.Int64(),
    "at_ns": pl.Int64(), "wakes": pl.Boolean(), "exact": pl.Boolean(),
}  # fmt: skip
"""Columns of what goes from memory to memory: between which machines, when the store was made that it ends with, when
it left, and when it arrived. `wakes`: the receiver's CPU is interrupted; `exact`: the store is an instruction of that
instant."""

HELD_BACK: Mapping[str, pl.DataType] = {"row": pl.UInt32(), "since_ns": pl.Int64()}


def nothing_held() -> pl.DataFrame:
    """No frames that an adapter may have kept back."""
    return pl.DataFrame(schema=HELD_BACK)


@runtime_checkable
class SegmentVerifier(Protocol[SegmentT]):
    """`KIND` of `sundial.segments.NAME.verify`; what takes the wire of a kind without one is unknown."""

    def contention(self, segment: SegmentT, port: str, frames: pl.DataFrame) -> Contention | None:
        """What took the wire in front of `port`; None where its rate is unknown. `frames` of the segment's capture,
        with fate."""
        return None

    def check_times(self, segment: SegmentT, wire: Wire) -> Law | None:
        """Each frame's times and fate, and the counters, against the standard and the topology; None where they are
        not known."""
        return None

    def check_machine(self, node: Node, wires: Mapping[str, Wire], waits: Waits, *, exact: bool) -> Law:
        """The same for a machine that joins segments; `wires` by port, `MACHINE:INTERFACE`. `exact`: all clocks
        are one."""
        return Law()

    def check_offered(self, segment: SegmentT, wire: Wire, port: str, handed_in: Passages) -> list[pl.DataFrame]:
        """Findings of what a device handed in at `port`, each frame at its `time_ns`: when it was sent, or dropped."""
        return check_not_before(wire, port, handed_in)

    def held_back(self, segment: SegmentT, wire: Wire) -> pl.DataFrame:
        """Frames (`row`) that an adapter may have kept back for its own reasons, and since when (`since_ns`)."""
        return nothing_held()

    def further_captures(self, segment: SegmentT) -> Sequence[str]:
        """What a segment of this kind leaves beside its capture of frames, `wire/KIND/SEGMENT.NAME.pcapng` each."""
        return ()

    def check_behind(self, segment: SegmentT, wire: Wire, port: str, behind: Behind) -> list[pl.DataFrame]:
        """Findings of what the segment learnt of addresses behind the device at `port`."""
        return []

    def receives_all(self, segment: SegmentT) -> bool:
        """Whether each port hears what is for another one, too."""
        return True

    def hears_itself(self, segment: SegmentT) -> bool:
        """Whether a port hears what it sends itself."""
        return False

    def own_types(self, segment: SegmentT) -> Collection[int]:
        """EtherTypes of frames that end at the adapters, which answer them: none passes the segment, and none that
        arrives was sent by a machine."""
        return ()

    def own_stations(self, segment: SegmentT) -> Collection[str]:
        """Stations of the segment itself, which fates may name in place of a port: what is lost on its way to one is
        not yet the copy of any port."""
        return ()

    def flights(self, segment: SegmentT, frames: pl.DataFrame) -> pl.DataFrame:
        """FLIGHTS of what arrived over a segment that carries stores; nothing of others, whose frames say it all.
        `frames` of the segment's capture at its ports."""
        return pl.DataFrame(schema=FLIGHTS)

    def keeps_order(self, segment: SegmentT, port: str) -> bool:
        """Whether what `port` sends arrives in the order in which it was sent."""
        return True

    def orders_pairs(self, segment: SegmentT) -> bool:
        """Whether that holds only of frames between the same two addresses."""
        return False


def verifiers() -> Mapping[str, SegmentVerifier[Any]]:
    """Of all kinds that have one."""
    return kinds.load("segments", "verify", SegmentVerifier)


def network_of(run: RunDirectory) -> Network | None:
    """The topology of a run; None where this version cannot read it."""
    try:
        return recorded_network(run.document)
    except BadInput:
        return None


def contentions(network: Network, frames: pl.DataFrame) -> dict[str, Contention]:
    """Of each port by its name, as `n1:eth0`, where it is known. `frames` with fate, as of `latest_hand_in`."""
    frames = on_the_wire(frames, network)
    late = {nic.end: node.adapter_latency_ns for node in network.nodes for nic in node.nics}
    by_port: dict[str, Contention] = {}
    for name, segment in network.segments.items():
        captured = frames.filter(pl.col("capture") == f"wire/{name}.pcapng")
        for port in segment.ports:
            macs = [int(network.plug(end).mac.replace(":", ""), 16) for end in segment.ports]
            contention = contention_of_port(segment, port, captured, macs)
            if contention is not None:
                by_port[port] = replace(contention, latency_ns=late.get(port, 0))
    return by_port


def contention_of_port(
    segment: SegmentBase, port: str, frames: pl.DataFrame, macs: Collection[int] = ()
) -> Contention | None:
    """Of one port. `frames` of its segment's capture, with fate; `macs`: those of what is plugged in at its ports."""
    verifier = verifiers().get(segment.kind)
    frames = frames.with_columns(at_a_port=pl.col("eth_target").is_in([*macs]))
    return None if verifier is None else verifier.contention(segment, port, frames)


@dataclass(frozen=True)
class Hearing:
    """What a topology says of who hears what. By capture: whether each port hears what is for another one, the
    EtherTypes that its adapters answer themselves, and the stations that are no ports; by port: whether what it sends
    arrives in order; `pairs`: ports of which that holds between two addresses only."""

    receives_all: Mapping[str, bool] = field(default_factory=dict)
    own_types: Mapping[str, Collection[int]] = field(default_factory=dict)
    own_stations: Mapping[str, Collection[str]] = field(default_factory=dict)
    keeps_order: Mapping[str, bool] = field(default_factory=dict)
    pairs: Collection[str] = ()
    to_itself: Collection[str] = ()
    """Captures of segments whose ports hear what they send."""


def hearing(network: Network) -> Hearing:
    """Of segments whose kind can be asked."""
    known = verifiers()
    asked = {name: (known[each.kind], each) for name, each in network.captured.items() if each.kind in known}
    return Hearing(
        {f"wire/{name}.pcapng": kind.receives_all(segment) for name, (kind, segment) in asked.items()},
        {f"wire/{name}.pcapng": kind.own_types(segment) for name, (kind, segment) in asked.items()},
        {f"wire/{name}.pcapng": kind.own_stations(segment) for name, (kind, segment) in asked.items()},
        {port: kind.keeps_order(segment, port) for kind, segment in asked.values() for port in segment.ports},
        [port for kind, segment in asked.values() if kind.orders_pairs(segment) for port in segment.ports],
        [f"wire/{name}.pcapng" for name, (kind, segment) in asked.items() if kind.hears_itself(segment)],
    )


def further_captures(network: Network) -> list[str]:
    """Files of a run that are captures of other things than frames."""
    known = verifiers()
    return [
        f"wire/{segment.kind}/{name}.{each}.pcapng"
        for name, segment in network.segments.items()
        if segment.kind in known
        for each in known[segment.kind].further_captures(segment)
    ]

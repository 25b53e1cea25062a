# SPDX-License-Identifier: Apache-2.0
"""The interface of a kind of segment to the plan: its fields in fabric.json, and its part in a guest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, runtime_checkable

from sundial.kinds import load
from sundial.model.impairments import Impairments
from sundial.model.network import Network, Node
from sundial.model.segment import SegmentBase
from sundial.model.timeline import State

SegmentT = TypeVar("SegmentT", bound=SegmentBase, contravariant=True)


@runtime_checkable
class SegmentPlan(Protocol[SegmentT]):
    """A kind under `segments:` has `fabric`; a kind that is made of a machine has the other methods."""

    def fabric(self, segment: SegmentT, name: str, network: Network) -> dict[str, Any]:
        """The kind's own fields of one segment in fabric.json, in integer base units; it is `name` of `network`."""
        return {}

    def adapter(self, segment: SegmentT, node: Node) -> str:
        """What the clock plugin is given for the adapter of a machine at a segment that is `mapped`; a kind of others
        is not asked."""
        return ""

    def bridge(self, node: Node) -> dict[str, Any] | None:
        """`bridge` in the job of a machine that is a segment of this kind; None: the machine is not."""
        return None

    def start_ns(self, node: Node) -> int:
        """Boot time of the machine's part in this kind, at 125 mips."""
        return 0


def own_fields(segment: SegmentBase, name: str, network: Network) -> dict[str, Any]:
    """Fields of segment `name` in fabric.json that are specific to its kind."""
    return load("segments", "plan", SegmentPlan)[segment.kind].fabric(segment, name, network)


def changes(segment: SegmentBase, impairments: Callable[[Impairments], dict[str, Any]] | None = None) -> dict[str, Any]:
    """`timeline` of a segment in fabric.json; nothing for one that does not change. `impairments`: those of one port as
    the kind writes them."""
    place = {port: number for number, port in enumerate(segment.ports)}
    found = []
    for state in segment.timeline:
        change: dict[str, Any] = {"at_ns": state.at_ns, "note": note_of(state)}
        if state.cut:
            change["cut"] = sorted(place[port] for port in state.cut)
        if state.off:
            change["off"] = sorted(place[port] for port in state.off)
        if state.partition:
            change["partition"] = [[place[port] for port in group] for group in state.partition]
        if impairments is not None:
            sending = {str(place[port]): impairments(each) for port, each in state.impairments.items()}
            change["impairments"] = {port: fields for port, fields in sending.items() if fields}
        found.append(change)
    return {"timeline": found} if found else {}


def change_of(segment: SegmentBase, name: str, network: Network, state: State) -> dict[str, Any]:
    """One change of segment `name`, as its `timeline` in fabric.json has it."""
    changed: dict[str, Any] = own_fields(segment.with_timeline((state,)), name, network)["timeline"][0]
    return changed


def note_of(state: State) -> str:
    """The comment of a capture where a state begins."""
    return f"timeline: {state.note}"


def mapped_adapter(segment: SegmentBase, node: Node) -> str:
    """Arguments of the clock plugin for a machine's adapter at `segment`, which is mapped."""
    return load("segments", "plan", SegmentPlan)[segment.kind].adapter(segment, node)


def bridge(node: Node) -> dict[str, Any] | None:
    """`bridge` in a machine's job, from the kind of segment that the machine is; None: it is a host."""
    parts = (kind.bridge(node) for kind in _kinds())
    return next((part for part in parts if part is not None), None)


def start_ns(node: Node) -> int:
    """Boot time of a machine's part in segments, at 125 mips; 0 for a host."""
    return max(kind.start_ns(node) for kind in _kinds())


def _kinds() -> Iterable[SegmentPlan[Any]]:
    return load("segments", "plan", SegmentPlan).values()

# SPDX-License-Identifier: Apache-2.0
"""Changes by hand of a topology that is up: what is in force, and what an event that comes now makes of it.

An event is one of a scenario's timeline without its time. The fabric chooses the instant; from then on run.json has
the event as if it had been written before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from sundial.errors import BadInput
from sundial.model.machine_events import check_by_hand
from sundial.model.network import Network
from sundial.model.timeline import Event, Happened, State, check_timeline, segment_of, state_at
from sundial.model.topology import Topology
from sundial.plan.segment import change_of

Change = Callable[[str, Mapping[str, Any]], int]
"""Has the fabric change a segment; returns the instant in ns."""


class ByHand:
    """The events of one topology so far."""

    def __init__(self, topology: Topology, network: Network) -> None:
        self._topology, self._network = topology, network
        self._events: list[Event] = []

    def apply(self, written: Mapping[str, Any], now_ns: int, change: Change) -> Event:
        """Make a change now. Raises BadInput if it does not fit what is in force, and what `change` raises."""
        latest = max((event.at for event in self._events), default=-1)
        try:
            event: Event = Happened.model_validate({**written, "at": f"{max(now_ns, latest + 1)} ns"})
        except ValidationError as error:
            raise BadInput(error.errors()[0]["msg"]) from None
        for wrong in check_timeline([*self._events, event], self._topology, None):
            raise BadInput(wrong.what, field=str(wrong.path[-1]), allowed=wrong.allowed)
        machine, verb = event.power_of, event.verb or ""
        for wrong in () if machine is None else check_by_hand(verb, machine, self._topology):
            raise BadInput(wrong.what, field=str(wrong.path[-1]), allowed=wrong.allowed)
        segments = self._topology.segments
        name = segment_of(event, segments)
        state = state_at([*self._events, event], name, segments, event.at)
        at_ns = change(name, change_of(segments[name], name, self._network, state))
        event = event.model_copy(update={"at_": at_ns})
        self._events.append(event)
        return event

    def states(self) -> dict[str, State]:
        """What is in force, of each segment that can change."""
        segments = {name: segment for name, segment in self._topology.segments.items() if segment.knobs}
        latest = max((event.at for event in self._events), default=0)
        return {name: state_at(self._events, name, segments, latest) for name in segments}

    def to_json(self) -> list[dict[str, Any]]:
        """The events as run.json has them."""
        return [event.model_dump(mode="json", exclude_none=True) for event in self._events]


def shown(state: State) -> dict[str, Any]:
    """A state for people and programs: ports that are cut or of machines that are off, groups, and impairments by
    sending port."""
    impairments = {port: each.model_dump(mode="json", exclude_none=True) for port, each in state.impairments.items()}
    return {
        "cut": sorted(state.cut),
        "off": sorted(state.off),
        "partition": [list(group) for group in state.partition],
        "impairments": {port: fields for port, fields in impairments.items() if fields},
    }

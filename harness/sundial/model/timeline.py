# SPDX-License-Identifier: Apache-2.0
"""What happens at exact instants: events as written, and the states of each segment that follow from them. Those of
programs are in `program_events`, those of machines in `machine_events`.

The state at an instant is that of the topology with all events in force applied, in order of time and then of the list.
An event with `for` is in force until that time is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field

from sundial.model.amount_events import AMOUNT_VERBS, OnAmounts, check_amount_fields
from sundial.model.clock_events import CLOCK_VERBS, OnClocks, check_clock_fields
from sundial.model.fields import NAMED, PORT, PORT_ALLOWED, Flag, In, Strict, Text
from sundial.model.impairments import Impairments
from sundial.model.invalid import Invalid, Path
from sundial.model.machine_events import MACHINE_VERBS, POWER_OFF, POWER_ON, OnMachines, check_machines
from sundial.model.program_events import PROGRAM_VERBS, OnPrograms, check_fields
from sundial.units import TIME

if TYPE_CHECKING:
    from sundial.model.segment import SegmentBase
    from sundial.model.topology import Topology

Rule = Literal["cut", "off", "partition"]
IMPAIR, CUT, HEAL, PARTITION = "impair", "cut", "heal", "partition"
WIRE_VERBS = (IMPAIR, CUT, HEAL, PARTITION)
CARRIED_OUT = (*CLOCK_VERBS, *AMOUNT_VERBS, *PROGRAM_VERBS)
"""What machines carry out by themselves."""
VERBS = (*WIRE_VERBS, *MACHINE_VERBS, *CARRIED_OUT)

_Name = Annotated[str, NAMED]
_PLACE = Text(
    re.compile(rf"(?:{NAMED.pattern.pattern})|(?:{PORT.pattern.pattern})"),
    f"a segment, or a port: {PORT_ALLOWED}",
    PORT.most,
)


class When(Strict):
    """The time of an event, and what it does."""

    at_: Annotated[int, In(TIME.between(example="2 s"))] | None = Field(default=None, alias="at")
    """Instant on the run's time axis. What begins at it or later meets the event; what began before does not."""
    for_: Annotated[int, In(TIME.between("1 ns", example="500 ms"))] | None = Field(default=None, alias="for")
    """Time after which the event is over. Default: it stays."""
    impair: _Name | None = None
    """Segment whose impairments change: those that the event has; others stay."""
    from_: Annotated[str, PORT] | None = Field(default=None, alias="from")
    """Sending port of frames to impair. Default: all ports."""
    reset: Annotated[bool, Flag()] | None = None
    """true: first back to the impairments of the topology."""
    cut: Annotated[str, _PLACE] | None = None
    """Port whose cable is cut, or segment of which all are. Frames in both directions are lost; the adapters keep their
    carrier."""
    heal: Annotated[str, _PLACE] | None = None
    """Port that is cut no longer, or segment: neither its ports are cut, nor is it partitioned."""
    partition: list[list[_Name]] | None = None
    """Groups of machines and devices. Frames from group to group are lost."""
    segment: _Name | None = None
    """Segment to partition."""


class Event(Impairments, OnPrograms, OnAmounts, OnClocks, OnMachines, When):
    """One event: `impair` with impairments, `cut`, `heal` or `partition` of segments; `power_off` or `power_on` of a
    machine; `step_clock`, `drift_clock`, `fill_disk` or `take_memory` of one; `pause`, `continue`, `kill` or `restart`
    of a program."""

    model_config = ConfigDict(serialize_by_alias=True)

    @property
    def at(self) -> int:
        """Its instant; 0 where it waits for a program."""
        return self.at_ or 0

    @property
    def verb(self) -> str | None:
        """What it does, where it does one thing."""
        verbs = [verb for verb in VERBS if getattr(self, "continue_" if verb == "continue" else verb) is not None]
        return verbs[0] if len(verbs) == 1 else None

    @property
    def impairs(self) -> list[str]:
        """The impairments that it has."""
        return [name for name in Impairments.model_fields if getattr(self, name) is not None]

    @property
    def words(self) -> str:
        """As comments of captures name it."""
        written = self.model_dump(mode="json", exclude_none=True, exclude={"at_", "for_"})
        return ", ".join(f"{name} {_shown(value)}" for name, value in sorted(written.items(), key=_order))

    def ends_ns(self) -> int | None:
        """When it is over; None: never."""
        return None if self.for_ is None else self.at + self.for_


class Happened(Event):
    """An event of a topology that was up. Virtual time runs ahead between commands, by days."""

    at_: Annotated[int, In(replace(TIME, most=(1 << 63) - 1))] | None = Field(default=None, alias="at")
    """Instant on the run's time axis."""


def _order(item: tuple[str, object]) -> tuple[bool, bool]:
    name, _ = item
    of_event = name in When.model_fields or name in OnPrograms.model_fields
    return name not in VERBS, not of_event and name != "from"


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " | ".join(group if isinstance(group, str) else " ".join(map(str, group)) for group in value)
    if isinstance(value, dict):
        return " ".join(f"{name} {_shown(part)}" for name, part in value.items() if part is not None)
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class State:
    """What a segment does from `at_ns` until its next state; `note` says in words what happened."""

    at_ns: int = 0
    note: str = ""
    cut: frozenset[str] = frozenset()
    """Ports that are cut off."""
    off: frozenset[str] = frozenset()
    """Ports of machines that are off. These send nothing."""
    partition: tuple[tuple[str, ...], ...] = ()
    """Groups of ports; none: all are together."""
    impairments: Mapping[str, Impairments] = field(default_factory=dict)
    """By sending port, of segments that impair frames."""

    def blocks(self, sender: str, receiver: str) -> Rule | None:
        """Why nothing passes from one port to another; None: it passes."""
        if sender in self.cut or receiver in self.cut:
            return "cut"
        if receiver in self.off:
            return "off"
        groups = [
            next((n for n, group in enumerate(self.partition) if port in group), 0) for port in (sender, receiver)
        ]
        return "partition" if groups[0] != groups[1] else None


def states_of(events: Sequence[Event], segments: Mapping[str, SegmentBase]) -> dict[str, tuple[State, ...]]:
    """The states after the first one of each segment that events concern; these are valid."""
    found = {}
    events = [event for event in events if event.verb not in CARRIED_OUT]
    for name, segment in segments.items():
        own = [event for event in events if _concerns(event, name, segments)]
        if own:
            found[name] = tuple(_state(own, segment, at_ns) for at_ns in _instants(own))
    return found


def check_timeline(events: Sequence[Event], topology: Topology, end_ns: int | None) -> list[Invalid]:
    """Invalid events in their order, each with its first error. `end_ns`: the latest end of the run, if it is known."""
    checked = (next(_check(event, number, topology, end_ns), None) for number, event in enumerate(events))
    found = [first for first in checked if first is not None]
    if not found:
        numbered = [(number, event) for number, event in enumerate(events) if event.verb in WIRE_VERBS]
        found = [
            *check_machines(events, topology),
            *_contradictions(numbered, topology),
            *_sequence(numbered, topology),
        ]
    return found


def state_at(events: Sequence[Event], name: str, segments: Mapping[str, SegmentBase], at_ns: int) -> State:
    """The state of segment `name` at an instant; `note` says what begins or ends then. The events are valid."""
    return _state([event for event in events if _concerns(event, name, segments)], segments[name], at_ns)


def segment_of(event: Event, segments: Mapping[str, SegmentBase]) -> str:
    """The segment that a valid event changes; of a machine, the first of its own."""
    name = next((name for name in segments if _concerns(event, name, segments)), None)
    assert name is not None
    return name


_Numbered = Sequence[tuple[int, Event]]
"""Events of segments with their places in the list."""


def _check(event: Event, number: int, topology: Topology, end_ns: int | None) -> Iterator[Invalid]:
    """Errors of one event by itself."""
    path: Path = ("timeline", number)
    verb = event.verb
    if verb is None:
        yield Invalid(path, "an event does exactly one thing", ", ".join(VERBS))
        return
    if end_ns is not None and event.at >= end_ns:
        yield Invalid((*path, "at"), f"the run is over by {TIME.show(end_ns)}", f"before {TIME.show(end_ns)}")
    if verb == HEAL and event.for_ is not None:
        yield Invalid((*path, "for"), "heal is not for a time", "for of cut or partition")
    if verb in MACHINE_VERBS and event.for_ is not None:
        yield Invalid((*path, "for"), f"{verb} lasts to the end of the run", "leave it out")
    yield from check_fields(event, verb, path)
    yield from check_clock_fields(event, verb, path)
    yield from check_amount_fields(event, verb, path)
    needless = [
        *((name, IMPAIR) for name in ("from", "reset", *Impairments.model_fields) if verb != IMPAIR),
        *(("segment", PARTITION) for _ in range(verb != PARTITION)),
    ]
    for name, of in needless:
        if getattr(event, "from_" if name == "from" else name) is not None:
            yield Invalid((*path, name), f"{verb} has no {name}", f"{name} together with {of}")
    if verb not in WIRE_VERBS:
        return
    segment, port = _target(event, topology.segments)
    where = (*path, "segment" if verb == PARTITION else verb)
    if segment is None:
        if verb == PARTITION and event.segment is None:
            yield Invalid(where, "segment is missing", ", ".join(topology.segments))
        elif port is not None:
            yield Invalid(where, f"{port!r} is not a port of this topology", ", ".join(_ports(topology)))
        else:
            named = event.segment if verb == PARTITION else getattr(event, verb)
            yield Invalid(where, f"there is no segment {named!r}", ", ".join(topology.segments))
        return
    kind = topology.segments[segment]
    needed = kind.knobs if verb == HEAL else {verb}
    if not needed & kind.knobs:
        able = [name for name, other in topology.segments.items() if other.knobs & ({verb} if verb != HEAL else {CUT})]
        what = f"a segment of kind {kind.kind} does not support {verb}"
        if not kind.knobs:
            what += ": the law of its wire stays the same through a run"
        instead = "a topology with a link" if verb == IMPAIR else "a topology with a switch or a link"
        allowed = [*sorted(kind.knobs), *(f"{verb} of {name}" for name in able)]
        yield Invalid(where, what, ", ".join(allowed) or instead)
    elif verb == IMPAIR:
        yield from _check_impair(event, path, kind)
    elif verb == PARTITION:
        yield from _check_groups(event, path, kind)


def _check_impair(event: Event, path: Path, segment: SegmentBase) -> Iterator[Invalid]:
    if event.from_ is not None and event.from_ not in segment.ports:
        yield Invalid((*path, "from"), f"{event.from_!r} is not a port of {event.impair!r}", ", ".join(segment.ports))
    if event.reset is False:
        yield Invalid((*path, "reset"), "false has no effect", "true, or leave it out")
    if not event.impairs and not event.reset:
        yield Invalid((*path, "impair"), "nothing changes", ", ".join([*Impairments.model_fields, "reset"]))


def _check_groups(event: Event, path: Path, segment: SegmentBase) -> Iterator[Invalid]:
    owners = list(dict.fromkeys(_owner(port) for port in segment.ports))
    seen: set[str] = set()
    groups = event.partition or []
    if len(groups) < 2 or not all(groups):
        yield Invalid((*path, PARTITION), "there must be two groups or more, none empty", "such as [[n1], [n2, n3]]")
    named = {name for group in groups for name in group}
    missing = [name for name in owners if name not in named]
    if missing and named <= set(owners):
        yield Invalid(
            (*path, PARTITION), f"{missing[0]!r} is in no group", "each machine and device of the segment once"
        )
    for number, group in enumerate(groups):
        for place, name in enumerate(group):
            if name not in owners:
                what = f"{name!r} has no port of segment {event.segment!r}"
                yield Invalid((*path, PARTITION, number, place), what, ", ".join(owners))
            elif name in seen:
                yield Invalid((*path, PARTITION, number, place), f"{name!r} is in two groups", "each name once")
            seen.add(name)


def _contradictions(events: _Numbered, topology: Topology) -> Iterator[Invalid]:
    """Events of one instant that set the same thing."""
    first: dict[tuple[int, str, str], tuple[int, object]] = {}
    for number, event in events:
        for key, value in _sets(event, topology):
            other, known = first.setdefault((event.at, *key), (number, value))
            if other != number and (known != value or event.verb != IMPAIR):
                what = f"{key[1]} of {key[0]} is already set by timeline.{other} at {TIME.show(event.at)}"
                yield Invalid(("timeline", number, "at"), what, "another instant")
                break


def _sets(event: Event, topology: Topology) -> Iterator[tuple[tuple[str, str], object]]:
    segment, port = _target(event, topology.segments)
    assert segment is not None
    ports = topology.segments[segment].ports
    if event.verb == IMPAIR:
        for each in [event.from_] if event.from_ else ports:
            yield from (
                ((each, name), getattr(event, name)) for name in [*event.impairs, *(["reset"] * bool(event.reset))]
            )
    elif event.verb == PARTITION or (event.verb == HEAL and port is None):
        yield (segment, PARTITION), event.verb
    if event.verb in (CUT, HEAL):
        yield from (((each, CUT), event.verb) for each in ([port] if port else ports))


def _sequence(events: _Numbered, topology: Topology) -> Iterator[Invalid]:
    """Events that do not fit what is in force when they come; and impairments that do not fit together."""
    ordered = sorted(events, key=lambda item: (item[1].at, item[0]))
    for place, (number, event) in enumerate(ordered):
        path: Path = ("timeline", number)
        segment, port = _target(event, topology.segments)
        assert segment is not None
        kind = topology.segments[segment]
        before = [other for _, other in ordered[:place] if _target(other, topology.segments)[0] == segment]
        state = _state(before, kind, event.at)
        touched = {port} if port else set(kind.ports)
        if event.verb == CUT and touched & state.cut:
            cut = sorted(touched & state.cut)[0]
            yield Invalid(
                (*path, CUT), f"{cut} is cut already at {TIME.show(event.at)}", "one cut at a time, or heal first"
            )
        elif event.verb == PARTITION and state.partition:
            what = f"{segment!r} is partitioned already at {TIME.show(event.at)}"
            yield Invalid((*path, PARTITION), what, "one partition at a time, or heal first")
        elif event.verb == HEAL and not (touched & state.cut or (port is None and state.partition)):
            yield Invalid((*path, HEAL), f"nothing is cut there at {TIME.show(event.at)}", "after a cut or partition")
    for name, states in states_of([event for _, event in events], topology.segments).items():
        for state in states:
            yield from _check_effects(events, topology, name, state)


def _check_effects(events: _Numbered, topology: Topology, name: str, state: State) -> Iterator[Invalid]:
    for effects in state.impairments.values():
        for wrong in effects.check(()):
            number = _to_blame(events, topology, name, state.at_ns)
            what = f"{wrong.what}, from {TIME.show(state.at_ns)}"
            yield Invalid(("timeline", number, *wrong.path), what, wrong.allowed)
            return


def _to_blame(events: _Numbered, topology: Topology, segment: str, at_ns: int) -> int:
    """The event that leads to a state: the last one that begins or ends then."""
    meant = [
        number
        for number, event in events
        if _target(event, topology.segments)[0] == segment and at_ns in (event.at, event.ends_ns())
    ]
    return meant[-1]


def _instants(events: Iterable[Event]) -> list[int]:
    times = {event.at for event in events} | {event.ends_ns() for event in events}
    return sorted(at for at in times if at is not None)


def _state(events: Sequence[Event], segment: SegmentBase, at_ns: int) -> State:
    """The state of a segment at an instant. `events` of it alone."""
    impairments = {port: segment.own_impairments(port) for port in segment.ports} if IMPAIR in segment.knobs else {}
    cut: set[str] = set()
    off: set[str] = set()
    partition: tuple[tuple[str, ...], ...] = ()
    own, words = dict(impairments), []
    for event in sorted(events, key=lambda event: event.at):
        ends_ns = event.ends_ns()
        if event.at == at_ns:
            words.append(event.words)
        if ends_ns == at_ns:
            words.append(f"end of {event.words}")
        if event.at > at_ns or (ends_ns is not None and ends_ns <= at_ns):
            continue
        port = _place_of(event)[1]
        touched = [port] if port else segment.ports
        if event.verb == IMPAIR:
            for each in [event.from_] if event.from_ else segment.ports:
                impairments[each] = (own[each] if event.reset else impairments[each]).changed_to(event)
        elif event.verb == CUT:
            cut |= set(touched)
        elif event.verb == POWER_OFF:
            off |= {end for end in segment.ports if _owner(end) == event.power_off}
        elif event.verb == POWER_ON:
            off -= {end for end in segment.ports if _owner(end) == event.power_on}
        elif event.verb == PARTITION:
            partition = tuple(
                tuple(end for end in segment.ports if _owner(end) in group) for group in event.partition or ()
            )
        else:
            cut -= set(touched)
            partition = partition if port else ()
    return State(at_ns, "; ".join(words), frozenset(cut), frozenset(off), partition, impairments)


def _place_of(event: Event) -> tuple[str | None, str | None]:
    """The segment or the port that an event names."""
    place = event.segment if event.verb == PARTITION else getattr(event, event.verb or IMPAIR)
    return (None, place) if place is not None and ":" in place else (place, None)


def _target(event: Event, segments: Mapping[str, SegmentBase]) -> tuple[str | None, str | None]:
    """Segment and port of an event; the segment is None where there is no such one."""
    segment, port = _place_of(event)
    if port is not None:
        segment = next((name for name, each in segments.items() if port in each.ports), None)
    return (segment if segment in segments else None), port


def _concerns(event: Event, name: str, segments: Mapping[str, SegmentBase]) -> bool:
    """Whether an event changes what a segment does."""
    if event.verb in MACHINE_VERBS:
        return any(_owner(port) == event.power_of for port in segments[name].ports)
    return _target(event, segments)[0] == name


def _owner(port: str) -> str:
    return port.partition(":")[0]


def _ports(topology: Topology) -> list[str]:
    return [port for segment in topology.segments.values() for port in segment.ports]

# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline that meet machines: what they say, and which machines they fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from sundial.model.fields import NAMED, Strict
from sundial.model.invalid import Invalid, Path
from sundial.units import TIME

if TYPE_CHECKING:
    from sundial.model.network import Network, Node
    from sundial.model.timeline import Event
    from sundial.model.topology import Clock, Topology
    from sundial.model.workload import WorkloadBase

POWER_OFF, POWER_ON = "power_off", "power_on"
MACHINE_VERBS = (POWER_OFF, POWER_ON)

_CUT = "cut"
"""A segment whose cables can be cut knows machines that are off."""
_PROGRAMS = "command"
"""The kind of workload that knows what becomes of its parts on a machine without power."""


class OnMachines(Strict):
    """What an event does to a machine."""

    power_off: Annotated[str, NAMED] | None = None
    """Machine whose power is cut, to the end of the run. It sends nothing from then on, and what its adapters hold is
    lost, as are frames to it. Its memory is lost, and its files, which are in memory."""
    power_on: Annotated[str, NAMED] | None = None
    """Machine that is off and boots again, of a topology that is up under the real clock (`sundial power on`)."""

    @property
    def power_of(self) -> str | None:
        """The machine whose power it cuts or gives back."""
        return self.power_off or self.power_on


def offs_ns(events: Sequence[Event]) -> Mapping[str, int]:
    """When the power of machines is cut, by machine. The events are valid."""
    return {event.power_off: event.at for event in events if event.power_off is not None}


def check_machines(events: Sequence[Event], topology: Topology) -> Iterator[Invalid]:
    """Invalid events on machines, in time."""
    off: dict[str, int] = {}
    for number, event in sorted(enumerate(events), key=lambda item: item[1].at):
        name = event.power_of
        if event.verb not in MACHINE_VERBS or name is None:
            continue
        path: Path = ("timeline", number, event.verb)
        if name not in topology.machines:
            yield Invalid(path, f"there is no machine {name!r}", ", ".join(topology.machines))
        elif event.verb == POWER_ON:
            if off.pop(name, None) is None:
                yield Invalid(path, f"{name!r} is not off", "after power_off")
        elif name in off:
            yield Invalid(path, f"{name!r} is off already, by timeline.{off[name]}", "once, or after power_on")
        elif event.at == 0:
            yield Invalid((*path[:-1], "at"), f"{name!r} does not run before 0 ns", "a later time, such as 2 s")
        else:
            off[name] = number


def check_carried_out(
    machine: str,
    event: Event,
    events: Sequence[Event],
    topology: Topology,
    workloads: Sequence[WorkloadBase],
    path: Path,
) -> Iterator[Invalid]:
    """Why `app: command` on a machine cannot carry out an event there."""
    offs = offs_ns(events)
    running = [each for each in workloads if each.app == _PROGRAMS and machine in each.machines]
    ends_ns = event.ends_ns() or event.at
    if machine not in topology.machines:
        yield Invalid(path, f"there is no machine {machine!r}", ", ".join(topology.machines))
    elif len(running) != 1:
        count = "no workload" if not running else f"{len(running)} workloads, which follow each other,"
        able = dict.fromkeys(name for each in workloads if each.app == _PROGRAMS for name in each.machines)
        what = f"{machine!r} has {count} of app: {_PROGRAMS}, which carries it out"
        yield Invalid(path, what, ", ".join(able) or f"a workload with app: {_PROGRAMS} on it")
    elif ends_ns >= offs.get(machine, ends_ns + 1):
        yield Invalid(path, f"{machine!r} is off at {TIME.show(ends_ns)}", f"before {TIME.show(offs[machine])}")


def check_by_hand(verb: str, machine: str, topology: Topology) -> Iterator[Invalid]:
    """Why a machine of a topology that is up cannot lose its power, or boot again. It has the machine."""
    own = {
        name: segment.kind
        for name, segment in topology.segments.items()
        if any(port.partition(":")[0] == machine for port in segment.ports)
    }
    stiff = [name for name in own if _CUT not in topology.segments[name].knobs]
    if topology.clock != "real":
        what = "under clock: virtual the other machines would wait for it"
        yield Invalid((verb,), what, "power_off in the timeline of a scenario; or clock: real")
    elif stiff:
        yield Invalid((verb,), f"{stiff[0]!r} is a {own[stiff[0]]}, which does not know machines that are off")
    elif len(own) != 1:
        yield Invalid((verb,), f"{machine!r} is on {len(own)} segments, which change one by one", "one segment")
    elif verb == POWER_ON and topology.machines[machine].on is not None:
        yield Invalid((verb,), f"{machine!r} is on another host, where it does not start again", "one of this host")


def check_power(
    events: Sequence[Event], workloads: Sequence[WorkloadBase], network: Network, clock: Clock
) -> Iterator[Invalid]:
    """Invalid events on machines for the parts that these have in the run. The topology has all of them."""
    offs = offs_ns(events)
    for number, event in enumerate(events):
        if event.power_on is not None:
            what = "a machine boots only once in a run: its kernel would begin its clock and all that it counts again"
            allowed = "`sundial power on` of a topology that is up under the real clock"
            yield Invalid(("timeline", number, POWER_ON), what, allowed)
        if event.power_off is not None:
            yield from _check(network.node(event.power_off), workloads, network, clock, ("timeline", number, POWER_OFF))
    last = [number for number, event in enumerate(events) if event.power_off is not None]
    busy = {name for workload in workloads for name in (workload.machines or workload.clients)}
    if busy and busy <= offs.keys():
        what = "every machine with jobs is off then, so nothing ends the run"
        yield Invalid(("timeline", last[-1], POWER_OFF), what, "one machine with programs that stays on")
    for number, event in enumerate(events):
        yield from _check_programs(number, event, workloads, offs)


def _check(
    node: Node, workloads: Sequence[WorkloadBase], network: Network, clock: Clock, path: Path
) -> Iterator[Invalid]:
    """The first reason why a machine cannot lose its power, if there is one."""
    name = node.name
    users = [each.app for each in workloads if name in each.parties]
    foreign = [app for app in users if app != _PROGRAMS]
    stiff = [
        f"{segment!r} is a {network.segments[segment].kind}"
        for segment in dict.fromkeys(nic.segment for nic in node.nics)
        if _CUT not in network.segments[segment].knobs
    ]
    if clock != "virtual":
        yield Invalid(path, "a machine loses its power at an exact instant only under clock: virtual", "clock: virtual")
    elif foreign:
        what = f"{name!r} has a part in {foreign[0]}, whose calls are not explained without it"
        yield Invalid(path, what, f"a machine of app: {_PROGRAMS} alone")
    elif node.role != "host" or node.forwards:
        yield Invalid(path, f"{name!r} passes on what others send", "a machine that does not forward")
    elif node.inner:
        yield Invalid(path, f"the loopback of {name!r} is captured by the machine itself", "loopback without a capture")
    elif stiff:
        yield Invalid(path, f"{stiff[0]}, which does not know machines that are off", "segments of kind link or switch")


def _check_programs(
    number: int, event: Event, workloads: Sequence[WorkloadBase], offs: Mapping[str, int]
) -> Iterator[Invalid]:
    """An event that meets a program of a machine which is off by then."""
    if not event.program or event.after is not None:
        return
    for workload in workloads:
        program = getattr(workload, "programs", {}).get(event.program)
        for machine in () if program is None else (event.on or program.on):
            ends_ns = event.ends_ns() or event.at
            if ends_ns >= offs.get(machine, ends_ns + 1):
                what = f"{machine!r} is off at {TIME.show(ends_ns)}"
                yield Invalid(("timeline", number, event.verb or ""), what, f"before {TIME.show(offs[machine])}")

# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline that take what a machine has: space of a file system, and memory. `app: command` on that machine
carries them out, and gives back what it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from sundial.model.fields import NAMED, In, Strict
from sundial.model.invalid import Invalid, Path
from sundial.model.machine_events import check_carried_out
from sundial.model.own import GuestPath
from sundial.units import SIZE, TIME

if TYPE_CHECKING:
    from sundial.model.network import Network
    from sundial.model.timeline import Event
    from sundial.model.topology import Topology
    from sundial.model.workload import WorkloadBase

FILL, TAKE = "fill_disk", "take_memory"
AMOUNT_VERBS = (FILL, TAKE)
ROOT = "/"
_WAYS = ("amount", "leave")
_AMOUNT = SIZE.between("1", "64 GiB", example="8 MiB")


class OnAmounts(Strict):
    """What an event takes from a machine."""

    fill_disk: Annotated[str, NAMED] | None = None
    """Machine of which a file system is filled, by a file without a name. With `for` it is given back afterwards."""
    path: Annotated[str, GuestPath()] | None = None
    """Folder of the file system that fill_disk fills. Default: the root."""
    take_memory: Annotated[str, NAMED] | None = None
    """Machine whose memory is taken, page by page, and locked. With `for` it is given back afterwards."""
    amount: Annotated[int, In(_AMOUNT)] | None = None
    """Bytes to take, in whole pages."""
    leave: Annotated[int, In(SIZE.between("0", "64 GiB", example="1 MiB"))] | None = None
    """Bytes to leave free, instead of amount."""

    @property
    def amount_of(self) -> str:
        """The machine of which it takes something; empty for other events."""
        return self.fill_disk or self.take_memory or ""


@dataclass(frozen=True)
class Amount:
    """What is to be taken at an instant."""

    number: int
    """Place of its event in the timeline."""
    at_ns: int
    over_ns: int | None
    """When it is given back; None: never."""
    path: str | None
    """Folder of the file system; None: memory."""
    bytes: int | None
    leave: int | None


def amounts(events: Sequence[Event], machine: str) -> list[Amount]:
    """What events take of `machine`, in time. These are valid."""
    found = [
        Amount(number, event.at, event.ends_ns(), None if event.verb == TAKE else event.path or ROOT,
               event.amount, event.leave)
        for number, event in enumerate(events)
        if event.amount_of == machine
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.at_ns)


def check_amount_fields(event: Event, verb: str, path: Path) -> Iterator[Invalid]:
    """Fields that do not go with what an event takes."""
    has = [name for name in _WAYS if getattr(event, name) is not None]
    if verb not in AMOUNT_VERBS:
        for name in has:
            yield Invalid((*path, name), f"{verb} has no {name}", f"{name} together with {FILL} or {TAKE}")
    elif len(has) != 1:
        yield Invalid(path, f"{verb} has either amount or leave", "one of amount and leave")
    if verb != FILL and event.path is not None:
        yield Invalid((*path, "path"), f"{verb} has no path", f"path together with {FILL}")


def check_amounts(
    events: Sequence[Event], topology: Topology, network: Network, workloads: Sequence[WorkloadBase]
) -> Iterator[Invalid]:
    """Invalid events on amounts, in their order. All have passed `check_amount_fields`."""
    until: dict[tuple[str, str, str], tuple[int, int]] = {}
    for number, event in sorted(enumerate(events), key=lambda item: item[1].at):
        machine = event.amount_of
        if not machine:
            continue
        verb = event.verb or ""
        path: Path = ("timeline", number, verb)
        wrong = next(check_carried_out(machine, event, events, topology, workloads, path), None)
        key = verb, machine, event.path or ROOT
        if wrong is not None:
            yield wrong
        elif event.at < until.get(key, (0, 0))[0]:
            what = f"{verb} of {machine!r} is in force already, by timeline.{until[key][1]}"
            yield Invalid(path, what, "after the time of its for")
        elif max(event.amount or 0, event.leave or 0) >= network.node(machine).memory:
            field = "amount" if event.amount is not None else "leave"
            memory = SIZE.show(network.node(machine).memory)
            yield Invalid((*path[:-1], field), f"{machine!r} has {memory} of memory", f"less than {memory}")
        until[key] = (event.ends_ns() or TIME.most, number)

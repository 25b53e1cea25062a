# SPDX-License-Identifier: Apache-2.0
"""What `sweep` and `search` ask of the rooms, as `rooms.py` has it for the other commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sundial.cli import rooms
from sundial.errors import BadInput
from sundial.plan.request import Silence
from sundial.sweep.place import Place

if TYPE_CHECKING:
    from sundial.plan.request import Progress


@dataclass(frozen=True)
class SweepAsked:
    """What `sweep` was asked for."""

    source: Any
    """The sweep's data."""
    out: Path | None
    store: Path | None
    place: Place
    connect: str
    recipe: str | None
    command: tuple[str, ...]


def sweep_source(reference: str, topology: str | None, settings: Sequence[str], seeds: str | None) -> Any:
    """The data of a sweep: a file's, or a grid of a scenario. Raises BadInput."""
    room = rooms.named_room("sundial.sweep.read")
    if not room.is_sweep(reference):
        return room.from_options(reference, topology, settings, seeds)
    given = [name for name, value in (("--topology", topology), ("--set", settings), ("--seeds", seeds)) if value]
    if given:
        what = "the file says which runs there are"
        raise BadInput(what, file=given[0], allowed="a scenario, or no such option")
    return room.from_file(reference)


def sweep_again(folder: Path, place: Place, connect: str) -> SweepAsked:
    """The sweep of a folder. Raises BadInput."""
    record = rooms.named_room("sundial.sweep.perform").read_record(folder)
    source = rooms.named_room("sundial.model.source").Source(
        record["sweep"]["name"], str(folder / "sweep.json"), record["sweep"]
    )
    return SweepAsked(source, folder, Path(record["store"]), place, connect, record["recipe"], tuple(record["command"]))


def sweeping(asked: SweepAsked, progress: Progress, *, building: bool = True, searching: bool = False) -> Any:
    """A sweep whose points are all valid: `.perform(making, progress)`, `.estimate()`, `.folder`. With `building`,
    images are built where they are missing. Raises BadInput, HostLacks."""
    rooms.check_places(asked.out)
    room = rooms.able_room("sundial.sweep.perform")
    sweep, data = rooms.named_room("sundial.sweep.read").sweep_of(asked.source)
    store = asked.store or rooms.named_room("sundial.run.places").Places().store
    slots = asked.place.slots or rooms.named_room("sundial.reproduce.workers").jobs_of_this_host()
    request = room.Request(
        sweep, data, rooms.CAPTURES, asked.out, store, slots, asked.connect, asked.recipe, asked.command,
        asked.place,
    )  # fmt: skip
    identities = rooms.named_room("sundial.sweep.known").Identities(
        asked.recipe, say=progress.say if building else None
    )
    kind = rooms.named_room("sundial.sweep.search").Searching if searching else room.Sweeping
    return kind(request, identities, progress.say)


def sweep_status(asked: SweepAsked) -> Any:
    """What of a sweep is in the store: a `Swept`. Raises BadInput."""
    found = sweeping(asked, Silence(), building=False)
    return found.state(found.had())


def sweep_show(asked: SweepAsked, number: int, *, captures: bool, progress: Progress) -> dict[str, Any]:
    """What became of one run of a sweep; with `captures` it is made again if they were dropped. Raises BadInput."""
    found = sweeping(asked, progress)
    return cast("dict[str, Any]", found.show(number, rooms.making() if captures else None, progress))


def identities(recipe: str | None) -> Any:
    """What identifies runs, from what is built on this host: `.of(experiment)`. Raises BadInput."""
    return rooms.named_room("sundial.sweep.known").Identities(recipe)


def scheduler(address: str, certs: Path | None, say: Callable[[str], None]) -> None:
    """Be the scheduler of a cluster. Raises HostLacks, Interrupted."""
    rooms.named_room("sundial.sweep.cluster.serve").schedule(address, certs, say)


def worker(address: str, certs: Path | None, slots: int | None, store: Path | None, say: Callable[[str], None]) -> None:
    """Be a worker of a cluster. Raises HostLacks, Interrupted."""
    slots = slots or rooms.named_room("sundial.reproduce.workers").jobs_of_this_host()
    rooms.named_room("sundial.sweep.cluster.serve").work(address, certs, agent(slots, store), say)


def agent(slots: int, store: Path | None) -> Any:
    """What makes runs for a cluster on this host: `.close()` ends it. Raises HostLacks."""
    rooms.check_state()
    rooms.able_room("sundial.sweep.perform")
    places = rooms.named_room("sundial.run.places").Places()
    name = rooms.named_room("sundial.sweep.cluster.serve").worker_name()
    identities = rooms.named_room("sundial.sweep.known").Identities()
    made = rooms.named_room("sundial.sweep.cluster.agent").Agent(
        rooms.making(),
        store or places.store,
        places.private / "cluster-images",
        lambda kept: identities.offer(kept, slots, name),
    )
    made.blobs.adopt(places.built)
    return made


def serve_as(agent: Any) -> None:
    """This process is the worker that has the agent."""
    rooms.named_room("sundial.sweep.cluster.agent").serve(agent)


def certs(folder: Path) -> None:
    """Make a certificate and its key. Raises BadInput, HostLacks."""
    rooms.named_room("sundial.sweep.cluster.serve").make_certs(folder)

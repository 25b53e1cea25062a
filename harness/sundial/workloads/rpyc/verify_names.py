# SPDX-License-Identifier: Apache-2.0
"""Who calls whom, from jobs and samples: servers, and the connections of clients with all their calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

from sundial.errors import GuestFault
from sundial.judge import parties
from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.samples import RunSamples
from sundial.verify.segment import network_of
from sundial.verify.sockets.conversations import End
from sundial.workloads import functions, server_death, switches
from sundial.workloads.libraries import libraries_of
from sundial.workloads.rpyc.expect import Version, version
from sundial.workloads.rpyc.expect_sides import Calls
from sundial.workloads.rpyc.model import PACKAGE
from sundial.workloads.rpyc.plan import SERVER

LATE = "TimeoutError"
"""Of a call that had its time."""
UNREACHED = "cannot connect: "
"""What the error of each call of a client begins with that has no connection, or not the server's root object."""


class Service(parties.Service):
    """A server program of a machine."""

    @property
    def die_call(self) -> int | None:
        """The call in which it is killed."""
        return server_death.call_of(self.options)


@dataclass
class Planned:
    """A connection that a client has reported, or a step that has none."""

    client: End
    """Of a step that could not connect: port 0."""
    server: End
    machine: str
    options: Mapping[str, Any]
    """Of its step."""
    batches: list[parties.Batch] = field(default_factory=list)
    calls: list[Calls] = field(default_factory=list)
    rows: dict[int, parties.Call] = field(default_factory=dict)
    """What the client said of each call, by its id."""

    @property
    def unreached(self) -> str | None:
        """Why none of its calls could be made: the name of the exception."""
        error = self.batches[0].calls[0].error or ""
        return error.removeprefix(UNREACHED) if error.startswith(UNREACHED) else None

    def from_late(self) -> Set[int]:
        """The first call that had its time, and all behind it. What it had asked for comes when others wait, and what
        it held is given back by the way."""
        ids = [number for calls in self.calls for number in calls.ids]
        first = next((place for place, number in enumerate(ids) if self.rows[number].error == LATE), len(ids))
        return frozenset(ids[first:])

    @property
    def version(self) -> Version:
        """What it says that it runs. Raises ValueError for one that is not known."""
        return version(str(self.batches[0].line.get("library")))


def planned(run: RunDirectory, samples: RunSamples, calls: pl.DataFrame) -> list[Planned]:
    """Connections in the order of their clients' samples. Raises GuestFault for calls that there cannot be."""
    found: dict[tuple[Any, ...], Planned] = {}
    turns: dict[tuple[str, int], int] = defaultdict(int)
    for batch in parties.batches(samples, calls):
        try:
            _add(found, turns, run, batch)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            message = f"a client recorded RPyC calls that there cannot be: {error}"
            raise GuestFault(message, machine=batch.client) from None
    return list(found.values())


def _add(
    found: dict[tuple[Any, ...], Planned],
    turns: dict[tuple[str, int], int],
    run: RunDirectory,
    batch: parties.Batch,
) -> None:
    """A batch to the connection that made it: a step has one, and a batch for each of its functions."""
    first, step, machine = batch.calls[0], batch.step, batch.client
    options = run.jobs[machine]["steps"][step]["options"]
    unconnected = first.client_port is None and any((call.error or "").startswith(UNREACHED) for call in batch.calls)
    client = (str(first.client_address), 0) if unconnected else _known(first.client_end)
    server = _known(first.server_end)
    each = found.setdefault((machine, step, client, server), Planned(client, server, machine, options))
    name = options["functions"][turns[machine, step]]
    turns[machine, step] += 1
    each.batches.append(batch)
    each.calls.append(
        Calls(functions.BY_NAME[name], [call.id for call in batch.calls], str(options.get("container", "list")),
              str(options.get("distance", "numpy")))
    )  # fmt: skip
    each.rows |= {call.id: call for call in batch.calls}


def _known(end: tuple[str | None, int | None]) -> End:
    """An end that a client has reported. Raises ValueError."""
    address, port = end
    if port is None:
        raise ValueError("no port")
    return str(address), port


def check_lines(run: RunDirectory, each: Planned) -> Iterator[Finding]:
    """What a client says of its batches, against its job."""
    network = network_of(run)
    image = None if network is None else network.node(each.machine).image
    library = None if image is None else libraries_of(run, image).get("python", {}).get(PACKAGE)
    for batch, calls in zip(each.batches, each.calls, strict=True):
        function = calls.function
        right = {
            "procedure": function.name,
            "size": function.size,
            "function": function.number,
            "transport": PACKAGE,
            "tcp_nodelay": bool(each.options.get("tcp_nodelay")),
            "container": calls.container if function.contains else None,
            "variant": calls.variant if function.name == "distance" else None,
            **({} if library is None else {"library": library}),
        }
        for name, expected in right.items():
            if batch.line.get(name) != expected:
                yield Finding(None, f"{batch.where} {name}", str(expected), str(batch.line.get(name)))


def check_counters(
    samples: RunSamples,
    known: Sequence[Service],
    executed: Mapping[tuple[str, int], Mapping[str, int]],
    answered: Mapping[tuple[str, int], Mapping[str, int]],
    waiting: Set[End],
    due: bool,
) -> Iterator[Finding]:
    """The last line of each server against the calls that came to it; earlier lines say no more than later ones.
    `due`: there must be one, and it has every call; else the run ended before it was written. `executed`: by machine
    and port, of those whose connections were all found right, and `answered` of the same; one that is killed may not
    have read all that came. `waiting`: servers whose context switches have a least (`switches.Speeds`)."""
    yield from parties.check_reporters(samples, known, lambda line: line.get("app") == SERVER)
    for service in known:
        own, where = service.lines(samples), service.where
        right = executed.get((service.machine, service.port))
        if right is None:
            continue
        if not own:
            if right and (due or service.die_call):
                yield Finding(None, f"{where} counters", "a line", "none")
            continue
        said = own[-1].get("by_function")
        said = said if isinstance(said, Mapping) else {}
        whole = due and service.die_call is None
        least = right if whole else answered.get((service.machine, service.port), {}) if due else {}
        for name in sorted({*functions.BY_NAME, *right, *said}):
            low, high, seen = least.get(name, 0), right.get(name, 0), said.get(name, 0)
            if not isinstance(seen, int) or not low <= seen <= high:
                expected = str(low) if low == high else f"{low} to {high}"
                yield Finding(None, f"{where} counters {name}", expected, str(seen))
        came = sum(right.values())
        total = came if service.die_call is None else min(came, service.die_call)
        together = sum(seen for seen in said.values() if isinstance(seen, int))
        for name, count in (("calls", total if due else min(total, together)), ("failed", 0)):
            if own[-1].get(name) != count:
                yield Finding(None, f"{where} counters {name}", str(count), str(own[-1].get(name)))
        if service.die_call is not None and together != own[-1].get("calls"):
            yield Finding(None, f"{where} counters by_function", f"{own[-1].get('calls')} together", str(together))
        waits = any(end in waiting for end in service.ends)
        called = right if whole else said
        yield from switches.check_counters(f"{where} counters", own[-1], called, waits=waits)
        for before, after in pairwise(own):
            if not before.get("calls", 0) <= after.get("calls", 0):
                yield Finding(
                    None, f"{where} counters calls", f"{before.get('calls')} or more", str(after.get("calls"))
                )

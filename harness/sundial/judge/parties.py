# SPDX-License-Identifier: Apache-2.0
"""The parties of a run, from its jobs and samples: servers, the options of clients' steps, and servers' reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.findings import Finding
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.conversations import End

Line = Mapping[str, Any]
"""One record of a guest (`sundial.seams.samples`)."""
S = TypeVar("S", bound="Service")


class Call(NamedTuple):
    """One call, as its client reported it (`sundial.seams.samples.Row`); times in ns since zero of the run."""

    id: int
    call: int
    """Its number in the batch."""
    procedure: str
    size: int
    transport: str
    thread: int
    warmup: bool
    start_ns: int
    end_ns: int
    ok: bool
    error: str | None
    xid: int | None
    retransmits: int
    client_address: str | None
    client_port: int | None
    server_address: str | None
    server_port: int | None

    @property
    def client_end(self) -> tuple[str | None, int | None]:
        return self.client_address, self.client_port

    @property
    def server_end(self) -> tuple[str | None, int | None]:
        return self.server_address, self.server_port


@dataclass(frozen=True)
class Batch:
    """Calls of a client that differ only in their number."""

    client: str
    number: int
    line: Line
    """What the client reported of all of them (`sundial.seams.samples.Batch`)."""
    calls: Sequence[Call]

    @property
    def step(self) -> int:
        """The number of its step in the client's job."""
        return int(self.line["step"])

    @property
    def where(self) -> str:
        """Its line, as a finding names it."""
        return f"nodes/{self.client} batch {self.number}"


def batches(samples: RunSamples, calls: pl.DataFrame) -> list[Batch]:
    """Those of some `calls` of the samples, in their order."""
    found: dict[tuple[str, int], list[Call]] = {}
    for client, number, *row in calls.sort("id").select("client", "batch", *Call._fields).iter_rows():
        found.setdefault((client, number), []).append(Call(*row))
    return [Batch(*name, samples.batches[name], own) for name, own in found.items()]


@dataclass(frozen=True)
class Service:
    """A server program of a machine; a kind derives one that reads its own options."""

    machine: str
    addresses: tuple[str, ...]
    app: str
    options: Mapping[str, Any]
    """As in its job, for the defaults of the program where one is absent."""

    PORT: ClassVar[int] = 0
    """The port without the option `port`."""

    @property
    def port(self) -> int:
        """Its own port, which names it in reports."""
        return int(self.options.get("port") or self.PORT)

    @property
    def ports(self) -> tuple[int, ...]:
        """All ports of the program."""
        return (self.port,)

    @property
    def ends(self) -> frozenset[End]:
        """Where it is called."""
        return frozenset((address, port) for address in self.addresses for port in self.ports)

    @property
    def where(self) -> str:
        """Its reports, as a finding names them."""
        return f"nodes/{self.machine} port {self.port}"

    def lines(self, samples: RunSamples) -> list[Line]:
        """What it reported of its counters, in order."""
        return [
            line
            for line in samples.records.get(self.machine, ())
            if line["type"] == "counters" and (line.get("app"), line.get("port")) == (self.app, self.port)
        ]


def services(run: RunDirectory, kind: type[S], apps: Collection[str]) -> list[S]:
    """The server programs of these names."""
    found = []
    for name, job in run.jobs.items():
        addresses = tuple(item.address for item in run.nodes[name].interfaces if item.address)
        mine = (each for each in job.get("services", ()) if each.get("app") in apps)
        found += [kind(name, addresses, each["app"], each["options"]) for each in mine]
    return found


def options_of(run: RunDirectory, client: str, step: int) -> Mapping[str, Any]:
    """The options of a client's step; none where its job has no such step."""
    steps = run.jobs.get(client, {}).get("steps", [])
    options: Mapping[str, Any] = steps[step]["options"] if 0 <= step < len(steps) else {}
    return options


def check_unreached(batch: Batch, error: str, counted: Mapping[str, Any]) -> Iterator[Finding]:
    """A batch of a client that has reached no server: each call says why, and nothing of it was sent or `counted`."""
    for call in batch.calls:
        if call.error != error:
            yield Finding(call.id, "sample.error", error, str(call.error))
        if (call.xid, call.retransmits) != (None, 0):
            yield Finding(call.id, "sample.xid", "none: nothing was sent", f"{call.xid}, {call.retransmits} again")
    for name, count in counted.items():
        if count != 0:
            yield Finding(None, f"{batch.where} {name}", "0: no server", str(count))


def check_reporters(
    samples: RunSamples, known: Sequence[Service], reports: Callable[[Line], bool]
) -> Iterator[Finding]:
    """Counters of servers that no job has. `reports`: whether a line of counters is one of this kind's."""
    named = {(each.machine, each.app, each.port) for each in known}
    for machine, records in samples.records.items():
        for line in records:
            app, port = line.get("app"), line.get("port")
            if line["type"] == "counters" and reports(line) and (machine, app, port) not in named:
                yield Finding(None, f"nodes/{machine} counters", "of a server of its job", f"{app}, port {port}")

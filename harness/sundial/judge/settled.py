# SPDX-License-Identifier: Apache-2.0
"""The verification of a kind whose calls go over a transport of its own: what it starts from, and what it answers.

A kind derives a `Verification`, which holds one run, and gives it to a `Transport`, which is its `OwnTransport`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import polars as pl

from sundial.judge.parties import Service, services
from sundial.observe import Octets, RunDirectory, octets_of
from sundial.verify.conservation import transit_of
from sundial.verify.findings import Finding, as_table
from sundial.verify.headers.arp import Stretches
from sundial.verify.headers.ports import homes, ports_of
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.call_times import check_call_times
from sundial.verify.workload import OBSERVED, Settled, retransmissions

S = TypeVar("S", bound=Service)


@dataclass
class Verdict:
    """What a kind found in one run."""

    classes: pl.DataFrame
    """`workload.CLASSES`."""
    packets: int
    """Those sent, each time."""
    findings: list[Finding] = field(default_factory=list)
    tables: Sequence[pl.DataFrame] = ()
    """Further findings."""
    observed: Sequence[dict[str, Any]] = ()
    """Rows of `workload.OBSERVED`."""
    expected: Mapping[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)
    """As `Settled.expected`; so is `unsent`."""
    unsent: Mapping[str, Any] = field(default_factory=dict)
    uncaused: Sequence[Finding] = ()
    """As `Settled.uncaused`."""


class Verification(ABC, Generic[S]):
    """One run with servers or calls of a kind."""

    name: ClassVar[str]
    """The kind's, which is that of its protocol."""
    clients: ClassVar[Collection[str]]
    """Its programs; so are `servers`."""
    servers: ClassVar[Collection[str]]
    service: type[S]

    def __init__(
        self,
        run: RunDirectory,
        frames: pl.DataFrame,
        samples: RunSamples,
        calls: pl.DataFrame,
        known: Sequence[S],
        unsent: Stretches,
    ) -> None:
        """`calls`: its samples; `known`: its servers; `unsent`: as of `OwnTransport.settle`."""
        self.run, self.frames, self.samples, self.calls, self.services = run, frames, samples, calls, known
        self.unsent = unsent
        self.exact = run.clock == "virtual"
        """Guests and captures have one clock."""
        self.ports = ports_of(run)
        self.transit = transit_of(frames, self.ports, self.run)
        self.prepare()

    def prepare(self) -> None:
        """Read what the verdict needs from samples and frames."""

    @cached_property
    def homes(self) -> dict[str, str]:
        """The machines of ports that join no segments, by `end`."""
        return homes(self.ports)

    def read(self, rows: pl.DataFrame) -> Octets:
        """The bytes of frames."""
        return octets_of(rows, self.run.capture_files)

    @abstractmethod
    def verdict(self) -> Verdict:
        """Compare all calls with all frames."""

    def mtu(self, address: str) -> int:
        """Of the port with an address; 1500 of one that is not the run's."""
        owner = self.run.owner(address)
        return 1500 if owner is None else owner[1].mtu

    @classmethod
    def settle(cls, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, unsent: Stretches) -> Settled:
        """As `OwnTransport.settle`."""
        calls = samples.table.filter(pl.col("app").is_in(list(cls.clients))).with_columns(protocol=pl.lit(cls.name))
        known = services(run, cls.service, cls.servers)
        if not known and calls.is_empty():
            return Settled(calls)
        this = cls(run, frames, samples, calls, known, unsent)
        found = this.verdict()
        table = pl.DataFrame(found.observed, schema=OBSERVED, orient="row").sort("call")
        return Settled(
            calls,
            pl.concat([as_table(found.findings), *found.tables, check_call_times(calls, table, this.exact)]),
            found.classes,
            table,
            found.packets,
            retransmissions(cls.name, table),
            expected=found.expected,
            unsent=found.unsent,
            uncaused=as_table(found.uncaused),
        )


@dataclass(frozen=True)
class Transport:
    """`OwnTransport` over IP. A kind overrides `display_filter`, and `describe` if a frame shows a message."""

    verification: type[Verification[Any]]

    @property
    def ethertype(self) -> int | None:
        """None: the frames are IP's."""
        return None

    def settle(self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, unsent: Stretches) -> Settled:
        """Compare all its calls with all its frames."""
        return self.verification.settle(run, frames, samples, unsent)

    def describe(self) -> pl.Expr:
        """No frame in words: a segment shows no message."""
        return pl.lit(None, pl.String)

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        """All frames of the call's connection."""
        if call["client_port"] is None:
            return None
        return f"ip.addr == {call['client_address']} && tcp.port == {call['client_port']}"

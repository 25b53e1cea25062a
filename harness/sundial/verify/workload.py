# SPDX-License-Identifier: Apache-2.0
"""What verification asks of a kind of workload.

A kind speaks a protocol over UDP and TCP (`sockets`), has a transport of its own that calls go over (`transport`),
makes traffic that is not a call (`background`), or several of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import polars as pl

from sundial import kinds
from sundial.observe import RunDirectory
from sundial.verify.findings import none
from sundial.verify.headers.arp import Stretches
from sundial.verify.samples import RunSamples
from sundial.verify.sockets.protocol import Counts, SocketProtocol

CLASSES: dict[str, type[pl.DataType]] = {"row": pl.UInt32, "class": pl.String, "call": pl.UInt32}
"""What a row of the table of frames is, and the call that it belongs to, if any."""

OBSERVED: dict[str, type[pl.DataType]] = {
    "call": pl.UInt32,
    "transport": pl.String,
    "call_first_tx_ns": pl.Int64,
    "call_last_rx_ns": pl.Int64,
    "reply_first_tx_ns": pl.Int64,
    "reply_last_rx_ns": pl.Int64,
    **{
        f"{way}_{name}": pl.Int32
        for way in ("request", "reply")
        for name in ("packets", "packets_expected", "fragments", "fragments_expected", "retransmissions")
    },
}
"""What was observed of a call."""


EXCHANGES: dict[str, Any] = {
    "decoder": pl.String, "transport": pl.String, "client": pl.String, "server": pl.String, "port": pl.Int64,
    "procedure": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "rtt_ns": pl.Int64, "question_bytes": pl.Int64,
    "answer_bytes": pl.Int64, "retransmissions": pl.Int64, "after_loss": pl.Int64, "ok": pl.Boolean,
}  # fmt: skip
"""Questions that a decoder matched with their answers; times by the captures."""

FIGURES: dict[str, Any] = {
    "program": pl.String, "machine": pl.String, "figure": pl.String, "value": pl.Decimal(38, 9),
}  # fmt: skip
"""Numbers that programs wrote to their outputs."""

PROGRAM_TABLES: Mapping[str, Mapping[str, Any]] = {"exchanges": EXCHANGES, "figures": FIGURES}
"""What `app: command` has instead of samples; NAME.parquet in a run's directory, where there are rows."""


def _no_classes() -> pl.DataFrame:
    return pl.DataFrame(schema=CLASSES)


def retransmissions(kind: str, observed: pl.DataFrame) -> dict[str, int]:
    """As `Settled` has them, of a kind's OBSERVED; none of no calls."""
    if observed.is_empty():
        return {}
    return {f"{kind}_{way}": int(observed[f"{way}_retransmissions"].sum()) for way in ("request", "reply")}


@dataclass(frozen=True)
class Background:
    """Traffic of a workload that belongs to no call: `classes` are CLASSES without `call`; `remarks`: what was read in
    it, one a line; `tables`: those of PROGRAM_TABLES."""

    findings: pl.DataFrame = field(default_factory=none)
    classes: pl.DataFrame = field(default_factory=lambda: _no_classes().drop("call"))
    remarks: Sequence[str] = ()
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True)
class Counted:
    """What a server counted of calls that came over a kind's own transport."""

    until: Callable[[int | None], Counts]
    """By field of its `counters` line, but for `calls`: the share of those of these calls that it took before a time;
    None: of all."""
    taken_ns: Sequence[int]
    """When it took the requests that it counts as calls."""


@dataclass(frozen=True)
class Settled:
    """Calls over a kind's own transport, compared with their frames."""

    calls: pl.DataFrame
    """Samples with `id` and `protocol`."""
    findings: pl.DataFrame = field(default_factory=none)
    classes: pl.DataFrame = field(default_factory=_no_classes)
    observed: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=OBSERVED))
    packets: int = 0
    retransmissions: Mapping[str, int] = field(default_factory=dict)
    """By their name in the result."""
    impossible: Sequence[int] = ()
    """Calls that their transport cannot carry."""
    expected: Mapping[tuple[str, str, int], dict[str, Any]] = field(default_factory=dict)
    """Expected request and reply as in verify.json, by transport, procedure and size."""
    unsent: Mapping[str, Any] = field(default_factory=dict)
    """The same of calls of which nothing is expected."""
    uncaused: pl.DataFrame = field(default_factory=none)
    """Findings about what was sent again for no reason of the wire, for scenarios that ask for one."""
    counted: Mapping[tuple[str, str], Counted] = field(default_factory=dict)
    """By machine and `app` of its line: of servers that count calls over sockets in the same line."""


@runtime_checkable
class OwnTransport(Protocol):
    """Calls that a kind finds in frames by itself: neither a datagram nor a TCP stream is a message of theirs."""

    @property
    def ethertype(self) -> int | None:
        """Of its frames; None: they are IP's, whose checks they undergo like all others."""

    def settle(self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, unsent: Stretches) -> Settled:
        """Compare all its calls with all its frames. `frames` with row, end and fate; `unsent`: by machine, when it may
        have dropped what it was to send. A frame is its own if it has a class in the answer; what has none there is
        explained by others, or not at all."""

    def describe(self) -> pl.Expr:
        """One of its frames in words; null for others."""

    def display_filter(self, call: Mapping[str, Any]) -> str | None:
        """A Wireshark display filter for the frames of a call."""


@runtime_checkable
class WorkloadVerifier(Protocol):
    """`KIND` of `sundial.workloads.NAME.verify`; `Verifier` has what most kinds need."""

    @property
    def sockets(self) -> SocketProtocol | None:
        """What its clients speak over UDP and TCP."""

    @property
    def transport(self) -> OwnTransport | None:
        """Its own transport."""

    @property
    def sampled_as(self) -> Mapping[str, str]:
        """What programs of clients are called in their samples, where it is not their own name."""

    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        """Its traffic beside calls. `frames` with row, end and fate; `ahead_ns`: how much later than a client's clock
        the captures' shows the same moment; 0 for those not named."""

    def of_users(self, run: RunDirectory) -> Mapping[str, Collection[int]]:
        """The machines with programs of users, each with the types of frames that its programs make themselves."""


@dataclass(frozen=True)
class Verifier:
    """A kind without traffic beside its calls."""

    sockets: SocketProtocol | None = None
    transport: OwnTransport | None = None
    sampled_as: Mapping[str, str] = field(default_factory=dict)

    def background(
        self, run: RunDirectory, frames: pl.DataFrame, samples: RunSamples, ahead_ns: Mapping[str, int]
    ) -> Background:
        """None."""
        return Background()

    def of_users(self, run: RunDirectory) -> Mapping[str, Collection[int]]:
        """None."""
        return {}


def verifiers() -> Mapping[str, WorkloadVerifier]:
    """Of all kinds that have one, by the kind's name."""
    return kinds.load("workloads", "verify", WorkloadVerifier)


def socket_protocols() -> dict[str, SocketProtocol]:
    """By the kind's name, which is the protocol's in a result."""
    return {name: kind.sockets for name, kind in verifiers().items() if kind.sockets is not None}


def sampled_names() -> dict[str, str]:
    """Of all kinds, by program."""
    return {program: name for kind in verifiers().values() for program, name in kind.sampled_as.items()}


def own_transports() -> dict[str, OwnTransport]:
    """By the kind's name."""
    return {name: kind.transport for name, kind in verifiers().items() if kind.transport is not None}

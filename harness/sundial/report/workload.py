# SPDX-License-Identifier: Apache-2.0
"""What the report asks of a workload kind, and the words in which it is answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from sundial.expect import Leg

if TYPE_CHECKING:
    import polars as pl

    from sundial.report.tables import Table

Curve = tuple[str, str, str]
"""(app, transport, procedure)"""

Records = Mapping[str, list[dict[str, Any]]]
"""Lines of the sample streams that are not calls, those of batches included, by type; each with its machine."""

BOTH_DIRECTIONS = 2
"""What an echo moves: its payload there and back."""


@dataclass(frozen=True)
class Setting:
    """What besides size determines the packets of a curve; `mtu` is the client's, `reply_mtu` the server's."""

    curve: Curve
    mtu: int = 1500
    reply_mtu: int = 1500
    options: Any = None
    """Of the protocol that is spoken over sockets; None: its defaults."""
    packet_cells: Callable[[int], int | None] | None = None
    """Cells of an IP packet by its length, on the first wire of the way that has any; None: none has."""


@dataclass(frozen=True)
class Line:
    """How curves over one transport are drawn: a colour by name, on paper and on a dark screen, and a marker."""

    name: str
    paper: str
    dark: str
    marker: str


@dataclass(frozen=True)
class Client:
    """A client program."""

    label: str
    """What its curves are called, before the transport."""
    lines: Mapping[str, Line] = field(default_factory=dict)
    """By transport; curves over others get spare colours. Clients without any stand last."""
    first_apart: bool = False
    """The first call of a connection (xid 0) does more than the others, and is a warm-up whatever the scenario says."""
    dissector: str = ""
    """Of Wireshark, for TCP streams that do not say early enough what they are."""
    ports: tuple[int, ...] = ()
    """At which servers of such streams are where nothing else is written."""
    repeats: Callable[[bytes], Hashable] | None = None
    """What a payload of UDP asks for, or a frame that is not IP: the same each time it is sent, though bytes of it
    differ. None for what does not ask."""


@dataclass(frozen=True)
class Look:
    """How one curve is drawn and called."""

    label: str
    colour: str
    marker: str
    dashes: str


@dataclass(frozen=True)
class Filter:
    """A display filter worth pasting into Wireshark: what it shows, and its text."""

    what: str
    text: str
    of_calls: bool = False
    """It shows the calls themselves, and stands first."""


IP_FRAGMENTS = Filter("IP fragments", "ip.flags.mf == 1 || ip.frag_offset > 0")
TCP_RETRANSMISSIONS = Filter("TCP retransmissions", "tcp.analysis.retransmission")


@runtime_checkable
class WorkloadReport(Protocol):
    """A kind of workload, as the report asks for it; a kind derives its own and says where it differs."""

    clients: Mapping[str, Client] = {}
    """Its client programs, by the word in `app` of samples; empty where it makes no calls."""

    def legs(self, setting: Setting, size: int) -> tuple[Leg, Leg] | None:
        """Request and reply of a call; None where it cannot be made, or its packets are not known: segments of a stream
        are TCP's choice (observed.parquet has those of each call), and packets of a backplane are not of IP."""
        return None

    def moves(self, procedure: str) -> int:
        """How often a successful call moves its payload, both directions counted; an echo moves it twice."""
        return BOTH_DIRECTIONS

    def filters(self, transports: Collection[str]) -> Iterator[Filter]:
        """For a run that has calls over these transports."""
        yield from ()

    def serves(self, options: Mapping[str, Any]) -> bool:
        """True if a step of a job with these options answers others and asks nothing itself."""
        return False

    def tables(self, records: Records, samples: pl.DataFrame) -> Iterator[Table]:
        """What it has to show besides what all calls have; `samples`: those of the run, with `load.SAMPLES`."""
        yield from ()

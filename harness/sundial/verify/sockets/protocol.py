# SPDX-License-Identifier: Apache-2.0
"""What verification of calls over UDP and TCP asks of the protocol that they speak."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.expect import Call, Shape
from sundial.expect.tcp import LEAST_WINDOW
from sundial.verify.findings import none
from sundial.verify.sockets.stream import Stream

IP_PROTOCOL = {"tcp": 6, "udp": 17}
"""Transports that are verified here, to their number in IP."""

Files = Sequence[tuple[Path, str]]
"""Captures: where they are, and how they are called in the result."""


@dataclass(frozen=True)
class Setting:
    """How the two ends of calls were configured. `options` are the protocol's own."""

    options: Hashable = None
    window: int | None = None
    """Bytes of the smallest window that an end may offer whose socket buffers were set: where TCP segments end is then
    not determined. None: none was."""


def least_window(*ends: Mapping[str, Any]) -> int | None:
    """Bytes of the smallest window that one of the `ends` offers whose options set a `socket_buffer`; None: none does.

    Linux doubles what is asked for, grants 2304 bytes at least (its SOCK_MIN_RCVBUF), and offers half.
    """
    buffers = [int(end["socket_buffer"]) for end in ends if end.get("socket_buffer")]
    return max(min(buffers), LEAST_WINDOW) if buffers else None


class Message(NamedTuple):
    """One message of a TCP stream: its place, bytes without record marks, and the fragments of its record."""

    key: int | None
    """None: a record without bytes."""
    begin: int
    finish: int
    """As the message says; it may be behind all that a capture has."""
    length: int
    fragments: tuple[int, ...] = ()
    reply: bool | None = None
    """Whether it says that it is one; None: only its direction tells."""
    procedure: str = "echo"


class Units(Protocol):
    """How a stream is read from message to message."""

    @property
    def unit(self) -> str:
        """What its streams consist of, in a word."""

    def parse(self, stream: Stream, begin: int) -> Message | None:
        """The message of a captured stream that begins there; None where none does. Raises NotRecorded."""

    def find(self, stream: Stream, begin: int) -> int | None:
        """The first place from `begin` on where a message begins that its content shows to be one."""


@dataclass(frozen=True)
class Streams:
    """What was sent over TCP of the calls of one protocol."""

    messages: pl.DataFrame
    """From `tcp.messages`."""
    expected: pl.DataFrame
    """Legs of calls that are sent one by one."""
    collected: pl.DataFrame
    """As the protocol gave them."""
    segments: pl.DataFrame
    """From `tcp.sent_segments`."""
    places: pl.DataFrame
    """From `tcp.starts`."""
    files: Files


Bytes = NDArray[np.uint8]


class Part(NamedTuple):
    """Bytes `begin` to `begin + length` of messages that are alike but for `numbers`."""

    transport: str
    procedure: str
    size: int
    reply: bool
    begin: int
    length: int
    records: tuple[int, ...]
    """Fragments of their records, where the protocol marks them; `begin` counts the marks."""
    call: Call
    options: Any
    numbers: Mapping[str, NDArray[np.int64]]
    """Of each message: `xid`, `number` of its call in the batch, `attempt` from 0, `retransmits` of its call."""


Counts = Mapping[str, "int | tuple[int, int] | dict[str, int]"]
"""Of a server's counters, by their field: the number, its bounds, or several numbers by name."""


@runtime_checkable
class SocketProtocol(Units, Protocol):
    """A protocol of calls and replies; `SocketDefaults` has what simple ones share."""

    @property
    def client_app(self) -> str:
        """`app` of its samples and of the steps that call."""

    @property
    def server_app(self) -> str:
        """`app` of its servers' services and of the lines in which they say what they counted; empty: they do not."""

    def counts(self, answers: pl.DataFrame, line: Mapping[str, Any]) -> Counts:
        """What a server must have counted that gave these answers and wrote this line, beside its connections. Answers:
        transport, procedure, size, conn, call, and head, the hexadecimal beginning of those over UDP."""

    @property
    def transports(self) -> Sequence[str]:
        """Of udp and tcp."""

    @property
    def asks_again_at_other_replies(self) -> bool:
        """A client that waits over UDP sends its request again when a reply to an earlier call comes."""

    @property
    def reads_refused(self) -> bool:
        """A client takes a reply over UDP, too, whose checksum is wrong."""

    @property
    def least_reply(self) -> int:
        """Bytes of the shortest reply."""

    def expect(self, shape: Shape, options: Any) -> Call:
        """The packets of a call. Raises ValueError for what the protocol does not know."""

    def setting(self, step: Mapping[str, Any], services: Sequence[Mapping[str, Any]]) -> Setting:
        """From the options of a client's step and the services of its server."""

    def key(self) -> pl.Expr:
        """What names a call inside its flow, from the samples; null where only the order does."""

    def datagram_key(self) -> pl.Expr:
        """The same from the first frame of a datagram."""

    def unsampled(self, calls: pl.DataFrame, settings: Sequence[Setting]) -> pl.DataFrame:
        """Calls that clients make without a sample, with the columns of `calls`; their `id` is set by the caller."""

    def collected(self, calls: pl.DataFrame, expected: Sequence[Call], settings: Sequence[Setting]) -> pl.DataFrame:
        """Requests over TCP that share segments with others: `call`, `payload` (its bytes of the stream), and what
        `check_streams` wants to know of them."""

    def check_streams(self, streams: Streams) -> pl.DataFrame:
        """Findings about what only the protocol knows of its streams."""

    @property
    def by_order(self) -> bool:
        """A datagram without a key is a message all the same."""

    @property
    def waits_for_records(self) -> bool:
        """True if a server with the beginning of a request over TCP serves no other client until it has the rest."""

    def content(self, part: Part, seen: Bytes) -> Bytes | None:
        """The bytes that messages must have at a part of them, a row each, or one row for all; `seen` has those that
        they have, from which bytes are taken that the sender is free to choose. None: nothing is known of them."""

    def content_field(self, part: Part, place: int) -> str:
        """What is at a place of the message, in a word."""

    @property
    def directories(self) -> Collection[int]:
        """Ports of services that only name others: a capture's port is one of them if calls go to no other."""

    def datagram_type(self) -> pl.Expr:
        """From the first frame of a captured datagram: `request` or `reply`, `message` where it does not say which,
        null where it is of another protocol."""

    def captured_procedure(self) -> pl.Expr:
        """What a captured request calls, as text."""

    def display_filter(self, call: Mapping[str, Any]) -> str:
        """What a Wireshark display filter adds to addresses and ports, empty for nothing."""


class SocketDefaults:
    """A protocol without options whose calls are each a message of its own."""

    server_app = ""
    transports: Sequence[str] = tuple(sorted(IP_PROTOCOL, reverse=True))
    asks_again_at_other_replies = False
    reads_refused = False
    least_reply = 0
    by_order = False
    waits_for_records = False
    directories: Collection[int] = ()
    unit = "message"

    def setting(self, step: Mapping[str, Any], services: Sequence[Mapping[str, Any]]) -> Setting:
        return Setting(window=least_window(step, *(service.get("options") or {} for service in services)))

    def counts(self, answers: pl.DataFrame, line: Mapping[str, Any]) -> Counts:
        return {}

    def key(self) -> pl.Expr:
        return pl.col("xid")

    def unsampled(self, calls: pl.DataFrame, settings: Sequence[Setting]) -> pl.DataFrame:
        return calls.clear()

    def collected(self, calls: pl.DataFrame, expected: Sequence[Call], settings: Sequence[Setting]) -> pl.DataFrame:
        return pl.DataFrame(schema={"call": pl.UInt32, "payload": pl.Int64})

    def check_streams(self, streams: Streams) -> pl.DataFrame:
        return none()

    def content(self, part: Part, seen: Bytes) -> Bytes | None:
        return None

    def content_field(self, part: Part, place: int) -> str:
        return "content"

    def datagram_key(self) -> pl.Expr:
        return pl.lit(None, pl.Int64)

    def datagram_type(self) -> pl.Expr:
        return pl.when(self.datagram_key().is_not_null()).then(pl.lit("message"))

    def captured_procedure(self) -> pl.Expr:
        return pl.lit("echo")

    def parse(self, stream: Stream, begin: int) -> Message | None:
        return None

    def find(self, stream: Stream, begin: int) -> int | None:
        return None

    def display_filter(self, call: Mapping[str, Any]) -> str:
        return ""

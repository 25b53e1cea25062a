# SPDX-License-Identifier: Apache-2.0
"""TCP connections as two streams of bytes, for kinds whose calls are more than a message each way.

A kind reads the streams, says of which bytes it knows the reason (`Explained`), and `classes` does the rest: frames all
of whose bytes have a reason are its own, and so are the handshake, acknowledgements and ends of its connections.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

import polars as pl

from sundial.observe import RunDirectory
from sundial.verify.classification import CALL
from sundial.verify.conservation import Transit, check_balance
from sundial.verify.corruption import intact
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import end_name
from sundial.verify.sockets import flows, tcp
from sundial.verify.sockets.payloads import payloads
from sundial.verify.sockets.protocol import IP_PROTOCOL
from sundial.verify.sockets.stream import join
from sundial.verify.workload import CLASSES

End = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True)
class Segment:
    """A frame with bytes of a stream, where it was seen."""

    begin: int
    """Bytes of the stream before its first."""
    end: int
    at_ns: int
    """At the sender's port when its machine had handed it in, at the receiver's when it had come."""
    row: int


@dataclass(frozen=True)
class Way:
    """One direction of a connection."""

    data: bytes
    """All bytes that the sender's port has shown without a gap, each once."""
    sent: Sequence[Segment]
    """At the sender's port, in time; what was sent again is there again."""
    received: Sequence[Segment]
    """At the receiver's port, in time."""
    elsewhere: Sequence[Segment] = ()
    """At the ports of others, and what became of frames on the wire."""
    finished_ns: int | None = None
    """When the sender first ended it (FIN); None: it has not."""
    reset_ns: int | None = None
    """When the sender first reset the connection."""

    @property
    def ended_ns(self) -> int | None:
        """When the sender first did either: a kernel resets what ends with bytes that its program has not read."""
        return min((at for at in (self.finished_ns, self.reset_ns) if at is not None), default=None)

    @property
    def finished(self) -> bool:
        """Whether the sender has ended it."""
        return self.finished_ns is not None

    @cached_property
    def _first(self) -> list[Segment]:
        """The segments that were the first to bring some bytes, in the order of the stream."""
        found: list[Segment] = []
        for each in sorted(self.sent, key=lambda segment: (segment.begin, segment.at_ns, segment.row)):
            if each.end > (found[-1].end if found else 0):
                found.append(each)
        return found

    @cached_property
    def _ends(self) -> list[int]:
        return [each.end for each in self._first]

    @cached_property
    def _arrivals(self) -> tuple[list[int], list[int]]:
        """How far the stream had arrived without a gap, and when; both ascend."""
        reach, times = [0], [0]
        waiting: list[tuple[int, int]] = []
        for each in self.received:
            here = reach[-1]
            waiting.append((each.begin, each.end))
            if each.begin > here or each.end <= here:
                continue
            for begin, end in sorted(waiting):
                if begin > here:
                    break
                here = max(here, end)
            waiting = [piece for piece in waiting if piece[1] > here]
            reach.append(here)
            times.append(each.at_ns)
        return reach, times

    def sent_ns(self, end: int) -> int:
        """When the byte before `end` was first sent. Raises ValueError for what the stream does not have."""
        return self._first[self._place(end)].at_ns

    def arrived_ns(self, end: int) -> int | None:
        """When all bytes before `end` had arrived; None: they never had."""
        reach, times = self._arrivals
        place = bisect_left(reach, end)
        return times[place] if place < len(reach) else None

    def arrived_by(self, at_ns: int) -> int:
        """How many bytes had arrived without a gap at an instant, those of that instant with them."""
        reach, times = self._arrivals
        return reach[bisect_right(times, at_ns) - 1]

    def segments(self, begin: int, end: int) -> list[Segment]:
        """Those that brought bytes from `begin` to `end` for the first time."""
        if begin >= end:
            return []
        return self._first[self._place(begin + 1) : self._place(end) + 1]

    def rows(self, begin: int, end: int) -> list[int]:
        """Rows of all frames with any byte from `begin` to `end`, wherever they were seen."""
        return sorted(self._by_place.rows(begin, end))

    @cached_property
    def _by_place(self) -> _ByPlace:
        return _ByPlace([*self.sent, *self.received, *self.elsewhere])

    def _place(self, end: int) -> int:
        place = bisect_left(self._ends, end)
        if end <= 0 or place == len(self._ends):
            raise ValueError(f"byte {end} of a stream of {self._ends[-1] if self._ends else 0}")
        return place


class _ByPlace:
    """Segments by the bytes that they have."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = sorted(segments, key=lambda each: each.begin)
        self._begins = [each.begin for each in self._segments]
        self._longest = max((each.end - each.begin for each in self._segments), default=0)

    def rows(self, begin: int, end: int) -> Iterator[int]:
        for place in range(bisect_right(self._begins, begin - self._longest), bisect_left(self._begins, end)):
            if self._segments[place].end > begin:
                yield self._segments[place].row


@dataclass(frozen=True)
class Conversation:
    """One connection from a client's machine to a server's."""

    number: int
    client: End
    server: End
    client_machine: str
    server_machine: str
    opened_ns: int
    """When its SYN was first sent."""
    answered_ns: int | None
    """When the server's machine first sent a segment; None: it has not."""
    mss: tuple[int | None, int | None]
    """What the client and the server say that they take (the option of their SYN)."""
    timestamps: bool
    """Segments have the timestamps of RFC 7323."""
    ways: Mapping[bool, Way]
    """False: from the client to the server; True: back."""
    reset_rows: list[int] = field(default_factory=list)
    """Frames with RST."""

    @property
    def refused(self) -> bool:
        """Whether the server's machine answered its SYN with RST, as one does on which no program listens."""
        empty = not any(way.data for way in self.ways.values())
        return empty and self.answered_ns is not None and self.mss[1] is None and bool(self.reset_rows)

    @property
    def ended_by_server(self) -> bool:
        """Whether the server's end came first."""
        server, client = self.ways[True].ended_ns, self.ways[False].ended_ns
        return server is not None and (client is None or server < client)


@dataclass(frozen=True)
class Explained:
    """Bytes of a stream of which a kind knows the reason."""

    conversation: int
    reply: bool
    begin: int
    end: int
    call: int | None
    """The `id` of a call's sample; None: they belong to no single one."""
    name: str = CALL
    """The class of their frames."""


@dataclass(frozen=True)
class Conversations:
    """Those with some servers."""

    all: Sequence[Conversation]
    frames: pl.DataFrame
    """With flow, reply, view, conn, pos and data."""
    findings: pl.DataFrame
    """Bytes that were sent again and were others, and gaps."""

    @property
    def packets(self) -> int:
        """Segments with data that were sent, each time."""
        return sum(len(way.sent) for each in self.all for way in each.ways.values())

    def attempts(self, clients: Set[tuple[str, End]]) -> frozenset[int]:
        """Numbers of those by which clients (a machine, and its server) waited for a server that was still starting:
        refused before it had accepted any."""
        accepted: dict[End, int] = {}
        for each in self.all:
            if each.answered_ns is not None and not each.refused:
                accepted[each.server] = min(each.answered_ns, accepted.get(each.server, each.answered_ns))
        return frozenset(
            each.number
            for each in self.all
            if each.refused
            and (each.client_machine, each.server) in clients
            and (each.answered_ns or 0) < accepted.get(each.server, 0)
        )

    def balance(self, transit: Transit) -> pl.DataFrame:
        """Findings where what was sent is not what arrived and what became of the rest."""
        segment = pl.format("{} bytes at {}", "data", "pos")
        frames = self.frames.with_columns(call=pl.lit(None, pl.UInt32))
        return check_balance(frames, ["conn", "reply", "pos", "data", "tcp_flags"], segment, transit)

    def classes(self, explained: Iterable[Explained]) -> pl.DataFrame:
        """CLASSES of frames that are explained; one with bytes of several calls belongs to the first of them."""
        by_way: dict[tuple[int, bool], list[Explained]] = {}
        for each in explained:
            by_way.setdefault((each.conversation, each.reply), []).append(each)
        spans = {way: _Spans(parts) for way, parts in by_way.items()}
        lines: list[tuple[int, str, int | None]] = []
        opened: set[tuple[int, str]] = set()
        seen = pl.col("fate").is_null() & pl.col("view").is_not_null()
        names = ["row", "conn", "reply", "view", "end", "pos", "data", "tcp_flags"]
        for row, conn, reply, view, end, pos, data, flags in self.frames.filter(seen).select(names).iter_rows():
            known = spans.get((conn, reply))
            opens = not reply and data == 0 and pos == 0 and (conn, end) not in opened
            if opens:
                opened.add((conn, end))
            if data:
                found = None if known is None else known.explaining(pos, pos + data)
                if found is not None:
                    lines.append((row, found.name if view != "passing" else "passing", found.call))
            else:
                lines.append((row, _bare(flags, opens=opens), None))
        return pl.DataFrame(lines, schema=CLASSES, orient="row")


def _bare(flags: int, *, opens: bool) -> str:
    """The class of a segment without data."""
    if flags & tcp.RST:
        return "tcp_reset"
    if flags & tcp.SYN or opens:
        return "tcp_handshake"
    return "tcp_fin" if flags & tcp.FIN else "tcp_ack"


class _Spans:
    """Stretches of one stream."""

    def __init__(self, parts: Sequence[Explained]) -> None:
        self._parts = sorted(parts, key=lambda each: (each.begin, each.end))
        self._begins = [each.begin for each in self._parts]

    def explaining(self, begin: int, end: int) -> Explained | None:
        """The first of those that together have all bytes from `begin` to `end`."""
        place = bisect_right(self._begins, begin) - 1
        if place < 0 or self._parts[place].end <= begin:
            return None
        first, here = self._parts[place], self._parts[place].end
        while here < end:
            place += 1
            if place == len(self._parts) or self._parts[place].begin > here:
                return None
            here = max(here, self._parts[place].end)
        return first


def conversations(run: RunDirectory, frames: pl.DataFrame, servers: Iterable[End]) -> Conversations:
    """All connections to some ends. `frames` with row, end, fate and what `with_corrupted` adds."""
    frames = intact(frames)
    table = _flows(run, frames, set(servers))
    known = flows.add_flows(frames, table).filter(pl.col("flow").is_not_null())
    conns = tcp.connections(known)
    placed = tcp.positions(known, conns).with_columns(data=pl.col("tcp_length").cast(pl.Int64))
    files = run.capture_files
    # What came before its connection has no place in a stream; nothing explains it.
    begun = placed.filter(pl.col("conn").is_not_null())
    sent = begun.filter(pl.col("view") == "sent", pl.col("data") > 0).sort("conn", "reply", "pos", "time_ns", "row")
    streams, rows = _streams(sent, payloads(sent, files))
    segments = _segments(begun)
    finished, reset = _first_flagged(placed, tcp.FIN), _first_flagged(placed, tcp.RST)
    resets: dict[int, list[int]] = {}
    for row, conn in placed.filter(pl.col("tcp_flags") & tcp.RST != 0).select("row", "conn").iter_rows():
        resets.setdefault(conn, []).append(row)
    first = placed.filter(pl.col("view") == "sent", pl.col("reply")).group_by("conn").agg(pl.col("time_ns").min())
    answered = dict(first.iter_rows())
    ends = {line["flow"]: line for line in table.iter_rows(named=True)}
    found = []
    for line in conns.iter_rows(named=True):
        flow, number = ends[line["flow"]], line["conn"]
        ways = {
            reply: Way(
                data=bytes(streams.get((number, reply), b"")),
                sent=segments.get((number, reply, "sent"), []),
                received=segments.get((number, reply, "received"), []),
                elsewhere=segments.get((number, reply, "elsewhere"), []),
                finished_ns=finished.get((number, reply)),
                reset_ns=reset.get((number, reply)),
            )
            for reply in (False, True)
        }
        found.append(
            Conversation(
                number,
                (flow["client_address"], flow["client_port"]),
                (flow["server_address"], flow["server_port"]),
                flow["client_machine"],
                flow["server_machine"],
                line["since_ns"],
                answered.get(number),
                (line["client_mss"], line["server_mss"]),
                line["timestamps"],
                ways,
                resets.get(number, []),
            )
        )
    return Conversations(found, placed, as_table(rows))


def _first_flagged(placed: pl.DataFrame, flag: int) -> dict[tuple[int, bool], int]:
    """When an end first sent a segment with a flag, by connection and way."""
    found = placed.filter(pl.col("view") == "sent", pl.col("tcp_flags") & flag != 0, pl.col("conn").is_not_null())
    times = found.group_by("conn", "reply").agg(pl.col("time_ns").min())
    return {(conn, reply): at_ns for conn, reply, at_ns in times.iter_rows()}


def _flows(run: RunDirectory, frames: pl.DataFrame, servers: set[End]) -> pl.DataFrame:
    """One row for each end that sent a segment to one of the servers, or was sent one by it."""
    segments = frames.filter(pl.col("protocol") == IP_PROTOCOL["tcp"], pl.col("source_port").is_not_null())
    ways = segments.select("source", "source_port", "target", "target_port").unique().sort(pl.all())
    pairs = {((near, near_port), (far, far_port)) for near, near_port, far, far_port in ways.iter_rows()}
    own = sorted(
        {(near, far) for near, far in pairs if far in servers}
        | {(far, near) for near, far in pairs if near in servers and far not in servers}
    )
    lines = []
    for number, (client, server) in enumerate(own):
        (client_machine, client_end), (server_machine, server_end) = _owner(run, client), _owner(run, server)
        lines.append(
            (number, *client, *server, IP_PROTOCOL["tcp"], client_end, server_end, client_machine, server_machine)
        )
    schema: dict[str, Any] = {
        "flow": pl.UInt32,
        "client_address": pl.String,
        "client_port": pl.UInt32,
        "server_address": pl.String,
        "server_port": pl.UInt32,
        "ip_protocol": frames.schema["protocol"],
        "client_end": pl.String,
        "server_end": pl.String,
        "client_machine": pl.String,
        "server_machine": pl.String,
    }
    table = pl.DataFrame(lines, schema=schema, orient="row")
    return table.with_columns(inner=pl.col("client_address") == pl.col("server_address"))


def _owner(run: RunDirectory, end: End) -> tuple[str, str]:
    """The machine of an end, and its port as `end` of frames; empty: of no machine of the run."""
    owner = run.owner(end[0])
    if owner is None:
        return "", ""
    node, interface = owner
    return node.name, end_name(f"wire/{interface.segment}.pcapng", f"{node.name}:{interface.device}")


def _streams(sent: pl.DataFrame, pieces: Iterator[bytes]) -> tuple[dict[tuple[int, bool], bytearray], list[Finding]]:
    """The bytes of each stream up to the first gap, by connection and direction."""
    streams: dict[tuple[int, bool], bytearray] = {}
    rows: list[Finding] = []
    segments = zip(sent.select("conn", "reply", "row", "pos").iter_rows(), pieces, strict=True)
    for way, of_way in groupby(segments, key=lambda segment: segment[0][:2]):
        stream = streams.setdefault(way, bytearray())
        name = "reply.bytes" if way[1] else "request.bytes"
        whole = True
        for part in join((row, pos, piece) for (_, _, row, pos), piece in of_way):
            if whole and part.gap is not None:
                rows.append(Finding(None, name, f"the stream's byte {part.gap}", f"byte {part.pos}", [part.row]))
            if part.changed is not None:
                place, then, now = part.changed
                rows.append(Finding(None, name, f"0x{then:02x} at {place}, as sent before", f"0x{now:02x}", [part.row]))
            whole = whole and part.gap is None
            if whole:
                stream += part.new
    return streams, rows


def _segments(placed: pl.DataFrame) -> dict[tuple[int, bool, str], list[Segment]]:
    """Frames with data by connection, direction and where they were seen, in time."""
    found: dict[tuple[int, bool, str], list[Segment]] = {}
    names = ["conn", "reply", "view", "pos", "data", "time_ns", "row"]
    table = placed.filter(pl.col("data") > 0).sort("time_ns", "row").select(names)
    for conn, reply, view, pos, data, at_ns, row in table.iter_rows():
        place = view if view in ("sent", "received") else "elsewhere"
        found.setdefault((conn, reply, place), []).append(Segment(pos, pos + data, at_ns, row))
    return found

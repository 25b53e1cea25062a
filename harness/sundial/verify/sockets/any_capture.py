# SPDX-License-Identifier: Apache-2.0
"""Verification of any capture: the calls are those that it shows, and their messages say how long they are.

The capture was made at one place, and is verified in parts that fit into memory (`observe/division.py`). What is
verified is that each message was cut into packets as the protocol says, that records are whole, and that every call has
its reply and every reply its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.expect import Call, Leg, udp_leg
from sundial.observe import Capture, divide, open_capture, read_opened
from sundial.verify import classification, truncation
from sundial.verify.corruption import NOTHING_CORRUPTED
from sundial.verify.frames import with_places
from sundial.verify.result import DisplayFilter, Verification
from sundial.verify.sockets import flows, tcp
from sundial.verify.sockets.analysis import Analysis, analyse
from sundial.verify.sockets.calls import display_filter
from sundial.verify.sockets.legs import LEG_SCHEMA, leg_row
from sundial.verify.sockets.parts import Part, part_of, together
from sundial.verify.sockets.protocol import IP_PROTOCOL, CapturedMessage, Files, SocketProtocol
from sundial.verify.sockets.stream import PLACES, Stream, payloads
from sundial.verify.sockets.udp import datagram_key
from sundial.verify.unproven import OF_A_CAPTURE
from sundial.verify.workload import Background, socket_protocols

FRAMES_AT_ONCE = 250_000
"""About as many are in memory with all that is known of them, which takes some 2 kB each."""

CALLS: dict[str, pl.DataType | type[pl.DataType]] = {
    "flow": pl.UInt32,
    "key": pl.Int64,
    "start_ns": pl.Int64,
    "request": pl.Int64,
    "reply_message": pl.Int64,
    "procedure": pl.String,
    "request_records": pl.List(pl.Int64),
    "reply_records": pl.List(pl.Int64),
    "first_frame": pl.UInt32,
}
"""What is derived of each call: message lengths in bytes, and the fragments of its records where they are marked.

`reply_message` is null where the capture shows no reply.
"""


def offered() -> list[str]:
    """What a capture may hold, as `protocol` says it."""
    protocols = sorted(socket_protocols().items(), reverse=True)
    return [f"{name}-{transport}" for name, protocol in protocols for transport in protocol.transports]


def verify_pcap(
    file: Path, *, protocol: str, mtu: int = 1500, port: int | None = None, options: object = None
) -> Verification:
    """Verify a pcap or pcapng file. `port` is the server's; without it the port is looked for.

    `options` are the protocol's own, where they are known. Raises BadInput for a file that cannot be read or holds none
    of `protocol`.
    """
    if protocol not in offered():
        raise BadInput(f"{protocol!r} is unknown", allowed=", ".join(offered()), field="protocol")
    name, _, transport = protocol.rpartition("-")
    spoken = socket_protocols()[name]
    asked = _Asked(name, spoken, transport, mtu, options, port)
    capture = open_capture(file)
    try:
        port, parts = _verified(capture, asked)
    finally:
        capture.close()
    if not any(part.flows for part in parts):
        raise BadInput(f"holds no {protocol} to port {port}", file=str(file), allowed="the server's port with --port")
    return together(parts, list(OF_A_CAPTURE))


@dataclass(frozen=True)
class _Asked:
    """What a capture is to be checked against."""

    name: str
    protocol: SocketProtocol
    transport: str
    mtu: int
    options: object
    port: int | None


def _verified(capture: Capture, asked: _Asked) -> tuple[int, list[Part]]:
    """The server's port and the parts of the capture.

    Where the port is not given, that of the capture's beginning is taken for it until all parts are known.
    """
    port = asked.port
    if port is None and capture.frames > FRAMES_AT_ONCE:
        begin = [replace(each, blocks=each.blocks[:FRAMES_AT_ONCE]) for each in capture.interfaces]
        port = _one(_ports([_called(_frames(replace(capture, interfaces=begin), asked), asked)], asked))
    while True:
        parts, called, used = [], [], set()
        for piece in divide(capture, FRAMES_AT_ONCE, port):
            calls, to, part = _verify_part(piece, asked, port)
            called.append(calls)
            used.add(to)
            if part is not None:
                parts.append(part)
        right = asked.port if asked.port is not None else _the_port(capture.path, called, asked)
        if used == {right} and (port is not None or len(called) == 1):
            return right, parts
        port = right


def _verify_part(piece: Capture, asked: _Asked, port: int | None) -> tuple[pl.DataFrame, int | None, Part | None]:
    """The calls that tell the port, the port that was taken, and the part; None where it shows no port."""
    frames = _frames(piece, asked)
    called = _called(frames, asked)
    if port is None:
        port = _one(_ports([called], asked))
    if port is None:
        return called, None, None
    name, protocol, transport = asked.name, asked.protocol, asked.transport
    files: Files = [(piece.path, piece.path.name)]
    table = _flows(frames, name, transport, port)
    of_flows = flows.add_flows(frames, table)
    places = None
    if transport == "udp":
        calls = _udp_calls(of_flows, table, name, protocol)
    else:
        calls, places = _tcp_calls(of_flows, protocol, files)
    calls = _complete(calls, table)
    build = partial(_build, protocol=protocol, transport=transport, mtu=asked.mtu, options=asked.options)
    analysis = analyse(
        frames, calls, table, {name: protocol}, build, files, exact_time=True, places=places, one_view=True
    )
    return called, port, _result(analysis, table, partial(display_filter, protocol=protocol))


def _frames(piece: Capture, asked: _Asked) -> pl.DataFrame:
    servers = {asked.name: {asked.transport: (asked.port,)}} if asked.port is not None else {}
    # What the wire did to frames, such a capture does not tell.
    return with_places(read_opened([(piece, piece.path.name)], 0, servers)).with_columns(NOTHING_CORRUPTED)


def _called(frames: pl.DataFrame, asked: _Asked) -> pl.DataFrame:
    """A frame of a call to each port."""
    of_transport = frames.filter(pl.col("protocol") == IP_PROTOCOL[asked.transport])
    called = asked.protocol.called(of_transport, asked.transport)
    if called is None:
        called = of_transport.filter(pl.col("tcp_flags") & (tcp.SYN | tcp.ACK) == tcp.SYN)
    return called.unique("target_port", keep="first", maintain_order=True)


def _ports(called: Sequence[pl.DataFrame], asked: _Asked) -> list[int]:
    """The ports that calls go to, from the frames that each part gives."""
    frames = pl.concat(called)
    if len(called) > 1:
        frames = _called(frames.sort("frame"), asked)
    return frames["target_port"].drop_nulls().unique().sort().to_list()


def _one(ports: list[int]) -> int | None:
    return ports[0] if len(ports) == 1 else None


def _the_port(file: Path, called: Sequence[pl.DataFrame], asked: _Asked) -> int:
    """The one port that calls go to."""
    ports = _ports(called, asked)
    if len(ports) != 1:
        nothing = f"holds no {asked.name} over {asked.transport}"
        what = f"calls go to {len(ports)} ports: {ports}" if ports else nothing
        raise BadInput(what, file=str(file), allowed="the server's port with --port")
    return ports[0]


def _flows(frames: pl.DataFrame, name: str, transport: str, port: int) -> pl.DataFrame:
    """One row a flow to the port; both ends are where most of its frames were captured."""
    frames = frames.filter(pl.col("protocol") == IP_PROTOCOL[transport])
    asks = frames.filter(pl.col("target_port") == port).select(
        "end", client_address="source", client_port="source_port", server_address="target", server_port="target_port"
    )
    names = ["client_address", "client_port", "server_address", "server_port"]
    return (
        asks.group_by(*names, "end")
        .len()
        .sort(*names, "len", "end", descending=[False] * 4 + [True, False])
        .unique(names, keep="first", maintain_order=True)
        .with_row_index("flow")
        .select(
            "flow",
            *names,
            transport=pl.lit(transport),
            protocol=pl.lit(name),
            client_end="end",
            server_end="end",
            ip_protocol=pl.lit(IP_PROTOCOL[transport], pl.UInt32),
        )
    )


def _udp_calls(frames: pl.DataFrame, table: pl.DataFrame, name: str, protocol: SocketProtocol) -> pl.DataFrame:
    """Requests with a new xid (or the same and another length) are calls; the first reply gives the reply's length."""
    heads = frames.filter(pl.col("view") == "sent", pl.col("udp_length").is_not_null(), pl.col("fragment_offset") == 0)
    message = pl.col("udp_length").cast(pl.Int64) - 8
    heads = heads.with_columns(key=datagram_key(table, {name: protocol}))
    heads = heads.filter(protocol.by_order | pl.col("key").is_not_null())
    heads = heads.with_columns(message=message).sort("time_ns", "row")
    asks, answers = heads.filter(~pl.col("reply")), heads.filter("reply")
    # Each without a key is a call of its own.
    alone = pl.when(pl.col("key").is_null()).then("row")
    calls = (
        asks.with_columns(alone=alone)
        .unique(["flow", "key", "message", "alone"], keep="first", maintain_order=True)
        .select(
            "flow", "key", "time_ns", first_frame="frame", request="message", procedure=protocol.captured_procedure()
        )
        .with_row_index("call")
    )
    joined = [
        answers.filter(where).join_asof(
            calls.filter(where), on="time_ns", by=by, strategy="backward", check_sortedness=False
        )
        for where, by in ((pl.col("key").is_not_null(), ["flow", "key"]), (pl.col("key").is_null(), ["flow"]))
    ]
    replies = pl.concat([part.select("call", "message") for part in joined]).drop_nulls("call")
    first = replies.unique("call", keep="first", maintain_order=True).rename({"message": "reply_message"})
    return (
        calls.join(first, on="call", how="left")
        .with_columns(
            start_ns=pl.col("time_ns"),
            procedure=pl.col("procedure").fill_null("echo"),
            request_records=pl.lit([], pl.List(pl.Int64)),
            reply_records=pl.lit([], pl.List(pl.Int64)),
        )
        .select([pl.col(name).cast(kind) for name, kind in CALLS.items()])
    )


def _tcp_calls(frames: pl.DataFrame, protocol: SocketProtocol, files: Files) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Messages found by walking the streams; requests and replies belong together by their key."""
    conns = tcp.connections(frames)
    segments = tcp.positions(frames, conns).filter(pl.col("view") == "sent", pl.col("tcp_length") > 0)
    data = payloads(files, segments.select("row", "capture", "frame", *PLACES))
    rows: list[tuple[Any, ...]] = []
    places: list[tuple[Any, ...]] = []
    for (conn,), part in segments.sort("conn", "row").group_by("conn", maintain_order=True):
        streams = {}
        for reply in (False, True):
            side = part.filter(pl.col("reply") == reply)
            streams[reply] = Stream((pos, data.get(row, b"")) for pos, row in side.select("pos", "row").iter_rows())
        answers = {message.key: message for message in protocol.parse(streams[True])}
        times = part.filter(~pl.col("reply")).select("pos", "time_ns", "frame").sort("pos", "time_ns")
        flow = part["flow"][0]
        for message in protocol.parse(streams[False]):
            sent = times.filter(pl.col("pos") <= message.begin)
            start, frame = sent["time_ns"].last(), sent["frame"].last()
            answer = answers.pop(message.key, None)
            places.append((conn, False, len(rows), message.begin, message.finish))
            if answer:
                places.append((conn, True, len(rows), answer.begin, answer.finish))
            length, fragments = (answer.length, list(answer.fragments)) if answer else (None, [])
            records = list(message.fragments), fragments
            rows.append((flow, message.key, start, message.length, length, "echo", *records, frame))
    schema = {"conn": pl.UInt32, "reply": pl.Boolean, "call": pl.UInt32, "begin": pl.Int64, "finish": pl.Int64}
    calls = pl.DataFrame(rows, schema=CALLS, orient="row")
    return calls, pl.DataFrame(places, schema=schema, orient="row")


def _complete(calls: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Calls with the columns that analysis and result expect."""
    return (
        calls.with_row_index("id")
        .join(
            table.select("flow", "client_address", "client_port", "server_address", "protocol", "transport"), on="flow"
        )
        .with_columns(
            xid=pl.col("key"),
            client=pl.col("client_address"),
            server=pl.col("server_address"),
            app=pl.col("protocol"),
            size=pl.col("request"),
            ok=pl.lit(True),
            retransmits=pl.lit(None, pl.Int32),
            error=pl.lit(None, pl.String),
            series=pl.lit(0),
            thread=pl.lit(0),
            batch=pl.lit(0),
            call=pl.col("id"),
        )
        .sort("id")
    )


def _build(
    calls: pl.DataFrame, protocol: SocketProtocol, transport: str, mtu: int, options: object
) -> tuple[pl.DataFrame, pl.DataFrame, list[Call]]:
    """Expectations from message lengths; a call without reply is expected to have one of the least length."""
    columns = ["request", "reply_message", "request_records", "reply_records", "timestamps", "client_mss", "server_mss"]
    kinds = calls.select(columns).unique(maintain_order=True).with_row_index("kind")
    expected, rows = [], []
    for row in kinds.iter_rows(named=True):
        legs: list[Leg] = []
        for reply, message, fragments, mss in (
            (False, row["request"], row["request_records"], row["server_mss"]),
            (True, row["reply_message"], row["reply_records"], row["client_mss"]),
        ):
            length = protocol.least_reply if message is None else message
            if transport == "udp":
                legs.append(udp_leg(length, mtu))
                continue
            captured = CapturedMessage(max(length, 1), tuple(fragments), mtu, bool(row["timestamps"]), mss)
            legs.append(protocol.captured_leg(captured, reply, options))
        expected.append(Call(legs[0], legs[1]))
        rows += [leg_row(row["kind"], bool(place), leg) for place, leg in enumerate(legs)]
    table = pl.DataFrame(rows, schema=LEG_SCHEMA, orient="row")
    return calls.join(kinds, on=columns, how="left", nulls_equal=True), table, expected


def _result(analysis: Analysis, table: pl.DataFrame, filter_of: DisplayFilter) -> Part:
    addresses = pl.DataFrame(schema={"end": pl.String, "own": pl.List(pl.String), "relays": pl.Boolean})
    classified = classification.classify(analysis.frames, analysis.segments, Background().classes, addresses)
    # Frames of other traffic are none of a foreign capture's calls, and no fault.
    ends = table.select(pl.col("client_end").alias("end")).unique()
    of_flow = pl.col("flow").is_not_null()
    own = pl.col("end").is_in(ends["end"].implode()) & of_flow
    other = (pl.col("class") == classification.UNEXPLAINED) & ~own
    classified = classified.with_columns(pl.when(other).then(pl.lit("other")).otherwise("class").alias("class"))
    whole = truncation.check_whole(classified.filter(of_flow), whole_capture=False)
    findings = pl.concat([analysis.findings, whole, classification.check_unexplained(classified)])
    return part_of(analysis, table.height, classified, findings, filter_of)

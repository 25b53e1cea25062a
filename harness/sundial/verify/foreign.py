# SPDX-License-Identifier: Apache-2.0
"""Verification of any capture: the calls are those that it shows, and their messages say how long they are.

The capture was made at one place. What is verified is that each message was cut into packets as the protocol says, that
records are whole, and that every call has its reply and every reply its call.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.expect import Call, Leg, Options, tcp_leg, udp_leg
from sundial.expect.sunrpc import REPLY, record_buffer, record_fragments
from sundial.observe import Decode, read_frames
from sundial.verify import flows, frames_whole, leftover, tcp
from sundial.verify.calls import IP_PROTOCOL
from sundial.verify.core import Analysis, Files, analyse
from sundial.verify.legs import LEG_SCHEMA, leg_row
from sundial.verify.records import Stream, payloads, walk
from sundial.verify.result import Verification, groups_json, problems_json
from sundial.verify.udp import RAW_MAGIC, call_key

PROTOCOLS = ("sunrpc-udp", "sunrpc-tcp", "raw-udp", "raw-tcp")
_RAW_HEADER = 16

CALLS: dict[str, pl.DataType | type[pl.DataType]] = {
    "flow": pl.UInt32,
    "key": pl.Int64,
    "start_ns": pl.Int64,
    "request": pl.Int64,
    "reply_message": pl.Int64,
    "procedure": pl.String,
    "request_records": pl.List(pl.Int64),
    "reply_records": pl.List(pl.Int64),
}
"""What is derived of each call: message lengths in bytes, and the record fragments of its marks (Sun RPC over TCP).

`reply_message` is null where the capture shows no reply.
"""


def verify_pcap(
    file: Path, *, protocol: str, mtu: int = 1500, port: int | None = None, options: Options | None = None
) -> Verification:
    """Verify a pcap or pcapng file. `port` is the server's; without it the port is looked for.

    `options` tell the library and its record buffers (Sun RPC over TCP); without them any division of a record into
    fragments is right, as RFC 5531 section 11 has it. Raises BadInput for a file that cannot be read or holds none of
    `protocol`.
    """
    if protocol not in PROTOCOLS:
        raise BadInput(f"{protocol!r} is not known", allowed=", ".join(PROTOCOLS), field="protocol")
    application, transport = protocol.split("-")
    name = file.name
    files: Files = [(file, name)]
    ports = (port,) if port is not None else ()
    rpc = ports if application == "sunrpc" else ()
    decode = Decode(rpc if transport == "udp" else (), rpc if transport == "tcp" else ())
    frames = read_frames(files, decode, 0)
    port = port if port is not None else _find_port(file, frames, application, transport)
    table = _flows(frames, application, transport, port)
    if table.is_empty():
        raise BadInput(f"holds no {protocol} to port {port}", file=str(file), allowed="the server's port with --port")
    seen = flows.add_flows(frames, table)
    places = None
    if transport == "udp":
        calls = _udp_calls(seen, table, application)
    else:
        calls, places = _tcp_calls(seen, table, application, files)
    calls = _complete(calls, table)
    build = partial(_build, application=application, transport=transport, mtu=mtu, options=options)
    analysis = analyse(frames, calls, table, build, files, exact_time=True, places=places, one_view=True)
    return _result(analysis, table)


def _find_port(file: Path, frames: pl.DataFrame, application: str, transport: str) -> int:
    """The one port that calls go to."""
    of_transport = frames.filter(pl.col("protocol") == IP_PROTOCOL[transport])
    if application == "sunrpc":
        found = of_transport.filter(pl.col("rpc_type") == 0, pl.col("target_port") != 111)
    elif transport == "udp":
        found = of_transport.filter(pl.col("udp_head").str.starts_with(RAW_MAGIC)).head(1)
    else:
        found = of_transport.filter(pl.col("tcp_flags") & (tcp.SYN | tcp.ACK) == tcp.SYN)
    ports = found["target_port"].drop_nulls().unique().sort().to_list()
    if len(ports) != 1:
        what = f"calls go to {len(ports)} ports: {ports}" if ports else f"holds no {application} over {transport}"
        raise BadInput(what, file=str(file), allowed="the server's port with --port")
    return int(ports[0])


def _flows(frames: pl.DataFrame, application: str, transport: str, port: int) -> pl.DataFrame:
    """One row a flow to the port; both ends are where most of its frames were captured."""
    frames = frames.filter(pl.col("protocol") == IP_PROTOCOL[transport]).with_columns(
        end=pl.concat_str("capture", pl.lit("|"), "interface")
    )
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
            protocol=pl.lit(application),
            client_end="end",
            server_end="end",
            ip_protocol=pl.lit(IP_PROTOCOL[transport], pl.UInt32),
        )
    )


def _udp_calls(frames: pl.DataFrame, table: pl.DataFrame, application: str) -> pl.DataFrame:
    """Requests with a new xid (or the same and another length) are calls; the first reply gives the reply's length."""
    heads = frames.filter(pl.col("view") == "sent", pl.col("udp_length").is_not_null(), pl.col("fragment_offset") == 0)
    message = pl.col("udp_length").cast(pl.Int64) - 8
    heads = heads.with_columns(key=call_key(table)).filter((application == "raw") | pl.col("key").is_not_null())
    heads = heads.with_columns(message=message).sort("time_ns", "row")
    asks, answers = heads.filter(~pl.col("reply")), heads.filter("reply")
    # Raw payloads without a sequence number: each is a call of its own.
    alone = pl.when(pl.col("key").is_null()).then("row")
    calls = (
        asks.with_columns(alone=alone)
        .unique(["flow", "key", "message", "alone"], keep="first", maintain_order=True)
        .select("flow", "key", "time_ns", request="message", procedure="rpc_procedure")
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


def _tcp_calls(
    frames: pl.DataFrame, table: pl.DataFrame, application: str, files: Files
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Messages found by walking the streams; requests and replies belong together by xid or sequence number."""
    conns = tcp.connections(frames)
    segments = tcp.positions(frames, conns).filter(pl.col("view") == "sent", pl.col("tcp_length") > 0)
    data = payloads(files, segments.select("row", "capture", "frame"))
    rows: list[tuple[Any, ...]] = []
    places: list[tuple[Any, ...]] = []
    for (conn,), part in segments.sort("conn", "row").group_by("conn", maintain_order=True):
        streams = {}
        for reply in (False, True):
            side = part.filter(pl.col("reply") == reply)
            streams[reply] = Stream((pos, data.get(row, b"")) for pos, row in side.select("pos", "row").iter_rows())
        answers = {message[0]: message for message in _walk(streams[True], application)}
        times = part.filter(~pl.col("reply")).select("pos", "time_ns").sort("pos", "time_ns")
        flow = part["flow"][0]
        for key, begin, finish, size, records in _walk(streams[False], application):
            start = times.filter(pl.col("pos") <= begin)["time_ns"].last()
            answer = answers.pop(key, None)
            places.append((conn, False, len(rows), begin, finish))
            if answer:
                places.append((conn, True, len(rows), answer[1], answer[2]))
            length, fragments = (answer[3], list(answer[4])) if answer else (None, [])
            rows.append((flow, key, start, size, length, "echo", list(records), fragments))
    schema = {"conn": pl.UInt32, "reply": pl.Boolean, "call": pl.UInt32, "begin": pl.Int64, "finish": pl.Int64}
    calls = pl.DataFrame(rows, schema=CALLS, orient="row")
    return calls, pl.DataFrame(places, schema=schema, orient="row")


def _walk(stream: Stream, application: str) -> Iterator[tuple[int, int, int, int, tuple[int, ...]]]:
    """Messages of a stream from its beginning: key, begin, finish, message bytes, record fragments."""
    begin = 0
    while True:
        if application == "sunrpc":
            record = walk(stream, begin)
            key = stream.read(begin + 4, 4)
            if record is None or len(key) < 4:
                return
            fragments, finish = record
            yield int.from_bytes(key, "big"), begin, finish, sum(fragments), fragments
        else:
            header = stream.read(begin, _RAW_HEADER)
            if len(header) < _RAW_HEADER or not header.startswith(bytes.fromhex(RAW_MAGIC)):
                return
            length = int.from_bytes(header[8:12], "big")
            if length < _RAW_HEADER:
                return
            finish = begin + length
            yield int.from_bytes(header[4:8], "big"), begin, finish, length, ()
        begin = finish


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
            one_way=pl.lit(False),
            error=pl.lit(None, pl.String),
            series=pl.lit(0),
            thread=pl.lit(0),
            batch=pl.lit(0),
            call=pl.col("id"),
        )
        .sort("id")
    )


def _build(
    calls: pl.DataFrame, application: str, transport: str, mtu: int, options: Options | None
) -> tuple[pl.DataFrame, pl.DataFrame, list[Call]]:
    """Expectations from message lengths; a call without reply is expected to have one of the least length."""
    columns = ["request", "reply_message", "request_records", "reply_records", "timestamps", "client_mss", "server_mss"]
    kinds = calls.select(columns).unique(maintain_order=True).with_row_index("kind")
    least = REPLY if application == "sunrpc" else 0
    expected, rows = [], []
    for row in kinds.iter_rows(named=True):
        legs: list[Leg] = []
        for message, told, asked, mss in (
            (row["request"], row["request_records"], options and options.request_buffer, row["server_mss"]),
            (row["reply_message"], row["reply_records"], options and options.reply_buffer, row["client_mss"]),
        ):
            length = least if message is None else message
            if transport == "udp":
                legs.append(udp_leg(length, mtu))
                continue
            records = tuple(told)
            if application == "sunrpc" and options is not None:
                records = record_fragments(length, record_buffer(asked or 0, options.library), options.library)
            legs.append(tcp_leg(max(length, 1), records, mtu, bool(row["timestamps"]), mss))
        expected.append(Call(legs[0], legs[1]))
        rows += [leg_row(row["kind"], bool(place), leg) for place, leg in enumerate(legs)]
    table = pl.DataFrame(rows, schema=LEG_SCHEMA, orient="row")
    return calls.join(kinds, on=columns, how="left", nulls_equal=True), table, expected


def _result(analysis: Analysis, table: pl.DataFrame) -> Verification:
    none = pl.DataFrame(schema={"row": pl.UInt32})
    nobody = pl.DataFrame(schema={"end": pl.String, "own": pl.List(pl.String)})
    classified = leftover.classify(analysis.frames, analysis.segments, none, nobody, iperf3=False)
    # Frames of other traffic are none of a foreign capture's calls, and no fault.
    ends = table.select(pl.col("client_end").alias("end")).unique()
    of_flow = pl.col("flow").is_not_null()
    ours = pl.col("end").is_in(ends["end"].implode()) & of_flow
    other = (pl.col("class") == leftover.UNEXPLAINED) & ~ours
    classified = classified.with_columns(pl.when(other).then(pl.lit("other")).otherwise("class").alias("class"))
    whole = frames_whole.check_whole(classified.filter(of_flow), whole_capture=False)
    found = pl.concat([analysis.findings, whole, leftover.check_leftover(classified)])
    failed = found.filter(pl.col("call").is_not_null()).group_by("call").agg(mismatches=pl.len())
    return Verification(
        verdict="pass" if found.is_empty() else "fail",
        calls=analysis.calls.height,
        frames=classified.height,
        packets=analysis.packets,
        fragments=analysis.fragments,
        retransmissions=analysis.retransmissions,
        mismatches=found.height,
        groups=groups_json(analysis, failed),
        classified=leftover.counts(classified),
        problems=problems_json(found, classified, analysis.calls),
    )

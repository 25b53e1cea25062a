# SPDX-License-Identifier: Apache-2.0
"""Verification of any capture: the calls are those that it shows, and their messages say how long they are.

The capture was made at one place, or by a tap that has an interface for each direction, and is verified in parts that
fit into memory (`observe/division.py`). What is verified is that each datagram was cut into packets as the MTU says,
that messages over TCP are whole, wherever it cut them, and that every call has its reply and every reply its call.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from sundial.errors import BadInput
from sundial.expect import Call, Leg, udp_leg
from sundial.observe import Capture, divide, open_capture, read_opened
from sundial.verify import classification, truncation
from sundial.verify.corruption import NOTHING_CORRUPTED
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import with_places
from sundial.verify.result import DisplayFilter, Verification
from sundial.verify.sockets import captured_datagrams, captured_streams, flows, tcp
from sundial.verify.sockets.analysis import Analysis, analyse
from sundial.verify.sockets.calls import display_filter
from sundial.verify.sockets.captured_datagrams import ENDS
from sundial.verify.sockets.captured_streams import CALLS
from sundial.verify.sockets.legs import LEG_SCHEMA, leg_row
from sundial.verify.sockets.parts import Part, part_of, together
from sundial.verify.sockets.protocol import IP_PROTOCOL, Files, SocketProtocol
from sundial.verify.sockets.surroundings import Surroundings, surroundings
from sundial.verify.unproven import OF_A_CAPTURE
from sundial.verify.workload import CLASSES, socket_protocols

FRAMES_AT_ONCE = 250_000
"""About as many are in memory with all that is known of them, which takes some 2 kB each."""
_LEAST_MTU = 68
_NAMED = 3
"""Servers that are named in one finding."""


def offered() -> list[str]:
    """What a capture may hold, as `protocol` says it."""
    protocols = sorted(socket_protocols().items(), reverse=True)
    return [f"{name}-{transport}" for name, protocol in protocols for transport in protocol.transports]


def verify_pcap(file: Path, *, protocol: str, mtu: int | None = None, port: int | None = None) -> Verification:
    """Verify a pcap or pcapng file. `port` is the server's; without it the port is looked for. `mtu`: of the wire;
    without it that of each direction is learned from its largest packet.

    Raises BadInput for a file that cannot be read or holds no call of `protocol`.
    """
    if protocol not in offered():
        raise BadInput(f"{protocol!r} is unknown", allowed=", ".join(offered()), field="protocol")
    name, _, transport = protocol.rpartition("-")
    asked = _Asked(name, socket_protocols()[name], transport, mtu, port)
    capture = open_capture(file)
    try:
        port, parts, around = _verified(capture, asked)
    finally:
        capture.close()
    if not any(part.calls.height for part in parts) and not around.begins_within:
        raise around.nothing(file, f"holds no call of {name} over {transport} to port {port}")
    return together(parts, list(OF_A_CAPTURE), around.remarks(port))


@dataclass(frozen=True)
class _Asked:
    """What a capture is to be checked against."""

    name: str
    protocol: SocketProtocol
    transport: str
    mtu: int | None
    port: int | None


def _verified(capture: Capture, asked: _Asked) -> tuple[int, list[Part], Surroundings]:
    """The server's port, the parts of the capture, and what is beside its calls.

    Where the port is not given, that of the capture's beginning is taken for it until all parts are known.
    """
    port = asked.port
    if port is None and capture.frames > FRAMES_AT_ONCE:
        begin = [replace(each, blocks=each.blocks[:FRAMES_AT_ONCE]) for each in capture.interfaces]
        piece = replace(capture, interfaces=begin)
        port = _one(_ports(_frames(piece, asked), asked, _files(piece)), asked)
    while True:
        parts, found, used = [], set[int](), set()
        around = Surroundings()
        for piece in divide(capture, FRAMES_AT_ONCE):
            frames = _frames(piece, asked)
            ports = set() if asked.port is not None else _ports(frames, asked, _files(piece))
            to = _one(ports, asked) if port is None else port
            around += surroundings(frames, asked.transport, to)
            found |= ports
            used.add(to)
            if to is not None:
                part, more = _part(frames, piece, asked, to)
                parts.append(part)
                around += more
        right = asked.port if asked.port is not None else _the_port(capture.path, found, asked, around)
        if used == {right} and (port is not None or len(parts) == 1):
            return right, parts, around
        port = right


def _files(piece: Capture) -> Files:
    return [(piece.path, piece.path.name)]


def _frames(piece: Capture, asked: _Asked) -> pl.DataFrame:
    # What the wire did to frames, such a capture does not tell.
    frames = with_places(read_opened([(piece, piece.path.name)], 0)).with_columns(NOTHING_CORRUPTED)
    if not frames["time_ns"].null_count():
        return frames
    # Blocks without a time are at that of the frame before them, each 1 ns after another.
    since = pl.when(pl.col("time_ns").is_not_null()).then("frame").forward_fill()
    known = pl.col("time_ns").forward_fill().fill_null(pl.col("time_ns").drop_nulls().first()).fill_null(0)
    times = frames.select("row", "frame", "time_ns").sort("frame").select(
        "row", time_ns=known + pl.col("frame").cast(pl.Int64) - since.fill_null(pl.col("frame").max()).cast(pl.Int64)
    )  # fmt: skip
    return frames.drop("time_ns").join(times, on="row", how="left", maintain_order="left")


def _ports(frames: pl.DataFrame, asked: _Asked, files: Files) -> set[int]:
    """The ports that calls go to."""
    if asked.transport == "tcp":
        found = captured_streams.conversations(frames, asked.protocol, files).rename({"target_port": "server_port"})
    else:
        heads = captured_datagrams.messages(frames, asked.protocol).filter(pl.col("type").is_not_null())
        found = heads.with_columns(asked=~pl.col("reply"))
    ports = set(found.filter("asked")["server_port"])
    # Without a call, replies tell what was called.
    return ports or set(found["server_port"])


def _servers(ports: set[int], asked: _Asked) -> set[int]:
    """Without those that only name others, if there are others."""
    return ports - set(asked.protocol.directories) or ports


def _one(ports: set[int], asked: _Asked) -> int | None:
    servers = _servers(ports, asked)
    return next(iter(servers)) if len(servers) == 1 else None


def _the_port(file: Path, ports: set[int], asked: _Asked, around: Surroundings) -> int:
    port = _one(ports, asked)
    if port is None and ports:
        servers = sorted(_servers(ports, asked))
        what = f"calls go to {len(servers)} ports: {servers}"
        raise BadInput(what, file=str(file), allowed="the server's port with --port")
    if port is None:
        raise around.nothing(file, f"holds no {asked.name} over {asked.transport}")
    return port


def _part(frames: pl.DataFrame, piece: Capture, asked: _Asked, port: int) -> tuple[Part, Surroundings]:
    name, protocol, transport, files = asked.name, asked.protocol, asked.transport, _files(piece)
    begun, places, background, around = None, None, pl.DataFrame(schema=CLASSES), Surroundings()
    to_all = pl.Series([], dtype=pl.UInt32)
    if transport == "udp":
        heads = captured_datagrams.towards(captured_datagrams.messages(frames, protocol), port)
        table, heads, frames = _udp_flows(frames, heads, name)
        around.refuse_cut(heads, piece.path)
        datagrams = captured_datagrams.calls_of(heads, protocol)
        calls, begun, to_all = datagrams.calls, datagrams.begun, datagrams.to_all
        findings = captured_datagrams.check_sources(heads, begun)
        around.replies = heads.filter("reply").height
    else:
        table, frames = _tcp_flows(frames, asked, port, files)
        streams = captured_streams.calls_of(frames, protocol, files)
        calls, places, findings = streams.calls, streams.places, streams.findings
        sizes = captured_streams.check_sizes(frames, asked.mtu)
        findings = pl.concat([findings, sizes])
        background = pl.DataFrame({"row": streams.explained, "class": "unread", "call": None}, CLASSES)
        around.replies = streams.replies
        around.begins_within = bool(findings["seen"].str.starts_with("begins within").any())
        around.connections = frames.filter(pl.col("flow").is_not_null())["flow"].n_unique()
        around.learn_mss(frames)
    learned = _mtus(frames, asked, table, around)
    calls = _complete(calls.cast(CALLS), table.join(learned, on="flow", how="left"))  # type: ignore[arg-type]
    build = partial(_build, transport=transport, least_reply=protocol.least_reply)
    analysis = analyse(
        frames, calls, table, {name: protocol}, build, files, exact_time=True, begun=begun, places=places, one_view=True
    )
    findings = pl.concat([analysis.findings, findings])
    free = pl.col("field").str.starts_with("reply.") & pl.col("call").is_in(to_all.implode()).fill_null(False)
    analysis = replace(analysis, findings=_one_way(findings.filter(~free), analysis, table))
    return _result(analysis, table, background, partial(display_filter, protocol=protocol)), around


def _flows(ends: pl.DataFrame, name: str, transport: str) -> pl.DataFrame:
    """The table of flows from the ends of its calls, each where its frames were captured."""
    return (
        ends.unique(ENDS, maintain_order=True)
        .sort(ENDS)
        .with_row_index("flow")
        .select(
            "flow",
            *ENDS,
            transport=pl.lit(transport),
            protocol=pl.lit(name),
            ip_protocol=pl.lit(IP_PROTOCOL[transport], pl.UInt32),
        )
    )


def _udp_flows(frames: pl.DataFrame, heads: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The flows of some messages, and these and the frames with flow, reply and view."""
    table = _flows(heads, name, "udp")
    heads = heads.join(table.select("flow", *ENDS), on=ENDS, how="left", maintain_order="left")
    table = _with_ends(table, heads)
    known = heads.select("row", "flow", "reply")
    frames = flows.add_view(frames.join(known, on="row", how="left", maintain_order="left"), table)
    return table, heads, frames


def _tcp_flows(frames: pl.DataFrame, asked: _Asked, port: int, files: Files) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The connections that have the port at one end, and the frames with flow, reply and view."""
    here, there = pl.col("source_port") == port, pl.col("target_port") == port
    carried = frames.filter(pl.col("protocol") == IP_PROTOCOL["tcp"], pl.col("source").is_not_null())
    ends = ["source", "source_port", "target", "target_port"]
    # Where both ends are at the port: what opens a connection, or else what asks, or else what is sent first.
    alike = carried.filter(here & there)
    syn = alike.filter(pl.col("tcp_flags") & (tcp.SYN | tcp.ACK) == tcp.SYN)
    chosen = pl.concat(
        [some.select(ends) for some in (syn, captured_streams.conversations(alike, asked.protocol, files), alike)]
    )
    pair = {"low": pl.min_horizontal("source", "target"), "high": pl.max_horizontal("source", "target")}
    chosen = chosen.with_columns(**pair).unique(["low", "high"], keep="first", maintain_order=True)
    asks = [
        carried.filter(there & ~here).select(ends),
        carried.filter(here & ~there).select(
            source="target", source_port="target_port", target="source", target_port="source_port"
        ),
        chosen.select(ends),
    ]
    table = _flows(pl.concat(asks).rename(dict(zip(ends, ENDS, strict=True))), asked.name, "tcp")
    nowhere = pl.lit(None, pl.String)
    frames = flows.add_flows(frames, table.with_columns(client_end=nowhere, server_end=nowhere))
    table = _with_ends(table, frames)
    return table, flows.add_view(frames, table)


def _with_ends(table: pl.DataFrame, frames: pl.DataFrame) -> pl.DataFrame:
    """Adds `client_end` and `server_end`: where most was captured of both directions, or of each."""
    counts = frames.filter(pl.col("flow").is_not_null()).group_by("flow", "end", "reply").len()
    order = ["flow", "len", "end"]
    both = counts.group_by("flow", "end").agg(pl.col("len").sum(), ways=pl.len()).filter(pl.col("ways") == 2)
    best = [
        some.sort(order, descending=[False, True, False]).unique("flow", keep="first").select("flow", pl.col("end"))
        for some in (both, counts.filter(~pl.col("reply")), counts.filter("reply"))
    ]
    for name, part in zip(("both", "out", "back"), best, strict=True):
        table = table.join(part.rename({"end": name}), on="flow", how="left", maintain_order="left")
    return table.with_columns(
        client_end=pl.coalesce("both", "out", "back"), server_end=pl.coalesce("both", "back", "out")
    ).drop("both", "out", "back")


def _mtus(frames: pl.DataFrame, asked: _Asked, table: pl.DataFrame, around: Surroundings) -> pl.DataFrame:
    """Of each flow `request_mtu` and `reply_mtu`: that of the wire, or of the largest packet of each direction."""
    if asked.mtu is not None or asked.transport == "tcp":
        mtu = pl.lit(asked.mtu or 0, pl.Int64)
        return table.select("flow", request_mtu=mtu, reply_mtu=mtu)
    datagrams = frames.filter(pl.col("protocol") == IP_PROTOCOL["udp"])
    packets = datagrams.group_by("source", "target").agg(
        mtu=pl.col("ip_length").max().cast(pl.Int64).clip(_LEAST_MTU), split=pl.col("more").any()
    )
    around.learn_mtus(packets.join(table, left_on="source", right_on="client_address", how="semi"))
    around.learn_mtus(packets.join(table, left_on="target", right_on="client_address", how="semi"))
    found = table.select("flow", "client_address", "server_address")
    for name, ends in (("request_mtu", ("client", "server")), ("reply_mtu", ("server", "client"))):
        found = found.join(
            packets.select("source", "target", pl.col("mtu").alias(name)),
            left_on=[f"{end}_address" for end in ends],
            right_on=["source", "target"],
            how="left",
            maintain_order="left",
        )
    most = packets["mtu"].max() or _LEAST_MTU
    found = found.with_columns(pl.col("request_mtu", "reply_mtu").fill_null(most))
    return found.select("flow", "request_mtu", "reply_mtu")


def _complete(calls: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Calls with the columns that analysis and result expect."""
    return (
        calls.with_row_index("id")
        .join(
            table.select(
                "flow", "client_address", "client_port", "server_address", "server_port", "protocol", "transport",
                "request_mtu", "reply_mtu",
            ),
            on="flow",
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
    )  # fmt: skip


def _build(calls: pl.DataFrame, transport: str, least_reply: int) -> tuple[pl.DataFrame, pl.DataFrame, list[Call]]:
    """Expectations from message lengths; a call without reply is expected to have one of the least length."""
    columns = [f"{leg}_{what}" for leg in ("request", "reply") for what in ("message", "payload", "records", "mtu")]
    calls = calls.with_columns(request_message="request")
    kinds = calls.select(columns).unique(maintain_order=True).with_row_index("kind")
    expected, rows = [], []
    for row in kinds.iter_rows(named=True):
        legs: list[Leg] = []
        for leg in ("request", "reply"):
            message, payload, records, mtu = (row[f"{leg}_{what}"] for what in ("message", "payload", "records", "mtu"))
            if transport == "udp":
                legs.append(udp_leg(least_reply if message is None else message, mtu))
            else:
                # Its segments are the sender's choice.
                legs.append(Leg("tcp", message or least_reply, payload or 0, tuple(records), (), exact=False))
        expected.append(Call(legs[0], legs[1]))
        rows += [leg_row(row["kind"], bool(place), leg) for place, leg in enumerate(legs)]
    table = pl.DataFrame(rows, schema=LEG_SCHEMA, orient="row")
    return calls.join(kinds, on=columns, how="left", nulls_equal=True), table, expected


def _one_way(findings: pl.DataFrame, analysis: Analysis, table: pl.DataFrame) -> pl.DataFrame:
    """One finding in place of those that each call has no reply, where none has one."""
    unanswered = pl.col("field") == "reply.received"
    number = findings.filter(unanswered).height
    if number == 0 or number < analysis.calls.height:
        return findings
    servers = table.select(pl.format("{}:{}", "server_address", "server_port")).to_series().unique().sort()
    named = ", ".join(servers.head(_NAMED)) + (" and others" if len(servers) > _NAMED else "")
    heard = analysis.frames.filter(pl.col("flow").is_not_null(), "reply").height
    what = (
        f"none from {named}"
        if heard
        else f"none, and no frame from {named}: captured in one direction, or never answered"
    )
    return pl.concat([findings.filter(~unanswered), as_table([Finding(None, "replies", str(number), what)])])


def _result(analysis: Analysis, table: pl.DataFrame, background: pl.DataFrame, filter_of: DisplayFilter) -> Part:
    addresses = pl.DataFrame(schema={"end": pl.String, "own": pl.List(pl.String), "relays": pl.Boolean})
    classified = classification.classify(analysis.frames, analysis.segments, background, addresses)
    # Frames of other traffic are none of a foreign capture's calls, and no fault.
    ends = pl.concat([table["client_end"], table["server_end"]]).unique()
    of_flow = pl.col("flow").is_not_null()
    own = pl.col("end").is_in(ends.implode()) & of_flow
    other = (pl.col("class") == classification.UNEXPLAINED) & ~own
    classified = classified.with_columns(pl.when(other).then(pl.lit("other")).otherwise("class").alias("class"))
    whole = truncation.check_whole(classified.filter(of_flow), whole_capture=False)
    findings = pl.concat([analysis.findings, whole, classification.check_unexplained(classified)])
    return part_of(analysis, table.height, classified, findings, filter_of)

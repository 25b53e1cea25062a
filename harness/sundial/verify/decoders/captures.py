# SPDX-License-Identifier: Apache-2.0
"""Verification of any capture by a decoder: all connections and datagrams of the services that the capture shows.

Services are those of the port that is asked for. Without one they are the ports of the protocol, those whose first
messages show it, and those that its messages name. A capture that is larger than memory is read in parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sundial.errors import BadInput
from sundial.observe import Capture, divide, open_capture
from sundial.observe.headers import ETHERNET
from sundial.units import counted
from sundial.verify.decoders.gathered import datagrams, of_service, unreachable
from sundial.verify.decoders.traffic import Connection, Decoder, Judged, Lane, Service, Traffic
from sundial.verify.findings import as_table
from sundial.verify.result import LISTED, Verification, problems_json
from sundial.verify.sockets import any_capture, captured_streams, flows, tcp
from sundial.verify.sockets.captured_datagrams import ENDS
from sundial.verify.sockets.conversations import End, Segment, Way
from sundial.verify.sockets.protocol import IP_PROTOCOL, Files
from sundial.verify.sockets.stream import PLACES, Stream, payloads
from sundial.verify.sockets.surroundings import Surroundings, surroundings
from sundial.verify.unproven import OF_A_CAPTURE


@dataclass(frozen=True)
class _Part:
    """What is left of a part of the capture."""

    judged: Judged
    problems: list[dict[str, Any]]
    frames: int
    own: int
    """Frames of the services."""
    around: Surroundings


def verify_capture(file: Path, decoder: Decoder, port: int | None) -> Verification:
    """Raises BadInput for a file that cannot be read or has no message of the protocol."""
    capture = open_capture(file)
    try:
        services = _services(capture, decoder, port)
        while True:
            parts = [_part(piece, decoder, services) for piece in divide(capture, any_capture.FRAMES_AT_ONCE)]
            more = set[Service]().union(*(part.judged.services for part in parts)) - services
            if not more:
                break
            services |= more
    finally:
        capture.close()
    judged, around = Judged(services=services), Surroundings()
    for part in parts:
        judged.counts += part.judged.counts
        judged.calls += part.judged.calls
        around += part.around
    if not judged.counts and not any(part.judged.findings for part in parts):
        raise around.nothing(file, f"holds no message of {decoder.name}")
    return _together(decoder, parts, judged, around)


def _together(decoder: Decoder, parts: list[_Part], judged: Judged, around: Surroundings) -> Verification:
    problems = [problem for part in parts for problem in part.problems]
    problems.sort(key=lambda each: (min(each["frames"], default=1 << 62), each["field"], each["seen"]))
    mismatches = sum(len(part.judged.findings) for part in parts)
    own, frames = sum(part.own for part in parts), sum(part.frames for part in parts)
    read = Judged(counts=judged.counts).remark(decoder.name)
    remarks = [read, f"services: {', '.join(sorted(map(str, judged.services)))}"]
    if around.ipv6:
        remarks.append(f"IPv6 is not read: {counted(around.ipv6, 'packet')}")
    return Verification(
        verdict="fail" if mismatches else "pass",
        calls=judged.calls,
        frames=frames,
        packets=own,
        fragments=0,
        retransmissions={},
        mismatches=mismatches,
        groups=[],
        classified=dict(Counter({"call": own, "other": frames - own})),
        unproven=[*OF_A_CAPTURE[:2], *decoder.unproven],
        problems=problems[:LISTED],
        remarks=remarks,
    )


def _files(piece: Capture) -> Files:
    return [(piece.path, piece.path.name)]


def _services(capture: Capture, decoder: Decoder, port: int | None) -> set[Service]:
    if port is not None:
        return {Service(transport, None, port) for transport in decoder.transports}
    found = {Service(transport, None, known) for known in decoder.ports for transport in decoder.transports}
    for piece in divide(capture, any_capture.FRAMES_AT_ONCE):
        seen = _recognised(any_capture.frames_of(piece), decoder, _files(piece))
        found |= {each for each in seen if each._replace(address=None) not in found}
    return found


def _recognised(frames: pl.DataFrame, decoder: Decoder, files: Files) -> Iterator[Service]:
    """Services whose messages show what they speak."""
    if decoder.units is not None:
        asked = captured_streams.conversations(frames, decoder.units, files)
        for address, port in asked.select("target", "target_port").iter_rows():
            yield Service("tcp", address, port)
    if decoder.asks is not None:
        of_udp = frames.filter(pl.col("protocol") == IP_PROTOCOL["udp"], pl.col("udp_head").str.contains(decoder.asks))
        for address, port in of_udp.select("target", "target_port").unique().drop_nulls().iter_rows():
            yield Service("udp", address, port)


def _part(piece: Capture, decoder: Decoder, services: set[Service]) -> _Part:
    frames, files = any_capture.frames_of(piece), _files(piece)
    known = sorted(services, key=str)
    own = frames.filter(pl.any_horizontal(_carried(known, transport) for transport in decoder.transports))
    _refuse_cut(own, piece.path)
    last = frames["time_ns"].max()
    traffic = Traffic(
        _connections(frames, files, known),
        datagrams(frames, files, known, None),
        until_ns=last if isinstance(last, int) else 0,
        both_views=False,
        unreachable=unreachable(frames),
    )
    judged = decoder.judge(traffic)
    found = as_table(judged.findings)
    around = Surroundings()
    for transport in decoder.transports:
        around += surroundings(frames, transport, None)
    around.connections = len(traffic.connections)
    problems = problems_json(found, frames, pl.DataFrame(schema={"id": pl.UInt32}), lambda _: None)
    return _Part(judged, problems, frames.height, own.height, around)


def _carried(services: list[Service], transport: str) -> pl.Expr:
    return (pl.col("protocol") == IP_PROTOCOL[transport]).fill_null(False) & of_service(services, transport)


def _refuse_cut(own: pl.DataFrame, file: Path) -> None:
    """Raises BadInput for the first frame of a service that is not read whole."""
    size = pl.col("ip_length").cast(pl.Int64) + ETHERNET
    cut = own.filter((pl.col("captured_length") < pl.col("frame_length")) & (pl.col("captured_length") < size))
    if cut.height:
        first = cut.sort("frame").row(0, named=True)
        what = f"is cut to {first['captured_length']} bytes"
        raise BadInput(what, file=str(file), field=f"frame {first['frame']}", allowed="a capture of whole frames")
    other = own.filter(pl.col("ip_header").is_null())
    if other.height:
        what = "has messages on another link than Ethernet, which decoders do not read"
        raise BadInput(what, file=str(file), allowed="a capture of Ethernet frames")


def _connections(frames: pl.DataFrame, files: Files, services: list[Service]) -> list[Connection]:
    """All TCP connections to the services, from what the capture shows of them."""
    own = frames.filter(_carried(services, "tcp"), pl.col("source").is_not_null())
    here, there = ["source", "source_port", "target", "target_port"], ["target", "target_port", "source", "source_port"]
    to = _towards(services)
    ends = pl.concat(
        [
            own.filter(to).select(pl.col(name).alias(end) for name, end in zip(here, ENDS, strict=True)),
            own.filter(~to).select(pl.col(name).alias(end) for name, end in zip(there, ENDS, strict=True)),
        ]
    )
    table = any_capture.flow_table(ends, "", "tcp")
    nowhere = pl.lit(None, pl.String)
    placed = flows.add_flows(own, table.with_columns(client_end=nowhere, server_end=nowhere))
    placed = flows.add_view(placed, any_capture.with_ends(table, placed))
    conns = tcp.connections(placed, from_midstream=True)
    located = tcp.positions(placed, conns).filter(pl.col("view") == "sent", pl.col("pos").is_not_null())
    data = payloads(files, located.filter(pl.col("tcp_length") > 0).select("row", "capture", "frame", *PLACES))
    ends_of = {line[0]: ((line[1], line[2]), (line[3], line[4])) for line in table.select("flow", *ENDS).iter_rows()}
    found = []
    for (_, flow), part in located.sort("conn", "row").group_by("conn", "flow", maintain_order=True):
        client, server = ends_of[flow]
        lanes = {
            reply: _lane(part.filter(pl.col("reply") == reply), data, client, server, reply) for reply in (False, True)
        }
        found.append(Connection(lanes, bool((part["tcp_flags"] & tcp.RST != 0).any())))
    return found


def _towards(services: list[Service]) -> pl.Expr:
    """True of frames to a service; where both ends are one, of those from the higher port or address."""
    at = {
        side: pl.any_horizontal(
            (pl.col(f"{side}_port") == each.port) & (each.address is None or pl.col(side) == each.address)
            for each in services
        )
        for side in ("source", "target")
    }
    higher = (pl.col("source_port") > pl.col("target_port")) | (
        (pl.col("source_port") == pl.col("target_port")) & (pl.col("source") > pl.col("target"))
    )
    return at["target"] & (~at["source"] | higher)


def _lane(part: pl.DataFrame, data: dict[int, bytes], client: End, server: End, reply: bool) -> Lane:
    lines = list(part.select("pos", "tcp_length", "time_ns", "row", "tcp_flags").iter_rows())
    pieces = [(pos, data.get(row, b"")) for pos, size, _, row, _ in lines if size]
    sent = [Segment(pos, pos + size, at_ns, row) for pos, size, at_ns, row, _ in lines if size]
    finished_ns, reset_ns = (
        min((at_ns for _, _, at_ns, _, flags in lines if flags & flag), default=None) for flag in (tcp.FIN, tcp.RST)
    )
    sender, receiver = (server, client) if reply else (client, server)
    opened = any(flags & tcp.SYN for *_, flags in lines)
    way = Way(b"", sent, (), finished_ns=finished_ns, reset_ns=reset_ns)
    return Lane(sender, receiver, Stream(pieces), way, opened)

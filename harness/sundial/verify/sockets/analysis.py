# SPDX-License-Identifier: Apache-2.0
"""Calls and frames in, findings and observed calls out. Everything a run and any other capture have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import polars as pl

from sundial.expect import Call
from sundial.observe.headers import HEADER_COLUMNS
from sundial.verify.conservation import Transit, check_balance
from sundial.verify.contention import Contention
from sundial.verify.corruption import intact, through_ip
from sundial.verify.frames import DROPPED, cut_off
from sundial.verify.segment import nothing_held
from sundial.verify.sockets import (
    call_times,
    contents,
    messages,
    reassembly,
    retransmission_causes,
    tcp,
    udp,
)
from sundial.verify.sockets.busy_servers import Servers, services
from sundial.verify.sockets.flows import add_flows_of_damaged
from sundial.verify.sockets.protocol import Files, Setting, SocketProtocol, Streams

Build = Callable[[pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame, list[Call]]]
"""Calls to calls with `kind`, the table of legs (`legs.LEG_SCHEMA`) and the expected call of each kind."""


@dataclass(frozen=True)
class Analysis:
    """`frames` with `call` set; `findings` (`findings.FINDING`); `calls` with `kind`; one row a call in `observed`."""

    frames: pl.DataFrame
    segments: pl.DataFrame
    """TCP frames of the calls' connections: row, conn, reply, pos, data, end."""
    calls: pl.DataFrame
    legs: pl.DataFrame
    expected: list[Call]
    """Expected calls by kind."""
    findings: pl.DataFrame
    observed: pl.DataFrame
    arrived: pl.DataFrame
    """Datagrams that arrived whole: call, reply, count, last_ns, rows, as of `udp.datagrams`."""
    uncaused: pl.DataFrame
    """Requests over UDP that were sent again for no reason of the wire (`retransmission_causes.uncaused`)."""
    packets: int
    fragments: int
    retransmissions: dict[str, int]


def analyse(
    frames: pl.DataFrame,
    calls: pl.DataFrame,
    flow_table: pl.DataFrame,
    protocols: Mapping[str, SocketProtocol],
    build: Build,
    files: Files,
    *,
    exact_time: bool,
    settings: Sequence[Setting] = (),
    begun: pl.DataFrame | None = None,
    places: pl.DataFrame | None = None,
    one_view: bool = False,
    lines: Mapping[str, Contention] | None = None,
    transit: Transit | None = None,
    unsent: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    end_ns: int | None = None,
    held: Callable[[], pl.DataFrame] = nothing_held,
    asked: Mapping[str, Sequence[tuple[str, int, int]]] = MappingProxyType({}),
    not_taken: pl.Series | None = None,
) -> Analysis:
    """Match frames to calls and compare. `frames` with row, end, fate and what `flows.add_flows` adds.

    `build` adds `kind` to the calls and makes the expectations. `begun` (row, call) says of which calls datagrams are,
    and `places` (conn, reply, call, begin, finish) where messages are in TCP streams; without them that follows from
    names, times and expected lengths. With `places` the caller has read the streams, and they are not compared.
    `exact_time`: samples and capture share one clock. `one_view`: the capture was made at one place, so that nothing
    can be said about what arrived at the other end. `lines`: by port, when the wire in front of it was free.
    `transit`: what joins segments; without it one view is all there is. `unsent`: by machine, when it may have
    dropped what it was to send (`unsent.Unsent`). `end_ns`: when the run ended. `held`: as of
    `wires.held_back`; `asked`: as of `headers.arp.asking`; `not_taken`: as of `headers.ports.not_taken`.
    """
    whole_frames = intact(frames)
    conns = tcp.connections(whole_frames, from_midstream=one_view)
    calls = _with_connections(calls, conns)
    calls, legs, expected = build(messages.with_unsent(calls, unsent or {}, exact_time=exact_time))
    refused = frames.filter(pl.col("fate") == DROPPED, pl.col("fate_adapter").is_not_null())["row"]
    # What was damaged behind IP waits with the fragments of its datagram, and may be read in spite of its checksum.
    of_ip = add_flows_of_damaged(through_ip(frames), flow_table).drop(*_NOT_OF_CALLS)
    with_damaged = udp.attribute_udp(of_ip, calls, flow_table, protocols, exact_time, begun)
    udp_frames = intact(with_damaged)
    of_protocol = {name: calls.filter(pl.col("protocol") == name) for name in protocols}
    collected = {
        name: protocols[name].collected(part, expected, settings) for name, part in of_protocol.items() if settings
    }
    together = pl.concat([_NOTHING_COLLECTED, *(part.select("call", "payload") for part in collected.values())])
    streams_read = places is not None
    if places is None:
        places = tcp.starts(calls.filter(pl.col("transport") == "tcp"), legs, together)
    tcp_frames = tcp.attribute_tcp(tcp.positions(whole_frames.select(_SEGMENT), conns), places)
    frames = _with_calls(frames, udp_frames, tcp_frames)

    sent_udp, sent_tcp = udp_frames.filter(pl.col("view") == "sent"), tcp.sent_segments(tcp_frames)
    datagrams, streamed = udp.datagrams(sent_udp), tcp.messages(sent_tcp)
    came = (
        datagrams.with_columns(damaged=pl.lit(False))
        if one_view
        else reassembly.arrivals(_taken(with_damaged.filter(pl.col("view") == "received"), not_taken))
    )
    arrived, readable = came.filter(~pl.col("damaged")), _readable(came, calls, protocols)
    call_legs, dropped = messages.with_legs(calls, legs), messages.dropped_frames(frames)
    alone = call_legs.join(together.select("call", reply=pl.lit(False)), on=["call", "reply"], how="anti")
    shared = [part for part in collected.values() if "records" in part.columns]
    findings = [
        messages.check_datagrams(datagrams, call_legs, dropped, cut_off(sent_udp, end_ns)),
        messages.check_attempts(datagrams, readable, call_legs, dropped),
    ]
    if not streams_read:
        findings.append(messages.check_messages(streamed, alone, calls.select("xid", "timestamps", call="id")))
    for name, protocol in () if streams_read else protocols.items():
        own = alone.filter(pl.col("protocol") == name)
        theirs = collected.get(name, _NOTHING_COLLECTED)
        findings.append(protocol.check_streams(Streams(streamed, own, theirs, sent_tcp, places, files)))
    if transit is not None:
        findings += _balances(udp_frames, tcp_frames, transit)
    split = pl.col("more") | (pl.col("fragment_offset") > 0)
    of_calls = sent_udp.filter(pl.col("call").is_not_null())
    whole, read = (
        part.join(call_legs.select(*_SIDE, "layout"), on=[*_SIDE, "layout"], how="semi") for part in (arrived, readable)
    )
    needed = places.join(call_legs.select(*_SIDE, "payload", "needed"), on=_SIDE, how="left").with_columns(
        finish=pl.col("finish") - (pl.col("payload") - pl.col("needed")).fill_null(0)
    )
    complete = pl.concat(
        [
            read.group_by(_SIDE).agg(last_ns=pl.col("last_ns").min()),
            tcp.completions(_taken(tcp_frames, not_taken), needed).select(*_SIDE, "last_ns"),
        ]
    )
    observed = _observed(datagrams, streamed, complete, call_legs)
    if not one_view:
        sampled = (
            calls.select("id", "call", "client", "ok", "start_ns", "end_ns", "retransmits", "transport")
            .filter(pl.col("retransmits").is_not_null())
            .join(together.select(id="call"), on="id", how="anti")
        )
        findings.append(call_times.check_call_times(sampled, observed, exact_time))
        findings.append(call_times.check_answers(datagrams, whole, _answers(streamed, complete)))
        records = pl.concat([_NO_RECORDS, *(part.select("call", "records") for part in shared)])
        # One after the other: the pieces of both would be the largest tables of all.
        for pieces in (
            partial(contents.datagram_pieces, sent_udp, datagrams),
            partial(contents.stream_pieces, sent_tcp, places),
        ):
            findings.append(
                contents.check_contents(pieces(), calls, legs, records, expected, settings, protocols, files)
            )
        if exact_time:
            ports = frames.select("interface", row=pl.col("row").cast(pl.UInt32))
            findings.append(call_times.check_late_requests(sampled, datagrams, ports, lines or {}, held, asked))

    def servers() -> Servers:
        return Servers(services(calls, datagrams, whole, tcp_frames, complete, protocols))

    over_udp = observed.filter(pl.col("transport") == "udp")
    return Analysis(
        frames,
        tcp_frames.select("row", "conn", "reply", "pos", "data", "end"),
        calls,
        legs,
        expected,
        pl.concat(findings),
        observed,
        whole.select("call", "reply", "count", "last_ns", "rows"),
        retransmission_causes.uncaused(
            with_damaged,
            datagrams,
            arrived,
            call_legs,
            calls,
            servers if exact_time and not one_view else None,
            lines or {},
            refused,
            [name for name, protocol in protocols.items() if protocol.asks_again_at_other_replies],
            settings,
            unsent,
        ),
        of_calls.height + sent_tcp.filter(pl.col("call").is_not_null()).height,
        of_calls.filter(split).height,
        {
            "calls": int(over_udp["request_retransmissions"].sum()),
            "replies": int(over_udp["reply_retransmissions"].sum()),
            "tcp": int(sent_tcp.filter(pl.col("call").is_not_null(), pl.col("fresh") == 0).height),
        },
    )


_NOT_OF_CALLS = (
    *HEADER_COLUMNS, "ethertype", "frame_length", "comment", "octets_hash", "read_differently", "icmp_type",
    "tcp_seq", "tcp_length", "tcp_flags", "tcp_mss", "tcp_timestamp",
    "fate_rule", "fate_adapter", "fate_from", "fate_to", "fate_bit", "fate_byte",
)  # fmt: skip
"""Columns of the table of frames that calls over UDP do not need: the table is held several times meanwhile."""
_SEGMENT = (
    "row", "capture", "end", "frame", "time_ns", "direction", "captured_length", "octets_begin", "protocol",
    "ip_length", "ip_header", "tcp_seq", "tcp_length", "tcp_flags", "tcp_header", "fate", "corrupted", "flow", "reply",
    "view", "rpc_xid",
)  # fmt: skip
"""Those that calls over TCP need."""
_NO_RECORDS = pl.DataFrame(schema={"call": pl.UInt32, "records": pl.String})
_NOTHING_COLLECTED = pl.DataFrame(schema={"call": pl.UInt32, "payload": pl.Int64})


def _taken(frames: pl.DataFrame, not_taken: pl.Series | None) -> pl.DataFrame:
    """Without frames that the receiver's adapter did not take."""
    if not_taken is None or not_taken.is_empty():
        return frames
    return frames.filter(~pl.col("row").is_in(not_taken.implode()))


def _with_connections(calls: pl.DataFrame, conns: pl.DataFrame) -> pl.DataFrame:
    """Adds the connection of calls over TCP, and what it negotiated; null for others."""
    over_udp = calls.filter(pl.col("transport") == "udp").with_columns(
        conn=pl.lit(None, pl.UInt32),
        timestamps=pl.lit(False),
        client_mss=pl.lit(None, pl.UInt32),
        server_mss=pl.lit(None, pl.UInt32),
    )
    over_tcp = tcp.assign_calls(calls.filter(pl.col("transport") == "tcp"), conns)
    return pl.concat([over_udp, over_tcp]).sort("id")


def _readable(came: pl.DataFrame, calls: pl.DataFrame, protocols: Mapping[str, SocketProtocol]) -> pl.DataFrame:
    """Datagrams that programs may read: those with a right checksum, and replies to clients that look at others."""
    names = [name for name, protocol in protocols.items() if protocol.reads_refused]
    theirs = calls.filter(pl.col("protocol").is_in(names))["id"].implode()
    return came.filter(~pl.col("damaged") | (pl.col("reply") & pl.col("call").is_in(theirs)))


_SIDE = ["call", "reply"]
_COUNTED = pl.col("packets", "retransmissions").cast(pl.Int32)


def _with_calls(frames: pl.DataFrame, *parts: pl.DataFrame) -> pl.DataFrame:
    """Frames with the call, flow, direction and view that attribution found."""
    names = ["call", "flow", "reply", "view"]
    known = pl.concat([part.select("row", *names) for part in parts])
    return frames.drop("flow", "reply", "view").join(known, on="row", how="left", maintain_order="left")


def _balances(udp_frames: pl.DataFrame, tcp_frames: pl.DataFrame, transit: Transit) -> list[pl.DataFrame]:
    more = pl.when("more").then(pl.lit("+")).otherwise(pl.lit(""))
    fragment = pl.concat_str("fragment_offset", pl.lit(":"), "data", more)
    segment = pl.format("{} bytes at {}", "data", "pos")
    of_calls = udp_frames.filter(pl.col("call").is_not_null())
    return [
        check_balance(of_calls, ["call", "reply", "fragment_offset", "data", "more"], fragment, transit),
        check_balance(tcp_frames, ["conn", "reply", "pos", "data", "tcp_flags"], segment, transit),
    ]


def _answers(streamed: pl.DataFrame, complete: pl.DataFrame) -> pl.DataFrame:
    """Calls over TCP whose request arrived and whose reply was sent: call, asked_ns, answered_ns, rows of the reply."""
    asked = complete.filter(~pl.col("reply")).select("call", asked_ns="last_ns")
    return streamed.filter("reply").select("call", "rows", answered_ns="first_ns").join(asked, on="call", how="inner")


def _observed(
    datagrams: pl.DataFrame, streamed: pl.DataFrame, complete: pl.DataFrame, call_legs: pl.DataFrame
) -> pl.DataFrame:
    """One row a call: stamps, packets and fragments of the first transmission, how often more was sent."""
    side = _SIDE
    sent_udp = datagrams.group_by(side).agg(
        first_ns=pl.col("first_ns").min(),
        packets=pl.col("count").first(),
        retransmissions=pl.len() - 1,
    )
    sent_tcp = streamed.select(*side, "first_ns", packets="count", retransmissions="again")
    sent = pl.concat([part.with_columns(_COUNTED) for part in (sent_udp, sent_tcp)])
    table = (
        call_legs.select(*side, "transport", "packets")
        .rename({"packets": "packets_expected"})
        .join(sent, on=side, how="left")
        .join(complete, on=side, how="left")
        .with_columns(pl.col("packets", "retransmissions").fill_null(0).cast(pl.Int32))
        .with_columns(
            fragments=_fragments("packets"),
            fragments_expected=_fragments("packets_expected"),
            packets_expected=pl.col("packets_expected").cast(pl.Int32),
        )
    )
    names = ["packets", "packets_expected", "fragments", "fragments_expected", "retransmissions"]
    halves = []
    for reply, word, stamp in ((False, "request", "call"), (True, "reply", "reply")):
        renamed = {name: f"{word}_{name}" for name in names}
        renamed |= {"first_ns": f"{stamp}_first_tx_ns", "last_ns": f"{stamp}_last_rx_ns"}
        half = table.filter(pl.col("reply") if reply else ~pl.col("reply")).rename(renamed)
        halves.append(half.select("call", *([] if reply else ["transport"]), *renamed.values()))
    return halves[0].join(halves[1], on="call", how="left").sort("call")


def _fragments(packets: str) -> pl.Expr:
    """IP fragments: none where a datagram went in one packet, or over TCP."""
    split = (pl.col("transport") == "udp") & (pl.col(packets) > 1)
    return pl.when(split).then(packets).otherwise(0).cast(pl.Int32)

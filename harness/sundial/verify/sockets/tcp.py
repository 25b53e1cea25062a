# SPDX-License-Identifier: Apache-2.0
"""TCP: connections, positions in their streams, and which call each segment belongs to.

A stream has no message ends, but on one connection calls follow one another, so that the n-th request begins where the
expected lengths of those before it end (and so for replies). A segment whose range was seen already is a retransmission
(RFC 9293 section 3.8.1), wherever its ends lie.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import polars as pl

from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.groups import number_of
from sundial.verify.sockets.flows import TCP

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
_LONG_AGO = -(1 << 62)
_WRAP = 1 << 32
_HALF = 1 << 31


def connections(frames: pl.DataFrame, *, from_midstream: bool = False) -> pl.DataFrame:
    """One row a connection: conn, flow, since_ns, client_isn, server_isn, client_mss, server_mss, timestamps.

    A flow without a SYN has one connection from the beginning, whose sequence numbers begin at its first frame;
    `from_midstream`: so has what a flow has before its first SYN, as the capture began later than the connection.
    """
    names = ("flow", "reply", "time_ns", "tcp_seq", "tcp_flags", "tcp_mss", "tcp_timestamp")
    tcp = frames.select(*names, "protocol", "fate").filter(
        pl.col("protocol") == TCP, pl.col("flow").is_not_null(), pl.col("fate").is_null()
    )
    syn = pl.col("tcp_flags") & SYN != 0
    openings = (
        tcp.filter(syn, ~pl.col("reply"))
        .group_by("flow", "tcp_seq")
        .agg(
            since_ns=pl.col("time_ns").min(),
            client_mss=pl.col("tcp_mss").first(),
            offers=pl.col("tcp_timestamp").first().is_not_null(),
        )
        .rename({"tcp_seq": "client_isn"})
    )
    first_syn = openings.group_by("flow").agg(opened_ns=pl.col("since_ns").min())
    silent = (
        tcp.join(first_syn, on="flow", how="left")
        .filter(pl.col("opened_ns").is_null() | (from_midstream & (pl.col("time_ns") < pl.col("opened_ns")) & ~syn))
        .sort("time_ns")
        .group_by("flow")
        .agg(
            client_isn=(pl.col("tcp_seq").filter(~pl.col("reply")).first() - 1).cast(pl.UInt32),
            offers=pl.col("tcp_timestamp").first().is_not_null(),
        )
        .with_columns(since_ns=pl.lit(_LONG_AGO, pl.Int64), client_mss=pl.lit(None, pl.UInt32))
    )
    conns = pl.concat([openings, silent.select(openings.columns)]).sort("flow", "since_ns").with_row_index("conn")
    answers = assign(tcp.filter("reply").sort("time_ns"), conns)
    synack = answers.filter(syn).group_by("conn").agg(
        server_isn=pl.col("tcp_seq").first(),
        server_mss=pl.col("tcp_mss").first(),
        accepts=pl.col("tcp_timestamp").first().is_not_null(),
    )  # fmt: skip
    first = answers.group_by("conn").agg(guess=(pl.col("tcp_seq").first().cast(pl.Int64) - 1) % _WRAP)
    return (
        conns.join(synack, on="conn", how="left")
        .join(first, on="conn", how="left")
        .with_columns(
            server_isn=pl.coalesce(pl.col("server_isn").cast(pl.Int64), "guess"),
            client_isn=pl.col("client_isn").cast(pl.Int64),
            timestamps=pl.col("offers") & pl.col("accepts").fill_null(pl.col("offers")),
        )
        .drop("guess", "offers", "accepts")
        .sort("conn")
    )


def unopened(frames: pl.DataFrame, flows: pl.DataFrame) -> pl.DataFrame:
    """row, class: of connections that the clients of `flows` asked for and that did not open.

    The server refused them, as it did not listen yet: they are SYN and RST (RFC 9293 section 3.10.7.1) and nothing
    else, before it has accepted any. Or no answer reached the client while it asked: it sent SYN, and RST for a SYN ACK
    that came later. Or it had asked again when the answer came, too late for it, and ends what opened without a byte.
    The client connects again, or its call fails.
    """
    servers = flows.select(
        client="client_address", address="server_address", port=pl.col("server_port").cast(pl.UInt32)
    ).unique()
    names = ("row", "time_ns", "end", "direction", "tcp_flags", "tcp_length", "source", "source_port", "target")
    tcp = frames.select(*names, "target_port", "protocol", "fate").filter(
        pl.col("protocol") == TCP, pl.col("fate").is_null()
    )
    # Between two ports, whichever way: where any data went, a connection opened. SYNs say when servers listened.
    tcp = tcp.with_columns(between=number_of("source", "source_port") ^ number_of("target", "target_port"))
    carrying = tcp.filter(pl.col("tcp_length") > 0)["between"].unique().implode()
    tcp = tcp.with_columns(carries=pl.col("between").is_in(carrying)).drop("between")
    tcp = tcp.filter(~pl.col("carries") | (pl.col("tcp_flags") & SYN != 0))
    asks = {"source": "client", "source_port": "client_port", "target": "address", "target_port": "port"}
    answers = {"target": "client", "target_port": "client_port", "source": "address", "source_port": "port"}
    both = pl.concat(
        [
            tcp.rename(ends)
            .join(servers, on=["client", "address", "port"], how="semi")
            .with_columns(reply=pl.lit(reply))
            for reply, ends in ((False, asks), (True, answers))
        ],
        how="diagonal",
    )
    kind = pl.col("tcp_flags") & (SYN | RST | FIN)
    accepted = both.filter("reply", kind == SYN).group_by("address", "port").agg(accepted_ns=pl.col("time_ns").min())
    both = both.filter(~pl.col("carries"))
    opening = ["client", "client_port", "address", "port"]
    refusal = (kind == pl.when("reply").then(RST).otherwise(SYN)) & (pl.col("tcp_length") == 0)
    early = pl.col("time_ns") < pl.col("accepted_ns")
    bare = pl.col("tcp_length") == 0
    at_client = pl.col("reply") & (pl.col("direction") == INBOUND) & pl.col("end").is_in(flows["client_end"].implode())
    asked = ~pl.col("reply") & (kind == SYN)
    came_ns = pl.col("time_ns").filter(at_client).min()
    given_up = ((kind == RST) & ~pl.col("reply")).any() & (came_ns > pl.col("time_ns").filter(asked).max())
    in_vain = (bare & ((kind == SYN) | (kind == RST))).all() & asked.any() & (came_ns.is_null() | given_up)
    ends = (kind == FIN) & ~pl.col("reply")
    sent_ns = pl.col("time_ns").filter(asked & (pl.col("direction") == OUTBOUND))
    late = bare.all() & ends.any() & ((sent_ns > sent_ns.min()) & (sent_ns < came_ns)).any()
    alone = both.join(accepted, on=["address", "port"], how="left").filter(
        ((refusal & early).all().over(opening) & pl.col("reply").any().over(opening)) | (in_vain | late).over(opening)
    )
    classes = {RST: "tcp_reset", SYN: "tcp_handshake", FIN: "tcp_fin", 0: "tcp_ack"}
    return alone.select("row", kind.replace_strict(classes, default="tcp_reset", return_dtype=pl.String).alias("class"))


def assign(table: pl.DataFrame, conns: pl.DataFrame, time: str = "time_ns") -> pl.DataFrame:
    """Adds `conn`: the last connection of the row's flow that had begun at `time`."""
    return (
        table.sort(time)
        .join_asof(
            conns.select("flow", "since_ns", "conn").sort("since_ns"),
            left_on=time,
            right_on="since_ns",
            by="flow",
            strategy="backward",
            check_sortedness=False,
        )
        .drop("since_ns", strict=False)
    )


def assign_calls(calls: pl.DataFrame, conns: pl.DataFrame) -> pl.DataFrame:
    """TCP calls with `conn` and what it negotiated; a call before any connection of its flow is given the first."""
    first = conns.group_by("flow").agg(first=pl.col("conn").min())
    return (
        assign(calls, conns, "start_ns")
        .join(first, on="flow", how="left")
        .with_columns(conn=pl.coalesce("conn", "first"))
        .drop("first")
        .join(conns.select("conn", "timestamps", "client_mss", "server_mss"), on="conn", how="left")
    )


def positions(frames: pl.DataFrame, conns: pl.DataFrame) -> pl.DataFrame:
    """TCP frames of flows with `conn` and `pos`: bytes of the stream before the segment's first (SYN: -1)."""
    tcp = frames.filter(pl.col("protocol") == TCP, pl.col("flow").is_not_null())
    tcp = assign(tcp, conns).join(conns.select("conn", "client_isn", "server_isn"), on="conn", how="left")
    begin = pl.when("reply").then("server_isn").otherwise("client_isn")
    side = ["conn", "reply", "end"]
    step = pl.coalesce(
        pl.col("tcp_seq").cast(pl.Int64).diff().over(side, order_by="row"), pl.col("tcp_seq") - begin - 1
    )
    return (
        tcp.with_columns(step=(step + _HALF) % _WRAP - _HALF)
        .sort("row")
        .with_columns(pos=pl.col("step").cum_sum().over(side))
        .drop("client_isn", "server_isn", "step")
    )


def starts(calls: pl.DataFrame, legs: pl.DataFrame, collected: pl.DataFrame) -> pl.DataFrame:
    """Where each TCP call's request and reply lie in their streams: conn, reply, call, begin, finish.

    `collected`: call and payload of requests that are cut by what is before them (`SocketProtocol.collected`).
    """
    own = collected.select("payload", pl.lit(False).alias("reply"), id="call").rename({"payload": "own"})
    payloads = legs.select("kind", "reply", "payload")
    return (
        calls.filter(pl.col("conn").is_not_null())
        .join(payloads, on="kind", how="inner")
        .join(own, on=["id", "reply"], how="left")
        .with_columns(payload=pl.coalesce("own", "payload"))
        .sort("conn", "reply", "start_ns", "id")
        .with_columns(finish=pl.col("payload").cum_sum().over("conn", "reply"))
        .select(
            "conn", "reply", pl.col("id").alias("call"), (pl.col("finish") - pl.col("payload")).alias("begin"), "finish"
        )
    )


def attribute_tcp(frames: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Adds `call` and `data` (payload bytes) to frames with `pos`; `call` is null for segments beyond every call."""
    frames = frames.with_columns(data=pl.col("tcp_length").cast(pl.Int64))
    joined = frames.sort("pos").join_asof(
        places.sort("begin"), left_on="pos", right_on="begin", by=["conn", "reply"], check_sortedness=False
    )
    inside = (pl.col("data") > 0) & (pl.col("pos") < pl.col("finish"))
    return joined.with_columns(call=pl.when(inside).then("call")).sort("row")


def completions(frames: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """When each message had arrived, from `begin` to `finish`: call, reply, last_ns; without those that never did."""
    side = ["call", "reply"]
    pieces = (
        frames.filter(pl.col("view") == "received", pl.col("data") > 0, pl.col("call").is_not_null())
        .group_by(*side, "pos", "data")
        .agg(pl.col("time_ns").min())
        .join(places.select(*side, "begin", "finish"), on=side, how="inner")
        .filter(pl.col("pos") < pl.col("finish"))
    )
    once = pl.col("data").sum().over(side) == pl.col("finish") - pl.col("begin")
    # What was sent again cut another way covers the same bytes twice: then the first time counts for each of them.
    twice = pieces.filter(~once)
    rows = [
        (call, reply, at)
        for (call, reply), part in twice.group_by(side, maintain_order=True)
        if (at := _covered(part)) is not None
    ]
    schema = {"call": pl.UInt32, "reply": pl.Boolean, "last_ns": pl.Int64}
    alone = pieces.filter(once).group_by(side).agg(last_ns=pl.col("time_ns").max())
    return pl.concat([alone, pl.DataFrame(rows, schema=schema, orient="row")])


def _covered(pieces: pl.DataFrame) -> int | None:
    """When the pieces of one message reached from its begin to its finish without a gap; None: never."""
    begin, finish = pieces["begin"][0], pieces["finish"][0]
    reach: list[tuple[int, int]] = []
    for pos, data, at in pieces.sort("time_ns").select("pos", "data", "time_ns").iter_rows():
        reach = sorted([*reach, (pos, pos + data)])
        here = begin
        for first, last in reach:
            if first > here:
                break
            here = max(here, last)
        if here >= finish:
            return int(at)
    return None


def sent_segments(frames: pl.DataFrame) -> pl.DataFrame:
    """Data segments at the sending port, in the order of what they are the first to hold, with `fresh`: bytes not sent
    before (0: a retransmission)."""
    side = ["conn", "reply"]
    sent = frames.filter(pl.col("view") == "sent", pl.col("data") > 0).sort(*side, "time_ns", "row")
    sent = sent.with_columns(stop=pl.col("pos") + pl.col("data"))
    before = pl.col("stop").shift(1).over(side)
    # Nearly always each begins where the one before ends.
    simple = (pl.col("pos") == pl.coalesce(before, "pos")).all().over(side)
    parts = [sent.filter(simple).with_columns(fresh="data")]
    for part in sent.filter(~simple).partition_by(side, maintain_order=True):
        values = _fresh(part.select("pos", "stop").iter_rows())
        parts.append(part.with_columns(fresh=pl.Series(values, dtype=pl.Int64)))
    begin = pl.when(pl.col("fresh") > 0).then(pl.col("stop") - pl.col("fresh")).otherwise("pos")
    return pl.concat(parts).sort(*side, begin, "time_ns", "row")


def _fresh(ranges: Iterable[tuple[int, int]]) -> list[int]:
    """Of each range (begin, end), in order of time, how much was in none before."""
    begins: list[int] = []
    ends: list[int] = []
    values = []
    for begin, end in ranges:
        first = last = bisect_left(ends, begin)
        known, low, high = 0, begin, end
        while last < len(begins) and begins[last] <= end:
            known += min(end, ends[last]) - max(begin, begins[last])
            low, high = min(low, begins[last]), max(high, ends[last])
            last += 1
        begins[first:last], ends[first:last] = [low], [high]
        values.append(end - begin - known)
    return values


def messages(segments: pl.DataFrame) -> pl.DataFrame:
    """One row for each call and direction sent over TCP: layout, count, bytes, longest, again, first_ns, rows, xid.

    Of the segments with their headers: the longest (`with_header_most`), how many are shorter, but for the last, and
    how many have more options than others; and the longest header.
    """
    fresh = pl.col("fresh") > 0
    # Mostly nothing is sent again: groups need not be searched then.
    once = bool((segments["fresh"] > 0).all())
    new = pl.col("fresh") if once else pl.col("fresh").filter(fresh)
    header = pl.col("tcp_header").cast(pl.Int64)
    header = header if once else header.filter(fresh)
    with_header = new + header
    return (
        segments.filter(pl.col("call").is_not_null())
        .group_by("call", "reply")
        .agg(
            layout=new.cast(pl.String).str.join(","),
            count=fresh.sum(),
            bytes=pl.col("fresh").sum(),
            longest=pl.col("data").max(),
            header_most=header.max(),
            with_header_most=with_header.max(),
            shorter=(with_header < with_header.max()).sum()
            - (with_header.last() < with_header.max()).fill_null(False).cast(pl.UInt32),
            with_options=(header > header.min()).sum(),
            again=(~fresh).sum(),
            first_ns=pl.col("time_ns").min(),
            rows=pl.col("row"),
            xid=pl.col("rpc_xid").filter(pl.col("rpc_xid").is_not_null()).first(),
        )
    )

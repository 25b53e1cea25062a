# SPDX-License-Identifier: Apache-2.0
"""What one end of a TCP connection had sent and received when it sent each segment, as its own port shows it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import polars as pl

from sundial.observe.headers import TCP
from sundial.verify.frames import INBOUND
from sundial.verify.groups import number_of

FIN, SYN, RST, PSH, ACK, URG = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_WRAP, _HALF = 1 << 32, 1 << 31
_ORDER = ["time_ns", "row"]
_SEGMENT = (
    "row", "capture", "end", "time_ns", "captured_length", "octets_begin", "source", "target", "source_port",
    "target_port", "ip_header", "ip_length", "ip_id", "ip_ttl", "ip_payload_sum", "tcp_seq", "tcp_ack", "tcp_flags",
    "tcp_length", "tcp_header", "tcp_window", "tcp_checksum", "tcp_urgent",
)  # fmt: skip


def connection_events(frames: pl.DataFrame, sent: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """All TCP segments that a machine sent or was sent, at its own port, in order of `conn` and time, with `out`.

    `conn` is a connection as one of its ends sees it: a SYN of another sequence number begins a new one.
    """
    own = ports.filter(~pl.col("joins"), pl.col("address").is_not_null())
    names = [*_SEGMENT, "mtu", "offloads", "inner"]
    received = (
        frames.select(*_SEGMENT, "fate", "direction", "protocol")
        .filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND, pl.col("protocol") == TCP)
        .join(own.select("end", "address", "mtu", "offloads", "inner"), on="end", how="inner", maintain_order="left")
        .filter(pl.col("target") == pl.col("address"))
        .select(names)
    )
    # What the adapter refused, too, which stands at the segment's own interface.
    mine = sent.filter(pl.col("protocol") == TCP, pl.col("tcp_header").is_not_null()).select(names)
    out = pl.col("out")
    both = pl.concat(
        [
            mine.with_columns(out=pl.lit(True)),
            received.filter(pl.col("tcp_header").is_not_null()).with_columns(out=pl.lit(False)),
        ]
    ).with_columns(
        near=pl.when(out).then("source_port").otherwise("target_port"),
        far=pl.when(out).then("target_port").otherwise("source_port"),
        peer=pl.when(out).then("target").otherwise("source"),
        syn=pl.col("tcp_flags") & SYN != 0,
        fin=pl.col("tcp_flags") & FIN != 0,
        rst=pl.col("tcp_flags") & RST != 0,
    )
    both = both.with_columns(flow=number_of("end", "peer", "near", "far"))
    opens = pl.col("tcp_flags") & (SYN | ACK | RST) == SYN
    fresh = pl.when(opens).then("tcp_seq").cast(pl.Int64)
    known = fresh.forward_fill().shift(1).over("flow", order_by=_ORDER)
    both = both.with_columns(begins=opens & (pl.col("tcp_seq") != known.fill_null(-1)))
    both = both.with_columns(turn=pl.col("begins").cum_sum().over("flow", order_by=_ORDER))
    numbers = both.select("flow", "turn").unique(maintain_order=True).with_row_index("conn")
    return both.join(numbers, on=["flow", "turn"], how="left", maintain_order="left").sort("conn", *_ORDER)


def with_positions(events: pl.DataFrame) -> pl.DataFrame:
    """Adds `at` and `to`, the segment's place in its sender's sequence (SYN: 0), `acked`, its place in that of the
    other end, and `isn` and `peer_isn`; null where there was no SYN, and of resets."""
    first = pl.col("tcp_seq").cast(pl.Int64)
    starts = events.group_by("conn").agg(
        isn=first.filter("out", "syn").first(), peer_isn=first.filter(~pl.col("out"), pl.col("syn")).first()
    )
    out, side = pl.col("out"), ["conn", "out"]
    table = events.join(starts, on="conn", how="left", maintain_order="left").with_columns(
        data=pl.col("tcp_length").cast(pl.Int64),
        seq=pl.when(~pl.col("rst")).then(first),
        ack=pl.when(~pl.col("rst") & (pl.col("tcp_flags") & ACK != 0)).then(pl.col("tcp_ack").cast(pl.Int64)),
    )
    mine, other = (pl.when(out).then(a).otherwise(b) for a, b in (("isn", "peer_isn"), ("peer_isn", "isn")))
    table = table.with_columns(at=_unwrapped("seq", mine, side), acked=_unwrapped("ack", other, side))
    return table.with_columns(to=pl.col("at") + pl.col("data") + pl.col("syn") + pl.col("fin")).drop("seq", "ack")


def _unwrapped(name: str, start: pl.Expr, side: list[str]) -> pl.Expr:
    """Numbers modulo 2^32 as distances from `start`: each is nearest to the one before."""
    value = pl.col(name)
    step = value - pl.coalesce(value.forward_fill().shift(1).over(side), start)
    near = (step + _HALF) % _WRAP - _HALF
    # Counted on through the segments that have none.
    return pl.when(value.is_not_null()).then(near.fill_null(0).cum_sum().over(side)) + start * 0


def with_history(events: pl.DataFrame, options: pl.DataFrame) -> pl.DataFrame:
    """Adds what had happened before each segment at its own port, of the same connection.

    `sent_to`, `acked_before`, `edge_before`, `stamp_before`, `echo_before`, `finished_at`, `reset_before`: of what this
    end sent; `heard`: received without a gap; `allowed`: the right edge of the window that the other end offered, and
    `window_in` its last window; `acked_in`: acknowledged by it; `heard_to`: up to where it was received, with gaps;
    `reset_in`: a reset came that ends the connection.
    """
    table = events.join(options, on="row", how="left", maintain_order="left")
    out, alive = pl.col("out"), ~pl.col("rst")
    scales = table.filter("syn").group_by("conn").agg(
        own_scale=pl.col("scale").filter("out").first(),
        peer_scale=pl.col("scale").filter(~pl.col("out")).first(),
        own_mss=pl.col("mss").filter("out").first(),
        peer_mss=pl.col("mss").filter(~pl.col("out")).first(),
        own_sack=pl.col("sack_permitted").filter("out").first(),
        peer_sack=pl.col("sack_permitted").filter(~pl.col("out")).first(),
        own_stamps=pl.col("stamp").filter("out").first().is_not_null(),
        peer_stamps=pl.col("stamp").filter(~pl.col("out")).first().is_not_null(),
    )  # fmt: skip
    table = table.join(scales, on="conn", how="left", maintain_order="left").sort("conn", *_ORDER)
    both = pl.col("own_scale").is_not_null() & pl.col("peer_scale").is_not_null()
    shift = pl.when(pl.col("syn") | ~both).then(0).when(out).then("own_scale").otherwise("peer_scale")
    window = pl.col("tcp_window").cast(pl.Int64) * pl.lit(2, pl.Int64).pow(shift.cast(pl.Int64)).cast(pl.Int64)
    table = table.with_columns(window=window, unit=pl.lit(2, pl.Int64).pow(shift.cast(pl.Int64)).cast(pl.Int64))
    edge = pl.col("acked") + pl.col("window")
    # Linux that answers with a SYN cookie, for its queue of connections is full (RFC 4987 section 3.6), computes the
    # window from other segments when the cookie comes back: whole ones, without room for time stamps.
    cookie = pl.when(pl.col("syn") & (pl.col("tcp_flags") & ACK != 0)).then(pl.col("own_mss").fill_null(536))
    table = table.with_columns(
        sent_to=_before(pl.when(out).then("to"), "max"),
        acked_before=_before(pl.when(out).then("acked"), "max"),
        edge_before=_before(pl.when(out & alive).then(edge - cookie.fill_null(0).cast(pl.Int64)), "max"),
        edge=edge,
        stamp_before=_before(pl.when(out & alive).then("stamp"), "last"),
        echo_before=_before(pl.when(out & alive & ~pl.col("syn")).then("echo"), "last"),
        finished_at=_before(pl.when(out & pl.col("fin")).then("to"), "first"),
        reset_before=_before(pl.when(out & pl.col("rst")).then("row"), "first").is_not_null(),
        allowed=_before(pl.when(~out & alive).then(edge), "max"),
        window_in=_before(pl.when(~out & alive).then("window"), "last"),
        acked_in=_before(pl.when(~out).then("acked"), "max"),
        heard_to=_before(pl.when(~out).then("to"), "max"),
        fin_in=_before(pl.when(~out & pl.col("fin")).then("to"), "first"),
    ).join(_heard(table), on="row", how="left", maintain_order="left")
    return table.with_columns(reset_in=_before(pl.when(_ends_it()).then("row"), "first").is_not_null())


def _ends_it() -> pl.Expr:
    """Resets that came and that their receiver takes (RFC 5961 section 3.2): of the number that it expects next; of the
    last it has received (RFC 2018); or of that before a FIN, whose sender answers what was sent before it arrived."""
    came = ~pl.col("out") & pl.col("rst")
    place = (pl.col("tcp_seq").cast(pl.Int64) - pl.col("peer_isn")) % _WRAP
    before_fin = (pl.col("heard") == pl.col("fin_in")) & (place == pl.col("heard") - 1)
    return came & ((place == pl.col("heard")) | (place == pl.col("heard_to")) | before_fin)


def _before(value: pl.Expr, which: str) -> pl.Expr:
    """The greatest, last or first of the values of the rows before, in the same connection."""
    if which == "max":
        value = value.cum_max()
    filled = value.forward_fill()
    if which == "first":
        filled = value.drop_nulls().first() + pl.when(value.is_not_null().cum_max()).then(0)
    return filled.shift(1).over("conn")


def _heard(events: pl.DataFrame) -> pl.DataFrame:
    """row, heard: up to where the other end's sequence had come before each row, without a gap."""
    table = events.select("row", "conn", "out", "at", "to")
    came = ~pl.col("out") & pl.col("to").is_not_null()
    reach = pl.when(came).then("to").cum_max().forward_fill().over("conn")
    table = table.with_columns(reach=reach).with_columns(known=pl.col("reach").shift(1).over("conn"), came=came)
    # The first is the SYN, at 0.
    gap = pl.col("came") & (pl.col("at") > pl.col("known").fill_null(0))
    gaps = table.filter(gap)["conn"].unique()
    simple = table.filter(~pl.col("conn").is_in(gaps.implode())).select("row", heard="known")
    parts = [simple]
    for part in table.filter(pl.col("conn").is_in(gaps.implode())).partition_by("conn", maintain_order=True):
        values = _prefixes(part.select("came", "at", "to").iter_rows())
        parts.append(part.select("row", pl.Series("heard", values, pl.Int64)))
    return pl.concat(parts)


def _prefixes(rows: Iterable[tuple[bool, int, int]]) -> list[int | None]:
    """Before each row: how far the received ranges reach from 0 without a gap."""
    values: list[int | None] = []
    waiting: list[tuple[int, int]] = []
    reach: int | None = None
    for came, begin, end in rows:
        values.append(reach)
        if not came:
            continue
        heapq.heappush(waiting, (begin, end))
        while waiting and waiting[0][0] <= (reach or 0):
            reach = max(reach or 0, heapq.heappop(waiting)[1])
    return values

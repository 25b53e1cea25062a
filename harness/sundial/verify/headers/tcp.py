# SPDX-License-Identifier: Apache-2.0
"""TCP (RFC 9293) of segments that machines sent: what each says against what its end had sent and received before."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from sundial.observe.headers import TCP
from sundial.observe.tcp_options import BLOCKS, tcp_options
from sundial.verify.corruption import Read
from sundial.verify.findings import Check, findings, findings_of, none
from sundial.verify.headers.ip import LWIP_TTL, checksum_wrong, pseudo_header
from sundial.verify.headers.tcp_events import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    URG,
    connection_events,
    with_history,
    with_positions,
)

UNPROVEN = (
    "initial sequence numbers, window scales and the sizes of windows, which a TCP may choose",
    "how long TCP delays an acknowledgement, and when it retransmits a segment",
    "the push flag of segments with data",
    "where the timestamps of a connection begin, which a TCP may choose",
    "that data that arrived are acknowledged in the end, and a FIN where its port was not quiet at the end of the run",
    "the unit of TCP's timestamps; only that they do not go back and that echoes are received values",
    "a reset of a connection whose owner has closed it with data unread (RFC 2525 section 2.17)",
)

_LEGAL = (SYN, SYN | ACK, ACK, PSH | ACK, FIN | ACK, FIN | PSH | ACK, RST, RST | ACK)
_HISTORY = (
    "row", "end", "time_ns", "conn", "out", "syn", "fin", "rst", "mtu", "offloads", "ip_ttl",
    "tcp_seq", "tcp_ack", "tcp_flags", "tcp_length", "tcp_header", "tcp_window",
)  # fmt: skip
"""What is needed of a segment to follow its connection."""
_AT_ONCE = 1 << 16
"""Segments whose connections are followed at once, at least."""
AT_ONCE_NS, DELAYED_NS = 100_000_000, 300_000_000
"""How long a port must be quiet at the end of a run for an acknowledgement to be missing that was due at once, or after
200 ms at most (RFC 9293 section 3.8.6.3; TCP_DELACK_MAX of Linux, TCP_TMR_INTERVAL of lwIP)."""
LAST_ACK_NS = 10_000_000_000
"""How long lwIP waits in LAST-ACK: twice TCP_MSL (guest-apps/sss-core/lwip/lwipopts.h)."""
_HEADERS = 40
"""IPv4's and TCP's, without options."""
_STAMPED = 12
"""Timestamps with their padding (RFC 7323, appendix A)."""
_LEAST_MSS = 256
"""What Linux offers at least, whatever the MTU (sysctl net.ipv4.route.min_adv_mss)."""
_LARGEST_MSS = 1460
"""What lwIP is configured with (guest-apps/sss-core/lwip/lwipopts.h); an interface's MTU may ask for less."""


def check_tcp(
    frames: pl.DataFrame,
    sent: pl.DataFrame,
    ports: pl.DataFrame,
    read: Read,
    end_ns: int | None = None,
    *,
    killed: bool = False,
) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`, of `frames`; `end_ns`: when a run of the virtual clock ended; `killed`: events
    end programs."""
    if not (frames["protocol"] == TCP).any():
        return none()
    unreadable = sent.filter(pl.col("protocol") == TCP, pl.col("fragment_offset") == 0, pl.col("tcp_header").is_null())
    last = frames.select("end", "time_ns", "fate").filter(pl.col("fate").is_null())
    last = last.group_by("end").agg(last_ns=pl.col("time_ns").max())
    parts = [
        _check_connections(events, last, read, end_ns, killed=killed)
        for events in _some(connection_events(frames, sent, ports))
    ]
    of_kinds: list[tuple[pl.DataFrame, ...]] = list(zip(*parts, strict=True))
    return pl.concat(
        [
            findings(unreadable, pl.lit(True), pl.lit("tcp"), pl.lit("a TCP header"), pl.lit("something else")),
            *(found for of_a_kind in of_kinds for found in of_a_kind),
        ]
    )


def _some(events: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Whole connections, one after another: what had happened before each segment makes a wide table."""
    begins = np.flatnonzero(np.diff(events["conn"].cast(pl.Int64).to_numpy(), prepend=-1)).tolist()
    since = 0
    for begin in [*begins[1:], events.height]:
        if begin - since >= _AT_ONCE or begin == events.height:
            yield events[since:begin]
            since = begin


def _check_connections(
    events: pl.DataFrame, last: pl.DataFrame, read: Read, end_ns: int | None, *, killed: bool
) -> list[pl.DataFrame]:
    """Of some connections, the findings of each kind. `last`: when each port sent or received last."""
    fields = _check_fields(events.filter("out"))
    options = tcp_options(events.select("row", "ip_header", "tcp_header"), read(events))
    history = with_history(with_positions(events.select(_HISTORY)), options)
    own = history.filter("out")
    return [
        fields,
        _check_sequence(own),
        _check_acknowledgements(own, history),
        _check_options(own, history),
        _check_resets(own, history, killed=killed),
        none() if end_ns is None else _check_ends(history, last, end_ns),
    ]


def of_no_socket() -> pl.Expr:
    """Which segments Linux may send without a socket: a reset for want of one, or the ACK of TIME-WAIT.
    ip_send_unicast_reply (net/ipv4/ip_output.c) finishes their sum, and gives them no identification."""
    flags = pl.col("tcp_flags")
    return (flags & RST != 0) | ((flags == ACK) & (pl.col("ip_id") == 0))


def _check_fields(own: pl.DataFrame) -> pl.DataFrame:
    flags = pl.col("tcp_flags")
    length = pl.col("ip_length").cast(pl.Int64) - pl.col("ip_header")
    own = own.with_columns(pseudo=pseudo_header(TCP, length))
    total = pl.col("ip_payload_sum").cast(pl.Int64)
    wrong = checksum_wrong(total, pl.col("pseudo"), pl.col("tcp_checksum"), finished=of_no_socket())
    urgent = pl.col("tcp_urgent")
    return findings_of(
        own,
        [
            ("tcp.flags", ~flags.is_in(list(_LEGAL)), pl.lit("flags of a legal segment"), flags),
            (
                "tcp.flags",
                (flags == PSH | ACK) & (pl.col("tcp_length") == 0),
                pl.lit("PSH with data only"),
                pl.lit("PSH without data"),
            ),
            ("tcp.checksum", wrong & ~pl.col("offloads"), pl.lit("right"), pl.col("tcp_checksum")),
            ("tcp.urgent_pointer", (urgent != 0) & (flags & URG == 0), pl.lit("0"), urgent),
            ("tcp.hdr_len", pl.col("tcp_length").cast(pl.Int64) < 0, pl.lit("within the packet"), pl.col("tcp_header")),
            ("tcp.hdr_len", pl.col("tcp_header") < 20, pl.lit("20 at least"), pl.col("tcp_header")),
        ],
    )


def _check_sequence(own: pl.DataFrame) -> pl.DataFrame:
    """Data begin where what was sent before ends, or repeat it; they stay in the window that the other end offered."""
    alive, syn, fin = ~pl.col("rst"), pl.col("syn"), pl.col("fin")
    at, to, data = pl.col("at"), pl.col("to"), pl.col("data")
    empty = alive & (data == 0) & ~syn & ~fin
    probing = pl.col("window_in") == 0
    last = pl.col("finished_at") - 1
    # Of a closed window: nothing, from the byte before it (Linux), or one byte of it (lwIP).
    probe = probing & (((data == 0) & (at == pl.col("acked_in") - 1)) | (data == 1))
    silent = alive & pl.col("isn").is_null()
    return findings_of(
        own,
        [
            ("tcp.connection", silent, pl.lit("a SYN before"), pl.lit("none")),
            ("tcp.connection", alive & pl.col("reset_before"), pl.lit("nothing after its reset"), pl.lit("a segment")),
            ("tcp.seq", syn & (at != 0), pl.lit("that of the SYN before"), pl.col("tcp_seq")),
            ("tcp.seq", alive & ~syn & (at < 1) & ~probe, pl.lit("behind the SYN"), pl.col("tcp_seq")),
            ("tcp.len", syn & (data != 0), pl.lit("0 with a SYN"), data),
            ("tcp.seq", alive & ~syn & (at > pl.col("sent_to")), _place("sent_to"), _place("at")),
            ("tcp.seq", empty & (at != pl.col("sent_to")) & ~probe, _place("sent_to"), _place("at")),
            (
                "tcp.seq",
                alive & fin & (data == 0) & last.is_null() & (at != pl.col("sent_to")),
                _place("sent_to"),
                _place("at"),
            ),
            (
                "tcp.flags",
                alive & ((to > last + 1) | (fin & (to != last + 1))),
                pl.format("the end at {}", last),
                pl.format("bytes up to {}", to),
            ),
            (
                "tcp.window_size",
                alive & ~syn & (data > 0) & (at + data > pl.col("allowed")) & ~probe,
                pl.format("no data beyond {}, the other end's window", "allowed"),
                pl.format("up to {}", at + data),
            ),
            (
                "tcp.window_size",
                alive & (pl.col("edge") < pl.col("edge_before") - pl.col("unit")),
                pl.format("a window that reaches {}, as before", "edge_before"),
                pl.format("{}", "edge"),
            ),
        ],
    )


def _check_acknowledgements(own: pl.DataFrame, history: pl.DataFrame) -> pl.DataFrame:
    """What was received without a gap is acknowledged, up to the end of a segment, and never less than before."""
    ends = history.filter(~pl.col("out")).select("conn", acked="to").unique().with_columns(an_end=True)
    table = own.join(ends, on=["conn", "acked"], how="left", maintain_order="left")
    acked, heard = pl.col("acked"), pl.col("heard")
    alive = ~pl.col("rst")
    opening = pl.col("tcp_flags") == SYN
    unheard = alive & ~opening & (pl.col("peer_isn").is_null() | heard.is_null())
    return findings_of(
        table,
        [
            ("tcp.ack", opening & (pl.col("tcp_ack") != 0), pl.lit("0 in a SYN"), pl.col("tcp_ack")),
            ("tcp.ack", unheard, pl.lit("of a SYN received before"), pl.col("tcp_ack")),
            ("tcp.ack", alive & (acked > heard), pl.format("at most {}", "heard"), _place("acked")),
            ("tcp.ack", alive & (acked < pl.col("acked_before")), _least("acked_before"), _place("acked")),
            (
                "tcp.ack",
                alive & acked.is_not_null() & (acked <= heard) & pl.col("an_end").is_null(),
                pl.lit("the end of a segment received"),
                _place("acked"),
            ),
        ],
    )


def _check_options(own: pl.DataFrame, history: pl.DataFrame) -> pl.DataFrame:
    syn, alive = pl.col("syn"), ~pl.col("rst")
    answers = pl.col("tcp_flags") == SYN | ACK
    stamped = pl.col("stamp").is_not_null()
    # An answer offers what the SYN did (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2); its sender has seen that.
    stamps = pl.col("own_stamps") & pl.col("peer_stamps")
    mss = pl.col("mtu") - _HEADERS
    room = pl.min_horizontal(pl.col("peer_mss").fill_null(536).cast(pl.Int64), mss)
    room = room - pl.when(stamps).then(_STAMPED).otherwise(0)
    received = history.filter(~pl.col("out"), pl.col("stamp").is_not_null()).select("conn", echo="stamp", came="row")
    first = received.group_by("conn", "echo").agg(came=pl.col("came").min())
    table = own.join(first, on=["conn", "echo"], how="left", maintain_order="left")
    echoes = alive & stamped & ~(pl.col("tcp_flags") == SYN)
    checks: list[Check] = [
        ("tcp.options", pl.col("malformed"), pl.lit("well-formed options"), pl.lit("others")),
        ("tcp.options", ~syn & pl.col("mss").is_not_null(), pl.lit("the MSS in a SYN only"), pl.col("mss")),
        (
            "tcp.options",
            ~syn & pl.col("scale").is_not_null(),
            pl.lit("the window scale in a SYN only"),
            pl.col("scale"),
        ),
        ("tcp.options", ~syn & pl.col("sack_permitted"), pl.lit("SACK permitted in a SYN only"), pl.lit("it")),
        ("tcp.options.mss", syn & pl.col("mss").is_null(), pl.lit("an MSS"), pl.lit("none")),
        (
            "tcp.options.mss",
            syn
            & (pl.col("mss") != mss)
            & (pl.col("mss") != pl.min_horizontal(mss, _LARGEST_MSS))
            & (pl.col("mss") != pl.max_horizontal(mss, _LEAST_MSS)),
            mss,
            pl.col("mss"),
        ),
        ("tcp.options.wscale", pl.col("scale") > 14, pl.lit("at most 14"), pl.col("scale")),
        (
            "tcp.options",
            answers & pl.col("scale").is_not_null() & pl.col("peer_scale").is_null(),
            pl.lit("no window scale, as the SYN had none"),
            pl.col("scale"),
        ),
        (
            "tcp.options",
            answers & pl.col("sack_permitted") & ~pl.col("peer_sack"),
            pl.lit("no SACK, as the SYN had none"),
            pl.lit("SACK permitted"),
        ),
        (
            "tcp.options",
            answers & stamped & ~pl.col("peer_stamps"),
            pl.lit("no timestamps, as the SYN had none"),
            pl.lit("timestamps"),
        ),
        ("tcp.options.timestamp", alive & ~syn & stamps & ~stamped, pl.lit("timestamps, as agreed"), pl.lit("none")),
        ("tcp.options.timestamp", alive & ~syn & stamped & ~stamps, pl.lit("none, as agreed"), pl.lit("timestamps")),
        (
            "tcp.options.timestamp.tsval",
            alive & _less("stamp", "stamp_before"),
            pl.format("at least {}", "stamp_before"),
            pl.col("stamp"),
        ),
        (
            "tcp.options.timestamp.tsecr",
            (pl.col("tcp_flags") == SYN) & (pl.col("echo") != 0),
            pl.lit("0 in a SYN"),
            pl.col("echo"),
        ),
        (
            "tcp.options.timestamp.tsecr",
            echoes & pl.col("came").is_null(),
            pl.lit("a timestamp received before"),
            pl.col("echo"),
        ),
        (
            "tcp.options.timestamp.tsecr",
            echoes & ~syn & _less("echo", "echo_before"),
            pl.format("at least {}", "echo_before"),
            pl.col("echo"),
        ),
        (
            "tcp.len",
            alive & ~pl.col("offloads") & (pl.col("data") > room),
            pl.format("at most {}", room),
            pl.col("data"),
        ),
        (
            "tcp.options.sack",
            pl.col("blocks").is_not_null() & ~(pl.col("own_sack") & pl.col("peer_sack")),
            pl.lit("none, as agreed"),
            pl.format("{} blocks", "blocks"),
        ),
    ]
    return pl.concat([findings_of(table, checks), _check_sacks(own, history)])


def _check_sacks(own: pl.DataFrame, history: pl.DataFrame) -> pl.DataFrame:
    """A block of SACK (RFC 2018; of what came twice, RFC 2883) begins and ends where segments that were received do; a
    FIN takes a number, too, and so does a SYN that came twice."""
    sacks = own.filter(pl.col("blocks").is_not_null(), pl.col("peer_isn").is_not_null())
    again = (pl.col("syn") == 1) & (pl.col("syn").sum().over("conn") > 1)
    got = history.filter(~pl.col("out")).filter((pl.col("data") > 0) | (pl.col("fin") == 1) | again)
    begins = got.select("conn", place="tcp_seq").unique().with_columns(pl.lit(True).alias("left"))
    past = pl.col("tcp_seq").cast(pl.Int64) + pl.col("syn") + pl.col("data") + pl.col("fin")
    ends = got.select("conn", place=(past % (1 << 32)).cast(pl.UInt32))
    ends = ends.unique().with_columns(pl.lit(True).alias("right"))
    parts = []
    for place in range(BLOCKS):
        for edge, places in (("left", begins), ("right", ends)):
            name = f"{edge}{place}"
            some = sacks.filter(pl.col(name).is_not_null()).drop("left", "right", strict=False)
            joined = some.join(places, left_on=["conn", name], right_on=["conn", "place"], how="left")
            parts.append(
                findings(
                    joined,
                    pl.col(edge).is_null(),
                    pl.lit("tcp.options.sack"),
                    pl.lit("edges of segments received"),
                    pl.col(name),
                )
            )
    return pl.concat(parts)


def _check_resets(own: pl.DataFrame, history: pl.DataFrame, *, killed: bool) -> pl.DataFrame:
    """A reset answers a segment for a connection that is not, or no longer, open; or its end gives the connection up.

    RFC 9293 section 3.10.7.1: it takes its number from the segment's acknowledgement, or acknowledges it if it had
    none.
    """
    resets = own.filter("rst")
    asked = history.filter(~pl.col("out"), ~pl.col("rst"))
    numbers = asked.filter(pl.col("tcp_flags") & ACK != 0).group_by("conn", tcp_seq="tcp_ack").agg(asked=pl.len())
    needed = (pl.col("tcp_seq").cast(pl.Int64) + pl.col("data") + pl.col("syn") + pl.col("fin")) % (1 << 32)
    refused = asked.group_by("conn", tcp_ack=needed.cast(pl.UInt32)).agg(refused=pl.len())
    fins = asked.filter("fin").group_by("conn").agg(fin_ns=pl.col("time_ns").min())
    # Each answers a segment of its own.
    turn = pl.int_range(1, pl.len() + 1).over("conn", "tcp_flags", "tcp_seq", "tcp_ack", order_by=["time_ns", "row"])
    table = (
        resets.with_columns(turn=turn)
        .join(numbers, on=["conn", "tcp_seq"], how="left", maintain_order="left")
        .join(refused, on=["conn", "tcp_ack"], how="left", maintain_order="left")
        .join(fins, on="conn", how="left", maintain_order="left")
    )
    alone = pl.col("tcp_flags") == RST
    ended = pl.col("finished_at").is_not_null() | pl.col("isn").is_null()
    ended |= pl.col("reset_before") | pl.col("reset_in")
    # Linux gives the connection up (tcp_close) before its reset leaves: what comes meanwhile is answered.
    given_up_ns = pl.col("time_ns").filter(~alone).min().over("conn")
    closed = ended | (pl.col("time_ns") >= given_up_ns - AT_ONCE_NS).fill_null(False)
    # A kernel forgets a handshake that is not complete when the program that asked closes its socket, or ends; of the
    # one that listened, when that ends.
    closed |= (pl.lit(killed) | pl.col("acked_before").is_null()) & (pl.col("sent_to") == 1)
    next_seq = (pl.col("isn") + pl.col("sent_to")) % (1 << 32)
    # Also behind its FIN: a program that shut the connection down has closed it without reading all (RFC 2525, 2.17).
    gives_up = ~alone & (pl.col("tcp_seq") == next_seq) & (pl.col("refused") >= pl.col("turn"))
    refuses = ~alone & (pl.col("tcp_seq") == 0) & pl.col("isn").is_null() & (pl.col("refused") >= pl.col("turn"))
    answers = alone & closed & (pl.col("asked") >= pl.col("turn")) & (pl.col("tcp_ack") == 0)
    answers &= pl.col("tcp_header") == 20
    # lwIP acknowledges what its reset answers as well (tcp_rst), and forgets a connection in LAST-ACK (tcp_slowtmr).
    forgotten = ended | (pl.col("time_ns") >= pl.col("fin_ns") + LAST_ACK_NS).fill_null(False)
    both = (pl.col("asked") >= pl.col("turn")) & (pl.col("refused") >= pl.col("turn"))
    answers |= (pl.col("ip_ttl") == LWIP_TTL) & ~alone & forgotten & both
    right = (answers | refuses | gives_up).fill_null(False)
    return findings_of(
        table,
        [
            (
                "tcp.flags.reset",
                ~right,
                pl.lit("one that answers a segment for a closed connection, or gives it up"),
                pl.format("sequence {}, acknowledgement {}", "tcp_seq", "tcp_ack"),
            ),
            ("tcp.len", pl.col("data") != 0, pl.lit("0 with a reset"), pl.col("data")),
        ],
    )


def _check_ends(history: pl.DataFrame, last: pl.DataFrame, end_ns: int) -> pl.DataFrame:
    """A FIN that comes in order is acknowledged (RFC 9293 section 3.10.7.4, eighth), unless a reset ends the
    connection: at once by an end that has sent its own. An end that has sent nothing but a SYN may not have accepted
    the connection."""
    out = pl.col("out")
    fin = ~out & pl.col("fin")
    ended = history.group_by("conn").agg(
        call=pl.lit(None, pl.UInt32),
        rows=pl.col("row").filter(fin).first(),
        ended_at=pl.col("to").filter(fin).first(),
        acked=pl.col("acked").filter(out).max(),
        heard=pl.col("heard").max(),
        reset=pl.col("rst").any(),
        opened=(out & ~pl.col("syn")).any(),
        closed=(out & pl.col("fin")).any(),
        end=pl.col("end").first(),
    ).join(last, on="end", how="left")  # fmt: skip
    due = (pl.col("heard") >= pl.col("ended_at") - 1) & pl.col("opened") & ~pl.col("reset")
    due &= pl.col("last_ns") < end_ns - pl.when("closed").then(AT_ONCE_NS).otherwise(DELAYED_NS)
    return findings(
        ended.with_columns(rows=pl.concat_list("rows")),
        (due & (pl.col("acked").fill_null(0) < pl.col("ended_at"))).fill_null(False),
        pl.lit("tcp.fin"),
        pl.lit("an acknowledgement of the FIN that came"),
        pl.lit("none"),
    )


def _place(name: str) -> pl.Expr:
    return pl.format("{} from the SYN", name)


def _least(name: str) -> pl.Expr:
    return pl.format("at least {}", name)


def _less(one: str, other: str) -> pl.Expr:
    """Of numbers modulo 2^32."""
    return (pl.col(one).cast(pl.Int64) - pl.col(other).cast(pl.Int64)) % (1 << 32) >= 1 << 31

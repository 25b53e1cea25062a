# SPDX-License-Identifier: Apache-2.0
"""IPv4 (RFC 791) of packets that machines sent, as their stacks make it, and the checksum of UDP (RFC 768)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Address

import numpy as np
import polars as pl

from sundial.observe.headers import ETHERNET, IPV4, TCP, UDP
from sundial.observe.octets import fold as fold_sums
from sundial.verify.findings import Check, findings, findings_of, none
from sundial.verify.groups import number_of
from sundial.verify.headers.arp import Stretches
from sundial.verify.headers.igmp import HEADER, reports_of

UNPROVEN = (
    "the identification of the first packet of a socket on Linux, which is random",
    "the steps of identifications on SSS-CORE, where packets that a node sends to itself are numbered too",
    "the steps of Linux's identification of datagrams from sockets without a peer; only an upper bound",
    "checksums that a guest leaves to its adapter (`offloads: true`)",
)

ICMP = 1
DONT_FRAGMENT, MORE_FRAGMENTS, RESERVED = 2, 1, 4
LINUX_TTL, LWIP_TTL = 64, 255
"""IPDEFTTL of Linux (net/ip.h); IP_DEFAULT_TTL of lwIP (opt.h). They tell which of the two stacks a machine has."""
ICMP_ERROR_TOS = 0xC0
"""Linux: IPTOS_PREC_INTERNETCONTROL (net/ipv4/icmp.c, igmp.c)."""
_TICK_NS = 4_000_000
"""Linux's CONFIG_HZ of 250: the generator moves on by up to one a tick between uses (net/ipv4/route.c,
ip_idents_reserve)."""
_LATE_TICKS = 800
"""Packets may wait for so long after they were numbered: for an answer of ARP, or for the wire."""
_SOCKET_NS = 50_000_000
_WRAP = 1 << 16
_ROUND_NS = 100_000_000
"""No node sends 65,536 packets in so short a time, those to itself included."""


def check_ip(
    sent: pl.DataFrame,
    hops: pl.DataFrame,
    waits: Stretches,
    headless: pl.Series,
    cut: pl.Series,
    of_users: Collection[str] = (),
) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`: what they sent as IPv4, in order; `hops` as of `ports.next_hops`; `waits`: by
    machine, when it may have dropped what it was to send; `headless` as of `arp.Overflow`, `cut` of
    `frames.cut_off`; `of_users`: machines whose programs may set what a socket can."""
    table = (
        sent.filter(pl.col("eth_type") == IPV4)
        .join(hops.select("end", "target", known=True), on=["end", "target"], how="left", maintain_order="left")
        .with_columns(
            linux=_is_linux() | pl.col("machine").is_in(list(of_users)),
        )
    )
    flags, protocol = pl.col("ip_flags"), pl.col("protocol")
    ttl = pl.when("linux").then(LINUX_TTL).otherwise(LWIP_TTL)
    report = reports_of(of_users)
    errors = pl.col("linux") & (protocol == ICMP) & pl.col("icmp_type").is_in([3, 11])
    tos = pl.when(errors | report).then(ICMP_ERROR_TOS)
    whole = (pl.col("fragment_offset") == 0) & (flags & MORE_FRAGMENTS == 0)
    # Linux sets DF where a packet fits (path MTU discovery), but for its answers to echo requests; lwIP never does.
    fits = pl.when(protocol != ICMP).then(DONT_FRAGMENT)
    fixed = pl.when(pl.col("linux") & whole).then(fits).otherwise(0)
    room = pl.col("ip_length").cast(pl.Int64) - pl.col("ip_header")
    least = pl.col("captured_length").cast(pl.Int64) - ETHERNET
    if of_users:
        table = _with_asked(table).with_columns(
            _left_to_program(column, of_users).alias(free) for column, free in _FREE.items()
        )
    else:
        table = table.with_columns(pl.lit(False).alias(free) for free in _FREE.values())
    free_tos, free_df, free_ttl = map(pl.col, _FREE.values())
    # Linux (net/ipv4/igmp.c) sends reports with an option, to the next router at most.
    header = pl.when(report).then(HEADER).otherwise(20)
    ttl = pl.when(report).then(1).otherwise(ttl)
    checks: list[Check] = [
        ("ip.version", pl.col("ip_version") != 4, pl.lit("4"), pl.col("ip_version")),
        ("ip.hdr_len", pl.col("ip_header") != header, header, pl.col("ip_header")),
        ("ip.dsfield", (pl.col("ip_tos") != tos.fill_null(0)) & ~free_tos, tos.fill_null(0), pl.col("ip_tos")),
        ("ip.len", pl.col("ip_length") > least, pl.format("at most {}", least), pl.col("ip_length")),
        ("ip.len", pl.col("ip_length") < pl.col("ip_header"), pl.lit("the header at least"), pl.col("ip_length")),
        ("ip.flags", flags >= RESERVED, pl.lit("the reserved bit clear"), flags),
        ("ip.flags.df", (flags & DONT_FRAGMENT != fixed) & ~free_df, fixed, flags & DONT_FRAGMENT),
        ("ip.ttl", (pl.col("ip_ttl") != ttl) & ~free_ttl, ttl, pl.col("ip_ttl")),
        ("ip.checksum", ~pl.col("ip_checksum_right"), pl.lit("right"), pl.col("ip_checksum")),
        ("ip.proto", ~protocol.is_in([ICMP, TCP, UDP]) & ~report, pl.lit("ICMP, TCP or UDP"), protocol),
        ("ip.src", pl.col("source").ne_missing(pl.col("address")), pl.col("address"), pl.col("source")),
        (
            "ip.dst",
            pl.col("known").is_null() | ((pl.col("target") == pl.col("address")) != pl.col("inner")),
            pl.lit("another machine's that it can reach"),
            pl.col("target"),
        ),
        (
            "ip.frag_offset",
            (flags & MORE_FRAGMENTS != 0) & (room % 8 != 0),
            pl.lit("8 bytes, or a multiple, in each fragment but the last"),
            room,
        ),
    ]
    unreadable = findings(
        table, pl.col("ip_header").is_null(), pl.lit("ip"), pl.lit("an IPv4 header"), pl.lit("something else")
    )
    return pl.concat(
        [
            unreadable,
            findings_of(table, checks),
            _check_identifications(table, waits),
            _check_datagrams(table.filter(~pl.col("row").is_in(headless.implode())), waits, cut),
        ]
    )


_ECHO_REPLY, _ECHO_REQUEST = 0, 8
_FREE = {"ip_tos": "free_tos", "ip_flags": "free_df", "ip_ttl": "free_ttl"}
_PARTS = ("machine", "protocol", "source", "target", "ip_id")
"""Of all fragments of a datagram."""
_FLOW = ("machine", "protocol", "source", "target", "source_port", "target_port")


def _left_to_program(column: str, of_users: Collection[str]) -> pl.Expr:
    """Whether a program may have set a field of a packet, on a machine with programs of users.

    Of UDP and TCP, if it is the only packet of its flow, or has a neighbour there, or in its datagram, with the same
    value. Of echo requests each may have its own value, as traceroute's, or each value comes again, as mtr's. An answer
    to an echo request has the type of service of one."""
    value = pl.col(column) & (DONT_FRAGMENT if column == "ip_flags" else 0xFF)
    begins = pl.col("fragment_offset") == 0
    asks = (pl.col("protocol") == ICMP) & (pl.col("icmp_type") == _ECHO_REQUEST)
    flow = [*_FLOW, "fragment_offset", "icmp_type"]
    several = (pl.len().over(*flow, column) > 1) | (value.n_unique().over(flow) == pl.len().over(flow))
    own = pl.col("protocol").is_in([TCP, UDP]) & _has_equal(value, flow, alone=True)
    by_program = pl.when(begins).then(own | (asks & several)).otherwise(_has_equal(value, _PARTS, alone=False))
    mine = pl.col("machine").is_in(list(of_users)) & by_program.fill_null(False)
    answers = (pl.col("protocol") == ICMP) & (pl.col("icmp_type") == _ECHO_REPLY)
    return mine | (answers & pl.col("asked").fill_null(False)) if column == "ip_tos" else mine


def _has_equal(value: pl.Expr, flow: Sequence[str], *, alone: bool) -> pl.Expr:
    """Whether the packet before or behind it in the flow has the same value. `alone`: of one that has neither."""
    before, after = (value.shift(step).over(flow) for step in (1, -1))
    equal = (value == before).fill_null(False) | (value == after).fill_null(False)
    return equal | (before.is_null() & after.is_null()) if alone else equal


def _with_asked(table: pl.DataFrame) -> pl.DataFrame:
    """Adds `asked`: some echo request to the packet's sender, from its target, has the packet's type of service."""
    asks = table.filter(pl.col("protocol") == ICMP, pl.col("icmp_type") == _ECHO_REQUEST)
    asked = asks.select("ip_tos", source="target", target="source", asked=True).unique()
    return table.join(asked, on=["ip_tos", "source", "target"], how="left", maintain_order="left")


def _is_linux() -> pl.Expr:
    """By the TTL of most of a machine's packets."""
    near = (pl.col("ip_ttl") == LINUX_TTL).sum().over("machine")
    far = (pl.col("ip_ttl") == LWIP_TTL).sum().over("machine")
    return near >= far


_SHARED = ["source", "target", "offloads", "inner", "place"]
_DATAGRAM = ["end", "source", "target", "protocol", "ip_id", "turn"]


def _check_identifications(table: pl.DataFrame, waits: Stretches) -> pl.DataFrame:
    """Linux (net/ip.h, ip_select_ident_segs; net/ipv4/route.c): a connected socket counts its packets from any number,
    and others get the next number of a generator of their addresses; but what TCP sends without a connection's socket
    has 0. lwIP (ip4.c) counts the packets of a machine."""
    beginning = table.filter(pl.col("fragment_offset") == 0).select(
        "row", "time_ns", "end", "machine", "linux", "protocol", "source", "target", "source_port", "target_port",
        "ip_id", "ip_flags", "tcp_flags", "icmp_type", "inner", "offloads", "tcp_window", "tcp_length",
    )  # fmt: skip
    atomic = pl.col("ip_flags") & DONT_FRAGMENT != 0
    unnumbered = atomic & (pl.col("ip_id") == 0)
    linux = beginning.filter("linux")
    tcp = linux.filter(pl.col("protocol") == TCP)
    opening = pl.col("tcp_flags") & 0x12 == 0x12
    stands_alone = (opening | (pl.col("tcp_flags") & 0x04 != 0)) & unnumbered
    # A SYN, or the answer to one, begins a socket and its numbers.
    begins = pl.col("tcp_flags") & 0x02 != 0
    counted = tcp.with_columns(
        socket=begins.cum_sum().over("end", "target", "source_port", "target_port", order_by=["time_ns", "row"])
    ).filter(~stands_alone)
    counted = _without_unnumbered(counted, unnumbered, ["end", "target", "source_port", "target_port", "socket"])
    lwip = beginning.filter(~pl.col("linux")).with_columns(least=pl.lit(1), most=pl.lit(1 << 15))
    flow = ["end", "target", "source_port", "target_port"]
    return pl.concat(
        [
            _steps(_linux_tcp(counted, tcp.filter(begins), [*flow, "socket"]), [*flow, "socket"], waits),
            _steps(_linux_udp(linux.filter(pl.col("protocol") == UDP), flow), flow, waits),
            # A packet that waits for an answer of ARP, or for another wire, is passed by later numbers.
            _steps(lwip, ["end", "target"], waits),
            _repeated(lwip),
        ]
    )


def _without_unnumbered(table: pl.DataFrame, unnumbered: pl.Expr, key: list[str]) -> pl.DataFrame:
    """Without what is sent for no socket and so has the number 0; which is one of the count where that goes round."""
    counted = pl.when(~unnumbered).then(pl.col("ip_id").cast(pl.Int64))
    order = ["time_ns", "row"]
    last = (
        table.sort(order)
        .with_columns(last=counted.forward_fill().over(key))
        .with_columns(last=pl.col("last").shift(1).over(key))
    )
    return last.filter(~unnumbered | (pl.col("last") == _WRAP - 1)).drop("last")


def _linux_tcp(table: pl.DataFrame, opening: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    """Adds least and most: 1, but where packets pass before they are cut. There each has a number for each of its
    segments (net/ip.h, ip_select_ident_segs), which are half the largest window of the peer at least
    (net/ipv4/tcp_output.c, tcp_bound_to_half_wnd)."""
    flow = ["source", "target", "source_port", "target_port"]
    peers = opening.group_by(flow).agg(half=pl.col("tcp_window").min() // 2)
    swapped = {"source": "target", "target": "source", "source_port": "target_port", "target_port": "source_port"}
    sent = table.join(peers.rename(swapped), on=[*swapped], how="left", maintain_order="left")
    segments = -(-pl.col("tcp_length").cast(pl.Int64) // pl.col("half").cast(pl.Int64).clip(1))
    most = pl.when(pl.col("inner") | pl.col("offloads")).then(segments.shift(1).over(key)).fill_null(1).clip(1)
    return sent.with_columns(least=pl.lit(1), most=most)


def _linux_udp(table: pl.DataFrame, flow: list[str]) -> pl.DataFrame:
    """Adds least and most: the steps that a connected socket's own count and the generator of its addresses leave open.

    Where another socket uses a port again, its numbers start again. So they may where the next packet continues
    from there, or after a pause.
    """
    number = pl.col("ip_id").cast(pl.Int64)
    pause = pl.col("time_ns") - pl.col("time_ns").shift(1).over(flow)
    numbered = table.with_columns(place=pl.int_range(pl.len()).over("end", "target"))
    between = pl.col("place") - pl.col("place").shift(1).over(flow)
    goes_on = (number.shift(-1).over(flow) - number) % _WRAP == 1
    restarts = (goes_on & ((number - number.shift(1).over(flow)) % _WRAP != 0)) | (pause > _SOCKET_NS)
    most = between + pause // _TICK_NS + _LATE_TICKS
    return numbered.with_columns(
        least=pl.when(restarts).then(0).otherwise(1), most=pl.when(restarts).then(_WRAP).otherwise(most)
    )


def _steps(table: pl.DataFrame, key: list[str], waits: Stretches) -> pl.DataFrame:
    """A finding where identifications of the same `key` step by less than `least` or more than `most`. What a machine
    drops before its port has had its number."""
    number, since = pl.col("ip_id").cast(pl.Int64), pl.col("time_ns").shift(1).over(key)
    before = number.shift(1).over(key)
    waited = [
        (pl.col("machine") == name) & (pl.col("time_ns") >= begin) & (since <= end)
        for name, stretches in waits.items()
        for begin, end in stretches
    ]
    steps = table.with_columns(
        before=before,
        step=(number - before) % _WRAP,
        most=pl.when(pl.any_horizontal(pl.lit(False), *waited)).then(_WRAP - 1).otherwise("most"),
    )
    return findings(
        steps,
        ((pl.col("step") < pl.col("least")) | (pl.col("step") > pl.col("most"))).fill_null(False),
        pl.lit("ip.id"),
        pl.format("{} to {} more than {}", "least", "most", "before"),
        pl.col("ip_id"),
    )


def _repeated(table: pl.DataFrame) -> pl.DataFrame:
    """A finding where a machine that counts all its packets gives a number again, sooner than 65,536 packets last."""
    since = pl.col("time_ns") - pl.col("time_ns").shift(1).over("machine", "ip_id", order_by=["time_ns", "row"])
    return findings(
        table.with_columns(since=since),
        (pl.col("since") < _ROUND_NS).fill_null(False),
        pl.lit("ip.id"),
        pl.lit("another than that of an earlier packet"),
        pl.col("ip_id"),
    )


def _check_datagrams(table: pl.DataFrame, waits: Stretches, cut: pl.Series) -> pl.DataFrame:
    """UDP's length and checksum, of the whole datagram where it was fragmented; its fragments all there, in order, as
    far as they left before the run ended, and but for what the machine dropped."""
    udp = table.filter(pl.col("protocol") == UDP, pl.col("ip_header").is_not_null()).with_columns(
        data=pl.col("ip_length").cast(pl.Int64) - pl.col("ip_header"), place=pl.int_range(pl.len())
    )
    first = pl.col("fragment_offset") == 0
    # What no fragment shares an identification with is a datagram by itself: almost all, and nothing to gather.
    udp = udp.with_columns(number=number_of("end", "target", "ip_id"))
    udp = udp.filter(~_plainly_whole(udp))
    if udp.is_empty():
        return none()
    in_parts = pl.col("number").is_in(udp.filter(~first | pl.col("more"))["number"].unique().implode())
    alone = udp.filter(~in_parts).select(
        *_SHARED,
        rows=pl.concat_list("row"),
        contiguous=first,
        ended=~pl.col("more"),
        length="data",
        udp_length="udp_length",
        udp_checksum="udp_checksum",
        sum=pl.col("ip_payload_sum").cast(pl.Int64),
        unsummed=pl.col("ip_payload_sum").is_null(),
    )
    # The same identification comes again after 65,536 datagrams, and begins with a fragment at 0. But an adapter that
    # holds frames back (a LAN emulation client) drops what it has no place for before it sends the first.
    several = udp.filter(in_parts).with_columns(
        turn=first.cum_sum().over("number", order_by=["time_ns", "row"]).clip(1)
    )
    offset, sent = pl.col("fragment_offset"), pl.col("fate").is_null()
    by_offset = pl.col("data").sort_by(offset).cum_sum().shift(1, fill_value=0)
    in_order = pl.all_horizontal((offset.filter(each).diff() > 0).all() for each in (sent, ~sent))
    gathered = several.group_by(number_of(*_DATAGRAM).alias("datagram"), maintain_order=True).agg(
        rows=pl.col("row"),
        contiguous=(offset.sort() == by_offset).all() & in_order,
        ended=~pl.col("more").sort_by(offset).last(),
        length=pl.col("data").sum(),
        udp_length=pl.col("udp_length").sort_by(offset).first(),
        udp_checksum=pl.col("udp_checksum").sort_by(offset).first(),
        sum=pl.col("ip_payload_sum").cast(pl.Int64).sum(),
        unsummed=pl.col("ip_payload_sum").is_null().any(),
        **{name: pl.col(name).first() for name in _SHARED},
        machine=pl.col("machine").first(),
        times=pl.concat_list(pl.col("time_ns").min(), pl.col("time_ns").max()),
        in_order=(offset.sort() >= by_offset).all() & in_order,
    )
    partly = gathered.filter(~(pl.col("contiguous") & pl.col("ended")), "in_order")
    dropped = [
        place
        for place, machine, (since, until) in partly.select("place", "machine", "times").iter_rows()
        if any(begin <= until and since <= end for begin, end in waits.get(machine, ()))
    ]
    datagrams = pl.concat([alone, gathered.select(alone.columns)]).sort("place")
    datagrams = datagrams.with_columns(call=pl.lit(None, pl.UInt32))
    whole = pl.col("contiguous") & pl.col("ended")
    wrong = checksum_wrong(pl.col("sum"), pseudo_header(UDP, pl.col("length")), pl.col("udp_checksum"))
    zero = pl.col("udp_checksum") == 0
    return pl.concat(
        [
            findings(
                datagrams,
                ~whole
                & ~pl.col("place").is_in(dropped)
                & ~(pl.col("contiguous") & pl.col("rows").list.last().is_in(cut.implode())),
                pl.lit("ip.fragments"),
                pl.lit("all of a datagram, in order"),
                pl.col("rows").list.len(),
            ),
            findings(
                datagrams,
                whole & pl.col("udp_length").ne_missing(pl.col("length")),
                pl.lit("udp.length"),
                pl.col("length"),
                pl.format("{}", pl.col("udp_length").cast(pl.String).fill_null("none")),
            ),
            findings(
                datagrams,
                whole & (wrong | zero) & ~pl.col("unsummed") & ~pl.col("offloads"),
                pl.lit("udp.checksum"),
                pl.lit("right"),
                pl.col("udp_checksum"),
            ),
        ]
    )


def _plainly_whole(udp: pl.DataFrame) -> pl.Series:
    """Packets of each `number` whose datagrams are all there in order, with the right length and checksum: nearly all.
    `udp`: in order of time."""
    if udp.is_empty():
        return pl.Series([], dtype=pl.Boolean)
    columns = udp.select(
        "number",
        "data",
        source=number_of("source"),
        offset=pl.col("fragment_offset").cast(pl.Int64),
        last=~pl.col("more"),
        plain=(pl.col("data") > 0) & pl.col("ip_payload_sum").is_not_null() & ~pl.col("inner"),
        sum=pl.col("ip_payload_sum").cast(pl.Int64).fill_null(0),
        pseudo=pseudo_header(UDP, pl.lit(0)).fill_null(0),
        length=pl.col("udp_length").cast(pl.Int64).fill_null(-1),
        checksum=pl.col("udp_checksum").cast(pl.Int64).fill_null(0),
    )
    order = np.argsort(columns["number"].to_numpy(), kind="stable")
    of = {name: columns[name].to_numpy()[order] for name in columns.columns}
    before = np.arange(len(order)) - 1
    number = np.append(True, of["number"][1:] != of["number"][:-1])
    begins = number | (of["offset"] == 0)
    ends = of["offset"] + of["data"]
    continued = (of["offset"] == ends[before]) & (of["source"] == of["source"][before])
    right = of["plain"] & np.where(begins, of["offset"] == 0, continued)
    first = np.flatnonzero(begins)
    behind = np.append(first[1:], len(order)) - 1
    length, total = (np.add.reduceat(of[name], first) for name in ("data", "sum"))
    datagram = np.logical_and.reduceat(right, first) & of["last"][behind]
    datagram &= (of["length"][first] == length) & (of["checksum"][first] != 0)
    datagram &= fold_sums(total + of["pseudo"][first] + length) == 0xFFFF
    of_number = np.logical_and.reduceat(datagram, np.flatnonzero(number[first]))
    found = np.zeros(len(order), np.bool_)
    found[order] = of_number[np.cumsum(number) - 1]
    return pl.Series(found)


def checksum_wrong(total: pl.Expr, pseudo: pl.Expr, written: pl.Expr, *, finished: pl.Expr | None = None) -> pl.Expr:
    """Of a UDP or TCP packet whose words are `total`. On a segment within a machine Linux writes the sum of the pseudo
    header, for an adapter to go on with (net/core/skbuff.c, CHECKSUM_PARTIAL), and there is none. `finished`: of which
    it may have written the whole sum all the same."""
    wrong = fold(total + pseudo) != 0xFFFF
    begun = written == fold(pseudo)
    within = ~begun if finished is None else ~begun & (wrong | ~finished)
    return pl.when("inner").then(within).otherwise(wrong)


def pseudo_header(protocol: int, length: pl.Expr) -> pl.Expr:
    """The sum of the pseudo-header's words, to be added to that of the packet; `source` and `target` in text."""
    return _address_words("source") + _address_words("target") + protocol + length


def _address_words(name: str) -> pl.Expr:
    return pl.col(name).map_batches(_words_of, return_dtype=pl.Int64)


def _words_of(addresses: pl.Series) -> pl.Series:
    """The sum of the two words of each address: few are ever asked for."""
    known = addresses.drop_nulls().unique().to_list()
    sums = [sum(divmod(int(IPv4Address(address)), _WRAP)) for address in known]
    return addresses.replace_strict(known, sums, default=None, return_dtype=pl.Int64)


def fold(value: pl.Expr) -> pl.Expr:
    """A sum of 16-bit words as one, with the carries added (RFC 1071)."""
    for _ in range(3):
        value = value % _WRAP + value // _WRAP
    return value

# SPDX-License-Identifier: Apache-2.0
"""ARP (RFC 826) by content: who asks whom for what, which question an answer answers, and that a machine sends packets
only to neighbours whose addresses it has received."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ARP, ETHERNET, IPV4
from sundial.verify.findings import Check, findings, findings_of
from sundial.verify.frames import INBOUND, OUTBOUND, end_of_sender, refused
from sundial.verify.headers.ethernet import mac_text
from sundial.verify.headers.ports import stations

UNPROVEN = (
    "that a machine asks by ARP only when it needs an address, and answers each question",
    "that a machine of SSS-CORE asks once a second: two requests may be nearer",
)
UNPROVEN_REAL_CLOCK = ("that a machine asks by ARP once a second: two requests may be nearer",)

REQUEST, REPLY = 1, 2
BROADCAST = (1 << 48) - 1
_FIXED = 1 << 48 | 0x0800 << 32 | 6 << 24 | 4 << 16
"""Ethernet, IPv4, and the lengths of their addresses, in front of the operation."""
_PAUSE_NS = 900_000_000
"""Both stacks ask again after a second (Linux: retrans_time; lwIP: ARP_TMR_INTERVAL, whose phase is its own, so that
two questions may be nearer)."""
_PUNCTUAL = "linux"
"""The platform on which no two questions are nearer."""
Stretches = Mapping[str, Sequence[tuple[int, int]]]
"""By machine: from when until when, in ns."""
HELD_NS = 30_000_000_000
"""The longest that fragments of one datagram are apart (ipfrag_time)."""
TRIES = 3
"""Requests without an answer after which Linux drops what waits for one (its mcast_solicit); lwIP does after five."""
RETRY_NS = 1_100_000_000
"""Its time between them (retrans_time), and what a machine may take besides."""
REAL_RETRY_NS = 1_500_000_000
"""The same under the real clock: there a machine waits for its host, too."""

QUEUED = 12
"""Packets that Linux surely keeps for a neighbour without an address: 212,992 bytes (unres_qlen_bytes), of which one of
9,000 bytes takes up to 17,000. A newer packet takes the place of the oldest."""

PACKET = ("row", "end", "time_ns", "domain", "eth_type", "eth_target", "static_arp", "inner", "target")
"""What is needed of each packet."""


def arp_fields(frames: pl.DataFrame, octets: Octets) -> pl.DataFrame:
    """ARP frames among `frames` with fixed (before the operation), operation, addresses as numbers and `tpa_text`."""
    which = (frames["eth_type"] == ARP).fill_null(False).to_numpy()
    part = octets.take(which)
    places = {"arp_op": (6, 2), "arp_sha": (8, 6), "arp_spa": (14, 4), "arp_tha": (18, 6), "arp_tpa": (24, 4)}
    fixed = part.number(ETHERNET, 6) << 16
    return frames.filter(pl.Series(which)).with_columns(
        pl.Series("arp_fixed", fixed),
        *(pl.Series(name, part.number(ETHERNET + at, size)) for name, (at, size) in places.items()),
    )


def check_arp(
    frames: pl.DataFrame,
    sent: pl.DataFrame,
    ports: pl.DataFrame,
    read: Callable[[pl.DataFrame], Octets],
    *,
    packets: pl.DataFrame,
    held: Callable[[], pl.DataFrame],
    exact_time: bool,
) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`, of `frames`; `packets`: all that machines sent or passed on, with
    PACKET; `held`: as of `wires.held_back`."""
    mine = sent.filter(pl.col("eth_type") == ARP)
    own = arp_fields(mine, read(mine)).with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    got = _heard(frames, read).sort("time_ns", "row")
    known = stations(ports).drop_nulls("address").select(
        "domain", arp_tpa=address_number("address"), owner="mac"
    )  # fmt: skip
    addresses = ports.drop_nulls("address").select("machine", arp_spa=address_number("address"), mine=True)
    table = (
        own.join(known, on=["domain", "arp_tpa"], how="left", maintain_order="left")
        .join(addresses.unique(), on=["machine", "arp_spa"], how="left", maintain_order="left")
        .pipe(_with_pauses, exact_time)
    )
    if table.select((pl.min_horizontal("again_ns", "next_ns") < _PAUSE_NS).any()).item():
        # What an adapter kept back its machine had made before.
        since = held().select(pl.col("row").cast(table.schema["row"]), made_ns="since_ns")
        table = table.join(since, on="row", how="left", maintain_order="left").pipe(
            _with_pauses, exact_time, pl.coalesce("made_ns", "time_ns")
        )
    asks, answers = pl.col("arp_op") == REQUEST, pl.col("arp_op") == REPLY
    gratuitous = asks & (pl.col("arp_tpa") == pl.col("arp_spa"))
    checks: list[Check] = [
        ("arp", pl.col("captured_length") < ETHERNET + 28, pl.lit("42 bytes"), pl.col("captured_length")),
        ("arp.hw.type", pl.col("arp_fixed") != _FIXED, pl.lit("Ethernet and IPv4"), pl.lit("something else")),
        ("arp.opcode", ~(asks | answers), pl.lit("request or reply"), pl.col("arp_op")),
        ("arp.src.hw_mac", pl.col("arp_sha") != pl.col("mac"), mac_text("mac"), mac_text("arp_sha")),
        ("arp.src.proto_ipv4", pl.col("mine").is_null(), pl.lit("its own address"), address_text("arp_spa")),
        ("arp.dst.hw_mac", asks & (pl.col("arp_tha") != 0), pl.lit("0 in a request"), mac_text("arp_tha")),
        (
            "arp.dst.proto_ipv4",
            asks & pl.col("owner").is_null(),
            pl.lit("an address of its network"),
            address_text("arp_tpa"),
        ),
        (
            "eth.dst",
            asks & ~pl.col("eth_target").is_in([BROADCAST]) & (gratuitous | (pl.col("eth_target") != pl.col("owner"))),
            pl.lit("broadcast, or the owner of the address"),
            mac_text("eth_target"),
        ),
        ("arp", asks & pl.col("static_arp"), pl.lit("no request with static addresses"), pl.lit("a request")),
        (
            "arp",
            asks & (pl.col("again_ns") < _PAUSE_NS),
            pl.lit("two requests a second"),
            pl.format("a third after {} ns", "again_ns"),
        ),
        (
            "arp",
            asks & ~gratuitous & (pl.col("platform") == _PUNCTUAL) & (pl.col("next_ns") < _PAUSE_NS),
            pl.lit("a request a second"),
            pl.format("another after {} ns", "next_ns"),
        ),
    ]
    return pl.concat(
        [
            findings_of(table, checks),
            _check_replies(own.filter(answers), got.filter(asks)),
            _check_heard(packets, got, ports),
        ]
    )


def _heard(frames: pl.DataFrame, read: Callable[[pl.DataFrame], Octets]) -> pl.DataFrame:
    """What ports received of ARP, with its fields."""
    came = frames.filter(pl.col("eth_type") == ARP, pl.col("fate").is_null(), pl.col("direction") == INBOUND)
    return arp_fields(came, read(came))


def misled(
    packets: pl.DataFrame,
    hops: pl.DataFrame,
    frames: pl.DataFrame,
    ports: pl.DataFrame,
    read: Callable[[pl.DataFrame], Octets],
) -> pl.Series:
    """Rows of `packets` to another MAC address than their next hop's, one that their sender had heard as that of its IP
    address: the wire may flip bits of ARP, which has no checksum. `hops` as of `ports.next_hops`."""
    strayed = packets.join(hops, on=["end", "target"], how="inner").filter(pl.col("eth_target") != pl.col("hop"))
    if strayed.is_empty():
        return strayed["row"]
    said = _heard(frames, read).select("end", "arp_spa", eth_target="arp_sha", heard_ns="time_ns")
    owners = stations(ports).drop_nulls("address").select("domain", hop="mac", arp_spa=address_number("address"))
    known = strayed.join(owners, on=["domain", "hop"], how="inner").join(
        said, on=["end", "arp_spa", "eth_target"], how="inner"
    )
    return known.filter(pl.col("heard_ns") <= pl.col("time_ns"))["row"].unique()


def _with_pauses(table: pl.DataFrame, exact_time: bool, made_ns: pl.Expr | None = None) -> pl.DataFrame:
    """Adds how far apart at the most its machine asked for the same address this time and two times before, and once
    before. `made_ns`: when it made each question at the earliest."""
    left_ns = pl.col("time_ns")
    made_ns = left_ns if made_ns is None else made_ns

    def apart(places: int) -> pl.Expr:
        made, left = (
            each.shift(places).over("end", "arp_op", "arp_tpa", order_by="time_ns") for each in (made_ns, left_ns)
        )
        # What was kept back may have been made before what left sooner.
        return pl.max_horizontal(left_ns - made, left - made_ns)

    return table.with_columns(again_ns=apart(2), next_ns=pl.when(pl.lit(exact_time)).then(apart(1)))


def _check_heard(packets: pl.DataFrame, got: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """A machine sends a packet to a neighbour after it has received the neighbour's MAC address, in a reply or in a
    request. Machines are prepared apart from each other, so none knows an address when a run begins. Of each neighbour
    the first packet counts."""
    heard = got.group_by("end", eth_target="arp_sha").agg(heard_ns=pl.col("time_ns").min())
    neighbours = stations(ports).select("domain", eth_target="mac").unique()
    first = (
        packets.filter(pl.col("eth_type") == IPV4, ~pl.col("static_arp"), ~pl.col("inner"))
        .sort("time_ns", "row")
        .unique(["end", "eth_target"], keep="first", maintain_order=True)
        .join(neighbours, on=["domain", "eth_target"], how="semi", maintain_order="left")
        .join(heard, on=["end", "eth_target"], how="left", maintain_order="left")
        .with_columns(call=pl.lit(None, pl.UInt32), rows=pl.concat_list("row"))
    )
    never = pl.col("heard_ns").is_null()
    return findings(
        first,
        never | (pl.col("heard_ns") > pl.col("time_ns")),
        pl.lit("arp.heard"),
        pl.format("ARP from {} before the first packet to it", mac_text("eth_target")),
        pl.when(never).then(pl.lit("none")).otherwise(pl.format("{} ns later", pl.col("heard_ns") - pl.col("time_ns"))),
    )


def _check_replies(replies: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """Each answers a request of its own, to whom asked."""
    key = ["end", "spa", "tha", "tpa"]
    asked = requests.select("time_ns", "end", spa="arp_tpa", tha="arp_sha", tpa="arp_spa").with_columns(
        number=pl.int_range(pl.len()).over(key), asked_ns="time_ns"
    )
    table = replies.with_columns(spa="arp_spa", tha="arp_tha", tpa="arp_tpa").sort("time_ns", "row")
    table = table.with_columns(number=pl.int_range(pl.len()).over(key)).join(
        asked.select(*key, "number", "asked_ns"), on=[*key, "number"], how="left", maintain_order="left"
    )
    answered = (pl.col("asked_ns") <= pl.col("time_ns")).fill_null(False)
    return pl.concat(
        [
            findings(
                table,
                ~answered,
                pl.lit("arp.opcode"),
                pl.lit("a reply to a request received before"),
                pl.format("{} is at {}, for {}", address_text("arp_spa"), mac_text("arp_sha"), address_text("arp_tpa")),
            ),
            findings(
                table,
                pl.col("eth_target") != pl.col("arp_tha"),
                pl.lit("eth.dst"),
                mac_text("arp_tha"),
                mac_text("eth_target"),
            ),
        ]
    )


def address_number(name: str) -> pl.Expr:
    """IPv4 addresses as numbers."""
    parts = pl.col(name).str.split_exact(".", 3).struct
    octets = [parts.field(f"field_{place}").cast(pl.Int64, strict=False) for place in range(4)]
    return (octets[0] * 256 + octets[1]) * 65536 + octets[2] * 256 + octets[3]


def address_text(name: str) -> pl.Expr:
    """Numbers as IPv4 addresses."""
    return pl.concat_str([(pl.col(name) // 256**place % 256).cast(pl.String) for place in (3, 2, 1, 0)], separator=".")


def unresolved(
    frames: pl.DataFrame,
    machines: Mapping[str, str],
    read: Callable[[pl.DataFrame], Octets],
    retry_ns: int = RETRY_NS,
) -> dict[str, list[tuple[int, int]]]:
    """By machine: stretches in which it asked for an address, TRIES times in a row, and had no answer. What it has for
    that address meanwhile is dropped, and no capture shows it; nor does one show what waits for an answer when the run
    ends. `machines`: by `end`. A question that the machine's own adapter dropped was asked; an answer to another
    station, which a hub brings to all, is not taken. `retry_ns`: its time between them at the most."""
    fields = _at_ports(frames, read)
    open_runs: dict[tuple[str, int], list[int]] = {}
    going_on: set[tuple[str, int]] = set()
    """Whose run follows a whole one at once: what waits for lwIP's fourth and fifth request is dropped as well."""
    found: dict[str, list[tuple[int, int]]] = {}
    own: dict[str, int] = {}
    latest_ns: int = frames["time_ns"].max() or 0  # type: ignore[assignment]
    columns = fields.select("end", "time_ns", "direction", "arp_op", "arp_sha", "arp_spa", "arp_tpa", "eth_target")
    for end, at_ns, way, kind, mac, sender, target, to in columns.iter_rows():
        if end not in machines:
            continue
        if way == INBOUND and kind in (REQUEST, REPLY):
            if to not in (own.get(end), BROADCAST):
                continue
            run, is_more = open_runs.pop((end, sender), []), (end, sender) in going_on
            going_on.discard((end, sender))
            if (len(run) == TRIES or is_more) and at_ns > run[-1] + retry_ns:
                found.setdefault(machines[end], []).append((run[0], run[-1] + retry_ns))
        elif way == OUTBOUND and kind == REQUEST:
            own[end] = mac
            key = (end, target)
            run = open_runs.setdefault(key, [])
            whole, late = len(run) == TRIES, bool(run) and at_ns > run[-1] + retry_ns
            if whole or (late and key in going_on):
                until_ns = at_ns if whole else run[-1] + retry_ns
                found.setdefault(machines[end], []).append((run[0], until_ns))
            if whole or late:
                run.clear()
                (going_on.discard if late else going_on.add)(key)
            run.append(at_ns)
    for (end, target), run in open_runs.items():
        waits = bool(run) and run[-1] + retry_ns > latest_ns
        if waits or len(run) == TRIES or (end, target) in going_on:
            found.setdefault(machines[end], []).append((run[0], run[-1] + retry_ns))
    return found


def retry_ns(clock: str | None) -> int:
    """What a machine under this clock takes between two questions at the most."""
    return RETRY_NS if clock == "virtual" else REAL_RETRY_NS


def asking(
    frames: pl.DataFrame, machines: Mapping[str, str], read: Callable[[pl.DataFrame], Octets]
) -> dict[str, list[tuple[str, int, int]]]:
    """By machine: for which address it asked, from when, and when it had an answer, or asked last. `machines`: by
    `end`."""
    begun: dict[tuple[str, str], int] = {}
    last: dict[tuple[str, str], int] = {}
    found: dict[str, list[tuple[str, int, int]]] = {}
    fields = _at_ports(frames, read).with_columns(sender=address_text("arp_spa"), asked=address_text("arp_tpa"))
    for end, at_ns, way, kind, to, sender, asked in fields.select(
        "end", "time_ns", "direction", "arp_op", "eth_target", "sender", "asked"
    ).iter_rows():
        if end not in machines:
            continue
        if way == OUTBOUND and kind == REQUEST and to == BROADCAST:
            begun.setdefault((end, asked), at_ns)
            last[end, asked] = at_ns
        elif way == INBOUND and (end, sender) in begun:
            found.setdefault(machines[end], []).append((sender, begun.pop((end, sender)), at_ns))
    for (end, asked), at_ns in begun.items():
        found.setdefault(machines[end], []).append((asked, at_ns, last[end, asked] + RETRY_NS))
    return found


@dataclass(frozen=True)
class Overflow:
    """What machines dropped of their own while they asked for a neighbour, before any capture shows it."""

    stretches: Stretches
    headless: pl.Series
    """Rows of fragments, wherever they were seen, whose datagram lost its first ones so."""


def overflow(
    frames: pl.DataFrame, machines: Mapping[str, str], questions: Mapping[str, Sequence[tuple[str, int, int]]]
) -> Overflow:
    """Of the machines by `end`, which asked as `asking` says. A queue that was full is sent at once when the answer
    comes: QUEUED packets or more."""
    stretches: dict[str, list[tuple[int, int]]] = {}
    rows = [pl.Series([], dtype=frames.schema["row"])]
    names = ("row", "end", "time_ns", "direction", "source", "target", "ip_id", "fragment_offset", "fate")
    packets = frames.select(names).filter(pl.col("ip_id").is_not_null(), pl.col("fate").is_null())
    at_ns = pl.col("time_ns")
    for name, asked in questions.items():
        ends = [end for end, machine in machines.items() if machine == name]
        sent = packets.filter(pl.col("end").cast(pl.String).is_in(ends), pl.col("direction") == OUTBOUND)
        for _, begin, end in asked:
            flushed = sent.filter(at_ns.is_between(end, end + RETRY_NS)).sort("time_ns", "row")
            if flushed.head(QUEUED).height < QUEUED:
                continue
            stretches.setdefault(name, []).append((begin, end))
            first = flushed.head(1)
            if first["fragment_offset"].item():
                same = [pl.col(column) == first[column].item() for column in ("source", "target", "ip_id")]
                rows.append(packets.filter(*same, at_ns.is_between(end, end + HELD_NS))["row"])
    return Overflow(stretches, pl.concat(rows))


def questions(
    frames: pl.DataFrame, machines: Mapping[str, str], read: Callable[[pl.DataFrame], Octets]
) -> dict[str, list[int]]:
    """By machine: when it asked for an address, in order. `machines`: by `end`."""
    asked = _at_ports(frames, read).filter(direction=OUTBOUND, arp_op=REQUEST)
    found: dict[str, list[int]] = {}
    for end, at_ns in asked.select("end", "time_ns").iter_rows():
        if end in machines:
            found.setdefault(machines[end], []).append(at_ns)
    return found


def _at_ports(frames: pl.DataFrame, read: Callable[[pl.DataFrame], Octets]) -> pl.DataFrame:
    """ARP at ports in the order of time, with its fields, and what their adapters dropped."""
    packets = frames.filter(pl.col("eth_type") == ARP, pl.col("fate").is_null() | refused()).sort("time_ns", "row")
    direction = pl.when(refused()).then(pl.lit(OUTBOUND)).otherwise(pl.col("direction"))
    fields = arp_fields(packets, read(packets))
    return fields.with_columns(end_of_sender().alias("end"), direction.alias("direction"))


def both(one: Stretches, other: Stretches) -> Stretches:
    """All of each machine."""
    return {name: [*one.get(name, ()), *other.get(name, ())] for name in {**one, **other}}


def within(stretches: Iterable[tuple[int, int]], at_ns: int) -> bool:
    """Whether an instant is in one of them."""
    return any(begin <= at_ns <= end for begin, end in stretches)

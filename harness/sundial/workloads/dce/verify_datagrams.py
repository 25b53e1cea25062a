# SPDX-License-Identifier: Apache-2.0
"""Frames of DCE RPC, put together to datagrams: what left a machine's port, and what was whole at one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_interface

import polars as pl

from sundial.expect.ip import ETHERNET_HEADER, UDP_HEADER, udp_packets
from sundial.observe import Octets, RunDirectory
from sundial.verify.conservation import Transit, check_balance
from sundial.verify.corruption import intact
from sundial.verify.findings import Finding
from sundial.verify.frames import INBOUND, OUTBOUND, end_of_sender, refused
from sundial.verify.headers.ports import BROADCAST, sent_frames
from sundial.verify.learning import GROUP_BIT
from sundial.verify.segment import network_of
from sundial.verify.sockets.flows import UDP

HELD_NS = 30_000_000_000
"""So long Linux keeps fragments of a datagram that is not whole (net.ipv4.ipfrag_time)."""

Endpoint = tuple[str, int]
"""An address and a port."""
Closed = Mapping[tuple[str, int], int]
"""Until when a machine did not take what came to its port."""


@dataclass
class Datagram:
    """`at_ns`: its first frame; `whole_ns`: the one that made it whole."""

    machine: str
    sent: bool
    source: Endpoint
    target: Endpoint
    at_ns: int
    whole_ns: int
    rows: list[int]
    pieces: dict[int, bytes]
    """What is above IP, by offset."""
    length: int | None = None
    """Above IP, once the last piece is there."""
    mtu: int = 0
    damaged: bool = False
    layout: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        return self.length is not None and sum(map(len, self.pieces.values())) == self.length

    @property
    def data(self) -> bytes:
        """What is above IP, as far as it is there."""
        return b"".join(self.pieces[offset] for offset in sorted(self.pieces))

    @property
    def payload(self) -> bytes:
        """What is above UDP."""
        return self.data[UDP_HEADER:]

    @property
    def expected_layout(self) -> list[str]:
        """The pieces that its payload has to be in at this MTU."""
        packets = udp_packets(len(self.payload), self.mtu)
        return [_piece(packet.offset, packet.data, packet.more) for packet in packets]


def _piece(offset: int, length: int, more: bool) -> str:
    return f"{offset}:{length}{'+' if more else ''}"


@dataclass(frozen=True)
class Traffic:
    """All datagrams of a run that go to ports of DCE RPC's servers or come from them."""

    datagrams: list[Datagram]
    unfinished: list[Datagram]
    """Sent, but not all of them."""


_NEEDED = (
    "row", "end", "interface", "time_ns", "direction", "fate", "fate_adapter", "captured_length", "source",
    "target",
    "source_port", "target_port", "ip_id", "more", "fragment_offset", "ip_length", "ip_header",
    "eth_target", "octets_begin", "capture", "udp_head", "corrupted", "damaged", "passes_ip",
)  # fmt: skip
_DATAGRAM = ["source", "target", "ip_id"]


def sightings(run: RunDirectory, frames: pl.DataFrame, servers: Collection[Endpoint]) -> pl.DataFrame:
    """All frames of `servers`, wherever they were seen. Later fragments have no ports: they have the number of a first
    one, and their addresses."""
    wide = _broadcasts(run)
    known = pl.DataFrame(
        sorted({*servers, *((wide[address], port) for address, port in servers if address in wide)}),
        schema={"address": pl.String, "port": pl.UInt32},
        orient="row",
    )
    udp = frames.filter(pl.col("protocol") == UDP).select(_NEEDED)
    heads = udp.filter(pl.col("fragment_offset") == 0)
    ours = pl.concat(
        [
            heads.join(known, left_on=[name, f"{name}_port"], right_on=["address", "port"], how="semi")
            for name in ("source", "target")
        ]
    ).unique("row")
    numbers = ours.filter("more").select(_DATAGRAM).unique()
    tails = udp.filter(pl.col("fragment_offset") > 0).join(numbers, on=_DATAGRAM, how="semi")
    return pl.concat([ours, tails]).sort("time_ns", "row")


def _broadcasts(run: RunDirectory) -> dict[str, str]:
    """The broadcast address of the network of each address."""
    return {
        item.address: str(ip_interface(item.network).network.broadcast_address)
        for node in run.nodes.values()
        for item in node.interfaces
        if item.address
    }


def own_frames(run: RunDirectory, frames: pl.DataFrame, seen: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """Of `sightings` those at the ports of their senders and receivers, with `view`, `machine` and `mtu`; and what a
    sender's adapter refused, behind all that it had then. `frames`: all of the run."""
    wide = _broadcasts(run)
    homes = (
        ports.filter(~pl.col("joins"))
        .select("end", "machine", "mtu", "mac", "address")
        .drop_nulls("address")
        .with_columns(wide=pl.col("address").replace_strict(wide, default=None, return_dtype=pl.String))
    )
    at_home = pl.col("source") == pl.col("address")
    for_here = (pl.col("target") == pl.col("address")) | (pl.col("target") == pl.col("wide"))
    taken = (pl.col("eth_target") == pl.col("mac")) | (pl.col("eth_target") == BROADCAST)
    own = (
        seen.with_columns(refused=refused(), end=end_of_sender())
        .filter(pl.col("fate").is_null() | pl.col("refused"))
        .join(homes, on="end", how="inner", maintain_order="left")
        .with_columns(
            view=pl.when(at_home & (pl.col("refused") | (pl.col("direction") == OUTBOUND)))
            .then(pl.lit("sent"))
            .when((pl.col("direction") == INBOUND) & for_here & taken)
            .then(pl.lit("received"))
        )
        .filter(pl.col("view").is_not_null())
    )
    return in_turn(own, sent_frames(frames, ports, network_of(run))) if own["refused"].any() else own


def in_turn(own: pl.DataFrame, sent: pl.DataFrame) -> pl.DataFrame:
    """Frames in the order in which their machines sent them: `sent`, as of `sent_frames`, has the times of those that
    an adapter refused."""
    turns = sent.filter(refused()).select("row", turn_ns="time_ns")
    moved = own.join(turns, on="row", how="left", maintain_order="left")
    return moved.with_columns(time_ns=pl.coalesce("turn_ns", "time_ns")).drop("turn_ns").sort("time_ns", "row")


def datagrams(frames: pl.DataFrame, octets: Octets, closed: Closed) -> Traffic:
    """`frames` as of `own_frames`, `octets` theirs."""
    found: list[Datagram] = []
    open_ones: dict[tuple[str, str, str, str, int], Datagram] = {}
    unfinished: list[Datagram] = []
    as_sent: set[bytes] = set()
    for place, row in enumerate(frames.iter_rows(named=True)):
        begin = ETHERNET_HEADER + row["ip_header"]
        data = octets.frame(place)[begin : ETHERNET_HEADER + row["ip_length"]]
        if row["damaged"] and not row["passes_ip"]:
            continue
        offset, more = row["fragment_offset"], row["more"]
        split = more or offset > 0
        key = (row["end"], row["view"], row["source"], row["target"], row["ip_id"])
        each = open_ones.pop(key, None) if split else None
        if each is not None and _is_over(each, row["time_ns"], offset):
            if each.sent:
                unfinished.append(each)
            each = None
        if each is None:
            each = Datagram(
                row["machine"], row["view"] == "sent", (row["source"], 0), (row["target"], 0), row["time_ns"],
                row["time_ns"], [], {}, mtu=row["mtu"],
            )  # fmt: skip
        if offset in each.pieces:  # a copy that the wire made; its like is kept
            open_ones[key] = each
            each.rows.append(row["row"])
            continue
        each.pieces[offset] = data
        each.layout.append(_piece(offset, len(data), more))
        each.rows.append(row["row"])
        each.whole_ns = row["time_ns"]
        each.damaged |= row["damaged"]
        if not offset:
            each.source, each.target = (row["source"], row["source_port"]), (row["target"], row["target_port"])
        if not more:
            each.length = offset + len(data)
        if not each.whole:
            open_ones[key] = each
            continue
        if each.sent and not each.damaged:
            as_sent.add(each.data)
        # A machine on the way damages frames, too, and the fabric has no record of that. What was sent with a checksum
        # that is not right comes so: its adapter has not made it yet.
        elif (each.damaged or each.data not in as_sent) and not _checksum_right(each):
            continue
        if not each.sent and each.whole_ns <= closed.get((each.machine, each.target[1]), -1):
            continue
        found.append(each)
    return Traffic(found, unfinished + [each for each in open_ones.values() if each.sent])


def balance(seen: pl.DataFrame, own: pl.DataFrame, transit: Transit) -> pl.DataFrame:
    """Findings about packets of which another number arrived than were sent, lost and doubled.

    A broadcast comes to each station of its segment: that is a matter of its frames (`verify.headers.carriage`).
    """
    views = own.filter(~pl.col("refused")).select("row", "view")
    table = (
        intact(seen)
        .filter(pl.col("eth_target") & GROUP_BIT == 0)
        .join(views, on="row", how="left", maintain_order="left")
        .with_columns(
            view=pl.when(pl.col("fate").is_not_null())
            .then(pl.lit("fate"))
            .otherwise(pl.col("view").fill_null("passing")),
            call=pl.lit(None, pl.UInt32),
            reply=pl.lit(False),
        )
    )
    key = [*_DATAGRAM, "fragment_offset", "ip_length", "more", "udp_head", "reply"]
    what = pl.format("packet {} from {}, bytes from {}", "ip_id", "source", "fragment_offset")
    return check_balance(table, key, what, transit).with_columns(field=pl.lit("dce.received"))


def _is_over(each: Datagram, now_ns: int, offset: int) -> bool:
    """Whether a fragment belongs to another datagram of the same number: a sender never sends one twice."""
    return offset in each.pieces if each.sent else now_ns - each.at_ns > HELD_NS


def _checksum_right(each: Datagram) -> bool:
    data = each.data
    if not int.from_bytes(data[6:8]):
        return True
    addresses = b"".join(bytes(map(int, address.split("."))) for address in (each.source[0], each.target[0]))
    whole = addresses + bytes((0, UDP)) + len(data).to_bytes(2) + data + bytes(len(data) % 2)
    total = sum(int.from_bytes(whole[place : place + 2]) for place in range(0, len(whole), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


def check_layouts(traffic: Traffic, calls: Mapping[int, int | None]) -> Iterator[Finding]:
    """What was sent in other pieces than its length makes at this MTU, or not to its end. `calls`: by datagram."""
    for number, each in enumerate(traffic.datagrams):
        if each.sent and each.layout != each.expected_layout:
            yield Finding(
                calls.get(number), "dce.packets", ",".join(each.expected_layout), ",".join(each.layout), each.rows
            )
    for each in traffic.unfinished:
        yield Finding(None, "dce.packets", "a whole datagram", ",".join(each.layout), each.rows)

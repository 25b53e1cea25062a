# SPDX-License-Identifier: Apache-2.0
"""Divides a capture into parts that hold whole calls, so that one part at a time is in memory.

Two frames are in one part if one has to be seen to judge the other: all frames of one flow (addresses and
ports, both ways); the fragments of a datagram; an ICMP message and the first datagram of the flow that it quotes. One
flow is never cut, since a reply without its request is known by the others' requests. Frames keep their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import ETHERNET, IPV4, TCP, UDP, header_columns
from sundial.observe.octets import Octets
from sundial.observe.pcap import ETHERNET_LINK, Capture, Interface

_AT_ONCE = 250_000
_ICMP, _UNREACHABLE = 1, 3
_CARRIERS = (0x8100, 0x88A8, 0x9100, 0x8847, 0x8848, 0x8864)
"""Ethertypes behind which another packet follows (VLAN, MPLS, PPPoE)."""
_PIECE = ("source", "target", "ip_id", "ticks", "place", "index")
_FLOW = ("source", "target", "source_port", "target_port")


def divide(capture: Capture, most: int) -> Iterator[Capture]:
    """Parts of about `most` frames each, or the capture itself where it is small or cannot be divided.

    Not divided are captures at several interfaces, of another link than Ethernet, with blocks without time, with VLANs
    or the like, and those in which a header of UDP or TCP is not there to its end.
    """
    used = [interface for interface in capture.interfaces if len(interface.blocks)]
    places = None
    if capture.frames > most and len(used) == 1 and used[0].link_type == ETHERNET_LINK:
        places = _places(capture, used[0], -(-capture.frames // most))
    if places is None:
        yield capture
        return
    for place in range(int(places.max()) + 1):
        blocks = used[0].blocks[places == place]
        if len(blocks):
            yield replace(capture, interfaces=[replace(used[0], blocks=blocks)])


def _places(capture: Capture, interface: Interface, parts: int) -> NDArray[np.uint16] | None:
    """The part of each frame; None where the capture cannot be divided."""
    found, heads, tails, messages = [], [], [], []
    for first, octets, table in _headers(capture, interface):
        if table is None:
            return None
        place = _hash(table) % parts
        found.append(place.astype(np.uint16))
        table = table.with_columns(place=pl.Series(place), index=pl.int_range(first, first + table.height))
        datagrams = table.filter(pl.col("protocol") == UDP)
        begin = pl.col("more") & (pl.col("fragment_offset") == 0)
        heads.append(datagrams.filter(begin).select(_PIECE))
        tails.append(datagrams.filter(pl.col("fragment_offset") > 0).select(_PIECE))
        messages.append(_quotes(table, octets))
        capture.forget()
    places = np.concatenate(found)
    _follow(places, pl.concat(tails), pl.concat(heads))
    _join(places, pl.concat(messages), capture, interface)
    return places


def _headers(capture: Capture, interface: Interface) -> Iterator[tuple[int, Octets, pl.DataFrame | None]]:
    """Headers of some frames at once, with `ticks`; a table is None if such frames cannot be divided."""
    for first in range(0, len(interface.blocks), _AT_ONCE):
        some = replace(interface, blocks=interface.blocks[first : first + _AT_ONCE])
        octets, ticks = capture.octets(some), capture.ticks(some)
        table = header_columns(octets, ethernet=True)
        whole = table["eth_type"].is_not_null() & ~table["eth_type"].is_in(_CARRIERS)
        whole &= (table["eth_type"] != IPV4) | table["ip_header"].is_not_null()
        begins = table["protocol"].is_in([TCP, UDP]) & (table["fragment_offset"] == 0)
        whole &= ~begins.fill_null(False) | table["source_port"].is_not_null()
        known = ticks is not None and bool(whole.all())
        yield first, octets, table.with_columns(ticks=pl.Series(ticks)) if known else None


def _hash(table: pl.DataFrame) -> NDArray[np.uint64]:
    """The same number for frames of one flow; any number for frames of none."""
    ends = [
        table.select((pl.col(address) * 65536 + pl.col(port).fill_null(0)).fill_null(pl.int_range(pl.len())))
        .to_series()
        .to_numpy()
        for address, port in (("source", "source_port"), ("target", "target_port"))
    ]
    value = np.zeros(table.height, np.uint64)
    for part in (np.minimum(*ends), np.maximum(*ends)):
        # The finalizer of splitmix64 (Steele, Lea, Flood 2014).
        value += part.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        value ^= value >> np.uint64(31)
    return value


def _follow(places: NDArray[np.uint16], tails: pl.DataFrame, heads: pl.DataFrame) -> None:
    """Fragments go where the nearest beginning of such a datagram is, as verification attributes them."""
    by = ["source", "target", "ip_id"]
    near = tails.drop("place").sort("ticks").join_asof(
        heads.select(*by, "ticks", "place").sort("ticks"), on="ticks", by=by, strategy="nearest", check_sortedness=False
    ).drop_nulls("place")  # fmt: skip
    places[near["index"].to_numpy()] = near["place"].to_numpy()


def _quotes(table: pl.DataFrame, octets: Octets) -> pl.DataFrame:
    """Flows that messages "destination unreachable" quote, as the quoted datagram has it: `_FLOW`, index."""
    header = ETHERNET + table["ip_header"].fill_null(0).cast(pl.Int64).to_numpy()
    ports = header + 8 + (octets.number(header + 8, 1) & 0xF) * 4
    named = table.with_columns(
        icmp_type=pl.Series(octets.number(header, 1)),
        source_port=pl.Series(octets.number(ports, 2)),
        target_port=pl.Series(octets.number(ports + 2, 2)),
    )
    chosen = named.filter(pl.col("protocol") == _ICMP, pl.col("icmp_type") == _UNREACHABLE)
    return chosen.select("source_port", "target_port", "index", source="target", target="source")


def _join(places: NDArray[np.uint16], messages: pl.DataFrame, capture: Capture, interface: Interface) -> None:
    """Messages go to the first datagram of the flow that they quote."""
    if messages.is_empty():
        return
    firsts = []
    for first, _, table in _headers(capture, interface):
        if table is not None:
            own = table.with_columns(index=pl.int_range(first, first + table.height)).filter(pl.col("protocol") == UDP)
            firsts.append(own.select(pl.col(_FLOW[2:]).cast(pl.Int64), *_FLOW[:2], "ticks", at="index"))
        capture.forget()
    begun = pl.concat([part.join(messages, on=_FLOW, how="semi") for part in firsts]).sort("ticks")
    joined = messages.join(begun.unique(_FLOW, keep="first", maintain_order=True), on=_FLOW, how="inner")
    places[joined["index"].to_numpy()] = places[joined["at"].to_numpy()]

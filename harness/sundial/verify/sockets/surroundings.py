# SPDX-License-Identifier: Apache-2.0
"""What a capture from elsewhere has beside calls: what was learned from it, and why nothing was found in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from sundial.errors import BadInput
from sundial.units import counted
from sundial.verify.sockets.protocol import IP_PROTOCOL

_HEAD = 12
"""Bytes that show what a message is."""


@dataclass
class Surroundings:
    """Counts are of frames where nothing else is said."""

    ipv6: int = 0
    """Packets of IPv6 over the transport, to or from the port where it is known."""
    cut: int = 0
    """Bytes that are recorded of the longest frame that is cut before its message begins."""
    connections: int = 0
    replies: int = 0
    """Messages."""
    begins_within: bool = False
    """The capture begins within a message."""
    mtus: set[int] = field(default_factory=set)
    """Of directions in which datagrams were in fragments."""
    largest: int = 0
    """Bytes of the largest packet of the others."""
    segment_sizes: set[int] = field(default_factory=set)
    """Offered by SYNs."""

    def __iadd__(self, other: Surroundings) -> Surroundings:
        self.ipv6 += other.ipv6
        self.cut = max(self.cut, other.cut)
        self.connections += other.connections
        self.replies += other.replies
        self.begins_within |= other.begins_within
        self.mtus |= other.mtus
        self.largest = max(self.largest, other.largest)
        self.segment_sizes |= other.segment_sizes
        return self

    def refuse_cut(self, heads: pl.DataFrame, file: Path) -> None:
        """Raises BadInput for the first datagram that is cut before its type."""
        cut = heads.filter(_over_udp() < _HEAD, _is_cut()).sort("frame")
        if cut.height:
            first = cut.row(0, named=True)
            what = f"is cut to {first['captured_length']} bytes, and its message is not read"
            raise BadInput(what, file=str(file), field=f"frame {first['frame']}", allowed="a capture of whole frames")

    def learn_mtus(self, packets: pl.DataFrame) -> None:
        """Of directions: mtu, and whether there are fragments (`split`)."""
        self.mtus |= set(packets.filter("split")["mtu"])
        self.largest = max(self.largest, int(str(packets.filter(~pl.col("split"))["mtu"].max() or 0)))

    def learn_mss(self, frames: pl.DataFrame) -> None:
        """What the SYNs of flows offer."""
        self.segment_sizes = set(frames.filter(pl.col("flow").is_not_null())["tcp_mss"].drop_nulls())

    def nothing(self, file: Path, what: str) -> BadInput:
        """The error of a capture that holds no calls, with what it has instead."""
        allowed = "the server's port with --port"
        if self.cut:
            what, allowed = f"{what}; frames are cut to {self.cut} bytes", "a capture of whole frames"
        elif self.ipv6:
            what, allowed = f"{what}; IPv6 is not read ({counted(self.ipv6, 'packet')})", "a capture of IPv4"
        elif self.replies:
            what, allowed = f"{what}, but {self.replies} replies", "a capture of both directions"
        elif self.connections:
            what = f"{what}, but {counted(self.connections, 'connection')}"
        return BadInput(what, file=str(file), allowed=allowed)

    def remarks(self, port: int) -> list[str]:
        """What a reader must know of the verdict, one a line."""
        found = []
        if self.mtus:
            found.append(f"MTU {_range(self.mtus)}, learned from the largest packet of each direction")
        elif self.largest:
            found.append(f"MTU {self.largest} bytes or more: no datagram is in fragments")
        if self.segment_sizes:
            found.append(f"MSS {_range(self.segment_sizes)}, learned from the SYNs")
        if self.ipv6:
            found.append(f"IPv6 is not read: {counted(self.ipv6, 'packet')} to or from port {port}")
        return found


def _range(values: set[int]) -> str:
    least, most = min(values), max(values)
    return f"{most} bytes" if least == most else f"{least} to {most} bytes"


def _is_cut() -> pl.Expr:
    return pl.col("captured_length") < pl.col("frame_length")


def _over_udp() -> pl.Expr:
    """Recorded bytes of the payload, as far as `udp_head` has them."""
    return pl.col("udp_head").str.len_bytes().fill_null(0).cast(pl.Int64) // 2


def surroundings(frames: pl.DataFrame, transport: str, port: int | None) -> Surroundings:
    """Of all frames. `port`: the server's, if it is known."""
    ports = pl.col("source_port"), pl.col("target_port")
    to_port = pl.lit(True) if port is None else (ports[0] == port) | (ports[1] == port)
    length = f"{transport}_length" if transport == "udp" else "tcp_length"
    newer = pl.col("source").is_null() & ports[0].is_not_null() & pl.col(length).is_not_null()
    of_transport = (pl.col("protocol") == IP_PROTOCOL[transport]) | pl.col("protocol").is_null()
    over_tcp = pl.col("tcp_length").cast(pl.Int64) + pl.col("captured_length") - pl.col("frame_length")
    unknown = ports[0].is_null() | ((_over_udp() if transport == "udp" else over_tcp) < _HEAD)
    first = pl.col("fragment_offset").fill_null(0) == 0
    recorded = frames.filter(_is_cut(), of_transport, first, unknown, to_port.fill_null(True))["captured_length"].max()
    return Surroundings(ipv6=frames.filter(newer, to_port).height, cut=int(str(recorded or 0)))

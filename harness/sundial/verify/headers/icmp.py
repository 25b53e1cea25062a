# SPDX-License-Identifier: Apache-2.0
"""ICMP (RFC 792) by content: its checksum, the packet that a message quotes, and the request that a reply answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ETHERNET
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import INBOUND, OUTBOUND
from sundial.verify.headers.arp import Stretches, within
from sundial.verify.headers.ip import ICMP, MORE_FRAGMENTS
from sundial.verify.sockets.reassembly import refused_one

UNPROVEN = ("ICMP messages that were fragmented, except their checksum",)

ECHO_REPLY, UNREACHABLE, ECHO, TIME_EXCEEDED = 0, 3, 8, 11
HOST, PORT, REASSEMBLY = 1, 3, 1
_REASSEMBLY_NS = 14_000_000_000
"""lwIP gives a datagram up after IP_REASS_MAXAGE, 15 s, counted in ticks of a second; Linux after 30 s."""
_LWIP = "sss-core"
"""The platform whose stack is lwIP."""
_DATAGRAMS_MOST, _FRAGMENTS_MOST = 32, 276
"""lwIP gives the oldest datagram up, and reports it, for one that finds no place (ip4_frag.c): so many fit
(MEMP_NUM_REASSDATA and IP_REASS_MAX_PBUFS in guest-apps/sss-core/lwip/lwipopts.h)."""
_HELD_NS = 16_000_000_000
"""lwIP holds none longer."""
_KEPT = (slice(1, 2), slice(4, 6), slice(9, 10), slice(12, 20))
"""Of a quoted IP header: what it has in common with a fragment of the datagram, beside its time to live."""

_DATA = (pl.col("ip_length") - pl.col("ip_header")).cast(pl.Int64).alias("data")

Endpoint = tuple[str, int]
"""Address and port."""
Read = Callable[[pl.DataFrame], Octets]
_Problem = tuple[str, str, str]


def check_icmp(frames: pl.DataFrame, sent: pl.DataFrame, read: Read, unresolved: Stretches) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`, of `frames`. Messages are few: they are looked at one by one. `unresolved`: by
    router, when ARP had no answer to it (`headers.arp.unresolved`)."""
    messages = sent.filter(pl.col("protocol") == ICMP)
    whole = (pl.col("fragment_offset") == 0) & (pl.col("ip_flags") & MORE_FRAGMENTS == 0)
    alone = messages.filter(whole)
    octets, heard = read(alone), _Heard(frames, read)
    rows: list[Finding] = []
    for place, frame in enumerate(alone.iter_rows(named=True)):
        packet = octets.frame(place)[ETHERNET : ETHERNET + frame["ip_length"]]
        rows += [
            Finding(None, *problem, [frame["row"]])
            for problem in _judge(frame, packet[frame["ip_header"] :], heard, unresolved.get(frame["machine"], ()))
        ]
    rows += [
        Finding(None, "icmp.checksum", "right", "wrong", found)
        for found, right in _sums(messages).iter_rows()
        if not right
    ]
    return as_table(rows)


def _sums(messages: pl.DataFrame) -> pl.DataFrame:
    """Rows of each message, with its fragments, and whether its checksum is right."""
    turn = (pl.col("fragment_offset") == 0).cum_sum().over("end", "target", "ip_id")
    total = pl.col("ip_payload_sum").cast(pl.Int64).sum()
    return (
        messages.with_columns(turn=turn)
        .group_by("end", "target", "ip_id", "turn", maintain_order=True)
        .agg(rows=pl.col("row"), right=(total % 0xFFFF == 0) & (total > 0))
        .select("rows", "right")
    )


def _judge(
    frame: dict[str, Any], message: bytes, heard: _Heard, unresolved: Sequence[tuple[int, int]]
) -> list[_Problem]:
    kind, code = (message + b"\xff\xff")[:2]
    if len(message) < 8:
        return [("icmp", "8 bytes at least", f"{len(message)} bytes")]
    if kind == ECHO:
        return []
    if kind == ECHO_REPLY:
        asked = heard.echo(frame, message)
        return [] if asked else [("icmp.type", "a reply to a request received before", "none with its data")]
    # A router reports a packet whose next hop does not answer (RFC 1812, 4.3.3.1).
    is_due = within(unresolved, frame["time_ns"])
    if (kind, code) not in ((UNREACHABLE, PORT), (TIME_EXCEEDED, REASSEMBLY), *[(UNREACHABLE, HOST)] * is_due):
        expected = "an echo, a closed port, a next hop without ARP, or a reassembly that took too long"
        return [("icmp.type", expected, f"{kind}, code {code}")]
    problems = [("icmp.unused", "0", message[4:8].hex())] if any(message[4:8]) else []
    since_ns = _REASSEMBLY_NS if kind == TIME_EXCEEDED and not heard.crowded(frame) else 0
    if not heard.packet(frame, message[8:], since_ns, forwarded=(kind, code) == (UNREACHABLE, HOST)):
        problems.append(("icmp.quote", "a packet received before", message[8:36].hex()))
    elif kind == TIME_EXCEEDED and heard.whole(frame, message[8:]):
        problems.append(("icmp.quote", "a datagram of which fragments are missing", "one that came whole"))
    return problems


def closed_until(frames: pl.DataFrame, read: Read) -> dict[Endpoint, int]:
    """When a machine last said that a UDP port of its own was closed (RFC 792: destination and port unreachable)."""
    reports = frames.filter(pl.col("protocol") == ICMP, pl.col("direction") == OUTBOUND, pl.col("fate").is_null())
    octets = read(reports)
    found: dict[Endpoint, int] = {}
    for place, (source, at_ns, header) in enumerate(reports.select("source", "time_ns", "ip_header").iter_rows()):
        message = octets.frame(place)[ETHERNET + header :]
        quote = message[8:]
        if message[:2] != bytes((UNREACHABLE, PORT)) or len(quote) < 28:
            continue
        ports = (quote[0] & 0xF) * 4
        if str(ip_address(quote[16:20])) == source:
            found[source, int.from_bytes(quote[ports + 2 : ports + 4])] = at_ns
    return found


class _Heard:
    """Frames that were received, read when they are asked for."""

    def __init__(self, frames: pl.DataFrame, read: Read) -> None:
        self._frames = frames.filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND)
        self._read = read

    def echo(self, frame: dict[str, Any], reply: bytes) -> bool:
        """Whether a request with the reply's identifier, number and data came from whom it goes to."""
        found = self._before(
            frame,
            pl.col("protocol") == ICMP,
            pl.col("ip_length") == pl.lit(frame["ip_length"]),
            pl.col("target") == frame["source"],
        )
        return any(data[20] == ECHO and data[24:] == reply[4:] for data in self._packets(found))

    def packet(self, frame: dict[str, Any], quote: bytes, since_ns: int, *, forwarded: bool) -> bool:
        """Whether the packet that is quoted came from whom the message goes to, `since_ns` ago or longer. `forwarded`:
        a packet to another, which the message's sender was to pass on."""
        if len(quote) < 28:
            return False
        # Of a datagram in fragments the header is that of the whole.
        own = pl.col("target") == frame["source"]
        same = pl.col("ip_id") == int.from_bytes(quote[4:6])
        found = self._before(frame, same, pl.col("fragment_offset") == 0, ~own if forwarded else own)
        found = found.filter(pl.col("time_ns") <= frame["time_ns"] - since_ns)
        return any(
            all(data[part] == quote[part] for part in _KEPT)
            and data[8] - forwarded == quote[8]
            and data[20 : len(quote)] == quote[20 : max(len(data), 28)]
            for data in self._packets(found)
        )

    def whole(self, frame: dict[str, Any], quote: bytes) -> bool:
        """Whether all fragments of the datagram that is quoted came, each once, and found memory: a copy that comes
        behind the last begins another datagram."""
        same = (pl.col("ip_id") == int.from_bytes(quote[4:6])) & (pl.col("protocol") == quote[9])
        fragments = self._before(frame, same).sort("fragment_offset").with_columns(_DATA)
        at = 0
        for offset, data in fragments.select("fragment_offset", "data").iter_rows():
            if offset != at:
                return False
            at += data
        return at > 0 and not fragments["more"][-1] and not self._without_memory(frame, fragments["row"][-1])

    def crowded(self, frame: dict[str, Any]) -> bool:
        """Whether a machine with lwIP had more datagrams to put together than it has places for."""
        if frame["platform"] != _LWIP:
            return False
        held = self._split(frame).filter(pl.col("time_ns") > pl.lit(frame["time_ns"] - _HELD_NS))
        datagram = ["source", "target", "protocol", "ip_id"]
        ends = pl.when(~pl.col("more")).then(pl.col("fragment_offset") + pl.col("data")).max()
        unfinished = (
            held.unique([*datagram, "fragment_offset"])
            .group_by(datagram)
            .agg(fragments=pl.len(), whole=pl.col("data").sum() == ends)
            .filter(~pl.col("whole").fill_null(False))
        )
        return unfinished.height > _DATAGRAMS_MOST or unfinished["fragments"].sum() > _FRAGMENTS_MOST

    def _without_memory(self, frame: dict[str, Any], row: int) -> bool:
        """Whether the machine may have had no memory for one of the fragments of a datagram that has this one."""
        return refused_one(self._split(frame), row)

    def _split(self, frame: dict[str, Any]) -> pl.DataFrame:
        """All fragments that the machine had received."""
        split = (pl.col("fragment_offset") > 0) | pl.col("more")
        came = (pl.col("end") == frame["end"]) & (pl.col("time_ns") <= pl.lit(frame["time_ns"]))
        return self._frames.filter(came, split).with_columns(_DATA)

    def _before(self, frame: dict[str, Any], *where: pl.Expr) -> pl.DataFrame:
        return self._frames.filter(
            pl.col("end") == frame["end"],
            pl.col("source") == frame["target"],
            pl.col("time_ns") <= pl.lit(frame["time_ns"]),
            *where,
        )

    def _packets(self, frames: pl.DataFrame) -> list[bytes]:
        octets = self._read(frames)
        lengths = frames["ip_length"].to_list()
        return [octets.frame(place)[ETHERNET : ETHERNET + length] for place, length in enumerate(lengths)]

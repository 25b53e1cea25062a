# SPDX-License-Identifier: Apache-2.0
"""ICMP (RFC 792) by content: its checksum, the packet that a message quotes, and the request that a reply answers."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from sundial.observe import Octets
from sundial.observe.headers import ETHERNET
from sundial.verify.findings import Finding, as_table
from sundial.verify.frames import INBOUND
from sundial.verify.headers.ip import ICMP, MORE_FRAGMENTS

UNPROVEN = ("ICMP messages that were fragmented, except their checksum",)

ECHO_REPLY, UNREACHABLE, ECHO, TIME_EXCEEDED = 0, 3, 8, 11
PORT, REASSEMBLY = 3, 1
_REASSEMBLY_NS = 14_000_000_000
"""lwIP gives a datagram up after IP_REASS_MAXAGE, 15 s, counted in ticks of a second; Linux after 30 s."""
_KEPT = (slice(1, 2), slice(4, 6), slice(8, 10), slice(12, 20))
"""Of a quoted IP header: what it has in common with a fragment of the datagram."""

Read = Callable[[pl.DataFrame], Octets]
_Problem = tuple[str, str, str]


def check_icmp(frames: pl.DataFrame, sent: pl.DataFrame, read: Read) -> pl.DataFrame:
    """`sent` as of `ports.sent_frames`, of `frames`. Messages are few: they are looked at one by one."""
    messages = sent.filter(pl.col("protocol") == ICMP)
    whole = (pl.col("fragment_offset") == 0) & (pl.col("ip_flags") & MORE_FRAGMENTS == 0)
    alone = messages.filter(whole)
    octets, heard = read(alone), _Heard(frames, read)
    rows: list[Finding] = []
    for place, frame in enumerate(alone.iter_rows(named=True)):
        packet = octets.frame(place)[ETHERNET : ETHERNET + frame["ip_length"]]
        rows += [
            Finding(None, *problem, [frame["row"]]) for problem in _judge(frame, packet[frame["ip_header"] :], heard)
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


def _judge(frame: dict[str, object], message: bytes, heard: _Heard) -> list[_Problem]:
    kind, code = (message + b"\xff\xff")[:2]
    if len(message) < 8:
        return [("icmp", "8 bytes at least", f"{len(message)} bytes")]
    if kind == ECHO:
        return []
    if kind == ECHO_REPLY:
        asked = heard.echo(frame, message)
        return [] if asked else [("icmp.type", "a reply to a request received before", "none with its data")]
    if (kind, code) not in ((UNREACHABLE, PORT), (TIME_EXCEEDED, REASSEMBLY)):
        return [("icmp.type", "an echo, a closed port, or a reassembly that took too long", f"{kind}, code {code}")]
    problems = [("icmp.unused", "0", message[4:8].hex())] if any(message[4:8]) else []
    since_ns = _REASSEMBLY_NS if kind == TIME_EXCEEDED else 0
    if not heard.packet(frame, message[8:], since_ns):
        problems.append(("icmp.quote", "a packet received before", message[8:36].hex()))
    return problems


class _Heard:
    """Frames that were received, read when they are asked for."""

    def __init__(self, frames: pl.DataFrame, read: Read) -> None:
        self._frames = frames.filter(pl.col("fate").is_null(), pl.col("direction") == INBOUND)
        self._read = read

    def echo(self, frame: dict[str, object], reply: bytes) -> bool:
        """Whether a request with the reply's identifier, number and data came from whom it goes to."""
        found = self._before(frame, pl.col("protocol") == ICMP, pl.col("ip_length") == pl.lit(frame["ip_length"]))
        return any(data[20] == ECHO and data[24:] == reply[4:] for data in self._packets(found))

    def packet(self, frame: dict[str, object], quote: bytes, since_ns: int) -> bool:
        """Whether the packet that is quoted came from whom the message goes to, `since_ns` ago or longer."""
        if len(quote) < 28:
            return False
        # Of a datagram in fragments the header is that of the whole.
        found = self._before(frame, pl.col("ip_id") == int.from_bytes(quote[4:6]), pl.col("fragment_offset") == 0)
        found = found.filter(pl.col("time_ns") <= int(str(frame["time_ns"])) - since_ns)
        return any(
            all(data[part] == quote[part] for part in _KEPT) and data[20 : len(quote)] == quote[20 : max(len(data), 28)]
            for data in self._packets(found)
        )

    def _before(self, frame: dict[str, object], *where: pl.Expr) -> pl.DataFrame:
        return self._frames.filter(
            pl.col("end") == frame["end"],
            pl.col("source") == frame["target"],
            pl.col("target") == frame["source"],
            pl.col("time_ns") <= pl.lit(frame["time_ns"]),
            *where,
        )

    def _packets(self, frames: pl.DataFrame) -> list[bytes]:
        octets = self._read(frames)
        lengths = frames["ip_length"].to_list()
        return [octets.frame(place)[ETHERNET : ETHERNET + length] for place, length in enumerate(lengths)]

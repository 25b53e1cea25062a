# SPDX-License-Identifier: Apache-2.0
"""Messages of two ends by hand, as decoders get them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from sundial.verify.decoders.traffic import Connection, Datagram, Lane, Traffic
from sundial.verify.sockets.conversations import Segment, Way
from sundial.verify.sockets.stream import Stream

NEAR, FAR = ("10.0.0.1", 700), ("10.0.0.2", 2049)
MS = 1_000_000


@dataclass
class Talk:
    """Messages in time, each 1 ms on its way. Times in ms."""

    datagrams: list[Datagram] = field(default_factory=list)
    out: list[tuple[int, bytes]] = field(default_factory=list)
    back: list[tuple[int, bytes]] = field(default_factory=list)

    def ask(self, at: int, data: bytes, to: tuple[str, int] = FAR, lost: bool = False, **more: Any) -> None:
        came = () if lost else ((at + 1) * MS,)
        self.datagrams.append(Datagram(NEAR, to, data, at * MS, came, [len(self.datagrams)], **more))

    def answer(self, at: int, data: bytes, of: tuple[str, int] = FAR, lost: bool = False) -> None:
        came = () if lost else ((at + 1) * MS,)
        self.datagrams.append(Datagram(of, NEAR, data, at * MS, came, [len(self.datagrams)]))

    def traffic(self, ended: int | None = None, reset: bool = False, **more: Any) -> Traffic:
        """`ended`: when the client ended the connection."""
        lanes = {}
        for way, pieces in ((False, self.out), (True, self.back)):
            sent, came, pos = [], [], 0
            for at, piece in pieces:
                sent.append(Segment(pos, pos + len(piece), at * MS, pos))
                came.append(replace(sent[-1], at_ns=(at + 1) * MS))
                pos += len(piece)
            data = b"".join(piece for _, piece in pieces)
            ends = (NEAR, FAR) if not way else (FAR, NEAR)
            finished = None if ended is None or way else ended * MS
            lanes[way] = Lane(*ends, Stream([(0, data)]), Way(data, sent, came, finished_ns=finished))
        connections = [Connection(lanes, reset)] if self.out or self.back else []
        return Traffic(connections, self.datagrams, until_ns=100_000 * MS, **more)

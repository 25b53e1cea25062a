# SPDX-License-Identifier: Apache-2.0
"""What servers were doing, as far as captures show it: which requests they had, and since when they were answered.

A server takes one request after the other. It has one from the moment at which it is whole at its port, or, where the
library waits for the rest of a record whose beginning has come, from its first byte, to the moment at which the answer
leaves. While it has another one, a request waits for good cause; so does an answer while others take the line.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from sundial.verify.contention import NEVER_BUSY, Contention
from sundial.verify.frames import turn
from sundial.verify.sockets.protocol import SocketProtocol

SEND_BUFFER = 16_384
"""What a connection takes of an answer before its writer has to wait (net.ipv4.tcp_wmem, tcp(7))."""
_FOREVER = 1 << 62
_HAD_NONE = np.empty((0, 3), np.int64)


def services(
    calls: pl.DataFrame,
    datagrams: pl.DataFrame,
    arrived: pl.DataFrame,
    segments: pl.DataFrame,
    complete: pl.DataFrame,
    protocols: Mapping[str, SocketProtocol],
) -> pl.DataFrame:
    """One row a request that a server had: server, protocol, call, since_ns, until_ns.

    `datagrams`: sent; `arrived`: whole ones; `segments`: TCP frames with `call`, `view` and `data`; `complete`: call,
    reply and last_ns of whole messages, of which only those over TCP count.
    """
    asked = arrived.filter(~pl.col("reply")).sort("call", "last_ns")
    answered = datagrams.filter("reply").sort("call", "first_ns")
    over_udp = asked.select("call", place=turn("call"), since_ns="last_ns").join(
        answered.select("call", place=turn("call"), until_ns="first_ns"), on=["call", "place"], how="left"
    )
    names = [name for name, protocol in protocols.items() if protocol.waits_for_records]
    waits = calls.filter(pl.col("protocol").is_in(names))["id"].implode()
    data = segments.filter(pl.col("data") > 0, pl.col("call").is_not_null())
    first = (
        data.filter(~pl.col("reply"), pl.col("view") == "received", pl.col("call").is_in(waits))
        .group_by("call")
        .agg(begun_ns=pl.col("time_ns").min())
    )
    sent = (
        data.filter("reply", pl.col("view") == "sent")
        .group_by("call")
        .agg(
            until_ns=pl.when(pl.col("data").sum() > SEND_BUFFER)
            .then(pl.col("time_ns").max())
            .otherwise(pl.col("time_ns").min())
        )
    )
    streamed = calls.filter(pl.col("transport") == "tcp")["id"].implode()
    whole = complete.filter(~pl.col("reply"), pl.col("call").is_in(streamed)).select("call", whole_ns="last_ns")
    over_tcp = (
        whole.join(first, on="call", how="full", coalesce=True)
        .with_columns(since_ns=pl.coalesce("begun_ns", "whole_ns"))
        .join(sent, on="call", how="left")
    )
    columns = ["call", "since_ns", "until_ns"]
    return (
        pl.concat([over_udp.select(columns), over_tcp.select(columns)])
        .join(calls.select("server", "protocol", call="id"), on="call", how="inner")
        .sort("server", "protocol", "since_ns", "call")
        # What is never answered is over, too, when something that came later is.
        .with_columns(
            later=pl.col("until_ns").cum_min(reverse=True).backward_fill().shift(-1).over("server", "protocol")
        )
        .with_columns(until_ns=pl.coalesce("until_ns", "later", pl.lit(_FOREVER)))
        .drop("later")
    )


class Servers:
    """Asks `services` how long a request waited for nothing that the captures show."""

    def __init__(self, table: pl.DataFrame) -> None:
        self._had = {
            key: part.select("call", "since_ns", "until_ns").to_numpy()
            for key, part in table.group_by("server", "protocol", maintain_order=True)
        }
        self._turn_ns = {key: _longest_turn(had) for key, had in self._had.items()}

    def idle_ns(
        self, server: str, protocol: str, call: int, since_ns: int, until_ns: int, line: Contention = NEVER_BUSY
    ) -> int:
        """For how long the server had no other request between two moments, and its line was free for an answer."""
        had = self._had.get((server, protocol), _HAD_NONE)
        others = had[(had[:, 0] != call) & (had[:, 1] < until_ns) & (had[:, 2] > since_ns)]
        idle, here = 0, since_ns
        for _, begun, over in [*others, (call, until_ns, until_ns)]:
            if begun > here:
                idle += max(0, line.idle_ns(here, int(begun)))
            here = max(here, int(over))
        return idle

    def held(self, server: str, protocol: str, at_ns: int) -> list[int]:
        """The calls whose requests it had just before a moment, one for each."""
        had = self._had.get((server, protocol), _HAD_NONE)
        return [int(call) for call in had[(had[:, 1] < at_ns) & (had[:, 2] > at_ns), 0]]

    def turn_ns(self, server: str, protocol: str) -> int:
        """The longest that the server took for a request while it had no other, of those that were not repeated."""
        return self._turn_ns.get((server, protocol), 0)


def _longest_turn(had: np.ndarray) -> int:
    calls, since, until = had[:, 0], had[:, 1], had[:, 2]
    before = np.maximum.accumulate(np.concatenate([[0], until[:-1]]))
    after = np.concatenate([since[1:], [_FOREVER]])
    _, index, count = np.unique(calls, return_inverse=True, return_counts=True)
    alone = (before <= since) & (until <= after) & (until < _FOREVER) & (count[index] == 1)
    return int((until - since)[alone].max(initial=0))

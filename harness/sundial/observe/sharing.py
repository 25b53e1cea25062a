# SPDX-License-Identifier: Apache-2.0
"""Which frames of a capture have to be dissected, and which tshark gets them.

A frame is seen at several ports. What tshark shows of it follows from its bytes and from what it has seen of the same
exchange before, which is a TCP connection, or the datagrams of one flow that begin with the same word (the number of an
RPC, by which tshark finds the call of a reply). So an exchange is dissected where it is seen first; at another port
only if one of its frames, in their order, is another one there, or there are more: a damaged, lost or doubled frame
makes its whole exchange be dissected again as that port saw it. Different exchanges may go to different tsharks.
Fragments behind the first are none of any exchange, as tshark reassembles nothing here (`frames.py`). All else, such
as ARP, is one exchange.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial.observe.headers import ETHERNET, IPV4, TCP, UDP
from sundial.observe.octets import Numbers, Octets
from sundial.observe.pcap import ETHERNET_LINK, Capture, Interface

_OTHERS = 0
"""The exchange of all that belongs to none."""
_HEADS = ETHERNET + 60 + 12
_MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True)
class Share:
    """Of one interface: the frames that each tshark gets, by their places, and those that were dissected elsewhere."""

    interface: Interface
    hashes: Numbers
    """As of `Octets.hashes`."""
    parts: Sequence[Numbers]
    known: Numbers
    source: Numbers
    """At which of the interfaces before, and `place`: at which of its frames, `known` ones were."""
    place: Numbers

    def assembled(self, dissected: Sequence[pl.DataFrame], before: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """What tshark shows of all frames of the interface: of its own parts, those without frames left out, and of
        the interfaces before it."""
        tables, places = list(dissected), [part for part in self.parts if len(part)]
        for number, table in enumerate(before):
            of_it = self.source == number
            tables.append(table[self.place[of_it]])
            places.append(self.known[of_it])
        order = np.argsort(np.concatenate(places))
        return pl.concat(tables)[order]


def shares(capture: Capture, interfaces: Sequence[Interface], parts: int) -> list[Share]:
    """Of interfaces with many frames, each divided into so many parts."""
    found: list[Share] = []
    seen = pl.DataFrame(schema=_SEEN)
    for number, interface in enumerate(interfaces):
        octets = capture.octets(interface)
        hashes = octets.hashes()
        table = pl.DataFrame(
            {
                "exchange": exchanges(octets, hashes, interface.link_type == ETHERNET_LINK),
                # Captured bytes may be fewer than there were.
                "content": hashes ^ interface.blocks["original"],
                "place": np.arange(len(hashes)),
            }
        ).with_columns(source=pl.lit(number, pl.Int64))
        table = table.with_columns(turn=pl.Series(_turns(table["exchange"].to_numpy())))
        same = table.join(seen, on=["exchange", "turn"], how="left", maintain_order="left", suffix="_there").select(
            "exchange", "place", "source_there", "place_there",
            alike=(pl.col("content") == pl.col("content_there")).fill_null(False),
        )  # fmt: skip
        others = same.filter(~pl.col("alike"))["exchange"].unique()
        same = same.with_columns(alike=~pl.col("exchange").is_in(others.implode()))
        known = same.filter("alike")
        own = table.filter(~same["alike"])
        seen = pl.concat([seen, own.join(seen, on="exchange", how="anti").select(_SEEN.keys())])
        which = (own["exchange"] % parts).to_numpy()
        places = own["place"].to_numpy()
        found.append(
            Share(
                interface,
                hashes,
                [places[which == part] for part in range(parts)],
                *(known[name].to_numpy() for name in ("place", "source_there", "place_there")),
            )
        )
    return found


_SEEN = {"exchange": pl.UInt64, "turn": pl.Int64, "content": pl.Int64, "source": pl.Int64, "place": pl.Int64}


def _turns(exchange: NDArray[np.uint64]) -> Numbers:
    """The number of each frame among those of its exchange."""
    order = np.argsort(exchange, kind="stable")
    in_order, place = exchange[order], np.arange(len(order))
    begins = np.append(True, in_order[1:] != in_order[:-1])[: len(order)]
    turns = np.empty_like(place)
    turns[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return turns


def exchanges(octets: Octets, hashes: Numbers, ethernet: bool) -> NDArray[np.uint64]:
    """The same number for frames of one exchange."""
    heads = octets.heads(_HEADS)
    first = heads.number(ETHERNET, 1)
    transport = ETHERNET + (first & 0xF) * 4
    protocol, fragment = heads.number(23, 1), heads.number(20, 2) & 0x1FFF
    ip4 = octets.has(transport + 4) & (heads.number(12, 2) == IPV4) & (first >> 4 == 4) & (first & 0xF >= 5) & ethernet
    begins = ip4 & (fragment == 0) & np.isin(protocol, [TCP, UDP])
    ends = [
        heads.number(26 + 4 * end, 4).astype(np.uint64) << np.uint64(16)
        | heads.number(transport + 2 * end, 2).astype(np.uint64)
        for end in (0, 1)
    ]
    value = np.zeros(len(hashes), np.uint64)
    word = np.where(protocol == UDP, heads.number(transport + 8, 4), 0)
    for part in (np.minimum(*ends), np.maximum(*ends), word.astype(np.uint64), protocol.astype(np.uint64)):
        value = (value ^ part) * _MIX[0]
        value = (value ^ (value >> np.uint64(29))) * _MIX[1]
        value ^= value >> np.uint64(32)
    return np.select([begins, ip4 & (fragment > 0)], [value, hashes.astype(np.uint64)], np.uint64(_OTHERS))

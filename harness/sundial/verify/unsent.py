# SPDX-License-Identifier: Apache-2.0
"""When a machine's kernel may drop what it is given to send, which no capture shows: it has no address for it, no place
while it waits for one, or its queue in front of the adapter has stood for too long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import polars as pl

from sundial.observe import Octets
from sundial.verify.contention import Contention
from sundial.verify.frames import OUTBOUND
from sundial.verify.headers.arp import Stretches, asking, unresolved, within
from sundial.verify.headers.ports import homes

UNPROVEN = (
    "what Linux discarded in front of an adapter whose line had been taken for 100 ms, or while more waited for an"
    " address than may: that it was no more than it must",
)

INTERVAL_NS = 100_000_000
"""CoDel drops a packet that waited in a queue that has stood for so long (RFC 8289, 4.2; include/net/codel_impl.h). It
is the default of Linux guests' kernels (fq_codel)."""
_PLACE = 212_992
"""Bytes that wait for an address at the most: of more the oldest packets go (net/core/neighbour.c,
__neigh_event_send; unres_qlen_bytes)."""
_AT_ONCE_NS = 100_000_000
"""What waited is handed in when the address comes, and on the wire after so long at the most, or long enough for the
sum."""
_PLATFORM = "linux"


@dataclass(frozen=True)
class Unsent:
    """By machine, when it may drop what it sends."""

    unresolved: Stretches = field(default_factory=dict)
    """ARP had no answer to it."""
    queued: Stretches = field(default_factory=dict)
    """Its line has been taken for INTERVAL_NS, or more waited for an address than may."""

    @property
    def either(self) -> dict[str, list[tuple[int, int]]]:
        """For both reasons."""
        names = [*self.unresolved, *self.queued]
        return {name: [*self.unresolved.get(name, ()), *self.queued.get(name, ())] for name in names}


def unsent(
    frames: pl.DataFrame,
    ports: pl.DataFrame,
    read: Callable[[pl.DataFrame], Octets],
    lines: Mapping[str, Contention] | None = None,
) -> Unsent:
    """Of the frames of a run and its `headers.ports`. `lines`: as of `segment.contentions`, where they are known."""
    queued: dict[str, list[tuple[int, int]]] = {}
    linux = ports.filter(pl.col("platform") == _PLATFORM).select("end", "machine")
    for end, machine in linux.iter_rows():
        line = (lines or {}).get(end.rpartition("|")[2])
        if line is not None and (stood := line.taken_for(INTERVAL_NS)):
            queued.setdefault(machine, []).extend(stood)
    machines = dict(linux.iter_rows())
    asked = asking(frames, {end: end for end in machines}, read)
    for end, (_, asked_ns, came_ns) in ((end, each) for end, all_of_it in asked.items() for each in all_of_it):
        sent = frames.filter(
            pl.col("end") == end, pl.col("direction") == OUTBOUND, pl.col("fate").is_null(),
            pl.col("time_ns").is_between(came_ns, came_ns + _AT_ONCE_NS),
        )  # fmt: skip
        # The memory of a packet: a power of 2, with what belongs to it.
        if sent.select(2 * pl.col("frame_length").cast(pl.Int64) + 1024).sum().item() >= _PLACE:
            queued.setdefault(machines[end], []).append((asked_ns, came_ns + _AT_ONCE_NS))
    return Unsent(unresolved(frames, homes(ports), read), queued)


def beheaded(frames: pl.DataFrame, machines: Mapping[str, str], stretches: Stretches) -> pl.DataFrame:
    """row, class: fragments of datagrams whose first, which names the ports, its machine dropped. `machines`: by `end`;
    `stretches`: when they may drop what they send."""
    datagram = ["source", "target", "ip_id"]
    later = frames.filter(pl.col("fragment_offset") > 0)
    first = frames.filter(pl.col("fragment_offset") == 0, "more")
    alone = later.join(first, on=datagram, how="anti", maintain_order="left")
    sent = alone.filter(pl.col("direction") == OUTBOUND, pl.col("fate").is_null())
    dropped = [
        key
        for end, at_ns, *key in sent.select(pl.col("end").cast(pl.String), "time_ns", *datagram).iter_rows()
        if within(stretches.get(machines.get(end, ""), ()), at_ns)
    ]
    keys = pl.DataFrame(dropped, schema={name: frames.schema[name] for name in datagram}, orient="row")
    return alone.join(keys, on=datagram, how="semi").select("row", pl.lit("fragment_of_dropped").alias("class"))

# SPDX-License-Identifier: Apache-2.0
"""When a machine's kernel may drop what it is given to send, which no capture shows: it has no address for it, no place
while it waits for one, or its queue in front of the adapter has stood for too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from sundial.observe import Octets
from sundial.verify.contention import Contention
from sundial.verify.frames import OUTBOUND
from sundial.verify.headers.arp import RETRY_NS, Overflow, Stretches, asking, both, overflow, unresolved, within
from sundial.verify.headers.ports import homes

UNPROVEN = ("that Linux discarded no more than it must in front of an adapter whose line had been taken for 100 ms",)

INTERVAL_NS = 100_000_000
"""CoDel drops a packet that waited in a queue that has stood for so long (RFC 8289, 4.2; include/net/codel_impl.h). It
is the default of Linux guests' kernels (fq_codel)."""
_PLATFORM = "linux"


@dataclass(frozen=True)
class Unsent:
    """What machines may have dropped. `machines`: by `end`."""

    machines: Mapping[str, str]
    unresolved: Stretches
    """By machine: ARP had no answer to it."""
    overflow: Overflow
    """More waited for an address than may."""
    queued: Stretches
    """By machine: its line had been taken for INTERVAL_NS."""
    asked: Mapping[str, Sequence[tuple[str, int, int]]] = field(default_factory=dict)
    """As of `headers.arp.asking`."""

    @property
    def stretches(self) -> Stretches:
        """By machine, for all reasons."""
        return both(both(self.unresolved, self.overflow.stretches), self.queued)

    def headless(self, frames: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """row, class: fragments of datagrams whose first, which names the ports, its machine dropped."""
        yield pl.DataFrame({"row": self.overflow.headless}).select("row", pl.lit("arp_overflow").alias("class"))
        datagram = ["source", "target", "ip_id"]
        first = frames.filter(pl.col("fragment_offset") == 0, "more")
        alone = frames.filter(pl.col("fragment_offset") > 0).join(first, on=datagram, how="anti")
        sent = alone.filter(pl.col("direction") == OUTBOUND, pl.col("fate").is_null())
        dropped = [
            key
            for end, at_ns, *key in sent.select(pl.col("end").cast(pl.String), "time_ns", *datagram).iter_rows()
            if within(self.queued.get(self.machines.get(end, ""), ()), at_ns)
        ]
        keys = pl.DataFrame(dropped, schema={name: frames.schema[name] for name in datagram}, orient="row")
        yield alone.join(keys, on=datagram, how="semi").select("row", pl.lit("fragment_of_dropped").alias("class"))


def unsent(
    frames: pl.DataFrame,
    ports: pl.DataFrame,
    read: Callable[[pl.DataFrame], Octets],
    lines: Mapping[str, Contention] | None = None,
    retry_ns: int = RETRY_NS,
) -> Unsent:
    """Of the frames of a run and its `headers.ports`. `lines`: as of `segment.contentions`, where they are known;
    `retry_ns`: as of `headers.arp.unresolved`."""
    queued: dict[str, list[tuple[int, int]]] = {}
    for end, machine in ports.filter(pl.col("platform") == _PLATFORM).select("end", "machine").iter_rows():
        line = (lines or {}).get(end.rpartition("|")[2])
        if line is not None and (stood := line.taken_for(INTERVAL_NS)):
            queued.setdefault(machine, []).extend(stood)
    machines = homes(ports)
    asked = asking(frames, machines, read)
    return Unsent(
        machines, unresolved(frames, machines, read, retry_ns), overflow(frames, machines, asked), queued, asked
    )

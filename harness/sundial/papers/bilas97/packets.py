# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane as what a call's time is made of, beside frames of Ethernets.

The hardware's share begins with the store that a packet waits for, not when it leaves: an adapter that combines waits
for the end of its timer, and one that sends deliberately is set up and reads first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from sundial.observe import read_frames
from sundial.reproduce.measure import Measured
from sundial.reproduce.shares import Flight, Flights, Share, share
from sundial.segments.vmmc.model import duration_ps
from sundial.segments.vmmc.wire import AU, DU, HEADER, TIMER
from sundial.units import RATE, TIME

MAPPED = "vmmc"
_OUTBOUND = 2


@dataclass(frozen=True)
class Packet(Flight):
    """A packet of the backplane: from the store or the start of the transfer until it is in the other memory."""

    kind: int = AU

    @property
    def wire_bytes(self) -> int:
        return self.length


class OverBackplane(Measured):
    """A run directory whose machines have a backplane between them."""

    @property
    def flights(self) -> Flights:
        if self._flights is None:
            listed = [*super().flights.listed, *self.packets]
            self._flights = Flights(sorted(listed, key=lambda each: (each.begin_ns, each.end_ns)))
        return self._flights

    def share_of(self, call: Mapping[str, Any], flights: Flights | None = None) -> Share:
        begin, end = call["start_ns"], call["end_ns"]
        listed = (flights or self.flights).between(begin, end)
        # No packet waits for a gap after another one.
        gap_ns = 0 if any(isinstance(each, Packet) for each in listed) else self.gap_ns
        return share(begin, end, call["client"], listed, gap_ns)

    @cached_property
    def packets(self) -> list[Packet]:
        """In the order in which they left."""
        names = dict(enumerate(self.run["topology"]["machines"], 1))
        return [
            packet
            for name, segment in self.run["topology"]["segments"].items()
            if segment["kind"] == MAPPED
            for packet in _packets(self.folder / "wire" / f"{name}.pcapng", segment, names, int(self.run["epoch_ns"]))
        ]


def _packets(path: Path, segment: dict[str, Any], names: dict[int, str], epoch_ns: int) -> Iterator[Packet]:
    table = read_frames([(path, path.name)], epoch_ns).filter(pl.col("vmmc_kind").is_not_null())
    key = ["vmmc_sender", "vmmc_receiver", "vmmc_sequence"]
    out = pl.col("direction") == _OUTBOUND
    arrived = table.filter(~out).select(*key, arrived_ns="time_ns")
    both = table.filter(out).join(arrived, on=key).sort("time_ns", "frame")
    setup_ns, timeout_ns = (TIME.parse(segment[name]) for name in ("deliberate_setup", "combine_timeout"))
    rate = RATE.parse(segment["dma_rate"])
    columns = both.select("time_ns", "arrived_ns", *(f"vmmc_{name}" for name in ("sender", "kind", "reason", "length")))
    for left, came, sender, kind, reason, length in columns.iter_rows():
        waited = timeout_ns if kind == AU and reason == TIMER else 0
        waited += setup_ns + duration_ps(length, rate) // 1000 if kind == DU else 0
        yield Packet(left - waited, came, names[sender], HEADER + length, kind)

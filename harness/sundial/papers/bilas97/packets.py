# SPDX-License-Identifier: Apache-2.0
"""Packets of a backplane as what a call's time is made of, beside frames of Ethernets, and how many left for which
reason.

The hardware's share begins with the store that a packet waits for, not when it leaves: an adapter that combines waits
for the end of its timer, and one that sends deliberately is set up and reads first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from sundial.observe import read_frames
from sundial.reproduce.measure import Measured
from sundial.reproduce.shares import Flight, Flights, Share, share
from sundial.segments.vmmc.model import Backplane
from sundial.segments.vmmc.model_stores import flights
from sundial.segments.vmmc.wire import AU, CONTROL, DU, HEADER, NACK, NOTIFY, REASONS

MAPPED = "vmmc"
_OUTBOUND = 2


@dataclass(frozen=True)
class Packet(Flight):
    """A packet of the backplane: from the store or the start of the transfer until it is in the other memory."""

    kind: int = AU

    @property
    def wire_bytes(self) -> int:
        return self.length


@dataclass(frozen=True)
class Counts:
    """Packets that left in one run."""

    by_reason: Mapping[str, int]
    """Of automatic update, by `REASONS`."""
    deliberate: int
    control: int
    refused: int
    """Refusals (NACK)."""
    notified: int
    """Of all, those that notify."""
    fabric: int
    """All that left, as the fabric has counted them."""

    @property
    def seen(self) -> int:
        """All, as captured."""
        return sum(self.by_reason.values()) + self.deliberate + self.control + self.refused


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
        """Those that arrived, in the order in which they left."""
        return [packet for name, segment in self._backplanes for packet in _packets(segment, self._captured[name])]

    @property
    def counts(self) -> Counts | None:
        """None where there is no backplane."""
        if not self._captured:
            return None
        table = pl.concat(self._captured.values()).filter(pl.col("direction") == _OUTBOUND)
        kind, reason = pl.col("vmmc_kind"), pl.col("vmmc_reason")
        of_kind = {each: table.filter(kind == each).height for each in (DU, CONTROL, NACK)}
        ports = (port for name in self._captured for port in self.counters["segments"][name]["ports"].values())
        return Counts(
            {name: table.filter(kind == AU, reason == number).height for number, name in REASONS.items()},
            of_kind[DU],
            of_kind[CONTROL],
            of_kind[NACK],
            table.filter(pl.col("vmmc_flags") & NOTIFY != 0).height,
            sum(port["tx_frames"] for port in ports),
        )

    @property
    def dma_rate_bps(self) -> int | None:
        """Of the first backplane; None where there is none."""
        return next((segment.dma_rate for _, segment in self._backplanes), None)

    @cached_property
    def counters(self) -> dict[str, Any]:
        """Of the fabric."""
        counted: dict[str, Any] = json.loads((self.folder / "wire" / "counters.json").read_text())
        return counted

    @property
    def _backplanes(self) -> Iterator[tuple[str, Backplane]]:
        for name, segment in self.run["topology"]["segments"].items():
            if segment["kind"] == MAPPED:
                yield name, Backplane.model_validate(segment)

    @cached_property
    def _captured(self) -> dict[str, pl.DataFrame]:
        """Packets of each backplane where they left and where they arrived."""
        paths = ((name, self.folder / "wire" / f"{name}.pcapng") for name, _ in self._backplanes)
        epoch_ns = int(self.run["epoch_ns"])
        return {
            name: read_frames([(path, path.name)], epoch_ns).filter(pl.col("vmmc_kind").is_not_null())
            for name, path in paths
        }


def _packets(segment: Backplane, captured: pl.DataFrame) -> Iterator[Packet]:
    table = flights(segment, captured).select("stored_ns", "at_ns", "sender", "length", "kind")
    for stored_ns, at_ns, sender, length, kind in table.iter_rows():
        yield Packet(stored_ns, at_ns, sender, HEADER + length, kind)

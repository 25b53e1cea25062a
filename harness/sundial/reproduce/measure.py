# SPDX-License-Identifier: Apache-2.0
"""Run directories to numbers: round trips with their shares, streams with the wire's use, what servers counted."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sundial import EPOCH_NS
from sundial.observe import open_capture
from sundial.reproduce.shares import GAP_BITS, Flight, Flights, Share, occupied_ns, share
from sundial.units import RATE

FATE = ":fate"


@dataclass(frozen=True)
class RoundTrip:
    """Calls of one kind and size: the call in the middle with its parts, and the spread around it."""

    calls: int
    median_us: float
    least_us: float
    most_us: float
    parts: Share
    instruction_ns: tuple[float, float]
    """Of the client and of the server."""

    @property
    def instructions(self) -> int:
        """Of both ends together, without what the wire hides."""
        return self.parts.instructions(*self.instruction_ns)


@dataclass(frozen=True)
class Stream:
    """Operations one after the other."""

    operations: int
    megabytes_per_s: float
    used: float
    """Share of the time in which the wire carried something, gaps included."""
    most_megabytes_per_s: float
    """What the wire carries with the headers of these frames and nothing else on it."""


class Measured:
    """One run directory, read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run: dict[str, Any] = json.loads((folder / "run.json").read_text())
        self.samples = pl.read_parquet(folder / "samples.parquet")
        self._flights: Flights | None = None

    @property
    def flights(self) -> Flights:
        """Frames that went from one machine to another, over whatever is between them."""
        if self._flights is None:
            self._flights = Flights(_flights(self.folder, self.run))
        return self._flights

    @property
    def captures(self) -> tuple[str, ...]:
        """Files below the run's folder: those of the segments first, then what was captured below Ethernet."""
        wire = self.folder / "wire"
        found = [*sorted(wire.glob("*.pcapng")), *sorted(wire.glob("*/*.pcapng"))]
        return tuple(str(path.relative_to(self.folder)) for path in found)

    @property
    def rate_bps(self) -> int:
        """Of the first Ethernet segment."""
        return RATE.parse(next(self._ethernet_rates()))

    @property
    def gap_ns(self) -> int:
        """The interframe gap of the slowest Ethernet segment; 0 where there is none."""
        return max((GAP_BITS * 10**9 // RATE.parse(rate) for rate in self._ethernet_rates()), default=0)

    def _ethernet_rates(self) -> Iterator[str]:
        for segment in self.run["topology"]["segments"].values():
            rate = segment.get("rate", ())
            yield from (rate,) if isinstance(rate, str) else rate.values() if isinstance(rate, dict) else ()

    def instruction_ns(self, machine: str) -> float:
        topology = self.run["topology"]
        mips = topology["machines"][machine].get("mips") or topology["defaults"]["mips"]
        return float(1000 / Decimal(str(mips)))

    def calls(self, **where: Any) -> pl.DataFrame:
        """Measured calls of one kind, by the columns of samples.parquet."""
        table = self.samples.filter(~pl.col("warmup"))
        for name, value in where.items():
            table = table.filter(pl.col(name) == value)
        return table

    def round_trip(self, **where: Any) -> RoundTrip | None:
        """None where no such call succeeded."""
        table = self.calls(**where).filter(pl.col("ok")).sort("rtt_ns", "start_ns")
        if table.is_empty():
            return None
        middle = table.row((table.height - 1) // 2, named=True)
        parts = self.share_of(middle)
        times = table["rtt_ns"].to_list()
        ns = (self.instruction_ns(middle["client"]), self.instruction_ns(middle["server"]))
        return RoundTrip(len(times), middle["rtt_ns"] / 1e3, times[0] / 1e3, times[-1] / 1e3, parts, ns)

    def flights_during(self, calls: pl.DataFrame) -> Flights:
        """Those frames that leave or arrive while one of these calls is under way, where a run has too many."""
        return Flights(_flights(self.folder, self.run, calls.select("start_ns", "end_ns").sort("start_ns")))

    def share_of(self, call: Mapping[str, Any], flights: Flights | None = None) -> Share:
        """The parts of one call, given by its row of samples.parquet; `flights`: its own among others."""
        begin, end = call["start_ns"], call["end_ns"]
        listed = (flights or self.flights).between(begin, end)
        return share(begin, end, call["client"], listed, self.gap_ns)

    def stream(self, size: int, **where: Any) -> Stream | None:
        """Operations of one size, from the beginning of the first to the acknowledgement of the last."""
        table = self.calls(size=size, **where)
        if table.is_empty() or not table["ok"].all():
            return None
        begin, end = int(table["start_ns"].min()), int(table["end_ns"].max())  # type: ignore[arg-type]
        inside = [flight for flight in self.flights.between(begin, end) if flight.begin_ns >= begin]
        data = [flight for flight in inside if flight.sender == table["client"][0] and flight.length > size]
        ideal = occupied_ns(data, self.rate_bps)
        sent = size * table.height
        return Stream(
            table.height,
            sent / (end - begin) * 1e3,
            occupied_ns(inside, self.rate_bps) / (end - begin),
            sent / ideal * 1e3 if ideal else 0.0,
        )

    def counted(self, machine: str, app: str) -> dict[str, Any]:
        """The last counters that a service of `machine` reported; empty where it reported none."""
        reported = [record for record in self.reported(machine, "counters") if record.get("app") == app]
        return reported[-1] if reported else {}

    def reported(self, machine: str, kind: str) -> list[dict[str, Any]]:
        """What a machine reported beside calls, of one type, in that order."""
        path = self.folder / "nodes" / machine / "samples.jsonl"
        if not path.is_file():
            return []
        begin = json.dumps({"type": kind}, separators=(",", ":"))[:-1].encode()
        with path.open("rb") as lines:
            return [json.loads(line) for line in lines if line.startswith(begin)]

    def steps(self, machine: str) -> list[dict[str, Any]]:
        """What a client did, by number."""
        job = json.loads((self.folder / "nodes" / machine / "job.json").read_text())
        return list(job["steps"])


def _flights(folder: Path, run: dict[str, Any], during: pl.DataFrame | None = None) -> list[Flight]:
    """From the port of the machine that sent a frame to the port of the one that received it.

    They may be on different segments with devices between; what those did with a frame is part of its flight.
    """
    macs = {
        bytes.fromhex(item["mac"].replace(":", "")): name
        for name, node in run["nodes"].items()
        for item in node["interfaces"]
    }
    epoch_ns = int(run.get("epoch_ns") or EPOCH_NS)
    seen = [
        (at_ns, place, number, sight)
        for place, path in enumerate(sorted((folder / "wire").glob("*.pcapng")))
        for at_ns, number, sight in _sights(path, macs, epoch_ns, during)
    ]
    seen.sort(key=lambda each: each[:3])
    under_way: dict[tuple[int, str], deque[int]] = {}
    flights = []
    for at_ns, _, _, (owner, sender, receiver, length, mark) in seen:
        if sender == owner:
            under_way.setdefault((mark, receiver), deque()).append(at_ns)
        elif receiver == owner and under_way.get((mark, owner)):
            flights.append(Flight(under_way[mark, owner].popleft(), at_ns, sender, length))
    return sorted(flights, key=lambda flight: (flight.begin_ns, flight.end_ns))


def _sights(
    path: Path, macs: Mapping[bytes, str], epoch_ns: int, during: pl.DataFrame | None
) -> Iterator[tuple[int, int, tuple[str, str, str, int, int]]]:
    """Unicast frames between machines at their ports: when, number of the frame, (where, from, to, length, mark).

    Equal frames have equal marks; the frames themselves would not fit into memory.
    """
    capture = open_capture(path)
    try:
        for interface in capture.interfaces:
            owner = interface.name.partition(":")[0]
            if interface.name.endswith(FATE) or owner not in macs.values():
                continue
            ticks = capture.ticks(interface)
            assert ticks is not None, "the fabric stamps every frame"
            at_ns = ticks - epoch_ns
            if during is not None:
                kept = _within(at_ns, during)
                at_ns, interface.blocks = at_ns[kept], interface.blocks[kept]
            for at, block in zip(at_ns.tolist(), interface.each(), strict=True):
                packet = capture.packet(block)
                sender, receiver = macs.get(packet[6:12]), macs.get(packet[:6])
                if sender is not None and receiver is not None:
                    yield at, block[4], (owner, sender, receiver, len(packet), hash(packet))
    finally:
        capture.close()


def _within(at_ns: NDArray[np.int64], calls: pl.DataFrame) -> NDArray[np.bool_]:
    """Which instants are in one of the calls, which come one after another."""
    begins, ends = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    before = np.searchsorted(begins, at_ns, side="right")
    latest = np.concatenate([np.array([-1]), np.maximum.accumulate(ends)])
    inside: NDArray[np.bool_] = at_ns <= latest[before]
    return inside

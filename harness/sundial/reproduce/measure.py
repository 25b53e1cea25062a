# SPDX-License-Identifier: Apache-2.0
"""Run directories to numbers: round trips with their shares, streams with the wire's use, what servers counted."""

from __future__ import annotations

import json
import struct
from collections import deque
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from sundial import EPOCH_NS
from sundial.observe import open_capture
from sundial.reproduce.shares import Flight, Share, occupied_ns, share
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
    instruction_ns: float

    @property
    def instructions(self) -> int:
        """Of both ends together, without what the wire hides."""
        return round(self.parts.software_ns / self.instruction_ns)


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
        self.records = _records(folder)
        self._flights: list[Flight] | None = None

    @property
    def flights(self) -> list[Flight]:
        """Frames of the first segment that arrived, by their beginnings."""
        if self._flights is None:
            self._flights = _flights(self.folder, self.run)
        return self._flights

    @property
    def rate_bps(self) -> int:
        """Of the first segment."""
        segment = next(iter(self.run["topology"]["segments"].values()))
        return RATE.parse(segment["rate"])

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
        parts = share(middle["start_ns"], middle["end_ns"], middle["client"], self.flights, self.rate_bps)
        times = table["rtt_ns"].to_list()
        ns = self.instruction_ns(middle["client"])
        return RoundTrip(len(times), middle["rtt_ns"] / 1e3, times[0] / 1e3, times[-1] / 1e3, parts, ns)

    def stream(self, size: int, **where: Any) -> Stream | None:
        """Operations of one size, from the beginning of the first to the acknowledgement of the last."""
        table = self.calls(size=size, **where)
        if table.is_empty() or not table["ok"].all():
            return None
        begin, end = int(table["start_ns"].min()), int(table["end_ns"].max())  # type: ignore[arg-type]
        inside = [flight for flight in self.flights if begin <= flight.begin_ns < end]
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
        reported = [record for record in self.records.get(machine, []) if record.get("app") == app]
        return reported[-1] if reported else {}

    def steps(self, machine: str) -> list[dict[str, Any]]:
        """What a client did, by number."""
        job = json.loads((self.folder / "nodes" / machine / "job.json").read_text())
        return list(job["steps"])


def _records(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Counters of every machine, in the order in which they were reported."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((folder / "nodes").glob("*/samples.jsonl")):
        with path.open("rb") as lines:
            reported = [json.loads(line) for line in lines if line.startswith(b'{"type":"counters"')]
        found[path.parent.name] = reported
    return found


def _flights(folder: Path, run: dict[str, Any]) -> list[Flight]:
    """Each frame twice in a capture, at the port that sent and at the port that received it, in one order."""
    macs = {
        bytes.fromhex(item["mac"].replace(":", "")): name
        for name, node in run["nodes"].items()
        for item in node["interfaces"]
    }
    epoch_ns = int(run.get("epoch_ns") or EPOCH_NS)
    path = sorted((folder / "wire").glob("*.pcapng"))[0]
    capture = open_capture(path)
    seen: list[tuple[int, int, str, bytes]] = []
    try:
        for interface in capture.interfaces:
            if not interface.name.endswith(FATE):
                owner = interface.name.partition(":")[0]
                for block in interface.each():
                    high, low = struct.unpack_from(f"{capture.order}II", capture.data, block[0] + 12)
                    seen.append((((high << 32) | low) - epoch_ns, block[4], owner, capture.packet(block)))
    finally:
        capture.close()
    under_way: dict[tuple[bytes, str], deque[int]] = {}
    flights = []
    for at_ns, _, owner, packet in sorted(seen):
        sender = macs.get(packet[6:12])
        if sender == owner:
            receivers = [macs[packet[:6]]] if packet[:6] in macs else []
            for receiver in receivers:
                under_way.setdefault((packet, receiver), deque()).append(at_ns)
        elif sender is not None and under_way.get((packet, owner)):
            flights.append(Flight(under_way[packet, owner].popleft(), at_ns, sender, len(packet)))
    return sorted(flights, key=lambda flight: (flight.begin_ns, flight.end_ns))

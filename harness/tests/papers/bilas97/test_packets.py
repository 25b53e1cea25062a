# SPDX-License-Identifier: Apache-2.0
"""What the hardware's share of a call begins with: the store that a packet waits for."""

from __future__ import annotations

import json
from pathlib import Path

from sundial.papers.bilas97.packets import OverBackplane, Packet
from sundial.reproduce.shares import Flight, Flights
from tests.verify.vmmc_bed import (
    AU,
    CONTROL,
    DU,
    FLIGHT_NS,
    NACK,
    PAGE_END,
    PORTS,
    STEP_NS,
    TIMER,
    UNCOMBINED,
    VmmcBed,
)

SEGMENT = {
    "kind": "vmmc", "ports": PORTS, "deliberate_setup": "2.8 us", "combine_timeout": "1 us", "dma_rate": "184 Mbit/s",
}  # fmt: skip
LAN = {"kind": "switch", "rate": "100 Mbit/s"}
ADDRESS = (1, 2, 0, 1)
"""Sender, receiver, export, generation."""


def measured(directory: Path) -> OverBackplane:
    bed = VmmcBed(directory, now=1_000_000)
    bed.store(ADDRESS, 0, bytes(8), reason=UNCOMBINED)
    bed.store(ADDRESS, 8, bytes(16), reason=TIMER)
    bed.send(ADDRESS, 4096, bytes(184), 0, last=True)
    return finished(bed)


def finished(bed: VmmcBed) -> OverBackplane:
    directory = bed.directory
    bed.batch("vmmc-client", "au", "round_trip", 8)
    bed.sample(999_900)
    bed.write("vmmc-client")
    path = directory / "run.json"
    machines = {name: {"mips": 62.5} for name in ("client", "server")}
    document = json.loads(path.read_text())
    path.write_text(
        json.dumps({**document, "topology": {"machines": machines, "segments": {"backplane": SEGMENT, "lan": LAN}}})
    )
    return OverBackplane(directory)


def test_a_packet_begins_with_what_it_waits_for(tmp_path: Path) -> None:
    stored, combined, sent = measured(tmp_path / "run").packets
    ends = [1_000_000 + place * STEP_NS + FLIGHT_NS for place in range(3)]
    assert stored == Packet(1_000_000, ends[0], "client", 40, AU)
    # Combining ends with the timer, so the last store was that long before.
    assert combined == Packet(1_010_000 - 1_000, ends[1], "client", 48, AU)
    # 184 bytes at 184 Mbit/s are read in 8 us, after the setup.
    assert sent == Packet(1_020_000 - 2_800 - 8_000, ends[2], "client", 216, DU)
    assert [each.wire_bytes for each in (stored, combined, sent)] == [40, 48, 216]


def test_no_gap_of_ethernet_is_between_packets(tmp_path: Path) -> None:
    run = measured(tmp_path / "run")
    call = {"start_ns": 0, "end_ns": 9_000, "client": "client", "server": "server"}
    times = ((0, 4_250, "client"), (4_750, 9_000, "server"))
    packets = run.share_of(call, Flights([Packet(*each, 40, AU) for each in times]))
    assert (packets.wire_ns, packets.server_ns, packets.wire_bytes) == (8_500, 500, 80)
    frames = run.share_of(call, Flights([Flight(*each, 60) for each in times]))
    assert (frames.wire_ns, frames.server_ns) == (9_000, 0)


def test_packets_are_counted_by_reason_and_as_the_fabric_has_them(tmp_path: Path) -> None:
    counts = measured(tmp_path / "run").counts
    assert counts is not None
    assert counts.by_reason == {"gap": 0, "page": 0, "full": 0, "timer": 1, "uncombined": 1, "flushed": 0}
    assert (counts.deliberate, counts.control, counts.refused, counts.notified) == (1, 0, 0, 0)
    assert counts.seen == counts.fabric == 3


def test_refusals_and_notifications_are_counted_where_they_leave(tmp_path: Path) -> None:
    bed = VmmcBed(tmp_path / "run", now=1_000_000)
    bed.store(ADDRESS, 0, bytes(8), reason=PAGE_END, flags=1)
    bed.packet(NACK, 2, 1, export=0, generation=1, offset=0, count=1)
    bed.packet(CONTROL, 1, 2, bytes(64), arrives=False)  # when the run ended
    counts = finished(bed).counts
    assert counts is not None
    assert (counts.by_reason["page"], counts.refused, counts.control, counts.notified) == (1, 1, 1, 1)
    assert counts.seen == 3


def test_a_run_without_a_backplane_has_no_packets(tmp_path: Path) -> None:
    run = measured(tmp_path / "run")
    run.run["topology"]["segments"].pop("backplane")
    assert run.counts is None

# SPDX-License-Identifier: Apache-2.0
"""When the store was made that a packet ends with, from made-up captures."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.observe import read_frames
from sundial.segments.vmmc.model import Backplane
from sundial.segments.vmmc.model_stores import flights
from tests.verify.bed import EPOCH_NS
from tests.verify.vmmc_bed import FLIGHT_NS, GAP, PAGE_END, PORTS, TIMER, UNCOMBINED, VmmcBed, capture

BACKPLANE = Backplane.model_validate({"kind": "vmmc", "ports": PORTS})
BYTE_NS = 5
"""On the line: 1600 Mbit/s."""
THERE = (1, 2, 0, 1)


@pytest.fixture
def bed(tmp_path: Path) -> VmmcBed:
    return VmmcBed(tmp_path, now=1_000_000)


def times(bed: VmmcBed) -> list[tuple[int, int, int, bool]]:
    """Of each packet, since the first left: stored, sent, arrived, and whether the store is known to the ns."""
    path = bed.directory / "backplane.pcapng"
    path.write_bytes(capture(bed.records))
    table = flights(BACKPLANE, read_frames([(path, path.name)], EPOCH_NS))
    zero = 1_000_000
    return [
        (stored - zero, sent - zero, at - zero, exact)
        for stored, sent, at, exact in table.select("stored_ns", "sent_ns", "at_ns", "exact").iter_rows()
    ]


def test_a_store_that_leaves_alone_has_pushed_out_what_was_combined(bed: VmmcBed) -> None:
    bed.store(THERE, 4096, bytes(40), reason=GAP)
    taken = BYTE_NS * (32 + 40)
    bed.now = 1_000_000 + taken
    bed.store(THERE, 256, bytes(8))
    assert times(bed) == [(0, 0, FLIGHT_NS, False), (0, taken, taken + FLIGHT_NS, True)]


@pytest.mark.parametrize("late", [-1, 1])
def test_what_has_not_waited_for_the_line_was_stored_as_it_left(bed: VmmcBed, late: int) -> None:
    bed.store(THERE, 4096, bytes(40), reason=GAP)
    left = BYTE_NS * (32 + 40) + late
    bed.now = 1_000_000 + left
    bed.store(THERE, 256, bytes(8))
    assert times(bed)[1] == (left, left, left + FLIGHT_NS, True)


def test_what_waited_for_other_reasons_is_known_no_better_than_when_it_left(bed: VmmcBed) -> None:
    bed.store(THERE, 256, bytes(8))
    left = BYTE_NS * 40
    bed.now = 1_000_000 + left
    bed.store(THERE, 256, bytes(8))
    bed.now = 1_000_000 + 2 * left
    bed.store(THERE, 4088, bytes(8), reason=PAGE_END)
    assert [(stored, exact) for stored, _, _, exact in times(bed)] == [(0, True), (left, False), (2 * left, False)]


def test_a_line_belongs_to_its_node(bed: VmmcBed) -> None:
    bed.store(THERE, 4096, bytes(40), reason=GAP)
    left = BYTE_NS * (32 + 40)
    bed.now = 1_000_000 + left
    bed.store((2, 1, 0, 1), 256, bytes(8))
    assert times(bed)[1][:2] == (left, left)


def test_adapters_wait_for_a_timer_and_for_reading(bed: VmmcBed) -> None:
    bed.store(THERE, 0, bytes(16), reason=TIMER)
    bed.send(THERE, 4096, bytes(184), 0, last=True)
    waited = [sent - stored for stored, sent, _, _ in times(bed)]
    assert waited == [BACKPLANE.combine_timeout, BACKPLANE.deliberate_setup + 8_000]
    assert not any(exact for *_, exact in times(bed))


def test_what_does_not_arrive_is_no_flight_and_notifications_wake(bed: VmmcBed) -> None:
    bed.packet(1, 1, 2, bytes(8), reason=UNCOMBINED, count=1, arrives=False)
    bed.store(THERE, 0, bytes(8), flags=1)
    bed.store(THERE, 8, bytes(8))
    path = bed.directory / "backplane.pcapng"
    path.write_bytes(capture(bed.records))
    table = flights(BACKPLANE, read_frames([(path, path.name)], EPOCH_NS))
    assert table.select("sender", "receiver", "wakes").rows() == [
        ("client", "server", True), ("client", "server", False),
    ]  # fmt: skip

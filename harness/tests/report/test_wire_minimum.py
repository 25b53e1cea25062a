# SPDX-License-Identifier: Apache-2.0
"""The wire minimum of cells and of mixed paths, against arithmetic by hand: the rules of wires, and a table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from sundial.expect import Connection, Leg, Shape, atm
from sundial.report import wire_time
from sundial.report.wire_time import AnyHop, CellHop, Hop
from sundial.workloads.sunrpc.expect import expect_call

UDP, TCP_12, TCP_0 = ("udp", True), ("tcp", True), ("tcp", False)
"""Transport, and whether TCP puts its 12 bytes of timestamps into each segment."""

LINES_NS = {
    "OC-3c": Fraction(331_250_000, 117_000),
    "TAXI": Fraction(4320),
    "25.6": Fraction(16_875),
}
"""Of 53 octets at 149.76 Mb/s, and of 54 at 100 and 25.6 Mb/s."""


def lane(frame_bytes: int) -> int:
    return atm.packet_cells(atm.LANE, frame_bytes - 14)


def cell_hop(line: str = "OC-3c", cells: Callable[[int], int] = lane) -> CellHop:
    return CellHop(cells, float(LINES_NS[line]), float(LINES_NS[line]))


TEN, HUNDRED = Hop(10**7), Hop(10**8)
WIRES: dict[str, tuple[list[AnyHop], list[AnyHop]]] = {
    "hub 10": ([TEN], [TEN]),
    "hub 100": ([HUNDRED], [HUNDRED]),
    "switch 100": ([HUNDRED, HUNDRED], [HUNDRED, HUNDRED]),
    **{line: ([cell_hop(line)], [cell_hop(line)]) for line in LINES_NS},
    "mixed": ([TEN, cell_hop()], [cell_hop(), TEN]),
}
TABLE = (
    (UDP, 16, (1, 1), (3, 2), (169.6, 17.0, 33.9, 19.8, 30.2, 118.1, 189.4)),
    (UDP, 256, (1, 1), (8, 7), (553.6, 55.4, 110.7, 48.1, 73.4, 286.9, 601.7)),
    (UDP, 1024, (1, 1), (24, 23), (1782.4, 178.2, 356.5, 138.7, 211.7, 826.9, 1921.1)),
    (UDP, 2048, (2, 2), (46, 46), (3513.6, 351.4, 595.5, 266.1, 406.1, 1586.2, 3649.5)),
    (UDP, 4096, (3, 3), (90, 90), (6883.2, 688.3, 932.5, 515.3, 786.2, 3071.2, 7053.1)),
    (UDP, 8192, (6, 6), (179, 179), (13715.2, 1371.5, 1615.7, 1019.2, 1555.2, 6075.0, 13865.3)),
    (TCP_12, 1024, (1, 1), (24, 24), (1827.2, 182.7, 365.4, 141.6, 216.0, 843.8, 1968.8)),
    (TCP_12, 8192, (6, 6), (183, 183), (14016.0, 1401.6, 1645.8, 1041.9, 1589.8, 6210.0, 14177.4)),
    (TCP_0, 8192, (6, 6), (181, 181), (13900.8, 1390.1, 1634.2, 1030.6, 1572.5, 6142.5, 14056.5)),
)
"""By hand: packets and cells of request and reply, and us for both ways in the order of WIRES, latencies 0."""


def echo(kind: tuple[str, bool], size: int, mtu: int = 1500) -> tuple[Leg, Leg]:
    transport, timestamps = kind
    call = expect_call(Shape(transport, "echo", size, mtu, Connection(timestamps)))
    return call.request, call.reply


def both_ways_us(legs: tuple[Leg, Leg], ways: tuple[list[AnyHop], list[AnyHop]]) -> float:
    frames = [[packet.frame for packet in leg.packets] for leg in legs]
    return sum(map(wire_time.transit_ns, frames, ways)) / 1000


@pytest.mark.parametrize(("kind", "size", "packets", "cells", "us"), TABLE)
def test_the_table_of_the_wires(
    kind: tuple[str, bool], size: int, packets: tuple[int, int], cells: tuple[int, int], us: tuple[float, ...]
) -> None:
    legs = echo(kind, size)
    assert tuple(len(leg.packets) for leg in legs) == packets
    assert tuple(sum(lane(packet.frame) for packet in leg.packets) for leg in legs) == cells
    for want, (name, ways) in zip(us, WIRES.items(), strict=True):
        assert both_ways_us(legs, ways) == pytest.approx(want, abs=0.0501), name


@pytest.mark.parametrize("line", LINES_NS)
@pytest.mark.parametrize("counts", [(1,), (2,), (1366,), (32, 32, 32), (32, 2, 17), (2, 32)])
def test_packets_back_to_back_take_their_cells_and_one(line: str, counts: tuple[int, ...]) -> None:
    hop = cell_hop(line, cells=lambda frame_bytes: frame_bytes)
    want = (sum(counts) + 1) * LINES_NS[line]
    assert wire_time.transit_ns(counts, [hop]) == pytest.approx(float(want), rel=1e-12)


@pytest.mark.parametrize(("size", "frame_size", "us"), [(8192, 4544, 990.9), (8192, 9234, 985.3)])
def test_greater_frames_of_lan_emulation(size: int, frame_size: int, us: float) -> None:
    legs = echo(UDP, size, mtu=frame_size - 16)
    assert both_ways_us(legs, ([cell_hop()], [cell_hop()])) == pytest.approx(us, abs=0.0501)


def test_classical_ip_takes_one_packet() -> None:
    routed = cell_hop(cells=lambda frame_bytes: atm.packet_cells(atm.ROUTED, frame_bytes - 14))
    assert both_ways_us(echo(UDP, 8192, mtu=9180), ([routed], [routed])) == pytest.approx(985.3, abs=0.0501)


def one_by_one(hop: CellHop, frames: list[int], ready: float = 0.0) -> float:
    """The same cell by cell: each starts when its line is free and it is there."""
    step = max(hop.cell_in_ns, hop.spacing_ns)
    first_free = second_free = 0.0
    for count in frames:
        start = max(ready + hop.before_ns, first_free)
        for k in range(count):
            joins = start + k * step + hop.cell_in_ns + hop.between_ns
            second_free = max(joins, second_free) + hop.cell_out_ns
        first_free = start + count * step
    return second_free + hop.after_ns


@pytest.mark.parametrize("spacing", [0.0, 5000.0, 40_000.0])
@pytest.mark.parametrize(("into", "out"), [(2831.2, 16_875.0), (16_875.0, 2831.2), (4320.0, 4320.0)])
def test_unlike_lines_latencies_and_shaping_cell_by_cell(into: float, out: float, spacing: float) -> None:
    hop = CellHop(lambda frame_bytes: frame_bytes, into, out, 700.0, 10_130.0, 90.0, spacing)
    for frames in ([1], [32], [2, 32, 1], [32, 2, 2, 31]):
        assert wire_time.transit_ns(frames, [hop]) == pytest.approx(one_by_one(hop, frames), rel=1e-12)


def test_a_frame_waits_for_its_last_cell_before_the_next_hop() -> None:
    # 3 cells take 4 cell times, then 1526 B at 10 Mb/s; the second frame's cells pass meanwhile.
    hop = CellHop(lambda _: 3, 1000.0, 1000.0)
    frame_ns, gap_ns = 1526 * 800, 12 * 800
    assert wire_time.transit_ns([1514], [hop, TEN]) == pytest.approx(4000 + frame_ns)
    assert wire_time.transit_ns([1514, 1514], [hop, TEN]) == pytest.approx(4000 + 2 * frame_ns + gap_ns)


def test_a_link_counts_the_cells_of_its_netem() -> None:
    """1514 B are 32 cells of 53 at 149.76 Mb/s and not 1514 bytes: 90.6 us, not 81.4."""
    hop = Hop(149_760_000, 0.0, False, 10, 48, 5)
    assert wire_time.transit_ns([1514], [hop]) / 1000 == pytest.approx(90.6, abs=0.05)
    alike = [hop.busy_ns(frame) for frame in (39, 60, 74, 1514)]
    assert alike == pytest.approx([lane(max(60, frame)) * float(LINES_NS["OC-3c"]) for frame in (39, 60, 74, 1514)])


def test_the_cells_of_a_path_are_asked_of_its_frames() -> None:
    seen: list[int] = []
    hop = cell_hop(cells=lambda frame_bytes: seen.append(frame_bytes) or 1)  # type: ignore[func-returns-value]
    wire_time.transit_ns([60, 1514], [TEN, hop])
    assert seen == [60, 1514]

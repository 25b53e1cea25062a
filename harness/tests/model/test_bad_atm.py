# SPDX-License-Identifier: Apache-2.0
"""Every mistake in an ATM segment is one line with file, line, field and what is allowed."""

from pathlib import Path

import pytest

from sundial.errors import BadInput
from sundial.model.load import load_topology
from sundial.segments.atm.model import Atm
from tests.model.hosts import TWO_HOSTS

GOOD = (
    TWO_HOSTS
    + """\
segments:
  elan:
    kind: atm
    ports: ["client:eth0", "server:eth0"]
"""
)
FIELD = 13
"""The line behind those."""

LINES = "oc-3c, atm-25, taxi-100, or a rate from 64 kbit/s to 10 Gbit/s, such as '155 Mbit/s'"
RATES = "a rate from 64 kbit/s to 10 Gbit/s, such as '155 Mbit/s'"
TIMES = "a time from 0 ns to 10 s, such as '10 us'"
TIMERS = "a time from 1 ms to 1 h, such as '4 s'"
PERCENT = "a percentage from 0 % to 100 %, such as '0.1 %'"
PORTS = "client:eth0, server:eth0"
CELLS = "a whole number from 1 to 1000000"
PORT = "MACHINE:INTERFACE, such as 'client:eth0'"
WAY = f"both, or from or to a port: 'from client:eth0'; a port is {PORT}"
EACH = "one value for all ports, or one for each"

CASES = [
    ("line: oc-12", "line: 'oc-12' is not a rate", LINES),
    ("line: 155", "line: '155' has no unit", LINES),
    ("line: 20 Gbit/s", "line: '20 Gbit/s' is out of range", LINES),
    ('line: {"client:eth0": fast}', "line.client:eth0: 'fast' is not a rate", LINES),
    ('line: {"client:eth0": oc-3c}', "line: port 'server:eth0' is missing", EACH),
    ('line: {"other:eth0": oc-3c, "client:eth0": oc-3c, "server:eth0": oc-3c}',
     "line.other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ("encapsulation: llc", "encapsulation: 'llc' is not known", "lane, bridged, bridged-fcs, routed"),
    ("frame_size: 1580", "frame_size: 1580 is not known", "1516, 4544, 9234, 18190"),
    ("encapsulation: bridged\n    frame_size: 4544", "frame_size: frame_size belongs to LAN emulation", "encapsulation: lane"),
    ("encapsulation: routed\n    lane: {}", "lane: lane belongs to LAN emulation", "encapsulation: lane"),
    ("mtu: 1501", "mtu: MTU 1501 does not fit frames of 1516 octets", "68 to 1500"),
    ("mtu: 9181\n    encapsulation: routed", "mtu: MTU 9181 is more than that of classical IP", "68 to 9180"),
    ("encapsulation: bridged\n    mtu: 18175", "mtu: 18175 is out of range", "a whole number from 68 to 18174"),
    ("propagation: 2 h", "propagation: '2 h' is out of range", TIMES),
    ("tx_latency: 5", "tx_latency: '5' has no unit", TIMES),
    ('rx_latency: {"client:eth0": 1 us}', "rx_latency: port 'server:eth0' is missing", EACH),
    ("cell_latency: -1 us", "cell_latency: '-1 us' is negative", TIMES),
    ("cdv: much", "cdv: 'much' is not a time", TIMES),
    ("interleave: frame", "interleave: 'frame' is not known", "pdu, cells"),
    ("queue: 12", "queue: is not a mapping of fields", "cells, discard, epd_above, vc_cells, clp1_above"),
    ("queue: {cells: 0}", "queue.cells: 0 is out of range", CELLS),
    ("queue: {discard: red}", "queue.discard: 'red' is not known", "tail, ppd, epd"),
    ("queue: {epd_above: 5}", "queue.epd_above: epd_above has no effect without early packet discard", "discard: epd"),
    ("queue: {discard: epd, epd_above: 1025}",
     "queue.epd_above: 1025 cells never wait in a queue of 1024", "1 to 1024"),
    ("queue: {cells: 8, vc_cells: 9}", "queue.vc_cells: 9 cells never wait in a queue of 8", "1 to 8"),
    ("queue: {cells: 8, clp1_above: many}", "queue.clp1_above: 'many' is not a whole number", CELLS),
    ("lane: {resolution: arp}", "lane.resolution: 'arp' is not known", "le_arp, static"),
    ("lane: {vc_setup: 2}", "lane.vc_setup: '2' has no unit", TIMES),
    ("lane: {vc_setup: 18 us}", "lane.vc_setup: 18 us is less than the way of the least frame", "18.544 us or more"),
    ("line: atm-25\n    lane: {vc_setup: 50 us}",
     "lane.vc_setup: 50 us is less than the way of the least frame", "60.675 us or more"),
    ("lane: {service_latency: 1 h}", "lane.service_latency: '1 h' is out of range", TIMES),
    ("lane: {service_line: atm}", "lane.service_line: 'atm' is not a rate", LINES),
    ("lane: {unknown_frames: 11}", "lane.unknown_frames: 11 is out of range", "a whole number from 1 to 10"),
    ("lane: {retries: 3}", "lane.retries: 3 is out of range", "a whole number from 0 to 2"),
    *[(f"lane: {{{timer}: 0 s}}", f"lane.{timer}: '0 s' is out of range", TIMERS)
      for timer in ("unknown_frame_time", "control_time_out", "vcc_time_out", "ageing", "forward_delay",
                    "le_arp_response_time", "flush_time_out", "path_switching_delay")],
    ("contracts: {both: {rate: 1 Mbit/s}}", "contracts.both: 'both' is not allowed here", PORT),
    ('contracts: {"other:eth0": {rate: 1 Mbit/s}}', "contracts.other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ('contracts: {"client:eth0": {}}', "contracts.client:eth0: rate is missing", RATES),
    ('contracts: {"client:eth0": {rate: 1 Mbit/s, tolerance: 1 h}}', "contracts.client:eth0.tolerance: '1 h' is out of range", TIMES),
    ('contracts: {"client:eth0": {rate: 1 Mbit/s, action: mark}}', "contracts.client:eth0.action: 'mark' is not known", "drop, tag"),
    ("shaping: 1 bit/s", "shaping: '1 bit/s' is out of range", RATES),
    ("shaping: 150 Mbit/s", "shaping: 150 Mbit/s is more than the line at client:eth0 carries", "up to 149.76 Mbit/s"),
    ('line: atm-25\n    shaping: {"server:eth0": 26 Mbit/s}',
     "shaping.server:eth0: 26 Mbit/s is more than the line at server:eth0 carries", "up to 25.6 Mbit/s"),
    ("impairments: {client: {cell_loss: 1 %}}", "impairments.client: 'client' is not allowed here", WAY),
    ('impairments: {"to other:eth0": {cell_loss: 1 %}}',
     "impairments.to other:eth0: 'other:eth0' is not a port of this segment", PORTS),
    ("impairments: {both: {cell_loss: 0.1}}", "impairments.both.cell_loss: '0.1' has no unit", PERCENT),
    ("impairments: {both: {payload_bit: 101 %}}", "impairments.both.payload_bit: '101 %' is out of range", PERCENT),
    ("impairments: {both: {header_bit: -1 %}}", "impairments.both.header_bit: '-1 %' is negative", PERCENT),
    ("impairments: {both: {loss: 1 %}}", "impairments.both.loss: unknown field", "cell_loss, gemodel, payload_bit, header_bit"),
    ("impairments: {both: {gemodel: {p: 1 %}}}", "impairments.both.gemodel: r is missing", PERCENT),
    ('impairments: {"from client:eth0": {cell_loss: 1 %, gemodel: {p: 1 %, r: 10 %}}}',
     "impairments.from client:eth0.gemodel: cell_loss and gemodel exclude each other", "one of the two"),
    ("capture: {cells: maybe}", "capture.cells: 'maybe' is neither true nor false", "true, false"),
    ("capture: {cells_most: 0}", "capture.cells_most: 0 is out of range", "a whole number from 1 to 100000000"),
]  # fmt: skip


def loaded(path: Path, written: str) -> Atm:
    path.write_text(f"{GOOD}    {written}\n")
    segment = load_topology(str(path)).segments["elan"]
    assert isinstance(segment, Atm)
    return segment


@pytest.mark.parametrize(("written", "what", "allowed"), CASES, ids=[case[0][:50] for case in CASES])
def test_mistake(tmp_path: Path, written: str, what: str, allowed: str) -> None:
    path = tmp_path / "net.yaml"
    with pytest.raises(BadInput) as caught:
        loaded(path, written)
    field, _, words = what.partition(": ")
    lines = {f"{path}:{FIELD + shift}: segments.elan.{field}: {words}; allowed: {allowed}" for shift in (0, 1)}
    assert caught.value.exit_code == 2
    assert str(caught.value) in lines


@pytest.mark.parametrize(
    ("written", "mtu"),
    [
        ("line: oc-3c", 1500),
        ("frame_size: 1516", 1500),
        ("frame_size: 4544", 4528),
        ("frame_size: 9234", 9218),
        ("frame_size: 18190", 18174),
        ("encapsulation: bridged", 1500),
        ("encapsulation: bridged-fcs", 1500),
        ("encapsulation: routed", 9180),
        ("encapsulation: routed\n    mtu: 1500", 1500),
        ("mtu: 576", 576),
    ],
)
def test_mtu_follows_the_encapsulation(tmp_path: Path, written: str, mtu: int) -> None:
    assert loaded(tmp_path / "net.yaml", written).mtu == mtu


def test_fields_of_both_directions_hold_where_one_has_none_of_its_own(tmp_path: Path) -> None:
    written = 'impairments: {both: {cell_loss: 1 %}, "to server:eth0": {payload_bit: 2 %}}'
    segment = loaded(tmp_path / "net.yaml", written)
    there = segment.faults("to server:eth0")
    assert (str(there.cell_loss), str(there.payload_bit)) == ("0.01", "0.02")
    assert segment.faults("from server:eth0").payload_bit is None
    written = 'impairments: {both: {cell_loss: 1 %, header_bit: 2 %}, "to server:eth0": {gemodel: {p: 1 %, r: 10 %}}}'
    there = loaded(tmp_path / "net.yaml", written).faults("to server:eth0")
    assert (there.cell_loss, str(there.header_bit)) == (None, "0.02")
    assert there.gemodel is not None


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    segment = loaded(
        tmp_path / "net.yaml", 'line: {"client:eth0": atm-25, "server:eth0": 155 Mbit/s}\n    shaping: 2 Mbit/s'
    )
    assert Atm.model_validate(segment.model_dump(mode="json")) == segment

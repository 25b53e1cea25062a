# SPDX-License-Identifier: Apache-2.0
"""The law of a loopback: each frame is received, in order and not before it was sent, and the kernel counted all."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from sundial.segments.loopback.model import Loopback
from sundial.segments.loopback.verify import KIND
from sundial.verify.wire import Wire
from tests.segments.wires import IN, OUT, Frame, Tape, moved
from tests.verify.bed import block, capture, option

PORT = "server:lo"


def statistics(received: int, dropped: int) -> bytes:
    body = struct.pack("<III", 0, 0, 0) + option(4, struct.pack("<Q", received)) + option(5, struct.pack("<Q", dropped))
    return block(5, body + option(0, b""))


def wire(folder: Path, frames: int = 5, received: int | None = None, dropped: int = 0) -> Wire:
    tape = Tape([PORT])
    for number in range(frames):
        # Two are sent before the first of them is received.
        each = Frame(1000 * number, 0, 60 + number, number + 1)
        tape.add(each.at, 0, OUT, each)
        tape.add(each.at + 1500, 0, IN, each)
    counted = 2 * frames if received is None else received
    (folder / "lan.pcapng").write_bytes(capture([PORT, PORT], []) + statistics(counted, dropped))
    return replace(tape.wire(), folder=folder)


def found(seen: Wire) -> list[dict[str, object]]:
    law = KIND.check_times(Loopback(ports=[PORT]), seen)
    assert law is not None
    return law.findings.to_dicts()


def without(seen: Wire, row: int) -> Wire:
    return replace(seen, frames=seen.frames.filter(seen.frames["row"] != row))


def test_what_is_sent_is_received(tmp_path: Path) -> None:
    assert found(wire(tmp_path)) == []


@pytest.mark.parametrize("row", range(10))
def test_a_frame_that_is_missing(tmp_path: Path, row: int) -> None:
    fields = [each["field"] for each in found(without(wire(tmp_path), row))]
    assert fields == ["time on the wire: order on lan", "lan frames"]


def test_a_frame_received_before_it_was_sent(tmp_path: Path) -> None:
    seen = wire(tmp_path)
    row = int(seen.received[0].row[0])
    assert [each["field"] for each in found(moved(seen, row, -1501))] == ["time on the wire: order on lan"]
    assert found(moved(seen, row, -1500)) == []


def test_what_the_kernel_dropped_or_counted_otherwise(tmp_path: Path) -> None:
    assert [(each["field"], each["seen"]) for each in found(wire(tmp_path, received=12, dropped=2))] == [
        ("lan dropped", "2")
    ]
    assert [(each["field"], each["expected"]) for each in found(wire(tmp_path, received=11))] == [
        ("lan frames", "11 by the guest's kernel")
    ]


def test_a_capture_without_the_kernels_count(tmp_path: Path) -> None:
    seen = wire(tmp_path)
    (tmp_path / "lan.pcapng").write_bytes(capture([PORT, PORT], []))
    assert [each["seen"] for each in found(seen)] == ["none"]

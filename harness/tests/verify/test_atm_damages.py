# SPDX-License-Identifier: Apache-2.0
"""A stored run of Sun RPC over LAN emulation, by UDP and by TCP: what is wrong in its captures is named, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mutation import capture as pcapng
from mutation import runs
from mutation.capture import OUT, Capture, Frame
from mutation.damage import Copy
from mutation.gate import remember_dissections
from sundial.errors import BadInput
from sundial.verify import verify_run

PDUS, CELLS = (f"wire/atm/elan.{kind}.pcapng" for kind in ("pdus", "cells"))
HEADER, LEC_ID, ETHERNET = 20, 2, 14
"""Octets of ERF and cell header; of what is in front of an IP packet in a PDU."""
PROTOCOLS = {"udp": 17, "tcp": 6}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    patch = remember_dissections()
    yield runs.recorded("lane-virtual", tmp_path_factory.mktemp("lane"))
    patch.stop()


def damaged(run: Path, folder: Path, name: str, change: Callable[[Capture], None]) -> list[tuple[str, str]]:
    """Field and what was seen of each problem of the run with one capture changed."""
    copy = Copy(run, folder / "run")
    capture = pcapng.read(copy.read(name))
    change(capture)
    copy.write(name, capture.to_bytes())
    copy.seal(samples=False)
    return [(problem["field"], problem["seen"]) for problem in verify_run(copy.path).problems]


def carries(frame: Frame, protocol: int) -> bool:
    """Whether a PDU that a port sent has a packet of it that fills some cells."""
    packet = frame.data[HEADER + LEC_ID + ETHERNET :]
    ip = frame.data[HEADER + LEC_ID + 12 : HEADER + LEC_ID + ETHERNET] == b"\x08\0"
    return frame.direction == OUT and ip and packet[9] == protocol and len(packet) > 4 * 48


def first_pdu(capture: Capture, protocol: int) -> tuple[int, Frame]:
    """Its number in the file as Wireshark has it, and itself."""
    return next((number, frame) for number, frame in enumerate(capture.frames, 1) if carries(frame, protocol))


def cells_of(run: Path, protocol: int) -> list[int]:
    """The places of a PDU's cells in the capture of cells: all from its port from its time on."""
    _, pdu = first_pdu(pcapng.read((run / PDUS).read_bytes()), protocol)
    cells = pcapng.read((run / CELLS).read_bytes())
    behind = [
        place
        for place, cell in enumerate(cells.frames)
        if (cell.interface, cell.direction) == (pdu.interface, OUT) and cell.at_ns >= pdu.at_ns
    ]
    return behind[: (len(pdu.data) - HEADER) // 48]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_byte_flipped_in_a_pdu_is_named(run: Path, tmp_path: Path, protocol: int) -> None:
    number = 0

    def flip(capture: Capture) -> None:
        nonlocal number
        number, pdu = first_pdu(capture, protocol)
        pdu.data = pdu.data[:100] + bytes([pdu.data[100] ^ 0xFF]) + pdu.data[101:]

    found = damaged(run, tmp_path, PDUS, flip)
    assert [seen for field, seen in found if field == f"{PDUS}: CRC-32" and seen.endswith(f"record {number}")]
    assert (f"atm: {PDUS}: octets of a frame", f"others, record {number}") in found


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_a_cell_that_is_missing_is_named(run: Path, tmp_path: Path, protocol: int) -> None:
    number, pdu = first_pdu(pcapng.read((run / PDUS).read_bytes()), protocol)
    place = cells_of(run, protocol)[2]
    found = damaged(run, tmp_path, CELLS, lambda capture: capture.frames.pop(place) and None)
    port = ("client:eth0", "server:eth0")[pdu.interface]
    assert found == [(f"{PDUS}: cells from {port}", f"none, record {number}")]


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_two_cells_exchanged_are_named(run: Path, tmp_path: Path, protocol: int) -> None:
    _, pdu = first_pdu(pcapng.read((run / PDUS).read_bytes()), protocol)
    one, other = cells_of(run, protocol)[1:3]

    def exchange(capture: Capture) -> None:
        first, second = capture.frames[one], capture.frames[other]
        # Each keeps its time, in front of the record, too.
        first.data, second.data = first.data[:8] + second.data[8:], second.data[:8] + first.data[8:]

    found = damaged(run, tmp_path, CELLS, exchange)
    port = ("client:eth0", "server:eth0")[pdu.interface]
    what = f"{CELLS}: payload of cells from {port}"
    assert found == [(what, f"another, record {place + 1}") for place in (one, other)]


@pytest.mark.parametrize("name", [PDUS, CELLS])
def test_a_capture_of_other_interfaces_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    copy = Copy(run, tmp_path / "run")
    copy.write(name, copy.read(name).replace(b"elan:fate", b"alan:fate"))
    copy.seal(samples=False)
    with pytest.raises(BadInput, match=r"interfaces client:eth0, server:eth0, alan:fate; allowed: .* elan:fate"):
        verify_run(copy.path)


def test_a_channel_that_nobody_used_is_not_counted(run: Path, tmp_path: Path) -> None:
    copy = Copy(run, tmp_path / "run")
    counters = copy.json("wire/counters.json")
    counters["segments"]["elan"]["channels"]["client:eth0 0.66"] = {"cells_in": 0, "cells_out": 0, "dropped": {}}
    copy.write_json("wire/counters.json", counters)
    copy.seal(samples=False)
    assert [problem["field"] for problem in verify_run(copy.path).problems] == ["elan client:eth0 0.66"]

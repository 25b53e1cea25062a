# SPDX-License-Identifier: Apache-2.0
"""Display filters for ATM as a user of Wireshark writes them, on stored runs: how many records each shows follows from
what LAN emulation says there and from the frames at the ports, or from the fabric's counters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mutation import runs
from tests.segments.lane_golden import Line, golden_of
from tests.warm_tshark.reader import reader

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

LE_ARP_REQUEST = 6
Fits = Callable[[Line], bool]


def is_control(line: Line) -> bool:
    return line.sdu[:2] == b"\xff\0"


def opcode(line: Line) -> int:
    return int.from_bytes(line.sdu[4:6]) if is_control(line) else 0


def cells(line: Line) -> int:
    """An SDU and a trailer of eight octets, 48 in a cell (I.363.5)."""
    return -(-(len(line.sdu) + 8) // 48)


OF_PDUS: dict[str, Fits] = {
    f"atm.le_control.opcode=={LE_ARP_REQUEST}": lambda line: opcode(line) == LE_ARP_REQUEST,
    "atm.le_client.client==1": lambda line: line.sdu[:2] == b"\0\1",
    "erf.types.type==4 && !eth && atm.traffic_type==3": is_control,
    "atm.cells==3 && eth": lambda line: cells(line) == 3 and not is_control(line),
    "atm.vci==17": lambda line: line.vci == 17,
    "erf.flags.rxe==1": lambda line: False,
}
OF_CELLS: dict[str, Callable[[Line], int]] = {
    "erf.types.type==3 && atm.vci==65": lambda line: cells(line) if line.vci == 65 else 0,
    "atm.payload_type==1": lambda line: 1,
    "erf.types.type==3": cells,
}


def shown(capture: Path, display_filter: str, *fields: str) -> list[list[str]]:
    """The fields of each record that a filter shows."""
    asked = [word for field in ("frame.number", *fields) for word in ("-e", field)]
    printed = reader()(capture, "-Y", display_filter, "-T", "fields", *asked)
    return [line.split("\t")[1:] for line in printed.splitlines()]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.recorded("lane-virtual", tmp_path_factory.mktemp("plain"))


@pytest.mark.parametrize("display_filter", OF_PDUS)
def test_filters_find_the_pdus_that_must_be_there(plain: Path, display_filter: str) -> None:
    expected = sum(map(OF_PDUS[display_filter], golden_of(plain)))
    assert len(shown(plain / "wire" / "atm" / "elan.pdus.pcapng", display_filter)) == expected


@pytest.mark.parametrize("display_filter", OF_CELLS)
def test_filters_find_the_cells_that_must_be_there(plain: Path, display_filter: str) -> None:
    expected = sum(map(OF_CELLS[display_filter], golden_of(plain)))
    assert expected > 0
    assert len(shown(plain / "wire" / "atm" / "elan.cells.pcapng", display_filter)) == expected


def test_filters_find_bad_pdus_and_their_lost_cells(tmp_path: Path) -> None:
    """As many as the fabric has counted by cause: discarded in the switch, lost on a line, damaged, joined."""
    run = runs.recorded("lane-faults-virtual", tmp_path)
    capture = run / "wire" / "atm" / "elan.pdus.pcapng"
    counters = json.loads((run / "wire" / "counters.json").read_text())["segments"]["elan"]
    bad = shown(capture, "erf.flags.rxe==1", "erf.lctr", "frame.comment")
    assert bad
    assert all(comment.startswith("dropped: ") for _, comment in bad)
    assert len(shown(capture, 'frame.comment contains "dropped"')) == len(bad)

    damaged = sum(port["dropped"].get("wrong CRC", 0) for port in counters["ports"].values())
    assert damaged > 0
    assert sum(comment.startswith("dropped: wrong CRC") for _, comment in bad) == damaged
    early = sum(channel["dropped"].get("early packet discard", 0) for channel in counters["channels"].values())
    assert early > 0
    lost = shown(capture, "erf.lctr>0", "erf.lctr", "frame.comment")
    assert sum(int(number) for number, comment in lost if "early packet discard" in comment) == early
    assert len(lost) == len([number for number, _ in bad if number != "0"])

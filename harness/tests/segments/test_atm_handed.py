# SPDX-License-Identifier: Apache-2.0
"""What a device hands in at an ATM segment, and what its client says of the addresses behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sundial.segments.atm.verify_handed import check_behind, check_handed_in
from sundial.verify.learning import Behind
from sundial.verify.wire import Passages
from tests.segments.lane_tape import ASKED_NS, BROADCAST, CELL_NS, SERVICE_NS, WAY_NS, Lan, mac
from tests.segments.pdus import IN, OUT, PduTape
from tests.segments.test_lane_rules import FAR, LATER, THREE, lan
from tests.segments.test_line_laws import segment

EDGE = 2
"""The device's port."""


def of_device(
    made: Lan, folder: Path, at: dict[int, int], end_ns: int | None = None, places: int = 128, *, recorded: bool = True
) -> list[Any]:
    """Findings, where the device has handed in the frames of its data PDUs `at` other instants than they left, by the
    number in each. `recorded`: the capture has those PDUs."""
    wire = made.wire(folder, end_ns)
    if not recorded:
        PduTape(made.ports).write(folder)
    rows, given = [], []
    for pdu in sorted(made.tape.pdus, key=lambda each: each.at):
        if pdu.interface == EDGE and pdu.direction == OUT and pdu.sdu[:2] != b"\xff\0":
            name = int.from_bytes(pdu.sdu[16:])
            target = int.from_bytes(pdu.sdu[2:8])
            rows.append({"time_ns": pdu.at, "interface": "x:e0", "direction": OUT, "frame_length": 60,
                         "octets_hash": name, "eth_source": 9, "eth_target": target})  # fmt: skip
            given.append((1000 + name, at.get(name, pdu.at), 60, name, 9, target))
    frames = pl.concat([wire.frames.drop("row"), pl.DataFrame(rows)], how="diagonal_relaxed").with_row_index("row")
    wire = replace(wire, frames=frames, rings={"x:e0": places})
    columns = zip(*sorted(given, key=lambda row: row[1]), strict=True)
    handed_in = Passages(*(np.array(column, np.int64) for column in columns))
    return pl.concat(check_handed_in(segment("atm", made.ports), wire, "x:e0", handed_in)).to_dicts()


def conversation() -> tuple[Lan, int]:
    """The device sends a broadcast, and a frame for a station by the BUS and others behind it on a channel."""
    made = lan(THREE, ("x:e0",))
    made.data(LATER, EDGE, BROADCAST, name=1)
    at = LATER + 1_000_000
    answered = made.ask(at, EDGE, mac(1))
    made.data(at + ASKED_NS, EDGE, mac(1), name=2)
    ready = made.flush(made.call(answered, EDGE, 1) + CELL_NS, EDGE, 1)
    made.data(ready, EDGE, mac(1), 1, name=3)
    made.data(ready + 5_663, EDGE, mac(1), 1, name=4)
    return made, at


def test_frames_leave_at_once_or_when_their_channel_is_ready(tmp_path: Path) -> None:
    made, at = conversation()
    assert of_device(made, tmp_path, {2: at, 3: at + 100_000, 4: at + 200_000}) == []


@pytest.mark.parametrize(("name", "early_ns"), [(1, 5_000), (2, 60_000), (3, -1_000), (4, -10_000)])
def test_a_frame_that_waits_without_need_or_leaves_before_it_came_is_found(
    name: int, early_ns: int, tmp_path: Path
) -> None:
    made, at = conversation()
    instants = {2: at, 3: at + 100_000, 4: at + 200_000}
    left = {int.from_bytes(pdu.sdu[16:]): pdu.at for pdu in made.tape.pdus if pdu.sdu[:2] == b"\0\3"}
    assert of_device(made, tmp_path, {**instants, name: left[name] - early_ns})


def test_a_held_frame_leaves_when_something_has_come(tmp_path: Path) -> None:
    made, at = conversation()
    for place, pdu in enumerate(made.tape.pdus):
        if pdu.sdu[:2] == b"\0\3" and pdu.vci >= 64:
            made.tape.pdus[place] = replace(pdu, at=pdu.at + 7_000)
    assert of_device(made, tmp_path, {2: at, 3: at + 100_000, 4: at + 200_000})


def test_a_ring_has_its_places(tmp_path: Path) -> None:
    made, at = conversation()
    instants = {2: at, 3: at + 100_000, 4: at + 200_000}
    assert of_device(made, tmp_path, instants, places=2) == []
    assert [each["field"] for each in of_device(made, tmp_path, instants, places=1)] == ["ring of x:e0"]


def known(*entries: tuple[bytes, int, int]) -> Behind:
    columns = zip(*((int.from_bytes(address), since, until) for address, since, until in entries), strict=True)
    empty = [np.zeros(0, np.int64)] * 3
    return Behind(*([np.array(column, np.int64) for column in columns] or empty))


def of_proxy(made: Lan, folder: Path, behind: Behind) -> list[Any]:
    return [problem for _, problem in check_behind(segment("atm", made.ports), made.wire(folder), "x:e0", behind)]


def test_a_proxy_answers_for_what_its_device_knows(tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    made.ask_proxies(LATER, 0, FAR, EDGE)
    there = LATER + 2 * WAY_NS + SERVICE_NS
    assert of_proxy(made, tmp_path, known((FAR, 0, there + 2))) == []
    assert of_proxy(made, tmp_path, known((FAR, 0, there - 2)))
    assert of_proxy(made, tmp_path, known((FAR, there + 2, there + 100)))
    assert of_proxy(made, tmp_path, known())


def test_a_proxy_that_is_silent_is_found(tmp_path: Path) -> None:
    made = lan(THREE, ("x:e0",))
    made.ask_proxies(LATER, 0, FAR, None)
    assert of_proxy(made, tmp_path, known()) == []
    assert of_proxy(made, tmp_path, known((FAR, 0, 10**12)))
    assert any(pdu.vci == 34 and pdu.direction == IN for pdu in made.tape.pdus)


def test_that_there_are_no_pdus_is_for_others_to_say(tmp_path: Path) -> None:
    made, at = conversation()
    assert of_device(made, tmp_path, {2: at, 3: at + 100_000, 4: at + 200_000}, recorded=False) == []

# SPDX-License-Identifier: Apache-2.0
"""What frames meet between a machine and the BUS: clients that keep them back, and a way to the services that is no
way to a port; and how often a line strikes PDUs that others have struck."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from sundial.segments.atm.verify_fates import CELL_LOSS, CRC, LOST, NO_COPY
from sundial.segments.atm.verify_handed import held_back
from sundial.segments.atm.verify_losses import _shares
from sundial.verify.headers.carriage import at_own_station
from sundial.verify.segment import HELD_BACK, verifiers
from sundial.verify.sockets import retransmission_causes
from tests import fates
from tests.segments.pdus import OUT
from tests.segments.test_atm_handed import EDGE, conversation
from tests.segments.test_line_laws import segment


def test_frames_that_waited_for_their_channel_were_kept_back(tmp_path: Path) -> None:
    """Since the one before that went by the BUS; those that follow on the channel for as long."""
    made, _ = conversation()
    wire = made.wire(tmp_path)
    rows = [
        {"time_ns": pdu.at, "interface": "x:e0", "direction": OUT, "frame_length": 60, "eth_source": 9,
         "octets_hash": int.from_bytes(pdu.sdu[16:]), "eth_target": int.from_bytes(pdu.sdu[2:8])}
        for pdu in sorted(made.tape.pdus, key=lambda each: each.at)
        if pdu.interface == EDGE and pdu.direction == OUT and pdu.sdu[:2] != b"\xff\0"
    ]  # fmt: skip
    frames = pl.concat([wire.frames.drop("row"), pl.DataFrame(rows)], how="diagonal_relaxed").with_row_index("row")
    wire = replace(wire, frames=frames)
    broadcast, by_the_bus, first, second = rows
    assert held_back(segment("atm", made.ports), wire).rows() == [
        (2, by_the_bus["time_ns"]),
        (3, by_the_bus["time_ns"]),
    ]
    assert broadcast["time_ns"] < by_the_bus["time_ns"] < first["time_ns"] < second["time_ns"]


def again(call: int, at_ns: int) -> pl.DataFrame:
    return pl.DataFrame({"call": [call], "first_ns": [at_ns]}, schema={"call": pl.UInt32, "first_ns": pl.Int64})


@pytest.mark.parametrize(
    ("call", "at_ns", "explained"), [(5, 150, True), (5, 100, True), (5, 99, False), (5, 201, False), (6, 150, False)]
)
def test_a_frame_of_its_own_call_that_was_kept_back_explains_a_request(call: int, at_ns: int, explained: bool) -> None:
    frames = pl.DataFrame({"row": [7, 8], "call": [5, 6], "time_ns": [200, 300]},
                          schema={"row": pl.UInt32, "call": pl.UInt32, "time_ns": pl.Int64})  # fmt: skip
    held = pl.DataFrame([(7, 100)], schema=HELD_BACK, orient="row")
    cause = partial(retransmission_causes.held_back, frames=frames, held=lambda: held)
    assert retransmission_causes.unexplained(again(call, at_ns), [cause]).is_empty() == explained


@pytest.mark.parametrize(
    ("capture", "station", "known"),
    [
        ("wire/elan.pcapng", "service", True),
        ("wire/elan.pcapng", "services", False),
        ("wire/elan.pcapng", "a:eth0", False),
        ("wire/lan.pcapng", "service", False),
        ("wire/elan.pcapng", None, False),
    ],
)
def test_what_is_lost_on_its_way_to_a_station_of_the_segment_is_no_ports(
    capture: str, station: str | None, known: bool
) -> None:
    table = pl.DataFrame({"capture": [capture], "fate_to": [station]}, schema_overrides={"fate_to": pl.String})
    assert table.select(at_own_station({"wire/elan.pcapng": ("service",)})).item() == known


class Sized(SimpleNamespace):
    """Copies of PDUs."""

    def __len__(self) -> int:
        return len(self.cells)


@pytest.mark.parametrize(("damaging", "found"), [(True, False), (False, True)])
def test_of_long_pdus_that_are_lost_none_is_missed_among_the_damaged(damaging: bool, found: bool) -> None:
    """One cell in twenty is lost and one in a hundred damaged: most PDUs of thirty cells are lost first, so that of all
    PDUs far fewer are damaged than of their lengths."""
    atm = segment("atm", ["a:eth0", "b:eth0"], impairments={"to b:eth0": {"cell_loss": "5 %", "payload_bit": "1 %"}})
    random, cells, kinds = Random(1), [30] * 2000 + [3] * 1000, []
    for count in cells:
        lost = any(random.random() < 0.05 for _ in range(count))
        hit = any(random.random() < 0.01 for _ in range(count)) and damaging
        kinds.append(LOST if lost else CRC if hit else -1)
    present = [kind for kind in kinds if kind >= 0]
    fate = np.full(len(cells), NO_COPY)
    fate[np.array(kinds) >= 0] = np.arange(len(present))
    fates = SimpleNamespace(
        kind=np.array(present), reason=np.array([CELL_LOSS if kind == LOST else "" for kind in present], np.str_),
        towards=np.ones(len(present), np.bool_),
    )  # fmt: skip
    nothing = np.zeros(len(cells), np.int64)
    copies = Sized(sender=nothing, to=nothing + 1, cells=np.array(cells))
    rows = pl.concat(_shares(atm, SimpleNamespace(copies=copies, fates=fates, fate=fate)))  # type: ignore[arg-type]
    assert ("wrong CRC towards b:eth0" in rows["field"].to_list()) == found


@pytest.mark.parametrize(("places", "found"), [(128, ["ring of x:e0"]), (9, ["ring of x:e0"]), (8, []), (6, [])])
def test_a_client_may_hold_back_all_frames_of_a_small_ring(tmp_path: Path, places: int, found: list[str]) -> None:
    made, _ = conversation()
    made.dropped(1, EDGE, b"\2" * 6, "adapter full")
    made.fates[-1]["comment"] = fates.ring_full(made.ports[EDGE])
    wire = replace(made.wire(tmp_path), rings={made.ports[EDGE]: places})
    law = verifiers()["atm"].check_times(segment("atm", made.ports, capture={"cells": False}), wire)
    assert [field for field in law.findings["field"] if "ring" in field] == [
        f"time on the wire: {each}" for each in found
    ]

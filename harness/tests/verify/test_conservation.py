# SPDX-License-Identifier: Apache-2.0
"""Conservation along the way of a frame: what devices hear, flood and drop elsewhere counts for nothing."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sundial.verify.conservation import check_balance, transit_of
from sundial.verify.headers.ports import PORT

OUT, IN = 2, 1
A, B, C = 1, 2, 3
"""Stations on the three segments that a device with three ports joins; B has a neighbour on its own."""

PORTS = pl.DataFrame(
    [
        {"end": f"wire/{segment}.pcapng|{port}", "port": port, "machine": port.partition(":")[0], "mac": mac,
         "joins": joins, "domain": 0, "forwards": False, "undelivered": 0, "timed": False}
        for segment, port, mac, joins in (
            ("near", "a:eth0", A, False), ("near", "x:e0", 11, True), ("far", "x:e1", 12, True),
            ("far", "b:eth0", B, False), ("far", "n:eth0", 4, False), ("side", "x:e2", 13, True),
            ("side", "c:eth0", C, False),
        )
    ],
    schema={
        name: PORT[name]
        for name in ("end", "port", "machine", "mac", "joins", "domain", "forwards", "undelivered", "timed")
    },
)  # fmt: skip

Sighting = tuple[str, str, int, str | None]
"""Segment, interface, direction, fate."""

SENT, RECEIVED = ("near", "a:eth0", OUT, None), ("far", "b:eth0", IN, None)
CAME, LEFT = ("near", "x:e0", IN, None), ("far", "x:e1", OUT, None)


def check(sightings: list[Sighting], source: int = A, target: int = B) -> list[dict[str, Any]]:
    views = {A: {"near|a:eth0": "sent"}, B: {"far|b:eth0": "sent"}}[source]
    views = {**views, {B: "far|b:eth0", 4: "far|n:eth0"}[target]: "received"}
    rows = [
        {
            "row": row, "capture": f"wire/{segment}.pcapng", "end": f"wire/{segment}.pcapng|{interface}",
            "direction": direction, "fate": fate, "eth_source": source, "eth_target": target, "call": 7, "reply": False,
            "view": "fate" if fate else views.get(f"{segment}|{interface}", "passing"), "corrupted": 0,
        }
        for row, (segment, interface, direction, fate) in enumerate(sightings)
    ]  # fmt: skip
    frames = pl.DataFrame(rows, schema_overrides={"row": pl.UInt32, "direction": pl.UInt8, "fate": pl.String})
    return check_balance(frames, ["call", "reply"], pl.lit("a packet"), transit_of(frames, PORTS)).to_dicts()


def test_a_packet_that_a_device_passes_on_balances() -> None:
    assert check([SENT, CAME, LEFT, RECEIVED]) == []


def test_a_packet_that_a_device_floods_balances() -> None:
    assert check([SENT, CAME, LEFT, ("side", "x:e2", OUT, None), ("side", "c:eth0", IN, None), RECEIVED]) == []


@pytest.mark.parametrize("word", ["lost", "dropped"])
def test_what_becomes_of_a_flooded_copy_elsewhere_excuses_nothing(word: str) -> None:
    elsewhere = [("side", "x:e2", OUT, None), ("side", "side:fate", 0, word)]
    assert check([SENT, CAME, LEFT, *elsewhere, RECEIVED]) == []
    assert len(check([SENT, CAME, LEFT, *elsewhere])) == 1


def test_a_packet_between_neighbours_that_a_device_hears_balances() -> None:
    heard = [("far", "b:eth0", OUT, None), ("far", "x:e1", IN, None), ("far", "n:eth0", IN, None)]
    assert check(heard, B, 4) == []
    assert check([*heard, ("near", "x:e0", OUT, None), ("near", "a:eth0", IN, None)], B, 4) == []
    assert len(check(heard[:2], B, 4)) == 1


@pytest.mark.parametrize("gone", [CAME, LEFT, RECEIVED])
def test_a_packet_that_vanishes_on_its_way_is_missed(gone: Sighting) -> None:
    assert len(check([each for each in (SENT, CAME, LEFT, RECEIVED) if each != gone])) == 1


def test_a_fate_on_the_way_explains_it() -> None:
    assert check([SENT, ("near", "near:fate", 0, "lost")]) == []
    assert check([SENT, CAME, ("far", "far:fate", 0, "dropped")]) == []
    assert check([SENT, CAME, LEFT, ("far", "far:fate", 0, "lost")]) == []


def test_a_packet_that_comes_twice_is_found() -> None:
    assert len(check([SENT, CAME, LEFT, RECEIVED, RECEIVED])) == 1
    assert len(check([SENT, CAME, LEFT, LEFT, RECEIVED])) == 1

# SPDX-License-Identifier: Apache-2.0
"""Conservation along the way of a frame: what devices hear, flood and drop elsewhere counts for nothing."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sundial.verify.conservation import Transit, _too_early, check_balance, transit_of
from sundial.verify.headers.carriage import OVERTAKEN_NS, under_way
from sundial.verify.headers.ports import PORT

OUT, IN = 2, 1
A, B, C = 1, 2, 3
"""Stations on the three segments that a device with three ports joins; B has a neighbour on its own."""

_KNOWN = ("end", "port", "machine", "mac", "address", "joins", "domain", "forwards", "undelivered", "arrived", "timed")
PORTS = pl.DataFrame(
    [
        {"end": f"wire/{segment}.pcapng|{port}", "port": port, "machine": port.partition(":")[0],
         "mac": mac, "address": None if joins else f"10.0.0.{mac}", "joins": joins, "domain": 0,
         "forwards": False, "undelivered": 0, "arrived": 0, "timed": False}
        for segment, port, mac, joins in (
            ("near", "a:eth0", A, False), ("near", "x:e0", 11, True), ("far", "x:e1", 12, True),
            ("far", "b:eth0", B, False), ("far", "n:eth0", 4, False), ("side", "x:e2", 13, True),
            ("side", "c:eth0", C, False),
        )
    ],
    schema={name: PORT[name] for name in _KNOWN},
)  # fmt: skip

Sighting = tuple[str, str, int, str | None]
"""Segment, interface, direction, fate."""

SENT, RECEIVED = ("near", "a:eth0", OUT, None), ("far", "b:eth0", IN, None)
CAME, LEFT = ("near", "x:e0", IN, None), ("far", "x:e1", OUT, None)


def check(
    sightings: list[Sighting], source: int = A, target: int = B, flipped: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    """`flipped`: places of frames with another bit in the source's MAC address."""
    views = {A: {"near|a:eth0": "sent"}, B: {"far|b:eth0": "sent"}}[source]
    views = {**views, {B: "far|b:eth0", 4: "far|n:eth0"}[target]: "received"}
    rows = [
        {
            "row": row, "capture": f"wire/{segment}.pcapng", "end": f"wire/{segment}.pcapng|{interface}",
            "direction": direction, "fate": fate and fate.partition(" ")[0],
            "fate_rule": (fate or "").partition(" ")[2] or None,
            "eth_source": source ^ 64 * (row in flipped), "eth_target": target,
            "source": f"10.0.0.{source}", "call": 7, "reply": False,
            "view": "fate" if fate else views.get(f"{segment}|{interface}", "passing"), "corrupted": 0,
        }
        for row, (segment, interface, direction, fate) in enumerate(sightings)
    ]  # fmt: skip
    frames = pl.DataFrame(
        rows, schema_overrides={"row": pl.UInt32, "direction": pl.UInt8, "fate": pl.String, "fate_rule": pl.String}
    )
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


@pytest.mark.parametrize("known", [True, False])
def test_a_copy_whose_source_is_corrupted_balances(monkeypatch: pytest.MonkeyPatch, known: bool) -> None:
    if not known:  # what is not IP has no other address
        monkeypatch.setattr("tests.verify.test_conservation.PORTS", PORTS.with_columns(address=pl.lit(None, pl.String)))
    assert check([SENT, CAME, LEFT, LEFT, RECEIVED, RECEIVED], flipped=frozenset({3, 5})) == []
    assert len(check([SENT, CAME, LEFT, RECEIVED, RECEIVED], flipped=frozenset({4}))) == 1


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


SECOND = 1_000_000_000


def on_their_way(sent: list[int], came: list[int], *, timed: bool, undelivered: int = 0, arrived: int = 0) -> list[int]:
    """Which of frames that were sent at these moments may still have been on their way when the run ended; `came`:
    those that arrived, 3 s later."""
    rows = [(row, at, OUT, "a:eth0") for row, at in enumerate(sent)]
    rows += [(row, sent[row] + 3 * SECOND, IN, "b:eth0") for row in came]
    frames = pl.DataFrame(
        [
            {"row": number, "capture": "wire/w.pcapng", "interface": port, "time_ns": at, "direction": direction,
             "end": f"wire/w.pcapng|{port}", "fate": None, "fate_to": None, "octets_hash": row, "eth_target": B,
             "corrupted": 0}
            for number, (row, at, direction, port) in enumerate(rows)
        ],
        schema_overrides={"row": pl.UInt32, "fate": pl.String, "fate_to": pl.String},
    )  # fmt: skip
    port = {"end": "wire/w.pcapng|b:eth0", "port": "b:eth0", "mac": B, "joins": False}
    ports = pl.DataFrame([{**port, "timed": timed, "undelivered": undelivered, "arrived": arrived}])
    return sorted(under_way(frames, ports).filter(pl.col("under_way") == 1)["row"])


def test_where_the_law_is_known_the_last_frames_may_be_on_their_way() -> None:
    assert on_their_way([0, SECOND, 2 * SECOND], [0], timed=True) == [1, 2]


def test_what_others_cannot_have_overtaken_was_not_on_its_way() -> None:
    late = 3 * SECOND + OVERTAKEN_NS
    assert on_their_way([0, late, late + SECOND], [1], timed=True) == [0, 2]
    assert on_their_way([0, late + 1, late + SECOND], [1], timed=True) == [2]


def test_elsewhere_as_many_are_on_their_way_as_the_fabric_counts() -> None:
    assert on_their_way([0, SECOND, 2 * SECOND], [0], timed=False, undelivered=1) == [2]
    assert on_their_way([0, SECOND, 2 * SECOND], [0], timed=False) == []


def test_elsewhere_what_is_counted_as_received_behind_the_end_of_the_capture_is_on_its_way() -> None:
    late = 3 * SECOND + OVERTAKEN_NS
    assert on_their_way([0, SECOND, 2 * SECOND], [0], timed=False, arrived=2) == [2]
    assert on_their_way([0, SECOND, 2 * SECOND], [0], timed=False, undelivered=1, arrived=2) == [1, 2]
    assert on_their_way([0, late + 1], [1], timed=False, arrived=2) == []
    assert on_their_way([0, late + 1], [1], timed=False, undelivered=1) == [0]


@pytest.mark.parametrize("counted", [0, 1])
def test_a_packet_on_its_way_leaves_room_in_the_balance(counted: int) -> None:
    frames = pl.DataFrame(
        {"row": [0], "call": [7], "reply": [False], "view": ["sent"], "fate": [None], "corrupted": [0]},
        schema_overrides={"row": pl.UInt32, "fate": pl.String},
    )
    nothing = pl.DataFrame(schema={"row": pl.UInt32, "step": pl.Int64, "aside": pl.Boolean})
    last = pl.DataFrame({"row": [0], "under_way": [counted]}, schema_overrides={"row": pl.UInt32})
    transit = Transit(pl.Series([], dtype=pl.String), nothing, last)
    assert check_balance(frames, ["call", "reply"], pl.lit("a packet"), transit).height == 1 - counted


def test_a_copy_for_another_port_that_meets_a_cut_takes_none_away() -> None:
    """A switch floods to two ports, of which one is cut off; what is lost at random has one way to go."""
    assert check([SENT, CAME, LEFT, ("far", "far:fate", 0, "lost cut"), RECEIVED]) == []
    assert check([SENT, CAME, LEFT, ("far", "far:fate", 0, "lost partition")]) == []
    assert check([SENT, CAME, LEFT, ("far", "far:fate", 0, "lost"), RECEIVED])


def test_a_router_that_has_not_sent_at_each_port_may_still_be_setting_up() -> None:
    ends = ["wire/a.pcapng|r:eth0", "wire/b.pcapng|r:eth1"]
    seen = [(0, IN, ends[0], 1), (1, OUT, ends[0], 2), (2, IN, ends[0], 3), (3, OUT, ends[1], 4), (4, IN, ends[0], 5)]
    frames = pl.DataFrame(
        seen, {"row": pl.UInt32, "direction": pl.UInt8, "end": pl.String, "time_ns": pl.Int64}, orient="row"
    ).with_columns(fate=pl.lit(None, pl.String))
    ports = pl.DataFrame({"end": ends, "machine": "r", "forwards": True})
    assert sorted(_too_early(frames, ports)["row"]) == [0, 2]
    # A port at which it never sends does not count.
    assert sorted(_too_early(frames.filter(pl.col("row") != 3), ports)["row"]) == [0]

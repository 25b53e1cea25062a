# SPDX-License-Identifier: Apache-2.0
"""Waiting cells recomputed from captures, against a switch that is simulated cell by cell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sundial.segments.atm.report_queue import Channel, Waiting, busiest, draw, matched, waiting

CELL = 2831.0


def switched(joins: list[list[float]], room: int, kinds: int) -> tuple[list[Channel], list[tuple[float, int]]]:
    """Cells of several inputs through one queue with tail drop: what a capture shows, and how many waited after each.

    A cell is one of `kinds` contents, by its place in its channel.
    """
    order = sorted((at, source, place) for source, times in enumerate(joins) for place, at in enumerate(times))
    starts: dict[tuple[int, int], float] = {}
    queue: list[float] = []
    free = 0.0
    waited: list[tuple[float, int]] = []
    for at, source, place in order:
        queue = [start for start in queue if start > at]
        start = max(at, free)
        if start > at and len(queue) >= room:
            continue
        starts[source, place] = start
        free = start + CELL
        if start > at:
            queue.append(start)
        waited.append((at, len(queue)))
    channels = []
    for source, times in enumerate(joins):
        there = [place for place in range(len(times)) if (source, place) in starts]
        received = np.array(there, dtype=np.uint64) % kinds
        served = np.array([starts[source, place] for place in there])
        channels.append(Channel(np.array(times), np.arange(len(times), dtype=np.uint64) % kinds, served, received))
    return channels, waited


def two_inputs(cells: int = 256) -> list[list[float]]:
    """Back to back from one instant."""
    return [[k * CELL for k in range(cells)], [k * CELL for k in range(cells)]]


def at(found: Waiting, when: float) -> tuple[int, int]:
    place = np.searchsorted(found.at_ns, when, "right") - 1
    return (int(found.least[place]), int(found.most[place])) if place >= 0 else (0, 0)


@pytest.mark.parametrize("room", [4, 64])
def test_cells_that_differ_give_what_waited_exactly(room: int) -> None:
    channels, waited = switched(two_inputs(), room, kinds=10_000)
    found = waiting(channels, 1000)
    assert found is not None
    assert found.most.max() == room
    last = dict(waited)  # After the last of those that joined at one instant.
    assert [at(found, when) for when in last] == [(count, count) for count in last.values()]


@pytest.mark.parametrize("kinds", [1, 2, 32])
def test_equal_cells_give_bounds_that_hold(kinds: int) -> None:
    random = np.random.default_rng(3)
    joins = [sorted(random.uniform(0, 100 * CELL, 90).tolist()) for _ in range(3)]
    channels, waited = switched(joins, 12, kinds)
    found = waiting(channels, 12)
    assert found is not None
    for when, count in waited:
        least, most = at(found, when)
        assert least <= count <= most <= 12


def test_without_losses_nothing_is_uncertain() -> None:
    channels, waited = switched(two_inputs(20), 64, kinds=1)
    found = waiting(channels, 64)
    assert found is not None
    assert (found.least == found.most).all()
    assert found.most.max() == max(count for _, count in waited) == 40 - 20


def test_a_cell_that_is_sent_at_once_does_not_wait() -> None:
    channels, _ = switched([[k * CELL for k in range(9)]], 4, kinds=1)
    found = waiting(channels, 64)
    assert found is not None
    assert len(found.at_ns) == 0


def test_what_was_received_must_have_been_sent() -> None:
    sent, starts = np.array([1, 2, 3], dtype=np.uint64), np.array([0.0, 10.0, 20.0])
    assert matched(Channel(starts, sent, starts[:1], np.array([9], dtype=np.uint64)), late=False) is None
    assert matched(Channel(starts + 100, sent, starts[:1], np.array([1], dtype=np.uint64)), late=True) is None


def test_the_busiest_stretch_ends_where_nothing_waits() -> None:
    count = np.array([1, 0, 1, 2, 1, 0, 1, 0])
    found = Waiting(np.arange(8.0), count, count)
    assert busiest(found) == (2.0, 5.0)


def test_quiet_queues_are_not_drawn(tmp_path: Path) -> None:
    quiet = Waiting(np.arange(2.0), np.array([1, 0]), np.array([1, 0]))
    empty = Waiting(np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))
    assert draw("elan", {"a:e": quiet, "b:e": empty}, {}, {}, "", tmp_path) is None
    channels, _ = switched(two_inputs(), 64, kinds=32)
    found = waiting(channels, 64)
    assert found is not None
    drawn = draw("elan", {"a:e": found}, {"a:e": np.array([70 * CELL])}, {"full": 64, "EPD": 32}, "", tmp_path)
    assert drawn is not None
    assert drawn.seen == "to a:e: at most 64 cells"

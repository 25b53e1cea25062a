# SPDX-License-Identifier: Apache-2.0
"""What a bridge with tc-netem sends at a port, where equal frames come: Linux doubles some, and which is not shown."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sundial.segments.netem.verify import _Port
from sundial.segments.netem.verify_tc import Effects
from sundial.verify.wire import Line, Passages

LEAST_NS, MOST_NS, PAUSE_NS = 10_000_000, 12_000_000, 100_000
IDLE: Any = SimpleNamespace(slot_ns=0, idle_ns=lambda begin, end: end - begin)

each = st.tuples(st.integers(0, 40_000_000), st.integers(0, 1), st.integers(LEAST_NS, MOST_NS), st.booleans())


def passages(frames: list[tuple[int, int]]) -> Passages:
    """Of frames by time and content, in that order."""
    times, contents = (np.array(column, np.int64) for column in zip(*sorted(frames), strict=True))
    same = np.zeros(len(times), np.int64)
    return Passages(np.arange(len(times)), times, same + 60, contents, same + 1, same + 2)


def findings(came: list[tuple[int, int]], sent: list[tuple[int, int]], **effects: Any) -> int:
    at = passages(came)
    bounds = Effects(**{"shortest_ns": LEAST_NS, "longest_ns": MOST_NS, **effects})
    port = _Port("joint:eth1", bounds, at, at.time_ns, passages(sent), ({}, {}), None, PAUSE_NS, 0, exact=True)
    return sum(found.height for found in port.check(lambda end: IDLE))


@given(st.lists(each, min_size=1, max_size=12))
def test_frames_of_which_any_are_doubled_pass(frames: list[tuple[int, int, int, bool]]) -> None:
    came = [(at, content) for at, content, _, _ in frames]
    sent = [(at + delay, content) for at, content, delay, twice in frames for _ in range(1 + twice)]
    assert findings(came, sent, doubles=True) == 0


@pytest.mark.parametrize("doubles", [False, True])
def test_a_frame_that_is_kept_and_one_that_is_late_are_found(doubles: bool) -> None:
    came = [(0, 1), (10**10, 1), (2 * 10**10, 1), (3 * 10**10, 2)]
    right = [(at + LEAST_NS, content) for at, content in came]
    assert findings(came, right, doubles=doubles) == 0
    assert findings(came, [right[0], right[1], right[3]], doubles=doubles) == 1
    late = (came[1][0] + MOST_NS + 2 * PAUSE_NS, 1)
    assert findings(came, [right[0], late, *right[2:]], doubles=doubles) == 1


SHAPER, BUSY_NS = Line(480_000), 1_000_000
"""A frame of 60 bytes takes so long."""


def shaped(came: list[tuple[int, int, int, bool]]) -> list[tuple[int, int]]:
    """What leaves a shaper that is given frames with their delays (net/sched/sch_netem.c, netem_enqueue)."""
    sent: list[tuple[int, int]] = []
    due_ns = -1
    for at, content, delay, twice in came:
        for _ in range(1 + twice):
            waits = due_ns > at
            due_ns = BUSY_NS + (due_ns + max(0, delay - (due_ns - at)) if waits else at + delay)
            sent.append((max(at, due_ns, sent[-1][0] if sent else at), content))
    return sent


@given(st.sampled_from([0, -5_000_000]), st.lists(each, min_size=1, max_size=12))
def test_frames_through_a_shaper_pass(least_ns: int, frames: list[tuple[int, int, int, bool]]) -> None:
    """Equal ones and copies, between others. A delay that is negative shortens the time in the shaper."""
    drawn = sorted((at, content, delay - LEAST_NS + least_ns, twice) for at, content, delay, twice in frames)
    bounds = {"shortest_ns": least_ns, "longest_ns": least_ns + MOST_NS - LEAST_NS}
    assert findings([one[:2] for one in drawn], shaped(drawn), doubles=True, shaper=SHAPER, **bounds) == 0


def test_frames_that_leave_a_shaper_too_soon_are_found() -> None:
    came = [(0, 1), (0, 2), (0, 1)]
    right = [(LEAST_NS + turn * BUSY_NS, content) for turn, (_, content) in enumerate(came, 1)]
    for doubles in (False, True):
        assert findings(came, right, doubles=doubles, shaper=SHAPER) == 0
        for place in range(3):
            at, content = right[place]
            hasty = [*right[:place], (at - 1, content), *right[place + 1 :]]
            assert findings(came, hasty, doubles=doubles, shaper=SHAPER) >= 1


@pytest.mark.parametrize(("source", "found"), [(2, 1), (0, 0), (1 << 40 | 2, 0)], ids=["a station", "none", "a group"])
def test_a_bridge_takes_frames_from_stations(source: int, found: int) -> None:
    """A line that corrupts may make another source of it."""
    came = passages([(0, 1), (10**10, 2), (2 * 10**10, 3)])
    from_it = replace(came, source=np.array([2, source, 2]))
    sent = passages([(LEAST_NS, 1), (2 * 10**10 + LEAST_NS, 3)])
    bounds = Effects(shortest_ns=LEAST_NS, longest_ns=MOST_NS)
    port = _Port("joint:eth1", bounds, from_it, came.time_ns, sent, ({}, {}), None, PAUSE_NS, 0, exact=True)
    assert sum(each.height for each in port.check(lambda end: IDLE)) == found

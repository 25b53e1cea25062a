# SPDX-License-Identifier: Apache-2.0
"""What a port cannot tell about a server: when its timers were due, which of its calls ran, and what it has counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

from sundial.judge.replay import Item, Replay
from sundial.workloads.dce.verify_server import EITHER, Server
from tests.workloads.dce.dialogue import MS, found
from tests.workloads.dce.states import Reader, Script, rows, shown

ROWS = {(row.side, row.name): row for row in rows()}
CALL = ROWS["server", "call_of_two_fragments"]
*CALLED, ACK = Script(CALL).items.values()


def server() -> Server:
    machine = Script(CALL).machine
    assert isinstance(machine, Server)
    return machine


def at(words: str, at_ms: float) -> Item:
    return shown(Reader("server"), words.split(), int(at_ms * MS))


def test_counts_at_marks_are_kept_where_they_change_and_asked_for_where_they_may() -> None:
    marks = [at * MS for at in range(0, 600_000, 100)]
    items = [*CALLED, ACK]

    class Asked(Replay[Server]):
        at_ns: ClassVar[list[int]] = []

        def counts(self, until_ns: int) -> list[Counter[str]]:
            self.at_ns.append(until_ns)
            return super().counts(until_ns)

    few, each = Asked([server()]), []
    few.run(items, 1100 * MS, marks)
    replays: dict[int, Replay[Server]] = {}
    for number, mark in enumerate(marks):
        end_ns = min(mark, 1100 * MS)
        if end_ns not in replays:
            replays[end_ns] = Replay([server()])
            replays[end_ns].run([item for item in items if item.at_ns <= mark], end_ns)
        counts = replays[end_ns].counts(mark)
        if not each or counts != each[-1][1]:
            each.append((number, counts))
    assert few.counted == each
    assert len(few.counted) > 1
    assert len(few.at_ns) < 50


def test_response_goes_again_when_its_time_has_come() -> None:
    again = "> response serial=1"
    assert found(server(), *CALLED, at(again, 2004), at("< ack", 2100), end_ms=3000) == []
    assert found(server(), *CALLED, at(again, 1990), at("< ack", 2100), end_ms=3000)
    assert found(server(), *CALLED, at("< ack", 2100), end_ms=3000) == []
    assert found(server(), *CALLED, at("< ack", 2900), end_ms=9000) == []
    assert found(server(), *CALLED, end_ms=9000) != []


def test_maybe_calls_are_executed_or_dropped_and_never_answered() -> None:
    asks = [at(f"< request seq={40 + number} maybe new", 1 + number) for number in range(3)]
    replay = Replay([replace(server(), work={40: 0, 41: 0, 42: 0})])  # type: ignore[call-arg]
    replay.run(asks, 100 * MS)
    assert replay.findings == []
    assert {each.counts[f"{EITHER}1"] for each in replay.histories} == {3}
    assert found(server(), *asks, at("> response", 5))


def test_maybe_call_that_comes_while_one_surely_runs_is_dropped() -> None:
    """Its procedure takes 3 s; what comes within 250 ms of its end may be read before or behind it."""
    for at_ms, executed, dropped in ((2, 1, 1), (2700, 1, 1), (2900, 2, 0), (3100, 2, 0)):
        asks = [at(f"< request seq={40 + number} maybe new", at_ms) for number, at_ms in enumerate((1, at_ms))]
        replay = Replay([replace(server(), work={40: 3000 * MS, 41: 0})])  # type: ignore[call-arg]
        replay.run(asks, 4000 * MS)
        counts = [each.counts for each in replay.histories]
        assert {(each[f"{EITHER}1"], each["dropped"]) for each in counts} == {(executed, dropped)}


def test_request_that_comes_while_the_call_before_runs_is_not_taken() -> None:
    """Of two fragments, behind a maybe call whose procedure takes 50 ms."""
    items = [at("< request seq=40 maybe new", 1), at("< request 0/2 seq=41 maybe new", 20)]
    replay = Replay([replace(server(), work={40: 50 * MS, 41: 0})])  # type: ignore[call-arg]
    replay.run(items, 40 * MS)
    assert {each.not_taken for each in replay.histories} == {frozenset({20 * MS})}
    other = replay.histories[0].clone()
    other.not_taken = frozenset()
    assert other.joins(replay.histories[0])
    assert other.not_taken == {20 * MS}


def test_histories_that_only_count_otherwise_are_one() -> None:
    one = server()
    other = one.clone()
    other.counts["strays"] = 3
    assert one.joins(other)
    assert (one.counts["strays"], one.spread["strays"]) == (0, 3)
    other.state = "idle"
    assert not one.joins(other)

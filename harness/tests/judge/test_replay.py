# SPDX-License-Identifier: Apache-2.0
"""The replay, with a server of a small protocol: `?N` is answered by `!N`, and by `!N` again each second until `.N`
comes, three times at most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sundial.judge.machine import NEVER, Machine
from sundial.judge.replay import LATE_NS, Item, Replay, Sent

S = 1_000_000_000
MOST = 3


class Words:
    def name(self, message: str) -> str:
        return message[:2]

    def kind(self, message: str) -> str:
        return message[:1]

    def alike(self, one: str, other: str) -> bool:
        return one[:2] == other[:2]

    def words(self, message: str) -> str:
        return {"!": "answer", "?": "question", ".": "thanks"}[message[0]] + f" {message[1:]}"

    def encode(self, message: str) -> bytes:
        return message.encode()

    def field_at(self, place: int) -> str:
        return ("type", "number")[place] if place < 2 else "body"


@dataclass(frozen=True)
class Came:
    at_ns: int
    message: str


@dataclass
class Server(Machine[str]):
    reading = Words()

    waiting: str = ""
    again_ns: int = NEVER
    turns: int = 0

    def deadline(self) -> int:
        return self.again_ns

    def steps(self, until_ns: int) -> Iterator[str]:
        if self.inbox and self.inbox[0].at_ns <= until_ns:
            yield "arrival"
        if self.fires(until_ns):
            yield "timer"

    def take(self, step: str) -> None:
        if step == "timer":
            self._answer(self.at(self.again_ns))
            return
        arrival = self.inbox.popleft()
        now = self.at(arrival.at_ns)
        if arrival.message[0] == ".":
            self.again_ns = NEVER
        else:
            self.waiting, self.turns = f"!{arrival.message[1:]}...", 0
            self.counts["questions"] += 1
            self._answer(now)

    def _answer(self, now: int) -> None:
        self.outbox.append(self.waiting)
        self.turns += 1
        self.counts["answers"] += 1
        self.again_ns = now + S if self.turns < MOST else NEVER


def came(at_s: float, message: str) -> Came:
    return Came(int(at_s * S), message)


def sent(at_s: float, message: str, seen: str | None = None) -> Sent[str]:
    return Sent(int(at_s * S), message, (seen or message).encode(), (7,))


def replayed(*items: Item, end_s: float = 100) -> Replay[Server]:
    replay = Replay([Server()])
    replay.run(items, int(end_s * S))
    return replay


ASKED, THANKED = came(0, "?1"), came(0.2, ".1")
ANSWERED, AGAIN, THIRD = sent(0.1, "!1..."), sent(1.1, "!1..."), sent(2.1, "!1...")


@pytest.mark.parametrize(
    "items",
    [
        pytest.param((ASKED, ANSWERED, THANKED), id="answered and thanked"),
        pytest.param((ASKED, ANSWERED, AGAIN, THIRD), id="never thanked"),
        pytest.param((ASKED, ANSWERED, AGAIN, came(1.15, ".1")), id="thanked late"),
        pytest.param((ASKED, ANSWERED, came(1, ".1"), AGAIN), id="timer while the thanks waited to be read"),
        pytest.param((ASKED, ANSWERED, came(1, ".1")), id="thanks read as the timer was due"),
    ],
)
def test_dialogue_that_follows_the_machine_has_no_finding(items: tuple[Item, ...]) -> None:
    assert replayed(*items).findings == []


@pytest.mark.parametrize(
    ("items", "finding"),
    [
        pytest.param((ASKED, THANKED), ("sent", "answer 1...", "nothing"), id="missing"),
        pytest.param((ASKED, AGAIN, THIRD), ("sent", "answer 1...", "nothing"), id="the first missing"),
        pytest.param(
            (ASKED, ANSWERED, THANKED, AGAIN),
            ("sent", "nothing before something comes or is due", "answer 1..."),
            id="once too often",
        ),
        pytest.param(
            (ASKED, ANSWERED, sent(0.9, "!1...")),
            ("sent", "nothing before something comes or is due", "answer 1..."),
            id="before its timer",
        ),
        pytest.param(
            (ASKED, sent(0.1, "!2..."), THANKED),
            ("number", f"{b'1...'.hex(' ')} at byte 1 of answer 1...", f"{b'2...'.hex(' ')} in answer 2..."),
            id="another of its type",
        ),
        pytest.param((ASKED, sent(0.1, ".1"), THANKED), ("sent", "answer 1...", "thanks 1"), id="another type"),
        pytest.param(
            (ASKED, sent(0.1, "!1...", "!1.x."), THANKED),
            ("body", f"{b'..'.hex(' ')} at byte 3 of answer 1...", f"{b'x.'.hex(' ')} in answer 1..."),
            id="another byte",
        ),
        pytest.param((ASKED, sent(0.1, "!1...", "!1.."), THANKED), ("length", "5 bytes", "4"), id="too short"),
    ],
)
def test_first_finding_names_the_difference(items: tuple[Item, ...], finding: tuple[str, str, str]) -> None:
    assert replayed(*items).findings[0][1:4] == finding


def test_message_is_missing_once_it_is_too_late() -> None:
    late_s = LATE_NS / S
    assert replayed(ASKED, end_s=-0.1).findings == []
    in_time = replayed(ASKED, sent(late_s - 0.1, "!1..."), came(late_s, ".1"), end_s=late_s)
    assert in_time.findings == []
    assert replayed(ASKED, came(late_s + 0.1, "?2"), end_s=-1).findings[0][1:4] == ("sent", "answer 1...", "nothing")


TWICE = (ASKED, ANSWERED, came(1, "?1"), sent(1.1, "!1..."))
"""The second answer is the timer's, or that to the question which came again."""


def test_histories_are_counted_for_each_message() -> None:
    assert replayed(*TWICE, end_s=0).followed == {1: 1, 2: 1}


def test_history_that_agrees_is_preferred() -> None:
    counts = []
    for questions in (1, 2):
        replay = Replay([Server()], agrees=lambda each, due=questions: each.counts["questions"] == due)
        replay.run(TWICE, 0)
        counts.append({each.counts["questions"] for each in replay.histories})
    assert counts == [{1}, {2}]


def test_counts_at_a_mark_are_those_of_histories_that_have_nothing_to_send() -> None:
    """If the timer had sent the second answer, the one to the question would be due."""
    replay = Replay([Server()])
    replay.run(TWICE, 0, [int(0.5 * S), int(1.15 * S)])
    assert [(mark, [each["questions"] for each in counts]) for mark, counts in replay.counted] == [(0, [1]), (1, [2])]


@pytest.mark.parametrize(("first_s", "last_s", "missing"), [(0, 2, 0), (0.5, 2, 1), (0, 1.5, 1), (3, 4, 3)])
def test_what_is_dropped_before_the_port_is_not_missing(first_s: float, last_s: float, missing: int) -> None:
    """Answers are due at 0, 1 and 2 s, and none comes to the port."""
    replay = Replay([Server()], drops=lambda at_ns: first_s * S <= at_ns <= last_s * S)
    replay.run([came(0, "?1")], 30 * S)
    assert [each.seen for each in replay.findings] == ["nothing"] * missing


@pytest.mark.parametrize(("last_s", "answers"), [(-1, {1}), (0.5, {1, 2}), (1.5, {1, 2, 3})])
def test_any_like_of_a_message_may_have_been_dropped_before_it(last_s: float, answers: set[int]) -> None:
    """Answers were due at 0, 1 and 2 s, and one came to the port."""
    replay = Replay([Server()], drops=lambda at_ns: at_ns <= last_s * S)
    for item in (came(0, "?1"), sent(2.1, "!1...")):
        replay.feed(item)
    assert {each.counts["answers"] for each in replay.histories} == answers
    assert replay.findings == []


@pytest.mark.parametrize(("turns", "lasts"), [(3, True), (500, True), (500, False)])
def test_what_is_dropped_may_go_on_for_long(monkeypatch: pytest.MonkeyPatch, turns: int, lasts: bool) -> None:
    """A machine that answers once a second, as long as nothing of it comes to the port."""
    monkeypatch.setattr(f"{__name__}.MOST", turns)
    replay = Replay([Server()], drops=lambda at_ns: lasts or at_ns < 400 * S)
    replay.run([came(0, "?1")], 1000 * S)
    assert {each.turns for each in replay.histories} >= ({turns} if lasts else set())
    assert bool(replay.findings) != lasts


def test_machine_whose_time_stands_still_is_given_up() -> None:
    """A damaged setting may make a timer due again at once."""

    class Hasty(Server):
        def _answer(self, now: int) -> None:
            super()._answer(now)
            self.turns, self.again_ns = 0, now

    replay = Replay([Hasty()], drops=lambda at_ns: True)
    replay.run([came(0, "?1")], 30 * S)
    assert replay.histories

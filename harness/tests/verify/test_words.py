# SPDX-License-Identifier: Apache-2.0
"""A mismatch in words, and the line that opens its frames."""

from __future__ import annotations

import shlex
from typing import Any

from sundial.verify.words import grouped, in_words, joined_in, open_command, to_show

CALL = {"client": "a", "transport": "udp", "procedure": "echo", "size": 16, "call": 3, "xid": 255}


def problem(**changes: Any) -> dict[str, Any]:
    shown = "frame.number in {7, 8}"
    plain = {"call": CALL, "capture": "wire/lan.pcapng", "frames": [7, 8], "field": "request.count", "filter": shown}
    return {**plain, "expected": "1", "seen": "2", **changes}


def test_a_mismatch_says_what_of_which_call_and_where() -> None:
    assert in_words(problem()) == (
        "request.count of call 3 of a (udp echo, 16 B), xid 0xff: expected 1, seen 2 (wire/lan.pcapng, frames 7, 8)"
    )


def test_a_mismatch_names_its_rule() -> None:
    assert in_words(problem(rule="call.count")).endswith("(wire/lan.pcapng, frames 7, 8) [call.count]")


def test_what_has_no_call_and_no_frames_is_said_too() -> None:
    bare = problem(call=None, capture=None, frames=[], field="run", expected="complete", seen="failed", filter="")
    assert in_words(bare) == "run: expected complete, seen failed"
    assert open_command("latest", bare) is None


def test_many_frames_and_long_values_are_cut() -> None:
    text = in_words(problem(frames=list(range(100)), seen="x" * 1000))
    assert len(text) < 400
    assert "11, ..." in text


def test_frames_of_one_conversation_without_a_call_are_one_line() -> None:
    ends = ("TCP 10.0.0.1:40000 > 10.0.0.2:7007 , 66 bytes", "TCP 10.0.0.2:7007 > 10.0.0.1:40000 , 60 bytes")
    bare = {"call": None, "field": "frame without a call", "expected": "none", "rule": "frame.reason"}
    many = [problem(**bare, frames=[number], seen=ends[number % 2], filter="") for number in range(101)]
    other = problem(**bare, frames=[500], seen="UDP 10.0.0.1:5 > 10.0.0.2:6, 60 bytes")
    first, second, third = grouped([*many, other, problem()])
    assert (joined_in(first), joined_in(second), joined_in(third)) == (101, 1, 1)
    assert first["seen"] == "101 frames of TCP between 10.0.0.1:40000 and 10.0.0.2:7007"
    assert first["filter"] == ("ip.addr == 10.0.0.1 && ip.addr == 10.0.0.2 && tcp.port == 40000 && tcp.port == 7007")
    assert second == other


def test_the_line_is_one_of_a_shell() -> None:
    line = open_command("a run", problem())
    assert line is not None
    assert shlex.split(line) == ["./sundial", "open", "a run", "lan", "--all", "--filter", "frame.number in {7, 8}"]


def test_the_first_to_look_at_is_one_with_frames() -> None:
    bare = problem(frames=[], filter="")
    assert to_show([]) is None
    assert to_show([bare]) is bare
    assert to_show([bare, problem()]) == problem()

# SPDX-License-Identifier: Apache-2.0
"""A mismatch of verify.json in words, and the command that shows its frames."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sundial.model.catalog import COMMAND

MOST_LETTERS = 160
MOST_FRAMES = 12
WITHOUT_A_CALL = "frame without a call"
_CONVERSATION = re.compile(r"(?P<protocol>TCP|UDP) (?P<source>[\d.]+:\d+) > (?P<target>[\d.]+:\d+)\b")


def in_words(problem: Mapping[str, Any]) -> str:
    """One sentence: what differs, of which call, in which frames, and the rule."""
    call, capture = problem.get("call"), problem.get("capture")
    of = f" of {call_in_words(call)}" if isinstance(call, Mapping) else ""
    frames = [str(frame) for frame in problem.get("frames") or []]
    more = ", ..." if len(frames) > MOST_FRAMES else ""
    where = f" ({capture}, {'frames' if len(frames) > 1 else 'frame'} {', '.join(frames[:MOST_FRAMES])}{more})"
    text = f"{problem.get('field')}{of}: expected {_short(problem.get('expected'))}, seen {_short(problem.get('seen'))}"
    rule = f" [{problem['rule']}]" if problem.get("rule") else ""
    return text + (where if capture and frames else "") + rule


def grouped(problems: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The mismatches, frames of one conversation without a call joined: one with all of them, and how many."""
    shown: dict[object, Mapping[str, Any]] = {}
    for place, problem in enumerate(problems):
        talk = _CONVERSATION.match(str(problem.get("seen"))) if problem.get("field") == WITHOUT_A_CALL else None
        if talk is None:
            shown[place] = problem
            continue
        ends = sorted((talk["source"], talk["target"]))
        key = (problem.get("capture"), talk["protocol"], *ends)
        before = shown.get(key)
        frames = [*(before["frames"] if before else ()), *problem["frames"]]
        one, other = (end.rpartition(":") for end in ends)
        words = f"{len(frames)} frames of {talk['protocol']} between {ends[0]} and {ends[1]}"
        ports = (f"{talk['protocol'].lower()}.port == {end[2]}" for end in (one, other))
        view = " && ".join((f"ip.addr == {one[0]}", f"ip.addr == {other[0]}", *ports))
        joined = {"frames": sorted(frames), "seen": words, "filter": view, "joined": joined_in(before or {}) + 1}
        shown[key] = problem if before is None else {**problem, **joined}
    return list(shown.values())


def joined_in(problem: Mapping[str, Any]) -> int:
    """How many mismatches `grouped` made one of."""
    return int(problem.get("joined", 1))


def to_show(problems: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The mismatch to begin with: the first that has frames to look at, else the first."""
    return next((problem for problem in problems if problem.get("filter")), problems[0] if problems else None)


def call_in_words(call: Mapping[str, Any]) -> str:
    """Which call it is."""
    kind = " ".join(str(call[name]) for name in ("transport", "procedure") if call.get(name))
    which = f"call {call.get('call')} of {call.get('client')} ({kind}, {call.get('size')} B)"
    xid = call.get("xid")
    return which + (f", xid {xid:#x}" if isinstance(xid, int) else "")


def open_command(run: str, problem: Mapping[str, Any]) -> str | None:
    """The line that shows the frames of a mismatch in Wireshark; None where it has no filter."""
    shown = problem.get("filter")
    if not shown:
        return None
    capture = problem.get("capture")
    segment = [PurePath(str(capture)).stem] if capture else []
    view = ["--all"] if problem.get("frames") else []  # its frames may be at any port
    return shlex.join([COMMAND, "open", run, *segment, *view, "--filter", str(shown)])


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."

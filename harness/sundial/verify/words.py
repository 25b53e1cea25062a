# SPDX-License-Identifier: Apache-2.0
"""A mismatch of verify.json in words, and the command that shows its frames."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sundial.model.catalog import COMMAND

MOST_LETTERS = 160
MOST_FRAMES = 12


def in_words(problem: Mapping[str, Any]) -> str:
    """One sentence: what differs, of which call, in which frames."""
    call, capture = problem.get("call"), problem.get("capture")
    of = f" of {call_in_words(call)}" if isinstance(call, Mapping) else ""
    frames = [str(frame) for frame in problem.get("frames") or []]
    more = ", ..." if len(frames) > MOST_FRAMES else ""
    where = f" ({capture}, {'frames' if len(frames) > 1 else 'frame'} {', '.join(frames[:MOST_FRAMES])}{more})"
    text = f"{problem.get('field')}{of}: expected {_short(problem.get('expected'))}, seen {_short(problem.get('seen'))}"
    return text + (where if capture and frames else "")


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

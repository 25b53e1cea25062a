# SPDX-License-Identifier: Apache-2.0
"""Events that change segments: at another instant, missing or with other words; and frames that do not keep to them."""

from __future__ import annotations

import copy as copying
import json
from dataclasses import replace
from random import Random

from mutation.capture import IN, Capture, Frame
from mutation.damage import Copy, Damage, Damages
from mutation.traffic import Change, _damage, _insert_in_order

_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}


def damages(copy: Copy) -> Damages:
    """All that can be done to the events of this run."""
    if not any(capture.notes for capture in copy.captures().values()):
        return
    for what, change in CHANGES.items():
        yield _damage(f"events: {what}", change)
    yield Damage("events: one 1 ns later in run.json", _later_in_run)


def _later_in_run(copy: Copy, random: Random) -> None:
    document = copying.deepcopy(copy.json("run.json"))
    event = random.choice(document["scenario"]["timeline"])
    number, unit = event["at"].split()
    event["at"] = f"{round(float(number) * _TIMES[unit]) + 1} ns"
    copy.write_json("run.json", document)


def _noted(captures: dict[str, Capture]) -> Capture:
    return next(capture for capture in captures.values() if capture.notes)


def _missing(captures: dict[str, Capture], random: Random) -> None:
    capture = _noted(captures)
    capture.notes.remove(random.choice(capture.notes))


def _later(captures: dict[str, Capture], random: Random) -> None:
    random.choice(_noted(captures).notes).at_ns += 1


def _words(captures: dict[str, Capture], random: Random) -> None:
    note = random.choice(_noted(captures).notes)
    note.text = note.text.replace("timeline: ", "timeline: end of ")


def _fates(captures: dict[str, Capture], *, severed: bool) -> list[tuple[Capture, Frame, dict[str, str]]]:
    """Lost frames with their records: those that met a cut, or those that were lost at random."""
    found = []
    for capture in captures.values():
        for frame in filter(capture.is_fate, capture.frames):
            record = json.loads((frame.comment or "").rpartition(" | ")[2])
            if record["fate"] == "lost" and ("rule" in record) == severed:
                found.append((capture, frame, record))
    return found


def _crossing(captures: dict[str, Capture], random: Random) -> None:
    """It arrives, as if nothing had been cut."""
    capture, fate, record = random.choice(_fates(captures, severed=True))
    capture.frames.remove(fate)
    arrival = replace(fate, interface=capture.interfaces.index(record["to"]), direction=IN, comment=None)
    _insert_in_order(capture, [replace(arrival, at_ns=fate.at_ns + 25)])


def _uncut(captures: dict[str, Capture], random: Random) -> None:
    capture, fate, _ = random.choice(_fates(captures, severed=True))
    capture.frames.remove(fate)


def _of_no_event(captures: dict[str, Capture], random: Random) -> None:
    """A random loss that is said to be one of the cut."""
    _, fate, record = random.choice(_fates(captures, severed=False))
    record = {"fate": "lost", "rule": "cut", **{name: record[name] for name in ("from", "to")}}
    words = f"lost: cut, {record['from']} to {record['to']}"
    fate.comment = f"{words} | {json.dumps(record, separators=(',', ':'))}"


def _at_random(captures: dict[str, Capture], random: Random) -> None:
    """A frame that met the cut is said to be lost at random."""
    _, fate, record = random.choice(_fates(captures, severed=True))
    record = {name: record[name] for name in ("fate", "from", "to")}
    fate.comment = f"lost: {record['from']} to {record['to']} | {json.dumps(record, separators=(',', ':'))}"


CHANGES: dict[str, Change] = {
    "one missing in the capture": _missing,
    "one 1 ns later in the capture": _later,
    "words of one": _words,
    "a frame that crosses a cut": _crossing,
    "a fate of a cut missing": _uncut,
    "a random loss that is said to be cut off": _of_no_event,
    "a frame cut off that is said to be lost at random": _at_random,
}

# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline in the capture: a comment at the instant of each, which says what happened."""

from __future__ import annotations

import polars as pl

from sundial.model.segment import SegmentBase
from sundial.observe.pcapng import comments_alone
from sundial.plan.segment import note_of
from sundial.verify.findings import Finding, as_table, none
from sundial.verify.wire import MOST, Wire


def check_notes(segment: SegmentBase, wire: Wire) -> pl.DataFrame:
    """A finding for each event whose comment is missing in the capture of a segment, or has another time or text."""
    if not segment.timeline or wire.folder is None:
        return none()
    due = [(state.at_ns, note_of(state)) for state in segment.timeline]
    due = [note for note in due if wire.end_ns is None or note[0] < wire.end_ns]
    seen = [(at - wire.epoch_ns, text) for at, text in comments_alone(wire.folder / f"{wire.name}.pcapng")]
    what = f"wire/{wire.name}.pcapng: events"
    found = [Finding(None, what, _words(note), "none") for note in due if note not in seen]
    found += [Finding(None, what, "none", _words(note)) for note in seen if note not in due]
    if not found and seen != due:
        found.append(Finding(None, what, "each once, in order of time", f"{len(seen)} comments"))
    return as_table(found[:MOST]) if found else none()


def _words(note: tuple[int, str]) -> str:
    at_ns, text = note
    return f"at {at_ns} ns {text}"

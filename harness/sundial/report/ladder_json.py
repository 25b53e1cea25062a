# SPDX-License-Identifier: Apache-2.0
"""Ladders and calls as data for JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sundial.observe import open_run
from sundial.report.ladder import Ladder
from sundial.report.ladder_read import calls_of, notable

MOST_CALLS = 20
_CALL = (
    "id", "client", "server", "app", "transport", "procedure", "size", "thread", "batch", "call", "warmup", "start_ns",
    "end_ns", "rtt_ns", "ok", "error", "retransmissions", "verdict",
)  # fmt: skip


def document(ladder: Ladder) -> dict[str, Any]:
    """The call and all its frames in order. Times are in ns of the run; `frames` are numbers in the capture of
    `segment`; `to` is null if it is not known, `arrived_ns` if the frame did not arrive."""
    return {
        "title": ladder.title,
        "outcome": ladder.outcome,
        "parties": list(ladder.parties),
        "begins_ns": ladder.zero_ns,
        "arrows": [
            {
                "from": arrow.source,
                "to": arrow.target,
                "segment": arrow.segment,
                "sent_ns": arrow.sent_ns,
                "arrived_ns": arrow.arrived_ns,
                "lost": arrow.lost,
                "again": arrow.again,
                "notes": list(arrow.notes),
                "delayed_ns": arrow.delayed_ns,
                "overtaken": arrow.overtaken,
                "words": arrow.words or arrow.head.words,
                "bytes": arrow.length,
                "frames": list(arrow.numbers),
            }
            for arrow in ladder.arrows
        ],
        "remarks": list(ladder.remarks),
    }


def notable_calls(directory: Path, most: int = MOST_CALLS) -> list[dict[str, Any]]:
    """The calls of a run that are worth a look, by their columns in samples.parquet. Raises BadInput."""
    return notable(calls_of(open_run(directory)), most).select(_CALL).to_dicts()

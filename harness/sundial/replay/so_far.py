# SPDX-License-Identifier: Apache-2.0
"""Whether a run that stands has written what the recorded run wrote up to there. Reads files, decides nothing else."""

from __future__ import annotations

from pathlib import Path

_PIECE = 1 << 20
_GROWING = ("wire/**/*.pcapng", "nodes/*/console.log", "nodes/*/samples.jsonl")


def growing(run: Path) -> list[str]:
    """Names of the files of a run that only grow while it runs."""
    return sorted(file.relative_to(run).as_posix() for pattern in _GROWING for file in run.glob(pattern))


def first_other_byte(recorded: Path, again: Path) -> int | None:
    """The place of the first byte of `again` that `recorded` has not there; None: `again` is its beginning."""
    place = 0
    with recorded.open("rb") as before, again.open("rb") as now:
        while piece := now.read(_PIECE):
            expected = before.read(len(piece))
            if piece != expected:
                pairs = enumerate(zip(piece, expected, strict=False))
                return place + next((at for at, (one, other) in pairs if one != other), len(expected))
            place += len(piece)
    return None


def first_difference(recorded: Path, again: Path) -> str | None:
    """The first file that differs, and where; None: all is equal so far. Captures come first."""
    names = sorted(growing(again), key=lambda name: (not name.endswith(".pcapng"), name))
    for name in names:
        if not (recorded / name).is_file():
            return f"{name}: the recorded run does not have it"
        place = first_other_byte(recorded / name, again / name)
        if place is not None:
            return f"{name}: byte {place}"
    return None

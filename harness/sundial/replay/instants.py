# SPDX-License-Identifier: Apache-2.0
"""Instants of a recorded run: as they are written, and when its frames began."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sundial.errors import BadInput
from sundial.observe.pcap import open_capture
from sundial.observe.stamps import stamps
from sundial.units import TIME

UNTIL = "--until"
_FRAME = re.compile(r"(?P<segment>[^:]+):(?P<number>[0-9]+)")


@dataclass(frozen=True)
class Frames:
    """The frames of one capture, in its order."""

    at_ns: NDArray[np.int64]
    """Since zero of the run."""

    def before(self, at_ns: int) -> int:
        """Number of frames that began before an instant. Captures are in order of time."""
        return int(np.searchsorted(self.at_ns, at_ns))


def read_frames(capture: Path, epoch_ns: int) -> Frames:
    """Raises BadInput for a capture that is damaged."""
    opened = open_capture(capture)
    try:
        at_ns = np.zeros(opened.frames, np.int64)
        for interface in opened.interfaces:
            found = stamps(opened, interface)
            if found.null_count():
                raise BadInput("has a frame without a time", file=str(capture), allowed="what 'sundial run' wrote")
            at_ns[interface.blocks["number"].astype(np.int64) - 1] = found.to_numpy() - epoch_ns
    finally:
        opened.close()
    return Frames(at_ns)


def instant_of(text: str, segments: Mapping[str, Frames], end_ns: int) -> int:
    """The instant of `TIME` or `SEGMENT:FRAME`: that of a frame is the first at which the frame has begun. `segments`
    has the captures of frames, `end_ns` is the run's end. Raises BadInput."""
    frame = _FRAME.fullmatch(text.strip())
    at_ns = TIME.between(most=f"{end_ns} ns").parse(text) if frame is None else _begun(frame, text, segments)
    if at_ns >= end_ns:
        raise BadInput(f"{text!r} is not before the run's end", field=UNTIL, allowed=f"times below {end_ns} ns")
    return at_ns


def _begun(frame: re.Match[str], text: str, segments: Mapping[str, Frames]) -> int:
    found = segments.get(frame["segment"])
    if found is None:
        what = f"the run has no capture of segment {frame['segment']!r}"
        raise BadInput(what, field=UNTIL, allowed=", ".join(sorted(segments)))
    number, count = int(frame["number"]), len(found.at_ns)
    if not 1 <= number <= count:
        raise BadInput(f"{text!r} is not there", field=UNTIL, allowed=f"frames 1 to {count} of {frame['segment']}")
    return int(found.at_ns[number - 1]) + 1


def next_frame_ns(segments: Mapping[str, Frames], at_ns: int) -> int | None:
    """The first instant after `at_ns` at which one more frame has begun; None after the last."""
    later = [frames.at_ns[place] for frames in segments.values() if (place := frames.before(at_ns)) < len(frames.at_ns)]
    return int(min(later)) + 1 if later else None

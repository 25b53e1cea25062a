# SPDX-License-Identifier: Apache-2.0
"""The last second of a run, in which the balance of equal frames says nothing: each wire's law does."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutation import runs
from mutation.capture import Frame, transmissions
from mutation.damage import Copy
from mutation.traffic import write
from sundial.verify import verify_run

LAST_NS = 1_000_000_000
ARRIVAL = "time on the wire: arrival at "
A_RUN_OF_EACH_WIRE = {
    "link-virtual": ARRIVAL,
    "jitter-virtual": ARRIVAL,
    "sunrpc-virtual": ARRIVAL,
    "switch-virtual": ARRIVAL,
    "lane-virtual": "wire/atm/elan.pdus.pcapng: frame of a PDU",
}
"""A link, one with drawn delays, a hub, a switch, and ATM with LAN emulation; and what their laws find."""


@pytest.mark.parametrize(("name", "law"), A_RUN_OF_EACH_WIRE.items())
def test_a_frame_that_does_not_arrive_in_the_last_second_is_missed(name: str, law: str, tmp_path: Path) -> None:
    copy = Copy(runs.recorded(name, tmp_path), tmp_path / "run")
    end_ns = copy.json("run.json")["epoch_ns"] + copy.json("wire/counters.json")["virtual_ns"]
    captures = copy.captures()
    late = [each for each in transmissions(list(captures.values())) if _is_late(each.sent + each.received, end_ns)]
    gone = late[0].received[0]
    for capture in captures.values():
        capture.frames = [frame for frame in capture.frames if frame is not gone]
    write(copy, captures)
    copy.seal(samples=False)
    problems = verify_run(copy.path).problems
    assert [each for each in problems if each["field"].startswith(law)]
    assert not [each for each in problems if each["field"].startswith("frames received by")]


def _is_late(frames: list[Frame], end_ns: int) -> bool:
    """Sent in the last second, and arrived."""
    return len(frames) > 1 and all(frame.at_ns > end_ns - LAST_NS for frame in frames)

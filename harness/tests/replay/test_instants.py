# SPDX-License-Identifier: Apache-2.0
"""Where a replay stands: times and frames as they are written, and the next frame."""

from pathlib import Path

import numpy as np
import pytest

from sundial.errors import BadInput
from sundial.replay.instants import Frames, instant_of, next_frame_ns, read_frames
from tests.verify.bed import OUT, Record, capture

END_NS = 2_000_000_000
SEGMENTS = {
    "lan": Frames(np.array([100, 100, 900], np.int64)),
    "wan": Frames(np.array([500], np.int64)),
    "idle": Frames(np.array([], np.int64)),
}


@pytest.mark.parametrize(
    ("written", "at_ns"),
    [
        ("0 ns", 0),
        ("1.5s", 1_500_000_000),
        ("1999999999 ns", END_NS - 1),
        ("lan:1", 101),
        ("lan:3", 901),
        ("wan:1", 501),
    ],
)
def test_an_instant_is_a_time_or_just_after_a_frame_has_begun(written: str, at_ns: int) -> None:
    assert instant_of(written, SEGMENTS, END_NS) == at_ns


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2 s", "--until: '2 s' is not before the run's end; allowed: times below 2000000000 ns"),
        ("3 s", "'3 s' is out of range; allowed: a time from 0 ns to 2 s, such as '10 ms'"),
        ("17", "'17' has no unit; allowed: a time from 0 ns to 2 s, such as '10 ms'"),
        ("soon", "'soon' is not a time; allowed: a time from 0 ns to 2 s, such as '10 ms'"),
        ("0.5 ns", "'0.5 ns' is not a whole number of ns; allowed: a time from 0 ns to 2 s, such as '10 ms'"),
        ("lan:0", "--until: 'lan:0' is not there; allowed: frames 1 to 3 of lan"),
        ("lan:4", "--until: 'lan:4' is not there; allowed: frames 1 to 3 of lan"),
        ("wlan:1", "--until: the run has no capture of segment 'wlan'; did you mean 'wan'? allowed: idle, lan, wan"),
    ],
)
def test_an_instant_that_the_run_does_not_have_is_refused(written: str, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        instant_of(written, SEGMENTS, END_NS)
    assert refused.value.message == message


def test_a_step_goes_to_the_next_frame_of_any_segment() -> None:
    steps = [at_ns := 0]
    while (found := next_frame_ns(SEGMENTS, at_ns)) is not None:
        steps.append(at_ns := found)
    assert steps == [0, 101, 501, 901]
    assert [SEGMENTS["lan"].before(at_ns) for at_ns in (100, 101, 901)] == [0, 2, 3]


def test_frames_of_all_interfaces_are_in_the_captures_order(tmp_path: Path) -> None:
    file = tmp_path / "lan.pcapng"
    records = [Record(7, 0, OUT, bytes(60)), Record(9, 1, OUT, bytes(60)), Record(12, 0, OUT, bytes(60))]
    file.write_bytes(capture(["a:eth0", "b:eth0"], records))
    found = read_frames(file, epoch_ns=5)
    whole = read_frames(file, epoch_ns=0)
    assert (whole.at_ns - found.at_ns).tolist() == [5, 5, 5]
    assert np.diff(found.at_ns).tolist() == [2, 3]

# SPDX-License-Identifier: Apache-2.0
"""The last frames before an instant, in words."""

from pathlib import Path

import pytest

from sundial.replay.last import in_line, last_frames
from tests.verify.bed import EPOCH_NS, OUT, Record, capture


def test_the_last_few_of_a_captures_first_frames_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lan.pcapng"
    frame = bytes(12) + b"\x08\x06" + bytes(46)
    records = [Record(10 * place, place % 2, OUT, frame) for place in range(1, 7)]
    file.write_bytes(capture(["a:eth0", "b:eth0"], records))
    lines = last_frames(file, 5, EPOCH_NS)
    assert [line.split(",")[0] for line in lines] == [
        "3 at 30 ns: b:eth0 sends 60 B",
        "4 at 40 ns: a:eth0 sends 60 B",
        "5 at 50 ns: b:eth0 sends 60 B",
    ]
    assert len(last_frames(file, 1, EPOCH_NS)) == 1
    assert last_frames(file, 0, EPOCH_NS) == []


FRAME: dict[str, object] = {
    "frame": 7,
    "time_ns": 100,
    "interface": "client:eth0",
    "direction": 1,
    "frame_length": 60,
    **dict.fromkeys(("ethertype", "source", "target", "source_port", "target_port", "protocol", "comment")),
}
ENDS = {"source": "10.0.0.1", "target": "10.0.0.2", "protocol": 17}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ""),
        ({"ethertype": "0x0806"}, ", type 0x0806"),
        (ENDS, ", UDP from 10.0.0.1 to 10.0.0.2"),
        ({**ENDS, "source_port": 53, "target_port": 900}, ", UDP from 10.0.0.1:53 to 10.0.0.2:900"),
        ({**ENDS, "protocol": 99, "comment": "lost: loss"}, ", protocol 99 from 10.0.0.1 to 10.0.0.2 (lost: loss)"),
    ],
)
def test_a_frame_is_one_line(more: dict[str, object], words: str) -> None:
    assert in_line({**FRAME, **more}) == f"7 at 100 ns: client:eth0 receives 60 B{words}"

# SPDX-License-Identifier: Apache-2.0
"""Bytes of messages: each one that is another is found, with its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sundial.verify import verify_run
from sundial.verify.sockets.pattern import pattern
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, Stream, payload, rpc_call, rpc_reply

TCP_HEAD = 66


def damaged(bed: Bed, length: int, place: int) -> list[str]:
    """Fields of the findings where a byte of one message is another at both ports; `length` of its first frame."""
    frame = next(record.frame for record in bed.records if len(record.frame) == length)
    for record in bed.records:
        if record.frame == frame:
            record.frame = frame[:place] + bytes([frame[place] ^ 0x40]) + frame[place + 1 :]
    return [problem["field"] for problem in verify_run(bed.write()).problems]


@pytest.mark.parametrize("cuts", [[68], [3, 65], [10, 50, 8]])
def test_streams_however_they_are_cut(tmp_path: Path, cuts: list[int]) -> None:
    bed = Bed(tmp_path / "run")
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1000, SERVER: 2000})
    stream.open()
    bed.batch("echo-client", "tcp", 17, RPC_PORT, 800)
    stream.call(17, 7, cuts, [4 + len(rpc_reply(7, 17))])
    length = TCP_HEAD + cuts[-1]
    assert len(rpc_call(7, 17)) + 4 == sum(cuts)
    assert "request.content.padding" in damaged(bed, length, length - 1)


def test_the_pattern_is_that_of_the_guests() -> None:
    numbers = np.array([0, 1, 77])
    for row, number in zip(pattern(numbers, 200, 900), numbers.tolist(), strict=True):
        assert bytes(row) == payload(number, 900)[200:]
    assert set(pattern(numbers, 0, 900, text=True).ravel().tolist()) == set(range(33, 127))

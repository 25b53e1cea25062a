# SPDX-License-Identifier: Apache-2.0
"""Bytes of messages: each one that is another is found, with its name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sundial.verify import verify_run
from sundial.verify.sockets.pattern import pattern
from tests.verify.bed import CLIENT, RAW_PORT, RPC_PORT, SERVER, Bed, Stream, payload, rpc_call, rpc_reply

UDP_HEAD, TCP_HEAD = 42, 66


def damaged(bed: Bed, length: int, place: int) -> list[str]:
    """Fields of the findings where a byte of one message is another at both ports; `length` of its first frame."""
    frame = next(record.frame for record in bed.records if len(record.frame) == length)
    for record in bed.records:
        if record.frame == frame:
            record.frame = frame[:place] + bytes([frame[place] ^ 0x40]) + frame[place + 1 :]
    return [problem["field"] for problem in verify_run(bed.write()).problems]


def sunrpc(directory: Path, size: int) -> Bed:
    bed = Bed(directory / "run")
    bed.batch("echo-client", "udp", size, RPC_PORT, 700)
    bed.udp_call(size, 100)
    return bed


@pytest.mark.parametrize(
    ("place", "field"),
    [
        (8, "rpc_version"), (15, "program"), (19, "version"), (24, "credential"), (39, "verifier"), (43, "length"),
        (44, "payload"), (60, "payload"), (61, "padding"), (63, "padding"),
    ],
)  # fmt: skip
def test_each_part_of_a_call_has_a_name(tmp_path: Path, place: int, field: str) -> None:
    assert f"request.content.{field}" in damaged(sunrpc(tmp_path, 17), UDP_HEAD + 64, UDP_HEAD + place)


@pytest.mark.parametrize(
    ("place", "field"), [(11, "reply_status"), (16, "verifier"), (23, "accept_status"), (27, "length")]
)
def test_each_part_of_a_reply_has_a_name(tmp_path: Path, place: int, field: str) -> None:
    assert f"reply.content.{field}" in damaged(sunrpc(tmp_path, 17), UDP_HEAD + 48, UDP_HEAD + place)


def test_fragments_beyond_the_first_are_read(tmp_path: Path) -> None:
    last = 34 + 8 + 44 + 2000 - 1480
    assert set(damaged(sunrpc(tmp_path, 2000), last, last - 1)) == {"request.content.payload", "udp.checksum"}


@pytest.mark.parametrize(("place", "field"), [(11, "length"), (15, "attempt"), (16, "payload")])
def test_raw_headers_and_payloads(tmp_path: Path, place: int, field: str) -> None:
    bed = Bed(tmp_path / "run")
    bed.batch("raw-client", "udp", 20, RAW_PORT, 40_000)
    bed.raw_call(20, 0)
    assert any(each.endswith(f"content.{field}") for each in damaged(bed, UDP_HEAD + 20, UDP_HEAD + place))


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

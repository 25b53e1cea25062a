# SPDX-License-Identifier: Apache-2.0
"""One-way calls over TCP: collected records as the library sends them, and what is caught where they are not."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.verify import Verification, verify_run
from tests.verify.bed import CLIENT, PROGRAM, RPC_PORT, SERVER, Bed, Stream, rpc_call, rpc_reply

SIZE = 100
CALL = 40 + 4 + SIZE
FLUSH = 40


def null_call(xid: int) -> bytes:
    return struct.pack(">10I", xid, 0, 2, PROGRAM, 1, 0, 0, 0, 0, 0)


def record(message: bytes) -> bytes:
    return struct.pack(">I", 0x80000000 | len(message)) + message


def in_one_write(xids: list[int]) -> list[bytes]:
    """The library's buffer of 65536 holds them all: one write of whole records."""
    return [b"".join(record(rpc_call(xid, SIZE, 5, xid - xids[0])) for xid in xids) + record(null_call(xids[-1] + 1))]


def run(
    directory: Path,
    calls: int,
    writes: Callable[[list[int]], list[bytes]],
    buffer: int = 0,
    answers: int = 1,
    other_xids: dict[int, int] | None = None,
    failed: bool = False,
) -> Verification:
    """`calls` one-way calls with the xids 100, 101 ..., sent as `writes`, and `answers` replies at the end.

    `other_xids`: xids for which the client's samples name others; `failed`: so has the call behind them, and all.
    """
    bed = Bed(directory / "run")
    bed.options = {"one_way": True, **({"send_buffer": buffer} if buffer else {})}
    stream = Stream(bed, 800, RPC_PORT, {CLIENT: 1000, SERVER: 2000})
    stream.open()
    bed.batch("echo-client", "tcp", SIZE, RPC_PORT, 800, "sink")
    xids = list(range(100, 100 + calls))
    for xid in xids:
        error = "RPC: Timed out" if failed else None
        bed.sample(bed.now, (other_xids or {}).get(xid, xid), ok=not failed, error=error)
        bed.now += 10
    for write in writes(xids):
        stream.write(CLIENT, write, [len(write)])
    for place in range(answers):
        reply = record(rpc_reply(xids[-1] + 1 + place, 0)[:24])
        stream.write(SERVER, reply, [len(reply)])
    stream.close()
    return verify_run(bed.write())


def problems(result: Verification) -> list[tuple[str, str, str]]:
    return [(problem["field"], problem["expected"], problem["seen"]) for problem in result.problems]


@pytest.mark.parametrize("calls", [1, 5])
def test_records_of_one_write(tmp_path: Path, calls: int) -> None:
    result = run(tmp_path, calls, in_one_write)
    assert problems(result) == []
    assert result.calls == calls


def cut_by_a_buffer_of_400(xids: list[int]) -> list[bytes]:
    """Two calls of 148 bytes fit 400; the third is cut where the buffer ends, and its rest is written at its end."""
    first, second, third = (rpc_call(xid, SIZE, 5, place) for place, xid in enumerate(xids))
    begun = 400 - 2 * (4 + CALL) - 4
    cut = struct.pack(">I", begun) + third[:begun]
    return [record(first) + record(second) + cut, record(third[begun:]), record(null_call(xids[-1] + 1))]


def test_a_record_that_the_buffer_cuts(tmp_path: Path) -> None:
    assert problems(run(tmp_path, 3, cut_by_a_buffer_of_400, buffer=400)) == []


def test_another_cut_is_a_mismatch(tmp_path: Path) -> None:
    (only,) = problems(run(tmp_path, 3, in_one_write, buffer=400))
    assert only == ("request.records", "100,44", str(CALL))


def test_a_call_that_was_not_sent_is_missed(tmp_path: Path) -> None:
    result = run(tmp_path, 3, lambda xids: in_one_write([xids[0], *xids[2:]]))
    assert ("request.xid", "101", "102") in problems(result)
    assert result.verdict == "fail"


def test_each_sample_must_name_its_own_call(tmp_path: Path) -> None:
    assert ("request.xid", "100", "101") in problems(run(tmp_path, 3, in_one_write, other_xids={101: 100}))


def test_a_call_too_many_is_a_mismatch(tmp_path: Path) -> None:
    assert run(tmp_path, 2, lambda xids: in_one_write([*xids, xids[-1] + 1])).verdict == "fail"


def test_a_reply_to_a_one_way_call_is_a_mismatch(tmp_path: Path) -> None:
    assert run(tmp_path, 2, in_one_write, answers=2).verdict == "fail"
    assert run(tmp_path / "none", 2, in_one_write, answers=0).verdict == "fail"


def test_another_division_into_segments_is_a_mismatch(tmp_path: Path) -> None:
    def torn(xids: list[int]) -> list[bytes]:
        (whole,) = in_one_write(xids)
        return [whole[:150], whole[150:]]

    (only,) = problems(run(tmp_path, 2, torn))
    assert only == ("batch.segments", "340", "150,190")


@pytest.mark.parametrize("sent", [0, 60, 4 + CALL, 4 + CALL + 60, 2 * (4 + CALL) + 4 + FLUSH])
def test_of_a_batch_whose_last_call_failed_any_beginning_may_have_been_sent(tmp_path: Path, sent: int) -> None:
    def begun(xids: list[int]) -> list[bytes]:
        return [in_one_write(xids)[0][:sent]] if sent else []

    assert problems(run(tmp_path / "failed", 2, begun, answers=0, failed=True)) == []
    assert problems(run(tmp_path / "whole", 2, begun, answers=0)) != []


def test_what_was_sent_of_a_batch_that_failed_is_right(tmp_path: Path) -> None:
    result = run(tmp_path, 3, lambda xids: [record(rpc_call(xids[1], SIZE, 5, 1))], answers=0, failed=True)
    assert ("request.xid", "100", "101") in problems(result)

# SPDX-License-Identifier: Apache-2.0
"""MBCF under the real clock: a node's stamps have an axis of its own, and its host may keep it from anything at any
time; what was sent, how often and in which order is equally certain."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from sundial.verify import verify_run
from tests.observe.mbcf_wire import ACK, ACK_NOW, CLOSE, FIFO, RETX, WRITE, frame
from tests.verify.bed import rpc_call, rpc_reply
from tests.verify.mbcf_bed import CALLS, CLIENT, CONNECTION, SERVER, MbcfBed, connection


def bed(directory: Path, clock: str) -> MbcfBed:
    made = MbcfBed(directory / "run", clock)
    made.open()
    return made


def fields(made: MbcfBed) -> set[str]:
    return {problem["field"] for problem in verify_run(made.write()).problems}


@pytest.mark.parametrize("axis_ns", [-70_000_000, 0, 70_000_000])
@pytest.mark.parametrize("second", [16, 4])
def test_operations_belong_to_samples_by_their_order(tmp_path: Path, axis_ns: int, second: int) -> None:
    made = bed(tmp_path, "real")
    for size, sent in ((4, 4), (16, second)):
        made.batch("mbcf", size, procedure="write", app="mbcf-client", ack=True)
        for _ in range(3):
            start = made.now - 1 + axis_ns
            made.operate(WRITE, made.data(sent), op_id=1025 + made.seq[1], flags=ACK_NOW)
            made.put(frame(ACK, (2, 0), (1, 0), ack=made.got[2]))
            made.now += axis_ns
            made.sample(start, None)
            made.now -= axis_ns
    assert fields(made) == (set() if second == 16 else {"mbcf.operation"})


@pytest.mark.parametrize(("clock", "found"), [("real", set()), ("virtual", {"mbcf.retransmission"})])
def test_sent_again_since_the_host_was_late(tmp_path: Path, clock: str, found: set[str]) -> None:
    made = bed(tmp_path, clock)
    made.batch("mbcf3", 16)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    made.executed = 1
    made.now += 10_000_000
    made.put(
        frame(
            FIFO, CLIENT, SERVER, seq=1, ack=1, payload=rpc_call(1, 16),
            address=CALLS, op_id=CONNECTION, flags=RETX | ACK_NOW,
        )
    )  # fmt: skip
    made.put(frame(ACK, (2, 0), (1, 0), ack=1))
    assert fields(made) == found


@pytest.mark.parametrize("clock", ["real", "virtual"])
@pytest.mark.parametrize(("known", "found"), [(False, set()), (True, {"mbcf.close"})])
def test_a_close_is_answered_unless_it_is_acknowledged(
    tmp_path: Path, clock: str, known: bool, found: set[str]
) -> None:
    made = bed(tmp_path, clock)
    made.batch("mbcf1", 16)
    start = made.now - 1
    made.request("mbcf1", 1, 16)
    made.reply("mbcf1", 1, 16)
    made.sample(start, 1)
    before = made.got[1]
    made.close(1)
    if not known:
        made.got[1] = before
    made.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(CONNECTION + 1), 0))
    if not known:
        made.got[1] = made.seq[2]
        made.ack(1)
    made.ack(2)
    made.executed = 1
    assert fields(made) == found

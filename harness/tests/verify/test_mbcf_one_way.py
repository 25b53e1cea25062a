# SPDX-License-Identifier: Apache-2.0
"""One-way calls over MBCF, and the call with a reply behind them that shows that they were executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.bed import rpc_call, rpc_reply
from tests.verify.mbcf_bed import CLIENT, CONNECTION, SERVER, SIGNAL, MbcfBed
from tests.verify.test_mbcf import findings_of, verify


def one_way(made: MbcfBed, xids: list[int], flush: bool = True) -> None:
    made.batch("mbcf3", 16, procedure="sink", one_way=True)
    for place, xid in enumerate(xids):
        start = made.now - 1
        made.fifo(CLIENT, SERVER, rpc_call(xid, 16, procedure=5, number=xid - min(xids)), 9)
        made.sample(start, min(xids) + place)
        made.executed += 1
    if flush:
        made.fifo(CLIENT, SERVER, rpc_call(max(xids) + 1, 0, procedure=0)[:40], 9)
        made.fifo(SERVER, CLIENT, rpc_reply(max(xids) + 1, 0)[:24], 9)
        made.executed += 1
        made.ack(1)
    else:
        made.ack(2)


def test_one_way_calls_and_the_call_behind_them(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    one_way(made, [5, 6, 7])
    assert findings_of(verify(made)) == []


def test_one_way_calls_out_of_order_are_found(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    one_way(made, [5, 7, 6])
    began, order = findings_of(verify(made))
    assert (began[0], began[1]) == ("mbcf.began", "after its start")  # 7 goes where 6 was called
    assert order == ("batch.order", "requests in the order of the calls", "another")


def test_one_way_calls_without_a_reply_behind_them_are_found(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    one_way(made, [5, 6], flush=False)
    assert findings_of(verify(made)) == [("batch.reply", "a call with a reply behind them", "none")]


@pytest.mark.parametrize(("ok", "found"), [(False, []), (True, [("batch.reply", "FIFO:24", "none")])])
def test_the_last_call_of_a_batch_that_failed_may_have_no_reply(
    tmp_path: Path, ok: bool, found: list[tuple[str, str, str]]
) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf3", 16, procedure="sink", one_way=True)
    start = made.now - 1
    made.fifo(CLIENT, SERVER, rpc_call(5, 16, procedure=5, number=0), 9)
    made.sample(start, 5, ok=ok, error=None if ok else "RPC: Unable to receive")
    made.fifo(CLIENT, SERVER, rpc_call(6, 0, procedure=0)[:40], 9)
    made.executed = 2
    made.ack(2)
    assert findings_of(verify(made)) == found


def waits_for_a_place(directory: Path, xid: int, times: int = 1, size: int = 0) -> list[tuple[str, str, str]]:
    """Two one-way calls, 5 and 6; in front of the second a call of `size` bytes that its client makes by itself."""
    made = MbcfBed(directory)
    made.open()
    made.batch("mbcf3b", 16, procedure="sink", one_way=True)
    for number in (5, 6):
        start = made.now - 1
        if number == 6:
            for _ in range(times):
                made.send(SIGNAL, CLIENT, SERVER, rpc_call(xid, size, procedure=0)[: 40 + size], op_id=CONNECTION)
            made.fifo(SERVER, CLIENT, rpc_reply(xid, 0)[:24], 9)
        made.send(SIGNAL, CLIENT, SERVER, rpc_call(number, 16, procedure=5, number=number - 5), op_id=CONNECTION)
        made.sample(start, number)
    made.send(SIGNAL, CLIENT, SERVER, rpc_call(7, 0, procedure=0)[:40], op_id=CONNECTION)
    made.fifo(SERVER, CLIENT, rpc_reply(7, 0)[:24], 9)
    made.executed += 4  # the bed's server replays its replies
    made.ack(1)
    return findings_of(verify(made))


@pytest.mark.parametrize("times", [1, 2])
def test_a_call_without_data_that_waits_for_a_place(tmp_path: Path, times: int) -> None:
    assert waits_for_a_place(tmp_path / "run", 0x9E3779B9, times) == []


def test_a_call_that_has_the_number_of_the_next_one_is_found(tmp_path: Path) -> None:
    """As SSS-CORE's client numbered it once: a server that replays replies would not have executed the next one."""
    assert ("mbcf.request.count", "1", "2") in waits_for_a_place(tmp_path / "run", 6)


def test_a_call_with_data_needs_a_sample(tmp_path: Path) -> None:
    assert waits_for_a_place(tmp_path / "run", 0x9E3779B9, size=8) != []

# SPDX-License-Identifier: Apache-2.0
"""One-way calls over MBCF, and the call with a reply behind them that shows that they were executed."""

from __future__ import annotations

from pathlib import Path

from tests.verify.bed import rpc_call, rpc_reply
from tests.verify.mbcf_bed import CLIENT, SERVER, MbcfBed
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

# SPDX-License-Identifier: Apache-2.0
"""Runs over MBCF made by hand: sound ones of every type, and each kind of damage, which must be found."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import polars as pl
import pytest

from sundial.verify import Verification, verify_run
from tests.observe.mbcf_wire import ACK, ACK_NOW, FIFO, RESULT, RESULT_REQ, RETX, WRITE, frame
from tests.verify.bed import IN, Record, rpc_call, rpc_reply
from tests.verify.mbcf_bed import CALLS, CLIENT, CONNECTION, SERVER, MbcfBed


def bed(directory: Path, transport: str = "mbcf3", size: int = 16) -> MbcfBed:
    made = MbcfBed(directory / "run")
    made.open()
    made.batch(transport, size)
    return made


def verify(made: MbcfBed) -> Verification:
    return verify_run(made.write())


def told(result: Verification) -> list[tuple[str, str, str]]:
    return [(problem["field"], problem["expected"], problem["seen"]) for problem in result.problems]


@pytest.mark.parametrize("transport", ["mbcf1", "mbcf2", "mbcf3", "mbcf3a", "mbcf3b"])
@pytest.mark.parametrize("size", [0, 1024])
def test_a_sound_run_of_each_type_passes(tmp_path: Path, transport: str, size: int) -> None:
    made = bed(tmp_path, transport, size)
    for xid in range(1, 5):
        made.call(transport, xid, size)
    result = verify(made)
    assert (told(result), result.verdict, result.calls) == ([], "pass", 4)


@pytest.mark.parametrize("transport", ["mbcf2", "mbcf3", "mbcf3b"])
@pytest.mark.parametrize("size", [1376, 1385, 4096, 20000])
def test_segments_of_several_frames(tmp_path: Path, transport: str, size: int) -> None:
    made = bed(tmp_path, transport, size)
    for xid in range(1, 4):
        made.call(transport, xid, size)
    assert told(verify(made)) == []


def test_observed_has_its_stamps(tmp_path: Path) -> None:
    made = bed(tmp_path)
    begun = made.now
    made.call("mbcf3", 7, 16)
    assert verify(made).verdict == "pass"
    (row,) = pl.read_parquet(tmp_path / "run" / "observed.parquet").to_dicts()
    # A frame leaves every 20000 ns and arrives 5000 ns later.
    assert (row["call_first_tx_ns"], row["call_last_rx_ns"]) == (begun, begun + 5_000)
    assert (row["reply_first_tx_ns"], row["reply_last_rx_ns"]) == (begun + 20_000, begun + 25_000)
    assert (row["request_packets"], row["reply_packets"], row["verdict"]) == (1, 1, "pass")


def test_a_call_without_frames_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.sample(made.now - 1, 2)
    assert told(verify(made)) == [("mbcf.request", "FIFO:60", "none")]


def test_another_length_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.fifo(CLIENT, SERVER, rpc_call(1, 20), 9)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    (problem,) = verify(made).problems
    assert (problem["field"], problem["expected"], problem["seen"]) == ("mbcf.request", "FIFO:60", "FIFO:64")
    assert problem["frames"] == [5]
    assert problem["filter"] == "(mbcf.rpc.xid == 0x00000001) || frame.number in {5}"


def test_a_missing_reply_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.ack(2)
    made.sample(start, 1)
    assert told(verify(made)) == [("mbcf.reply", "FIFO:44", "none")]


def test_a_frame_that_belongs_to_nobody_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.send(WRITE, (1, 300), (2, 301), b"who am I", op_id=CONNECTION)
    made.ack(2)
    (problem,) = verify(made).problems
    assert (problem["field"], problem["frames"]) == ("frame without a call", [11])
    assert problem["seen"] == "MBCF 1.300 > 2.301 WRITE, 70 bytes"


def test_a_frame_that_vanishes_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    del made.records[5]  # the request's arrival
    fields = [problem["field"] for problem in verify(made).problems]
    assert "mbcf.received" in fields
    assert "mbcf.executed" in fields


def test_a_lost_frame_is_a_cause_to_send_again(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.send(FIFO, CLIENT, SERVER, rpc_call(1, 16), op_id=CONNECTION, address=CALLS, lose=True)
    made.now += 100_000_000
    again(made, 1, rpc_call(1, 16))
    made.got[2] = 1
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    result = verify(made)
    assert told(result) == []
    assert (result.retransmissions["mbcf"], result.classified["mbcf_retransmission"]) == (1, 1)


def again(made: MbcfBed, seq: int, data: bytes, flags: int = RETX | ACK_NOW) -> None:
    made.put(frame(FIFO, CLIENT, SERVER, seq=seq, ack=0, payload=data, op_id=CONNECTION, address=CALLS, flags=flags))


def test_sent_again_though_it_was_acknowledged(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    made.now += 10_000_000
    repeated = {"address": CALLS, "op_id": CONNECTION, "flags": RETX | ACK_NOW}
    made.put(frame(FIFO, CLIENT, SERVER, seq=1, ack=1, payload=rpc_call(1, 16), **repeated))
    made.put(frame(ACK, (2, 0), (1, 0), ack=1))
    assert told(verify(made)) == [
        ("mbcf.retransmission", "a frame or ACK that did not arrive", "1 was acknowledged before")
    ]


def test_sent_again_without_its_flag_and_with_another_content(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.send(FIFO, CLIENT, SERVER, rpc_call(1, 16), op_id=CONNECTION, address=CALLS, lose=True)
    made.now += 100_000_000
    again(made, 1, rpc_call(2, 16), flags=ACK_NOW)
    made.got[2] = 1
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    assert {problem["field"] for problem in verify(made).problems} == {"mbcf.retx", "mbcf.content"}


def test_a_duplicate_of_the_wire_is_no_execution(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.send(FIFO, CLIENT, SERVER, rpc_call(1, 16), op_id=CONNECTION, twice=True)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.executed = 1
    made.ack(1)
    assert told(verify(made)) == []


def test_a_server_that_executes_twice_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.executed = 2
    assert told(verify(made)) == [("mbcf.executed", "1 requests that server took", "2 executed by its own count")]


def test_a_sequence_number_left_out_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.seq[1] += 1
    made.call("mbcf3", 2, 16)
    fields = [problem["field"] for problem in verify(made).problems]
    assert "mbcf.sequence" in fields


def test_an_ack_without_a_reason_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.ack(1)
    assert told(verify(made)) == [("mbcf.ack", "an acknowledgement that is due", "nothing waits to be acknowledged")]


def test_an_ack_before_its_time_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.put(frame(ACK, (1, 0), (2, 0), ack=1))
    # It came 5 us after it left, the ACK left 20 us after it did: 1985 us are lacking of 2 ms.
    assert told(verify(made))[0][2] == "1 frames wait, the ACK is not due for another 1985000 ns"


def test_an_ack_that_never_comes_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.now += 50_000_000
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    (problem,) = verify(made).problems
    assert (problem["field"], problem["seen"]) == ("mbcf.ack", "none, 48015000 ns after it was due")


def test_an_ack_of_what_never_came_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.now += 2_000_000
    made.put(frame(ACK, (1, 0), (2, 0), ack=5))
    assert "acknowledges 5, but no more than 1 has come" in [seen for _, _, seen in told(verify(made))]


def test_a_failed_result_is_told_by_name(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.batch("mbcf", 4, procedure="write", app="mbcf-client", ack=True)
    made.send(WRITE, CLIENT, SERVER, b"data", op_id=1025, flags=RESULT_REQ)
    made.send(RESULT, SERVER, CLIENT, op_id=1025, status=7)
    made.sample(start, 1025)
    made.ack(1)
    assert told(verify(made)) == [("mbcf.status", "OK", "READONLY")]


def test_operations_round_trip_and_stream(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf", 4, procedure="write", app="mbcf-client", ack=True)
    for name in (1025, 1026):
        start = made.now - 1
        made.send(WRITE, CLIENT, SERVER, b"data", op_id=name, flags=RESULT_REQ)
        made.send(RESULT, SERVER, CLIENT, op_id=name)
        made.sample(start, name)
    made.ack(1)
    made.batch("mbcf", 2000, procedure="write", app="mbcf-client")
    for _ in range(3):
        start, name = made.now - 1, 2000 + made.calls
        made.send(WRITE, CLIENT, SERVER, bytes(1408), op_id=name, flags=4)
        made.send(WRITE, CLIENT, SERVER, bytes(592), op_id=name, flags=RESULT_REQ)
        made.send(RESULT, SERVER, CLIENT, op_id=name)
        made.sample(start, None)
    made.ack(1)
    result = verify(made)
    assert (told(result), result.calls) == ([], 5)


def test_atomic_operands_and_results_have_their_lengths(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.batch("mbcf", 8, procedure="swap", app="mbcf-client", ack=True)
    start = made.now - 1
    made.send(0x15, CLIENT, SERVER, struct.pack(">Q", 5), op_id=1025, flags=RESULT_REQ | 16)
    made.send(RESULT, SERVER, CLIENT, op_id=1025)
    made.sample(start, 1025)
    made.ack(1)
    assert told(verify(made)) == [("mbcf.result", "RESULT:8", "RESULT:0")]


def test_a_failed_call_breaks_the_promise(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.sample(start, 1, ok=False, error="RPC: Timed out")
    result = verify_run(made.write({"failures": "none"}))
    assert told(result) == [("reply", "the right one", "RPC: Timed out")]


def test_a_frame_nobody_sent_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    forged = frame(FIFO, CLIENT, SERVER, seq=2, ack=1, payload=rpc_call(9, 16), op_id=CONNECTION)
    made.records.append(Record(made.now, 1, IN, forged))
    made.now += 2_500_000
    made.put(frame(ACK, (2, 0), (1, 0), ack=2))
    fields = {problem["field"] for problem in verify(made).problems}
    assert {"mbcf.received", "mbcf.sequence"} <= fields


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_hundred_thousand_sightings_in_fifteen_seconds(tmp_path: Path) -> None:
    made = bed(tmp_path)
    for xid in range(1, 16_667):  # a request, its reply and an ACK, each at two ports
        made.call("mbcf3", xid, 16)
    path = made.write()
    before = sum(os.times()[:4])
    assert verify_run(path).verdict == "pass"
    assert sum(os.times()[:4]) - before < 15

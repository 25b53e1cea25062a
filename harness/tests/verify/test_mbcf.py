# SPDX-License-Identifier: Apache-2.0
"""Runs over MBCF made by hand: sound ones of every type, and each kind of damage, which must be found."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from sundial.verify import Verification, verify_run
from sundial.verify.contention import contention_of
from sundial.workloads.mbcf.verify_channels import TRIES
from sundial.workloads.mbcf.wire import REQUEST_PLACES
from tests.observe.mbcf_wire import (
    ACK,
    ACK_NOW,
    CLOSE,
    FETCH_ADD,
    FIFO,
    MORE,
    OPENED,
    PART,
    PROBE,
    RESULT,
    RETX,
    SIGNAL,
    SWAP,
    SYN,
    SYNACK,
    TASKQUE,
    UNSURE,
    WIDE,
    WRITE,
    frame,
    nonces,
)
from tests.verify.bed import IN, Record, rpc_call, rpc_reply
from tests.verify.mbcf_bed import (
    CALLS,
    CLIENT,
    CLIENT_KEY,
    CONNECTION,
    MEMORY,
    REPLIES,
    SERVER,
    MbcfBed,
    connection,
)

RING = 524288
"""Of the FIFO of type 3: two records of 66,560 bytes always have a place, and one is being looked at."""


def bed(directory: Path, transport: str = "mbcf3", size: int = 16) -> MbcfBed:
    made = MbcfBed(directory / "run")
    made.open()
    made.batch(transport, size)
    return made


def verify(made: MbcfBed) -> Verification:
    return verify_run(made.write())


def findings_of(result: Verification) -> list[tuple[str, str, str]]:
    return [(problem["field"], problem["expected"], problem["seen"]) for problem in result.problems]


@pytest.mark.parametrize("transport", ["mbcf1", "mbcf2", "mbcf3", "mbcf3a", "mbcf3b"])
@pytest.mark.parametrize("size", [pytest.param(0, marks=pytest.mark.night), 1024])
def test_a_sound_run_of_each_type_passes(tmp_path: Path, transport: str, size: int) -> None:
    made = bed(tmp_path, transport, size)
    for xid in range(1, 5):
        made.call(transport, xid, size)
    result = verify(made)
    assert (findings_of(result), result.verdict, result.calls) == ([], "pass", 4)


@pytest.mark.parametrize("transport", ["mbcf2", "mbcf3", "mbcf3b"])
@pytest.mark.parametrize("size", [1376, pytest.param(1385, marks=pytest.mark.night), 4096, 20000])
def test_segments_of_several_frames(tmp_path: Path, transport: str, size: int) -> None:
    made = bed(tmp_path, transport, size)
    for xid in range(1, 4):
        made.call(transport, xid, size)
    assert findings_of(verify(made)) == []


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


def test_another_length_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.fifo(CLIENT, SERVER, rpc_call(1, 20), 9)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    (problem,) = verify(made).problems
    assert (problem["field"], problem["expected"], problem["seen"]) == ("mbcf.request", "FIFO:60", "FIFO:64")
    assert problem["frames"] == [7]
    assert problem["filter"] == "(mbcf.rpc.xid == 0x00000001) || frame.number in {7}"


def test_a_frame_that_belongs_to_nobody_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.send(WRITE, (1, 300), (2, 301), b"who am I", op_id=CONNECTION)
    made.ack(2)
    (problem,) = verify(made).problems
    assert (problem["field"], problem["frames"]) == ("frame without a call", [13])
    assert problem["seen"] == "MBCF WRITE number 2, 66 bytes, between stations 1 and 2"


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
    assert findings_of(result) == []
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
    assert findings_of(verify(made)) == [
        ("mbcf.retransmission", "a frame or ACK that did not arrive", "1 was acknowledged before")
    ]


def asks(made: MbcfBed, *, lose: bool = False) -> None:
    """The client asks for an acknowledgement, which may be lost."""
    made.put(frame(PROBE, (1, 0), (2, 0), ack=made.got[1]))
    made.put(frame(ACK, (2, 0), (1, 0), ack=made.got[2]), lose=lose)


def stream(made: MbcfBed, beside: Callable[[], None] = lambda: None) -> list[bytes]:
    """Call 2, of 10,000 bytes, a part in each millisecond, and what is `beside` the first. Returns what goes again."""
    call, again = rpc_call(2, 10_000, number=1), []
    for at in range(0, len(call), 1400):
        flags = PART | (MORE if at + 1400 < len(call) else 0)
        part = struct.pack(">II", len(call), at) + call[at : at + 1400]
        own = {"op_id": 1027, "address": CALLS, "short": True}
        made.send(FIFO, CLIENT, SERVER, part, flags=flags, **own)
        seq, flags = made.seq[1], flags | RETX | (0 if again else ACK_NOW)
        again.append(frame(FIFO, CLIENT, SERVER, seq=seq, ack=made.got[1], payload=part, flags=flags, **own))
        if len(again) == 1:
            beside()
        made.now += 1_000_000
    return again


def sent_again(made: MbcfBed, start: int, frames: Sequence[bytes]) -> list[str]:
    """The end of call 2, some parts of which go again. Returns the fields of findings."""
    for each in frames:
        made.put(each)
    made.put(frame(ACK, (2, 0), (1, 0), ack=made.got[2]))
    made.fifo(SERVER, CLIENT, rpc_reply(2, 10_000, number=1), 2300)
    made.sample(start, 2)
    made.executed += 1
    made.ack(1)
    return [name for name, _, _ in findings_of(verify(made))]


@pytest.mark.parametrize(("late", "found"), [(True, []), (False, ["mbcf.retransmission"])])
def test_an_ack_that_says_nothing_new_lets_its_taker_send_again(tmp_path: Path, late: bool, found: list[str]) -> None:
    made = bed(tmp_path, size=10_000)
    made.call("mbcf3", 1, 10_000)
    asks(made)
    came = made.records.pop()
    made.records.append(replace(came, at=came.at + (8_000_000 if late else 0)))
    made.now += 1_000_000
    assert sent_again(made, made.now - 1, stream(made)[:1]) == found


@pytest.mark.parametrize(("first", "found"), [(0, []), (1, ["mbcf.retransmission"])])
def test_what_follows_a_frame_that_goes_again_goes_too(tmp_path: Path, first: int, found: list[str]) -> None:
    """The acknowledgement of the first part was lost; that of the second waits for the others."""
    made = bed(tmp_path, size=10_000)
    made.call("mbcf3", 1, 10_000)
    start = made.now - 1
    again = stream(made, lambda: asks(made, lose=True))
    assert sent_again(made, start, again[first:2]) == found


@pytest.mark.parametrize(("taken", "found"), [([(0, 1 << 62)], []), ([], ["mbcf.retransmission"])])
def test_what_was_sent_again_may_wait_for_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[tuple[int, int]], found: list[str]
) -> None:
    waits = {1: contention_of(taken)}, {1: 4_096_000}, {}
    monkeypatch.setattr("sundial.workloads.mbcf.verify._waits", lambda run, frames: waits)
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
    assert [problem["field"] for problem in verify(made).problems] == found


@pytest.mark.parametrize(("taken", "found"), [([(0, 1 << 62)], []), ([], ["mbcf.retransmission", "mbcf.ack"])])
def test_sent_again_while_its_ack_waits_for_the_wire(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: list[tuple[int, int]], found: list[str]
) -> None:
    wire = contention_of(taken)
    monkeypatch.setattr(
        "sundial.workloads.mbcf.verify._waits", lambda run, frames: ({2: wire}, {2: 4_096_000}, {2: 1 << 62})
    )
    made = bed(tmp_path)
    start = made.now - 1
    made.send(FIFO, CLIENT, SERVER, rpc_call(1, 16), op_id=CONNECTION, address=CALLS)
    made.now += 12_000_000
    again(made, 1, rpc_call(1, 16))
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.ack(1)
    assert [problem["field"] for problem in verify(made).problems] == found


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
    assert findings_of(verify(made)) == []


def test_an_ack_without_a_reason_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.ack(1)
    assert findings_of(verify(made)) == [
        ("mbcf.ack", "an acknowledgement that is due", "nothing waits to be acknowledged")
    ]


def test_an_ack_before_its_time_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1)
    made.put(frame(ACK, (1, 0), (2, 0), ack=1))
    # It came 5 us after it left, the ACK left 20 us after it did: 1985 us are lacking of 2 ms.
    assert findings_of(verify(made))[0][2] == "1 frames wait, the ACK is not due for another 1985000 ns"


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
    assert "acknowledges 5, but no more than 1 has come" in [seen for _, _, seen in findings_of(verify(made))]


def operation(made: MbcfBed, procedure: str, size: int, ack: bool = True, **more: object) -> None:
    made.batch("mbcf", size, procedure=procedure, app="mbcf-client", ack=ack, **more)


def acked_now(made: MbcfBed, flags: int = 0) -> None:
    made.put(frame(ACK, (2, 0), (1, 0), ack=made.got[2], flags=flags))


def test_a_failed_result_is_told_by_name(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    refuse(made)
    made.sample(start, 1025)
    assert findings_of(verify(made)) == [("mbcf.status", "OK", "READONLY")]


def refuse(made: MbcfBed, flags: int = ACK_NOW) -> None:
    """A WRITE that its receiver refuses, and the error."""
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    made.send(RESULT, SERVER, CLIENT, op_id=1025, status=7, flags=flags)
    made.put(frame(ACK, (1, 0), (2, 0), ack=made.got[1]))


def test_a_failure_that_is_said_is_none_of_verification(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    refuse(made)
    made.sample(start, 1025, ok=False, error="read-only")
    assert findings_of(verify(made)) == []


def test_success_before_an_error_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    acked_now(made)
    made.send(RESULT, SERVER, CLIENT, op_id=1025, status=7, flags=ACK_NOW)
    made.put(frame(ACK, (1, 0), (2, 0), ack=made.got[1]))
    made.sample(start, 1025, ok=False, error="read-only")
    assert findings_of(verify(made)) == [
        ("mbcf.unsure", "no success of what is refused", "acknowledged without UNSURE before its error was sent")
    ]


def lost_error(made: MbcfBed, flags: int) -> None:
    """An error that is lost, another WRITE, and its ACK with `flags` before the error goes again."""
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    made.send(RESULT, SERVER, CLIENT, op_id=1025, status=7, flags=ACK_NOW, lose=True)
    made.sample(start, 1025, ok=False, error="read-only")
    made.operate(WRITE, made.data(4), op_id=2049, flags=ACK_NOW)
    acked_now(made, flags)
    made.now += 100_000_000
    error = {"op_id": 1025, "status": 7, "flags": ACK_NOW | RETX}
    made.put(frame(RESULT, SERVER, CLIENT, seq=made.seq[2], ack=made.seq[1], answers=made.seq[1] - 1, **error))
    made.got[1] = made.seq[2]
    made.put(frame(ACK, (1, 0), (2, 0), ack=made.got[1]))
    made.sample(start + 1, 2049)


def test_an_acknowledgement_beside_a_lost_error_is_unsure(tmp_path: Path) -> None:
    made = bed(tmp_path)
    lost_error(made, UNSURE)
    assert findings_of(verify(made)) == []


def test_a_sure_acknowledgement_beside_a_lost_error_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    lost_error(made, 0)
    assert findings_of(verify(made)) == [("mbcf.unsure", "UNSURE", "none, while the error 2 is not acknowledged")]


def test_unsure_for_no_reason_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.send(FIFO, CLIENT, SERVER, rpc_call(2, 16, number=1), op_id=CONNECTION, address=CALLS, flags=UNSURE)
    made.reply("mbcf3", 2, 16)
    made.sample(made.now - 90_000, 2)
    made.executed += 1
    made.ack(1)
    assert findings_of(verify(made)) == [
        ("mbcf.unsure", "UNSURE only where an error may be on its way", "UNSURE without an error")
    ]


@pytest.mark.parametrize("said", [True, False])
def test_what_was_unsure_is_acknowledged_anew_when_the_error_is_known(tmp_path: Path, said: bool) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    made.send(RESULT, SERVER, CLIENT, op_id=1025, status=7, flags=ACK_NOW)
    made.sample(start, 1025, ok=False, error="read-only")
    made.got[1] -= 1  # the next leaves before the error comes
    made.operate(WRITE, made.data(4), op_id=2049, flags=ACK_NOW)
    made.got[1] += 1
    acked_now(made, UNSURE)
    made.put(frame(ACK, (1, 0), (2, 0), ack=made.got[1]))
    if said:
        acked_now(made)
    else:
        made.now += 50_000_000
    made.sample(start + 1, 2049)
    written(made, made.data(4))
    found = findings_of(verify(made))
    if said:
        assert found == []
    else:
        assert [name for name, _, _ in found] == ["mbcf.ack", "mbcf.acked"]


def test_operations_round_trip_and_stream(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    operation(made, "write", 4)
    for name in (1025, 1026):
        start = made.now - 1
        made.operate(WRITE, made.data(4), op_id=name, flags=ACK_NOW)
        acked_now(made)
        made.sample(start, name)
    operation(made, "write", 2000, ack=False)
    for place in range(3):
        start, name = made.now - 1, 2049 + made.calls
        data = made.data(2000)
        made.operate(WRITE, data[:1408], op_id=name, flags=MORE)
        made.operate(WRITE, data[1408:], op_id=name, at=1408, flags=ACK_NOW if place == 2 else 0)
        if place == 2:
            acked_now(made)
        made.sample(start, None)
    result = verify(made)
    assert (findings_of(result), result.calls) == ([], 5)


@pytest.mark.parametrize("asks", [True, False])
def test_the_request_that_fills_the_window_asks_for_its_ack(tmp_path: Path, asks: bool) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4, ack=False)
    for place in range(70):
        start = made.now - 1
        last = place == 69
        flags = ACK_NOW if last or (asks and place == REQUEST_PLACES - 1) else 0
        made.operate(WRITE, made.data(4), op_id=2050 if last else CONNECTION, flags=flags)
        if place == REQUEST_PLACES - 1 or last:
            acked_now(made)
        made.sample(start, None)
    found = findings_of(verify(made))
    text = ("mbcf.ack_now", "ACK_NOW on the last request of a window", "without, 64 frames are not acknowledged")
    assert found == [] if asks else text in found


def test_an_end_before_its_acknowledgement_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    made.sample(start, 1025)
    acked_now(made)
    # It ended when it left, 20 us later the ACK left, 5 us later that came.
    assert findings_of(verify(made)) == [
        ("mbcf.acked", "an acknowledgement of it before its end", "5000 ns after its end")
    ]


def test_an_operation_that_does_not_ask_for_its_ack_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025)
    made.ack(2)
    made.sample(start, 1025)
    assert findings_of(verify(made)) == [("mbcf.operation", "WRITE:4!", "WRITE:4")]


def test_a_result_of_success_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    start = made.now - 1
    made.operate(WRITE, made.data(4), op_id=1025, flags=ACK_NOW)
    made.send(RESULT, SERVER, CLIENT, op_id=1025)
    made.sample(start, 1025)
    made.ack(1)
    assert findings_of(verify(made)) == [("mbcf.result", "none", "RESULT:0")]


def test_atomic_operands_and_results_have_their_lengths(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "swap", 8)
    start = made.now - 1
    made.operate(SWAP, struct.pack(">Q", 1), op_id=1025, flags=WIDE)
    made.send(RESULT, SERVER, CLIENT, op_id=1025)
    made.sample(start, 1025)
    made.ack(1)
    assert findings_of(verify(made)) == [("mbcf.result", "RESULT:8", "RESULT:0")]


def written(made: MbcfBed, data: bytes, at: int = 0) -> None:
    """A call of one WRITE."""
    start, name = made.now - 1, 1025 + made.calls
    made.operate(WRITE, data, at=at, op_id=name, flags=ACK_NOW)
    acked_now(made)
    made.sample(start, name)


def test_another_place_than_the_server_told_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    operation(made, "write", 4)
    written(made, made.data(4))
    written(made, made.data(4), at=8)
    memory = f"0x{MEMORY:x}"
    assert findings_of(verify(made)) == [("mbcf.address", memory, f"0x{MEMORY + 8:x}")]


@pytest.mark.parametrize("old", [1, 2])
def test_an_atomic_operation_finds_what_those_before_it_left(tmp_path: Path, old: int) -> None:
    made = bed(tmp_path)
    operation(made, "fetch_add", 8)
    for number, value in enumerate((0, old)):
        start = made.now - 1
        made.operate(FETCH_ADD, struct.pack(">Q", number + 1), op_id=1025 + number, flags=WIDE)
        made.send(RESULT, SERVER, CLIENT, struct.pack(">Q", value), op_id=1025 + number)
        made.sample(start, 1025 + number)
    made.ack(1)
    found = [("mbcf.result data", "8 bytes of call 1", "others")]
    assert findings_of(verify(made)) == ([] if old == 1 else found)


# ---- the ends of connections, setting up, attempts, one-way calls ----


@pytest.mark.parametrize("transport", ["mbcf1", "mbcf2"])
def test_each_call_has_one_close(tmp_path: Path, transport: str) -> None:
    made = bed(tmp_path, transport)
    made.call(transport, 1, 16)
    made.call(transport, 2, 16)
    made.close(2)
    made.ack(1)
    assert findings_of(verify(made)) == [("mbcf.close", "1 CLOSE by the server", "2, and 0 by the client")]


@pytest.mark.parametrize("crosses", [True, False])
def test_a_client_ends_only_what_it_does_not_know_to_be_over(tmp_path: Path, crosses: bool) -> None:
    made = bed(tmp_path, "mbcf1")
    start = made.now - 1
    made.request("mbcf1", 1, 16)
    made.reply("mbcf1", 1, 16)
    made.sample(start, 1)
    if crosses:  # they leave within the time of flight
        made.close(1)
        made.now -= 16_000
        made.got[1] -= 1
        made.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(CONNECTION + 1), 0))
        made.got[1] += 1
        made.ack(2)
        made.ack(1)
    else:
        made.close(1)
        made.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(CONNECTION + 1), 0))
        made.ack(2)
    made.executed = 1
    wrong = [("mbcf.close", "1 CLOSE by the server", "1, and 1 by the client")]
    assert findings_of(verify(made)) == ([] if crosses else wrong)


def test_the_end_of_a_task_is_told_once(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.send(CLOSE, CLIENT, (2, 0))
    made.ack(2)
    made.executed = 1
    once = MbcfBed(tmp_path / "once", records=list(made.records), lines=made.lines, executed=1)
    assert findings_of(verify(once)) == []
    made.send(CLOSE, CLIENT, (2, 0))
    made.ack(2)
    assert findings_of(verify(made)) == [("mbcf.close", "one CLOSE at the end of a task", "2")]


def test_a_close_of_nothing_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.close(9)
    made.ack(1)
    assert findings_of(verify(made)) == [
        ("frame without a call", "none", "MBCF CLOSE number 2, 60 bytes, between stations 2 and 1")
    ]


def lookup(made: MbcfBed, answers: int = 1) -> None:
    """A question to the binder and the answer."""
    asks = struct.pack("<5IIQ", 0x4442424D, 3, 0x20001998, 1, 3, 0, REPLIES)
    query = struct.pack(">QII", CLIENT_KEY, 2, connection(CONNECTION)) + asks
    made.send(TASKQUE, CLIENT, (2, 1), query, op_id=CONNECTION)
    for _ in range(answers):
        answer = {"op_id": CONNECTION + 1, "address": REPLIES, "key": CLIENT_KEY}
        made.send(WRITE, (2, 1), CLIENT, struct.pack("<HHI", *SERVER, 1), **answer)


def binding(made: MbcfBed, bound: int = 56) -> None:
    """BIND of type 3 and the answer, of so many bytes."""
    head = struct.pack(">QII", CLIENT_KEY, 2, connection(CONNECTION + 7)) + struct.pack("<QII", REPLIES, 66048, 3)
    asks = struct.pack("<6I", 0x20001998, 1, 3, 66048, 1, 0)
    made.send(TASKQUE, CLIENT, SERVER, head + asks, op_id=CONNECTION + 7)
    made.reply_key = CLIENT_KEY
    answer = struct.pack("<II4Q3IHH", 0x444E424D, 0, 0, CALLS, 0, 0, RING, 0, 0, SERVER[1], 0)
    made.fifo(SERVER, CLIENT, (answer + bytes(8))[:bound], 9)


def test_setting_up_is_verified(tmp_path: Path) -> None:
    made = bed(tmp_path)
    lookup(made)
    binding(made)
    made.call("mbcf3", 1, 16)
    made.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(CONNECTION + 7), 0))
    made.ack(2)
    result = verify(made)
    assert (findings_of(result), result.classified["mbcf_setup"], result.classified["mbcf_close"]) == ([], 4, 1)


def test_an_answer_of_another_length_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    binding(made, 60)
    made.call("mbcf3", 1, 16)
    assert findings_of(verify(made)) == [("mbcf.setup.answer", "FIFO:56", "FIFO:60")]


def test_a_question_without_an_answer_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    lookup(made, 0)
    made.call("mbcf3", 1, 16)
    assert findings_of(verify(made)) == [("mbcf.setup.answer", "WRITE:8", "none")]


def asked_again(made: MbcfBed, replies: int, size: int = 16) -> None:
    """A call whose first reply does not come in time."""
    start = made.now - 1
    made.request("mbcf3", 1, 16)
    made.now += 1_000
    made.request("mbcf3", 1, size)
    for _ in range(replies):
        made.fifo(SERVER, CLIENT, rpc_reply(1, 16), 9)
    made.sample(start, 1, again=1)
    made.ack(1)


@pytest.mark.parametrize(("semantics", "executed"), [("at_least_once", 2), ("at_most_once", 1)])
def test_each_attempt_is_a_whole_request(tmp_path: Path, semantics: str, executed: int) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf3", 16, semantics=semantics)
    asked_again(made, 2)
    made.executed = executed
    assert findings_of(verify(made)) == []
    made.executed = 3 - executed
    other = MbcfBed(tmp_path / "other", records=made.records, lines=made.lines, executed=3 - executed)
    assert findings_of(verify(other)) == [
        ("mbcf.executed", f"{executed} requests that server took", f"{3 - executed} executed by its own count")
    ]


@pytest.mark.parametrize(("executed", "found"), [(2, []), (3, []), (1, ["mbcf.executed"]), (4, ["mbcf.executed"])])
def test_a_call_without_its_whole_reply_may_be_counted_as_executed(
    tmp_path: Path, executed: int, found: list[str]
) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf3", 16, semantics="exactly_once")
    made.call("mbcf3", 1, 16)
    made.call("mbcf3", 2, 16)
    made.executed = executed
    start = made.now - 1
    made.request("mbcf3", 3, 16)
    made.ack(2)
    made.sample(start, 3, ok=False, error="RPC: Timed out; maybe executed")
    assert [name for name, _, _ in findings_of(verify(made)) if name.startswith("mbcf.")] == found


@pytest.mark.parametrize(("ok", "found"), [(False, []), (True, ["mbcf.request"])])
def test_a_call_with_the_xid_of_the_one_before_has_no_frames(tmp_path: Path, ok: bool, found: list[str]) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    made.now += 1_000
    made.sample(made.now - 1, 1, ok=ok, error=None if ok else "RPC: Failed (unspecified error); not executed")
    assert [name for name, _, _ in findings_of(verify(made)) if name != "reply"] == found


def test_attempts_that_differ_and_replies_beyond_them_are_found(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf3", 16, semantics="at_least_once")
    asked_again(made, 3, 20)
    made.executed = 2
    assert [name for name, _, _ in findings_of(verify(made))] == ["mbcf.request", "mbcf.reply"]


@pytest.mark.parametrize(("closes", "found"), [(True, []), (False, ["mbcf.given_up"])])
def test_a_reply_is_given_up_when_its_client_ends_the_connection(
    tmp_path: Path, closes: bool, found: list[str]
) -> None:
    made = MbcfBed(tmp_path / "run")
    made.open()
    made.batch("mbcf2", 4096, semantics="at_most_once")
    start, data = made.now - 1, rpc_reply(1, 4096)
    own = {"op_id": 2178, "address": REPLIES, "key": CLIENT_KEY}
    made.request("mbcf2", 1, 4096)
    made.send(FIFO, SERVER, CLIENT, struct.pack(">II", len(data), 0) + data[:1400], flags=PART | MORE, **own)
    if closes:
        made.send(CLOSE, CLIENT, SERVER, struct.pack(">II", connection(CONNECTION + 1), 0))
    made.send(FIFO, SERVER, CLIENT, bytes(8), flags=PART, short=False, **own)
    made.request("mbcf2", 1, 4096)
    made.reply("mbcf2", 1, 4096)
    made.sample(start, 1, again=1)
    made.executed = 1
    made.close(1)
    made.ack(1)
    assert [name for name, _, _ in findings_of(verify(made))] == found


def dying(directory: Path, executed: int, *, linger: str = "1 s") -> list[str]:
    """A server that its job ends in call 2 of each dummy: one has had three calls, another has had one."""
    made = MbcfBed(directory / "run", linger=linger)
    made.services = [{"app": "echo-server", "options": {"die": {"when": "after", "call": 2}}}]
    made.open()
    for task, xids in ((SERVER[1], (1, 2, 3)), (SERVER[1] + 1, (4,))):
        made.batch("mbcf3b", 16, server_task=task)
        for xid in xids:
            start = made.now - 1
            made.send(SIGNAL, CLIENT, (2, task), rpc_call(xid, 16, number=made.calls), op_id=CONNECTION)
            if xid == 3:
                made.sample(start, xid, ok=False, error="RPC: Unable to receive; maybe executed")
                made.ack(2)
                continue
            made.fifo((2, task), CLIENT, rpc_reply(xid, 16, number=made.calls), 9)
            made.sample(start, xid)
            made.ack(1)
    made.executed = executed
    return [name for name, _, _ in findings_of(verify(made))]


@pytest.mark.parametrize(("executed", "found"), [(3, []), (2, ["mbcf.executed"]), (4, ["mbcf.executed"])])
def test_each_dummy_of_a_server_ends_in_its_own_call(tmp_path: Path, executed: int, found: list[str]) -> None:
    assert dying(tmp_path, executed) == found


def test_a_run_may_end_before_a_server_says_what_its_dummies_did(tmp_path: Path) -> None:
    assert dying(tmp_path, 2, linger="1 ms") == []
    assert dying(tmp_path / "more", 4, linger="1 ms") == ["mbcf.executed"]


@pytest.mark.parametrize(
    ("executed", "linger", "found"),
    [(2, "1 ms", []), (2, "1 s", ["mbcf.executed"]), (3, "1 ms", []), (4, "1 ms", ["mbcf.executed"])],
)
def test_a_run_may_end_before_a_server_says_its_last_calls(
    tmp_path: Path, executed: int, linger: str, found: list[str]
) -> None:
    made = MbcfBed(tmp_path / "run", linger=linger)
    made.open()
    made.batch("mbcf3", 16)
    for xid in (1, 2, 3):
        made.call("mbcf3", xid, 16)
    made.executed = executed
    assert [name for name, _, _ in findings_of(verify(made))] == found


def test_sequence_numbers_go_round(tmp_path: Path) -> None:
    made = MbcfBed(tmp_path / "run")
    most = 2**32 - 1
    made.seq, made.got = {1: most - 2, 2: most - 1}, {1: most - 1, 2: most - 2}
    made.put(frame(SYN, (1, 0), (2, 0), seq=most - 2, payload=nonces(1)))
    made.put(frame(SYNACK, (2, 0), (1, 0), seq=most - 1, ack=0, payload=nonces(1, 1)))
    made.put(frame(OPENED, (1, 0), (2, 0), seq=most - 2, ack=0, payload=nonces(0, 1)))
    made.batch("mbcf3", 16)
    for xid in range(1, 6):
        made.call("mbcf3", xid, 16)
    assert findings_of(verify(made)) == []


@pytest.mark.parametrize(
    ("tries", "answers", "found"),
    [(TRIES, 0, []), (TRIES, 1, []), (2 * TRIES, 1, []), (TRIES - 1, 0, ["mbcf.seq"]), (TRIES - 1, 1, ["mbcf.seq"])],
)
def test_a_node_begins_behind_what_it_has_given_up(tmp_path: Path, tries: int, answers: int, found: list[str]) -> None:
    made = MbcfBed(tmp_path / "run")
    for number in range(tries):
        made.put(frame(SYN, (1, 0), (2, 0), seq=7, payload=nonces(1)), lose=number >= answers)
        if number < answers:
            made.put(frame(SYNACK, (2, 0), (1, 0), seq=20, ack=0, payload=nonces(1, 1)), lose=True)
    made.seq, made.got = {1: 9, 2: 20}, {1: 20, 2: 9}
    made.put(frame(SYN, (1, 0), (2, 0), seq=9, payload=nonces(1)))
    made.put(frame(SYNACK, (2, 0), (1, 0), seq=20, ack=0, payload=nonces(1, 1)))
    made.put(frame(OPENED, (1, 0), (2, 0), seq=9, ack=0, payload=nonces(0, 1)))
    made.batch("mbcf3", 16)
    made.call("mbcf3", 1, 16)
    assert [name for name, _, _ in findings_of(verify(made))] == found


def test_a_failed_call_breaks_the_promise(tmp_path: Path) -> None:
    made = bed(tmp_path)
    start = made.now - 1
    made.sample(start, 1, ok=False, error="RPC: Timed out")
    result = verify_run(made.write({"failures": "none"}))
    assert findings_of(result) == [("reply", "the right one", "RPC: Timed out")]


def test_a_frame_nobody_sent_is_found(tmp_path: Path) -> None:
    made = bed(tmp_path)
    made.call("mbcf3", 1, 16)
    forged = frame(FIFO, CLIENT, SERVER, seq=2, ack=1, payload=rpc_call(9, 16), op_id=CONNECTION)
    made.records.append(Record(made.now, 1, IN, forged))
    made.now += 2_500_000
    made.put(frame(ACK, (2, 0), (1, 0), ack=2))
    fields = {problem["field"] for problem in verify(made).problems}
    assert {"mbcf.received", "mbcf.sequence"} <= fields

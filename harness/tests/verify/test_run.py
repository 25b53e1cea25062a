# SPDX-License-Identifier: Apache-2.0
"""Runs made by hand, sound ones and damaged ones; frame numbers are those of the capture as written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sundial.errors import BadInput
from sundial.verify import Verification, verify_run
from tests import fates
from tests.verify.bed import CLIENT, RAW_PORT, RPC_PORT, SERVER, Bed, Record, raw_payload, rpc_call, rpc_reply
from tests.verify.seal import seal


def sunrpc(directory: Path, size: int, calls: int = 3, client_port: int = 700) -> Bed:
    bed = Bed(directory / "run")
    bed.batch("echo-client", "udp", size, RPC_PORT, client_port)
    for number in range(calls):
        bed.udp_call(size, 100 + number, client_port)
    return bed


def verify(bed: Bed) -> Verification:
    return verify_run(bed.write())


def fields(result: Verification) -> list[tuple[str, list[int]]]:
    return [(problem["field"], problem["frames"]) for problem in result.problems]


def order(bed: Bed) -> list[Record]:
    """Records in the order of the file: frame number n is at place n - 1."""
    return [bed.records[place] for place in sorted(range(len(bed.records)), key=lambda p: (bed.records[p].at, p))]


@pytest.mark.parametrize("size", [0, 16, 1428, 1429, 2909, 8756])
def test_a_sound_run_passes(tmp_path: Path, size: int) -> None:
    result = verify(sunrpc(tmp_path, size))
    assert (result.verdict, result.calls, result.mismatches, result.problems) == ("pass", 3, 0, [])
    per_call = sum(-(-(8 + message + size + -size % 4) // 1480) for message in (44, 28))
    assert result.packets == 3 * per_call
    assert result.frames == 2 * result.packets
    assert json.loads((tmp_path / "run" / "verify.json").read_text()) == result.to_json()


@pytest.mark.parametrize("size", [0, 5, 8, 15, 16, 1472, 1473, 4000])
def test_raw_payloads_of_every_length_find_their_calls(tmp_path: Path, size: int) -> None:
    bed = Bed(tmp_path / "run")
    for _ in range(2):  # sequence numbers begin again in each batch
        bed.batch("raw-client", "udp", size, RAW_PORT, 40_000)
        for number in range(3):
            bed.raw_call(size, number)
    assert verify(bed).verdict == "pass"


def test_observed_has_one_row_a_call_with_its_stamps(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 2000, calls=2)
    verify(bed)
    rows = pl.read_parquet(tmp_path / "run" / "observed.parquet").to_dicts()
    assert [row["call"] for row in rows] == [0, 1]
    first = rows[0]
    # Bed sends a frame every 1000 ns, each arrives 2000 ns later, and waits 10000 ns between messages.
    assert first["call_first_tx_ns"] == 1_000_000
    assert first["call_last_rx_ns"] == 1_000_000 + 1_000 + 2_000
    assert first["reply_first_tx_ns"] == 1_012_000
    assert first["reply_last_rx_ns"] == 1_012_000 + 1_000 + 2_000
    assert (first["request_packets"], first["request_fragments_expected"], first["verdict"]) == (2, 2, "pass")


def test_a_wrong_mtu_shows_expected_and_seen(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 2000, calls=1)
    bed.write()
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text().replace('"mtu": 1500', '"mtu": 1400'))
    result = verify_run(tmp_path / "run")
    problem = next(problem for problem in result.problems if problem["field"] == "request.fragments")
    assert problem["expected"] == "0:1376+,1376:676"
    assert problem["seen"] == "0:1480+,1480:572"
    assert (problem["capture"], problem["frames"]) == ("wire/lan.pcapng", [1, 2])


def test_the_display_filter_of_a_problem_works(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 2000, calls=1)
    bed.records = order(bed)[1:]
    result = verify(bed)
    for problem in result.problems:
        command = ["tshark", "-n", "-r", str(tmp_path / "run" / problem["capture"]), "-Y", problem["filter"]]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert len(shown.splitlines()) >= len(problem["frames"])


def test_a_frame_without_a_call_is_named(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 16, calls=2)
    bed.lines.pop()  # the sample of the last call
    result = verify(bed)
    assert [field for field, _ in fields(result)] == ["frame without a call"] * 4
    assert sorted(number for _, frames in fields(result) for number in frames) == [5, 6, 7, 8]


def test_a_run_that_made_no_call_proves_nothing(tmp_path: Path) -> None:
    assert [field for field, _ in fields(verify(Bed(tmp_path / "run")))] == ["frames", "calls"]


def retried(bed: Bed, size: int, xid: int, **loss: Any) -> None:
    """A call whose first request or reply is lost, sent again after a second."""
    start = bed.now - 1
    ports = (700, RPC_PORT)
    bed.send(CLIENT, bed.datagram(CLIENT, ports, rpc_call(xid, size, number=bed.calls)), lose=loss.get("request", ()))
    if "request" not in loss:
        bed.send(
            SERVER,
            bed.datagram(SERVER, ports[::-1], rpc_reply(xid, size, number=bed.calls)),
            lose=loss.get("reply", ()),
        )
    bed.now += 1_000_000_000
    bed.send(CLIENT, bed.datagram(CLIENT, ports, rpc_call(xid, size, number=bed.calls)))
    bed.send(SERVER, bed.datagram(SERVER, ports[::-1], rpc_reply(xid, size, number=bed.calls)))
    bed.sample(start, xid, retransmits=1)


@pytest.mark.parametrize("size", [16, 2000])
def test_losses_are_explained_by_the_wire(tmp_path: Path, size: int) -> None:
    bed = sunrpc(tmp_path, size, calls=1)
    last = 0 if size == 16 else 1
    retried(bed, size, 200, request=(0,))
    retried(bed, size, 201, request=(last,))
    retried(bed, size, 202, reply=(last,))
    result = verify(bed)
    assert result.problems == []
    assert result.retransmissions == {"calls": 3, "replies": 1, "tcp": 0}
    assert result.classified["fate_lost"] == 3
    again = pl.read_parquet(tmp_path / "run" / "observed.parquet")["request_retransmissions"].to_list()
    assert again == [0, 1, 1, 1]


def test_a_call_that_failed_was_sent_as_often_as_it_says(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 16, calls=1)
    for attempts in (3, 2):
        start = bed.now
        xid = 300 + attempts
        for _ in range(attempts):
            bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(xid, 16, number=bed.calls)), lose=(0,))
        bed.sample(start, xid, ok=False, retransmits=2, error="timed out")
    result = verify(bed)
    assert [problem["call"]["xid"] for problem in result.problems] == [302]


@pytest.mark.parametrize(("word", "fields"), [("allowed", []), ("none", ["request.retransmissions", "reply"])])
def test_what_the_scenario_expects_must_be_true(tmp_path: Path, word: str, fields: list[str]) -> None:
    bed = sunrpc(tmp_path, 16, calls=1)
    retried(bed, 16, 200, request=(0,))
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(300, 16, number=bed.calls)), lose=(0,))
    bed.sample(start, 300, ok=False, error="timed out")
    path = bed.write() / "run.json"
    expect = {"retransmissions": word, "failures": word}
    path.write_text(json.dumps({**json.loads(path.read_text()), "scenario": {"name": "loss", "expect": expect}}))
    assert [problem["field"] for problem in verify_run(seal(tmp_path / "run")).problems] == fields


def test_a_call_too_long_for_its_handle_is_not_sent(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 16, calls=1)
    bed.batch("echo-client", "udp", 8757, RPC_PORT, 700)
    bed.sample(bed.now, 1, ok=False, error="can't encode")
    assert verify(bed).verdict == "pass"


def test_duplicates_of_the_wire_are_explained(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 16, calls=1)
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(5, 16, number=bed.calls)), twice=(0,))
    for _ in range(2):  # the server answers both
        bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(5, 16, number=bed.calls)))
    bed.sample(start, 5)
    result = verify(bed)
    assert result.problems == []
    assert result.retransmissions["replies"] == 1


def test_fragments_that_overtake_one_another_are_no_fault(tmp_path: Path) -> None:
    bed = sunrpc(tmp_path, 4000, calls=1)
    arriving = [record for record in bed.records if record.interface == 1 and record.direction == 1]
    times = [record.at for record in arriving]
    for record, at in zip(arriving, reversed(times), strict=True):
        record.at = at
    assert verify(bed).problems == []


def test_an_xid_may_come_again(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    for size in (16, 2000, 16):
        bed.batch("echo-client", "udp", size, RPC_PORT, 700)
        for xid in (1, 2):
            bed.udp_call(size, xid)
            bed.now += 1_000_000
    assert verify(bed).problems == []


def test_an_ip_identification_may_come_again(tmp_path: Path) -> None:
    bed = Bed(tmp_path / "run")
    bed.batch("echo-client", "udp", 3000, RPC_PORT, 700)
    for xid in range(4):
        # Other datagrams would have come in between.
        bed.now += 100_000_000
        bed.ident = {CLIENT: 7, SERVER: 7}
        bed.udp_call(3000, xid)
    assert verify(bed).problems == []


@pytest.mark.parametrize("port", [853, 623, 1023, 111 + 512])
def test_reserved_client_ports_are_decoded_as_rpc(tmp_path: Path, port: int) -> None:
    assert verify(sunrpc(tmp_path, 2000, client_port=port)).verdict == "pass"


def corrupted(directory: Path, byte: int, bit: int = 0, size: int = 16) -> Bed:
    """A request arrives with the lowest bit of a byte of its first packet flipped, and is sent again; its fate
    names another `bit`."""
    bed = sunrpc(directory, size, calls=1)
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(900, size, number=bed.calls)), lose=(0,))
    fate = next(record for record in bed.records if record.comment)
    frame = bytearray(fate.frame)
    frame[byte] ^= 1
    fate.frame = bytes(frame)
    fate.comment = fates.corrupted(bit, byte, "client:eth0", "server:eth0")
    bed.records.append(Record(fate.at + 1_500, 1, 1, fate.frame))
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(900, size, number=bed.calls)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(900, size, number=bed.calls)))
    bed.sample(start, 900, retransmits=1)
    return bed


@pytest.mark.parametrize(
    "byte", [pytest.param(19, id="IP identification"), pytest.param(34, id="source port"), pytest.param(45, id="xid")]
)
def test_a_first_fragment_that_is_corrupted_does_not_name_the_call_of_the_others(tmp_path: Path, byte: int) -> None:
    assert verify(corrupted(tmp_path, byte, size=3000)).problems == []


def test_a_run_whose_fates_have_words_alone_is_refused(tmp_path: Path) -> None:
    bed = corrupted(tmp_path, 36)
    fate = next(each for each in bed.records if each.comment)
    fate.comment = fate.comment.partition(" | ")[0]
    with pytest.raises(BadInput, match="comment: 1 comments of fates have no record"):
        verify(bed)


def test_a_corrupted_frame_explains_no_other_bytes(tmp_path: Path) -> None:
    other_bit = verify(corrupted(tmp_path / "a", 36, bit=1))
    assert "request.received" in [problem["field"] for problem in other_bit.problems]
    bed = corrupted(tmp_path / "b", 36)
    fate = next(each for each in bed.records if each.comment)
    arrived = next(each for each in bed.records if each.direction == 1 and each.frame == fate.frame)
    arrived.frame = arrived.frame[:37] + bytes([arrived.frame[37] ^ 1]) + arrived.frame[38:]
    other_bytes = verify(bed)
    assert "frame without a call" in [problem["field"] for problem in other_bytes.problems]


@pytest.mark.parametrize("missing", ["run.json", "wire/lan.pcapng"])
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    bed = sunrpc(tmp_path, 16, calls=1)
    bed.write()
    (tmp_path / "run" / missing).unlink()
    with pytest.raises(BadInput, match=missing) as error:
        verify_run(tmp_path / "run")
    assert "\n" not in str(error.value)


def test_payloads_of_the_bed_are_those_of_the_seams() -> None:
    # Byte 16 of call 7: 7 * 131 + 16 * 7 = 1029 = 4 * 256 + 5.
    assert raw_payload(7, 20).hex() == "53444c3100000007000000140000000005" + "0c131a"

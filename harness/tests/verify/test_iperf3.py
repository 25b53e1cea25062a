# SPDX-License-Identifier: Apache-2.0
"""What iperf3 counts, and what its versions count differently."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from sundial.verify import verify_run
from sundial.verify.contention import contention_of
from sundial.workloads.iperf3.model import PORT
from sundial.workloads.iperf3.verify import waited
from sundial.workloads.iperf3.verify_result import uncounted_bytes
from sundial.workloads.iperf3.verify_transfers import least_lost
from tests.verify.bed import CLIENT, SERVER, Bed
from tests.verify.seal import seal


@pytest.mark.parametrize(
    ("version", "most"),
    [
        ("iperf 3.12", 0),
        ("iperf 3.15-mt-beta1", 0),
        ("iperf 3.16", 131071),
        ("iperf 3.18", 131071),
        ("iperf 4.0", 131071),
        (None, 0),
        ("?", 0),
    ],
)
def test_a_thread_that_is_cancelled_has_written_less_than_a_block_more(version: str | None, most: int) -> None:
    assert uncounted_bytes({"start": {"version": version, "test_start": {"blksize": 131072}}}) == most


@pytest.mark.parametrize("start", [None, {}, {"version": "iperf 3.18"}, {"version": "iperf 3.18", "test_start": None}])
def test_a_result_without_a_block_size_allows_nothing(start: object) -> None:
    assert uncounted_bytes({"start": start}) == 0


def lost(numbers: Sequence[int], read: int | None = None) -> int:
    """The least that a server may count which has read so many of the datagrams that arrived."""
    arrived = [bytes(8) + number.to_bytes(4) + bytes(16) for number in numbers]
    return least_lost([b"9876", *arrived], range(len(arrived) + 1), len(arrived) if read is None else read)


def test_numbers_that_are_left_out_are_lost() -> None:
    assert lost([1, 2, 5, 6]) == 2


def test_what_is_behind_the_last_that_arrived_is_not_counted() -> None:
    assert lost([1, 2, 3]) == 0


def test_what_comes_late_or_twice_is_taken_off() -> None:
    assert lost([1, 3, 2, 4]) == 0
    assert lost([1, 2, 2, 5]) == 2
    assert lost([1, 5, 5]) == 2


def test_what_was_not_read_may_lack() -> None:
    assert lost([1, 2, 9], read=2) == 0
    assert lost([1, 4, 9], read=2) == 2


@pytest.mark.parametrize("error", [None, "unable to read from stream socket: Resource temporarily unavailable"])
def test_a_test_that_iperf3_gave_up_is_one_finding_in_its_words(tmp_path: Path, error: str | None) -> None:
    bed = Bed(tmp_path / "run")
    start = bed.now
    bed.send(CLIENT, bed.datagram(CLIENT, (40_000, PORT), b"9876"))
    line = {"type": "iperf3", "step": 0, "start": start, "end": bed.now, "status": 1, "result": {"error": error}}
    bed.lines.append(json.dumps(line))
    run = bed.write()
    job = {"steps": [{"app": "iperf3-client", "options": {"server": SERVER, "transport": "udp"}}]}
    (run / "nodes" / "client" / "job.json").write_text(json.dumps(job))
    found = [(each["field"], each["seen"]) for each in verify_run(seal(run)).problems]
    if error is None:
        assert "frame without a call" in [field for field, _ in found]
    else:
        assert found == [("iperf3 client step 0 error", error)]


@pytest.mark.parametrize(("free_ns", "may_wait"), [(0, True), (1, False)])
def test_a_last_word_may_wait_for_a_line_that_is_never_free(free_ns: int, may_wait: bool) -> None:
    line = contention_of([(900, 1_500), (1_500 + free_ns, 2_100)])
    assert waited("client:eth0", 2_000, 1_000, lambda: {"client:eth0": line}) is may_wait
    assert not waited("client:eth0", 2_000, 1_000, dict)

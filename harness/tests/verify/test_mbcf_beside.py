# SPDX-License-Identifier: Apache-2.0
"""Operations of mbcf-client without a sample: what is to be read is written first; what was written is read back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sundial.workloads.mbcf.verify_target import _COUNTED, _COUNTS, _MAGIC, _OPEN, _QUERY, TARGET, check_reported
from sundial.workloads.mbcf.wire import TASKQUE_HEAD
from tests.observe.mbcf_wire import ACK_NOW, MORE, READ, RESULT, WRITE
from tests.verify.mbcf_bed import CLIENT, SERVER, MbcfBed
from tests.verify.test_mbcf import acked_now, bed, findings_of, operation, verify


def write(made: MbcfBed, size: int, name: int) -> None:
    made.operate(WRITE, made.data(size), op_id=name, flags=ACK_NOW)
    acked_now(made)


@pytest.mark.parametrize(("writes", "found"), [(1, []), (2, ["frame without a call"])])
def test_what_is_to_be_read_is_written_though_no_read_succeeds(tmp_path: Path, writes: int, found: list[str]) -> None:
    made = bed(tmp_path)
    operation(made, "read", 4)
    for place in range(writes):
        write(made, 4, 1025 + place)
    made.sample(made.now, None, ok=False, error="the node does not answer")
    assert [field for field, _, _ in findings_of(verify(made))] == found


def read_back(made: MbcfBed, size: int, name: int) -> None:
    made.operate(READ, struct.pack(">II", size, 0), op_id=name)
    made.send(RESULT, SERVER, CLIENT, made.data(size), op_id=name)
    made.ack(1)


@pytest.mark.parametrize(("size", "found"), [(8, []), (4, ["mbcf.operation"])])
def test_a_batch_may_have_read_nothing_back(tmp_path: Path, size: int, found: list[str]) -> None:
    """Its server did not answer how much was written; the next batch's read is not its own."""
    made = bed(tmp_path)
    for place, length in enumerate((4, 8)):
        operation(made, "write", length)
        start = made.now - 1
        write(made, size if length == 8 else 4, 1025 + place)
        made.sample(start, 1025 + place)
    made.calls -= 1
    read_back(made, 8, 1027)
    assert [field for field, _, _ in findings_of(verify(made))] == found


@pytest.mark.parametrize(
    ("answers", "data", "found"), [(2, 0, []), (1, 0, []), (1, 1, ["mbcf.result data"]), (0, 0, [])]
)
def test_what_was_written_may_not_be_read_back_whole(tmp_path: Path, answers: int, data: int, found: list[str]) -> None:
    """A server's node may give up its results; mbcf-client has no sample of that."""
    made = bed(tmp_path)
    operation(made, "write", 2000)
    start, content = made.now - 1, made.data(2000)
    for at in (0, 1408):
        more = MORE if at == 0 else ACK_NOW
        made.operate(WRITE, content[at : at + 1408], at=at, op_id=1025, flags=more)
    acked_now(made)
    made.sample(start, 1025)
    for at in (0, 1408):
        asked = struct.pack(">II", min(1408, 2000 - at), 0)
        made.operate(READ, asked, at=at, op_id=1026, flags=MORE if at == 0 else 0)
    for at in (0, 1408)[:answers]:
        made.send(RESULT, SERVER, CLIENT, bytes([9] * data) + content[at + data : at + 1408], op_id=1026)
    made.ack(1 if answers else 2)
    assert [field for field, _, _ in findings_of(verify(made))] == found


def reported(*questions: int, signals: Sequence[int] = (3,), linger: str = "1 s") -> list[str]:
    """A server has answered these with `signals`, where it was asked for counts, and wrote 0 of all at its end."""
    counts = iter(signals)
    payloads: list[bytes] = []
    asked = []
    for what in questions:
        rows = [len(payloads), len(payloads) + 1]
        count = next(counts) if what == _COUNTS else 0
        answer = _COUNTED.pack(0, 0, 0, count, 100 * count, 0, 0, 1, 0) if what == _COUNTS else bytes(8)
        payloads += [bytes(TASKQUE_HEAD) + _QUERY.pack(_MAGIC, what, 0), answer]
        frames = {False: [(rows[0], "")], True: [(rows[1], "")]}
        asked.append(SimpleNamespace(about=TARGET, peer=2, frames=frames))
    line = {"type": "counters", "app": "mbcf-server"}
    line |= dict.fromkeys(("fifo_records", "fifo_bytes", "fifo_wrong", "signals", "signal_bytes", "signal_wrong"), 0)
    evidence: Any = SimpleNamespace(
        of_kind=lambda kind: asked,
        carried={row: SimpleNamespace(length=len(payload)) for row, payload in enumerate(payloads)},
        payload=payloads.__getitem__,
        records={"server": [{**line, "word": 0}]},
        nodes={"server": 2},
        run=SimpleNamespace(document={"scenario": {"linger": linger}}),
    )
    return [each.field for each in check_reported(evidence)]


def test_a_server_counts_from_0_when_a_batch_begins() -> None:
    assert reported(_OPEN, _COUNTS) == ["counted.signals", "counted.signal_bytes"]
    assert reported(_OPEN, _COUNTS, _OPEN) == []


@pytest.mark.parametrize(
    ("signals", "linger", "found"),
    [((0, 3), "50 ms", 0), ((0, 3), "1 s", 2), ((1, 3), "50 ms", 2), ((3, 0), "50 ms", 0)],
)
def test_a_run_may_end_before_a_server_writes_its_last_counts(
    signals: tuple[int, int], linger: str, found: int
) -> None:
    fields = reported(_OPEN, _COUNTS, _OPEN, _COUNTS, signals=signals, linger=linger)
    assert fields == ["counted.signals", "counted.signal_bytes"][:found]

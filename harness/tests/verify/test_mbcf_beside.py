# SPDX-License-Identifier: Apache-2.0
"""Operations of mbcf-client without a sample: what is to be read is written first; what was written is read back."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.observe.mbcf_wire import ACK_NOW, READ, RESULT, WRITE
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

# SPDX-License-Identifier: Apache-2.0
"""What the protocol's C says and what is expected of it are the same numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sundial.expect import mbcf, mbcf_acks

MBCF = Path(__file__).resolve().parents[3] / "guest-apps" / "sss-core"
MILLISECOND = 1_000_000

NUMBERS = [
    ("mbcf/state.h", "ACK_PATIENCE", mbcf_acks.PATIENCE),
    ("mbcf/state.h", "ACK_EVERY", mbcf_acks.EVERY),
    ("mbcf/state.h", "GAP_ACKS", mbcf_acks.GAP_ACKS),
    ("mbcf/state.h", "REQUEST_PLACES", mbcf_acks.REQUEST_PLACES),
    ("mbcf/wire.h", "MBW_HEADER", mbcf.HEADER),
    ("mbcf/wire.h", "MBW_PAYLOAD", mbcf.PAYLOAD),
    ("mbcf/wire.h", "MBW_PART_HEAD", mbcf.PART_HEAD),
    ("mbcf/wire.h", "MBW_TASKQUE_HEAD", mbcf.TASKQUE_HEAD),
    ("mbcf/wire.h", "MBW_READ_PAYLOAD", mbcf.READ_PAYLOAD),
    ("rpc/mbcf_messages.h", "MBM_SIGNAL_MOST", mbcf.SIGNAL_MOST),
]


@pytest.mark.parametrize(("file", "name", "value"), NUMBERS)
def test_numbers(file: str, name: str, value: int) -> None:
    found = re.findall(rf"\b{name} = (\d+)\b", (MBCF / file).read_text())
    assert [int(number) for number in found] == [value]


def test_times() -> None:
    text = (MBCF / "mbcf" / "state.h").read_text()
    assert "#define ACK_DELAY_NS (2 * MILLISECOND)" in text
    assert "#define FRAME_NS (5 * MILLISECOND / 4)" in text
    assert (mbcf_acks.DELAY_NS, mbcf_acks.FRAME_NS) == (2 * MILLISECOND, 5 * MILLISECOND // 4)

# SPDX-License-Identifier: Apache-2.0
"""Checksums of UDP and TCP: whole on a wire, begun within a machine, and whole there in what no socket made."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.headers.ip import checksum_wrong
from sundial.verify.headers.tcp import of_no_socket
from tests.verify.bed import ACK, FIN

PSEUDO, PACKET = 0x1234, 0x4321
WHOLE = 0xFFFF - PSEUDO - PACKET
"""Of a packet whose words, without it, are PACKET."""


@pytest.mark.parametrize(
    ("inner", "finished", "written", "wrong"),
    [
        (False, False, WHOLE, False),
        (False, True, WHOLE, False),
        (False, False, PSEUDO, True),
        (True, False, PSEUDO, False),
        (True, False, WHOLE, True),
        (True, True, WHOLE, False),
        (True, True, PSEUDO, False),
        (True, True, WHOLE ^ 1, True),
    ],
)
def test_what_is_wrong(inner: bool, finished: bool, written: int, wrong: bool) -> None:
    table = pl.DataFrame(
        {
            "inner": [inner],
            "finished": [finished],
            "total": [PACKET + written],
            "pseudo": [PSEUDO],
            "written": [written],
        }
    )
    total, pseudo, seen, whole = (pl.col(name) for name in ("total", "pseudo", "written", "finished"))
    assert table.select(checksum_wrong(total, pseudo, seen, finished=whole)).item() is wrong
    if not finished:
        assert table.select(checksum_wrong(total, pseudo, seen)).item() is wrong


def test_what_no_socket_sends_has_its_whole_sum() -> None:
    """Resets, and the ACK of TIME-WAIT, which has no identification."""
    sent = [(0x04, 0, True), (0x04 | ACK, 7, True), (ACK, 0, True), (ACK, 7, False), (FIN | ACK, 0, False)]
    table = pl.DataFrame(sent, ["tcp_flags", "ip_id", "alone"], orient="row")
    assert table.select(of_no_socket())["tcp_flags"].to_list() == table["alone"].to_list()

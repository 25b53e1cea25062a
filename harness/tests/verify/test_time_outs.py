# SPDX-License-Identifier: Apache-2.0
"""Calls that a client reports to have timed out, in runs made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from sundial.verify import verify_run
from tests.verify.bed import CLIENT, RPC_PORT, SERVER, Bed, rpc_call, rpc_reply

TOTAL_MS = 500


def timed_out(
    directory: Path, *, reply: bool, after_ms: int, size: int = 16, error: str = "RPC: Timed out"
) -> list[str]:
    """Fields of the findings about a call that ends with an error, after a time in which its reply came or did not."""
    bed = Bed(directory / "run", options={"total_timeout_ms": TOTAL_MS})
    bed.batch("echo-client", "udp", size, RPC_PORT, 700)
    start = bed.now - 1
    bed.send(CLIENT, bed.datagram(CLIENT, (700, RPC_PORT), rpc_call(1, size)))
    bed.send(SERVER, bed.datagram(SERVER, (RPC_PORT, 700), rpc_reply(1, size)), lose=() if reply else (0,))
    bed.now = max(bed.now, start + after_ms * 1_000_000)
    bed.sample(start, 1, ok=False, error=error)
    return [problem["field"] for problem in verify_run(bed.write()).problems]


def test_a_call_whose_reply_came_in_time_has_not_timed_out(tmp_path: Path) -> None:
    assert timed_out(tmp_path, reply=True, after_ms=1) == ["sample.error"]


@pytest.mark.parametrize(
    "how",
    [
        {"reply": False, "after_ms": 1},
        {"reply": True, "after_ms": TOTAL_MS},
        {"reply": True, "after_ms": 1, "size": 3000},
        {"reply": True, "after_ms": 1, "error": "RPC: Can't decode result"},
    ],
    ids=["no reply", "its time is over", "in fragments", "another error"],
)
def test_a_call_may_fail_otherwise(tmp_path: Path, how: dict[str, bool | int | str]) -> None:
    assert "sample.error" not in timed_out(tmp_path, **how)  # type: ignore[arg-type]

# SPDX-License-Identifier: Apache-2.0
"""The number 0 in IPv4's identification: what is sent for no socket has it, and so does a count that goes round."""

from __future__ import annotations

import polars as pl
import pytest

from sundial.verify.headers.ip import _linux_tcp, _without_unnumbered


@pytest.mark.parametrize(
    ("numbers", "kept"),
    [
        ([65534, 65535, 0, 1], [65534, 65535, 0, 1]),
        ([7, 0, 8], [7, 8]),
        ([65535, 1], [65535, 1]),
        ([0, 5], [5]),
    ],
)
def test_a_count_goes_round_through_zero(numbers: list[int], kept: list[int]) -> None:
    table = pl.DataFrame(
        {"ip_id": numbers, "time_ns": range(len(numbers)), "row": range(len(numbers)), "socket": [1] * len(numbers)}
    )
    assert _without_unnumbered(table, pl.col("ip_id") == 0, ["socket"])["ip_id"].to_list() == kept


def step_of_the_next(length: int, windows: tuple[int, int], *, inner: bool) -> int:
    """The largest step of the number behind a packet of `length` bytes, where both ends opened with `windows`."""
    flow = {"source": "a", "target": "b", "source_port": 1, "target_port": 2}
    back = {"source": "b", "target": "a", "source_port": 2, "target_port": 1}
    sent = pl.DataFrame([{**flow, "tcp_length": each, "inner": inner, "offloads": False} for each in (length, 10)])
    opening = pl.DataFrame([{**each, "tcp_window": window} for window in windows for each in (flow, back)])
    return int(_linux_tcp(sent, opening, ["source", "source_port"])["most"][1])


@pytest.mark.parametrize(
    ("length", "window", "inner", "most"),
    # 62,035 bytes over a loopback of Linux 6.12: two segments, since the window was 65,483.
    [(62_035, 65_483, True, 2), (32_741, 65_483, True, 1), (65_483, 65_483, True, 3), (1_000, 600, True, 4),
     (62_035, 65_483, False, 1), (0, 65_483, True, 1)],
)  # fmt: skip
def test_a_packet_that_would_be_cut_has_a_number_for_each_segment(
    length: int, window: int, inner: bool, most: int
) -> None:
    assert step_of_the_next(length, (window, window + 10), inner=inner) == most


def test_a_connection_whose_opening_was_not_captured_has_single_steps() -> None:
    sent = pl.DataFrame(
        [{"source": "a", "target": "b", "source_port": 1, "target_port": 2, "tcp_length": 60_000, "inner": True,
          "offloads": False}] * 2
    )  # fmt: skip
    opening = sent.clear().select("source", "target", "source_port", "target_port", tcp_window=pl.lit(0))
    assert _linux_tcp(sent, opening, ["source"])["most"].to_list() == [1, 1]

# SPDX-License-Identifier: Apache-2.0
"""Segments of a message to a peer whose window is small."""

from __future__ import annotations

import pytest

from sundial.expect.tcp import most_segments


@pytest.mark.parametrize(
    ("payloads", "window", "most"),
    [((1440, 1440, 1440, 1030), 1152, 22), ((1440,), 65536, 2), ((576,), 1152, 2), ((577,), 1152, 4), ((3,), 1, 6)],
)
def test_each_segment_may_be_cut_at_half_the_window_and_once_more(
    payloads: tuple[int, ...], window: int, most: int
) -> None:
    assert most_segments(payloads, window) == most

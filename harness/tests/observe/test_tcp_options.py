# SPDX-License-Identifier: Apache-2.0
"""TCP options of many segments at once: those laid out as usual against the walk through any others."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from sundial.observe.octets import Octets
from sundial.observe.tcp_options import tcp_options

HEADERS = 14 + 20 + 20
USUAL = b"\1\1\x08\x0a"


def parsed(options: list[bytes]) -> pl.DataFrame:
    frames = [bytes(HEADERS) + each for each in options]
    length = np.array([len(frame) for frame in frames], dtype=np.int64)
    octets = Octets(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(length) - length, length)
    sizes = [20 + len(each) for each in options]
    rows = pl.DataFrame({"row": range(len(frames)), "ip_header": 20, "tcp_header": sizes})
    return tcp_options(rows.cast({"row": pl.UInt32}), octets)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=6))
def test_time_stamps_are_the_same_in_the_usual_order_and_in_any_other(stamps: list[tuple[int, int]]) -> None:
    values = [stamp.to_bytes(4) + echo.to_bytes(4) for stamp, echo in stamps]
    usual = parsed([USUAL + value for value in values])
    behind = parsed([b"\x08\x0a" + value + b"\1\1" for value in values])
    assert usual.equals(behind)
    assert list(usual.select("stamp", "echo").iter_rows()) == stamps
    assert not usual["malformed"].any()


def test_a_usual_beginning_in_another_length_is_walked_through() -> None:
    eight = bytes(range(8))
    table = parsed([USUAL + eight, USUAL + eight + b"\2\4\5\xb4", USUAL + eight[:4], USUAL + eight + b"\1\1\x08\x0a"])
    assert table["malformed"].to_list() == [False, False, True, True]
    assert table["mss"].to_list() == [None, 1460, None, None]
    assert table["echo"].to_list()[:2] == [0x04050607] * 2

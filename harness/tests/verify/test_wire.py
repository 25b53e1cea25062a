# SPDX-License-Identifier: Apache-2.0
"""Times of a line whose bits take fractions of a ns, exactly, whatever its rate and however long it is busy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sundial.verify.wire import GAP_BITS, SECOND_PS, Line, bits_of, queue_starts

rates_bps = st.one_of(st.just(89_926_519), st.integers(9_600, 10**11))
frames = st.lists(st.tuples(st.integers(0, 10**7), st.integers(60, 9000)), min_size=1, max_size=20)


@given(rates_bps, frames, st.integers(1, 300))
def test_frames_leave_one_after_the_other(rate_bps: int, every: list[tuple[int, int]], times: int) -> None:
    """Also where the frames together take longer than 64 bits hold in parts of a ps."""
    every *= times
    line = Line(rate_bps, SECOND_PS)
    ready_ps = np.cumsum(np.array([after for after, _ in every], np.int64)) * 1000
    bits = bits_of(np.array([length for _, length in every], np.int64))
    starts = queue_starts(line.fine(ready_ps), line.time(bits + GAP_BITS))
    free = Fraction(0)
    for place, (at, size) in enumerate(zip(ready_ps.tolist(), bits.tolist(), strict=True)):
        begin = max(Fraction(at), free)
        assert Fraction(int(starts[place]), line.parts) == begin
        free = begin + Fraction((size + GAP_BITS) * SECOND_PS, rate_bps)

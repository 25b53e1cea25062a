# SPDX-License-Identifier: Apache-2.0
"""Impairments that have no effect without another."""

from __future__ import annotations

import pytest

from sundial.model.impairments import Impairments


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"delay": "1 ms", "jitter": "0 ms", "distribution": "normal"}, "distribution has no effect without jitter"),
        ({"delay": "1 ms", "distribution": "normal"}, "distribution has no effect without jitter"),
        ({"delay": "1 s", "jitter": "0 s", "delay_correlation": "2 %"},
         "delay_correlation has no effect without jitter"),
        ({"delay": "0 ms", "jitter": "1 ms", "distribution": "normal"}, None),
        ({"loss": "0 %", "loss_correlation": "25 %"}, None),
    ],
)  # fmt: skip
def test_a_jitter_of_nothing_is_none(written: dict[str, str], words: str | None) -> None:
    found = [finding.what for finding in Impairments.model_validate(written).check(())]
    assert found == ([] if words is None else [words])

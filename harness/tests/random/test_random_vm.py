# SPDX-License-Identifier: Apache-2.0
"""Twelve random cases with fixed seeds pass: of each shape and kind of wire one, with another workload. More are for
the night, and `make random` runs as many as it is asked for.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.random.campaign import PASSED, campaign, first_valid, line, run, summary
from tests.random.cases import SCENARIO
from tests.run.live import require_guests

pytestmark = [pytest.mark.vm, pytest.mark.spread]

BOTH, LINUX = ("linux", "ssscore"), ("linux",)
COUNT = 100
"""Cases of a night."""
ROWS: list[tuple[int, tuple[str, ...], dict[str, Any]]] = [
    (1, BOTH, {"shapes": ("one",), "kinds": ("link",), "apps": ("sunrpc",)}),
    (14, LINUX, {"shapes": ("one",), "kinds": ("hub",), "apps": ("raw",)}),
    (13, LINUX, {"shapes": ("one",), "kinds": ("switch",), "apps": ("iperf3",)}),
    (4, BOTH, {"shapes": ("one",), "kinds": ("atm",), "apps": ("dce",)}),
    (16, BOTH, {"shapes": ("device",), "apps": ("sunrpc",)}),
    (15, LINUX, {"shapes": ("netem",), "apps": ("raw",)}),
    (7, LINUX, {"shapes": ("routed",), "apps": ("sunrpc",)}),
    (8, LINUX, {"shapes": ("loopback",)}),
    (9, BOTH, {"shapes": ("backplane",), "apps": ("vmmc",)}),
    (10, BOTH, {"shapes": ("backplane",), "apps": ("shrimprpc",)}),
    (11, BOTH, {"shapes": ("one",), "kinds": ("switch",), "apps": ("mbcf",)}),
    (12, BOTH, {}),
]
"""Numbers of cases under the virtual clock, their images, and what narrows them."""
REAL: list[tuple[int, tuple[str, ...], dict[str, Any]]] = [
    (2, LINUX, {"shapes": ("one",), "kinds": ("hub",), "apps": ("raw",)}),
    (3, LINUX, {"shapes": ("one",), "kinds": ("switch",), "apps": ("iperf3",)}),
    (5, BOTH, {"shapes": ("device",), "apps": ("sunrpc",)}),
]
"""The same under the real clock."""


@pytest.mark.parametrize(
    ("number", "images", "narrowed"), [*ROWS, *(pytest.param(*row, marks=pytest.mark.night) for row in REAL)]
)
def test_a_case_of_each_kind_passes(
    tmp_path: Path, number: int, images: tuple[str, ...], narrowed: dict[str, Any]
) -> None:
    require_guests(*images)
    first_valid(27, number, images, tmp_path, Counter(), **narrowed)
    verdict = run(tmp_path, tmp_path / SCENARIO)
    assert verdict.status == PASSED, line(tmp_path, verdict)


@pytest.mark.night
@pytest.mark.timeout(7200)
def test_cases_of_this_night_pass(tmp_path: Path) -> None:
    """Drawn from the run's own seed, which the message has."""
    seed = int(os.environ.get("RANDOM_SEED") or int.from_bytes(os.urandom(4), "big"))
    done = campaign(range(COUNT), seed, 2, tmp_path)
    assert all(verdict.status == PASSED for _, verdict in done), (seed, list(summary(done)))

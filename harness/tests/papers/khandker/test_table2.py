# SPDX-License-Identifier: Apache-2.0
"""The paper's table 2, calculated again from its own unit costs; and what of the print contradicts itself."""

from __future__ import annotations

import pytest

from sundial.papers.khandker import table2
from sundial.papers.khandker.counts import Policy, bursts, facks, packets, pdus
from sundial.papers.khandker.paper import Khandker
from sundial.papers.khandker.reproduce import KIND


@pytest.fixture(scope="module")
def paper() -> Khandker:
    return KIND.paper()


def test_the_corrected_cost_gives_the_printed_sums_but_one(paper: Khandker) -> None:
    assert table2.sums(paper, corrected=True) == (6454, 8351, 11315, 22018, 34961, 41070)
    assert paper.calculated == (6454, 8351, 11315, 22018, 32691, 41070)


def test_the_printed_cost_gives_none(paper: Khandker) -> None:
    # 12 us too many for each wait for an answer: 1 1 1 2 3 3.
    off = [ours - printed for ours, printed in zip(table2.sums(paper, corrected=False), paper.calculated, strict=True)]
    assert off == [12, 12, 12, 24, 34997 - 32691, 36]


def test_no_placement_of_the_lost_columns_gives_32691(paper: Khandker) -> None:
    assert 32691 not in table2.placements(paper, 16064)
    assert 34961 in table2.placements(paper, 16064)
    assert 41070 in table2.placements(paper, 24096)


def test_printed_errors_follow_from_the_printed_times(paper: Khandker) -> None:
    errors = [
        table2.error_pct(measured, calculated)
        for measured, calculated in zip(paper.measured, paper.calculated, strict=True)
    ]
    assert errors == pytest.approx(paper.error_pct, abs=0.005)


def test_table_1_is_right_in_itself(paper: Khandker) -> None:
    threads = paper.threads
    assert [round(1000 / seconds) for seconds in threads.null_s] == list(threads.null_calls_per_s)
    rates = [8 * 4016 * 1000 / seconds / 1e6 for seconds in threads.put_s]
    assert rates == pytest.approx(threads.put_mbps, abs=0.0011)


def test_every_fault_is_found(paper: Khandker) -> None:
    where = {fault.where: fault for fault in table2.faults(paper)}
    assert where["table 2, C16, C17"].printed == "443"
    assert where["table 2, C16, C17"].follows.startswith("431: with it the sums of 0, 1392, 4016, 8032, 24096")
    assert where["table 2, T_trans(1144)"].follows.startswith("942:")
    assert (where["table 2, S8 without the response"].printed, "0 0 0 1 2 2") == ("0 0 0 1 3 4", "0 0 0 1 2 2")
    assert "gives 0 0 0 1 3 4" in where["table 2, S8 without the response"].follows
    assert "34961" in where["table 2, sum of 16064"].follows
    assert where["table 2, S15"].printed == "1 2 4"
    assert where["section 4.2: 6.28 Mb/s at 64257 bytes"].follows.startswith("6.28 Mb/s are 64256 bytes")
    assert "28113, 60241" in where["figure 3, jumps"].follows


def test_a_print_without_the_fault_has_none_of_it(paper: Khandker) -> None:
    rows = tuple(
        row.model_copy(update={"cost": 431, "read": None}) if row.read is not None else row for row in paper.rows
    )
    healed = paper.model_copy(update={"rows": rows, "calculated": (6454, 8351, 11315, 22018, 34961, 41070)})
    where = {fault.where for fault in table2.faults(healed)}
    assert not where & {"table 2, C16, C17", "table 2, sum of 16064"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # DCE.md 3.3 and 4.1: k to facks, where each comes back after its burst is out.
        ("window", {1: 0, 2: 1, 3: 1, 4: 2, 6: 2, 7: 2, 8: 3, 15: 3, 16: 4, 17: 4, 23: 4, 24: 5}),
        ("halves", {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 8: 5, 9: 6, 13: 6, 16: 7, 17: 8}),
    ],
)
def test_facks_by_policy(policy: Policy, expected: dict[int, int]) -> None:
    assert {of: facks(of, policy) for of in expected} == expected


def test_bursts_double_to_eight() -> None:
    assert bursts(pdus(64256), "window") == (1, 2, 4, 8, 1)
    assert bursts(24, "window") == (1, 2, 4, 8, 8, 1)
    assert bursts(1, "window") == (1,)


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 1), (1392, 1), (1393, 2), (4016, 3), (4017, 4), (6000, 5), (8032, 6), (24096, 18), (64256, 48), (64257, 49)],
)
def test_packets_of_a_request(size: int, expected: int) -> None:
    assert packets(size) == expected

# SPDX-License-Identifier: Apache-2.0
"""Unit costs from calls, the paper's sum, and the replay, on costs that are known beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sundial.papers.khandker import predict_sum, replay
from sundial.papers.khandker.costs import Costs, between, frame_us, unit_costs
from sundial.papers.khandker.counts import Policy
from sundial.papers.khandker.steps import IDLE_TICK, KERNEL, TICK, Occurrence

CLIENT_US = {"C1": 10.0, "C6": 2.0, "C7": 5.0, "C8'": 100.0, "C8''": 20.0, "C9": 1.0, "C10": 6.0, "C11": 7.0,
             "C12": 8.0, "C14": 30.0, "C15": 90.0, "C16": 40.0, "C17": 9.0, "C18": 11.0, "C19": 13.0,
             "C22": 17.0}  # fmt: skip
SERVER_US = {"S1": 200.0, "S1 without waking": 50.0, "S2": 60.0, "S3": 12.0, "S4": 14.0, "S5": 300.0, "S7": 15.0,
             "S8": 16.0, "S9'": 120.0, "S9''": 25.0, "S10": 1.0, "S11": 30.0, "S12": 22.0, "S13": 8.0,
             "S15": 35.0}  # fmt: skip
SMALL_US = 0.8 * (108 + 26)
"""A PDU without data on 10Base-T: preamble, header, FCS."""
FACK_US = 0.8 * (124 + 26)
FULL_US = 2 * 0.8 * (1500 + 26) + 0.8 * (1164 + 26) + 2 * 9.6
"""4016 bytes: three frames, two gaps."""


def costs(**ticks: float) -> Costs:
    steps = {step: {0: us, 1392: us, 4016: us} for step, us in {**CLIENT_US, **SERVER_US}.items()}
    steps["C5"] = {1392: 13.92, 4016: 40.16}
    return Costs(steps, {node: {0: us} for node, us in ticks.items()}, 4000.0)


def test_frames_have_the_length_of_the_standard() -> None:
    assert frame_us(108) == pytest.approx(SMALL_US)
    assert predict_sum.wire_us(4016) == pytest.approx(FULL_US)


def test_a_null_call_is_the_sum_of_its_steps() -> None:
    client = ("C1", "C6", "C7", "C8'", "C15", "C16", "C17", "C18", "C19")
    server = ("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9'")
    expected = sum(CLIENT_US[step] for step in client) + sum(SERVER_US[step] for step in server) + 2 * SMALL_US
    assert predict_sum.predict(costs(), 0, "window") == pytest.approx(expected)
    # The replay knows the way of the last bit, too.
    assert replay.predict(costs(), 0, "window") == pytest.approx(expected + 2 * replay.PROPAGATION_US)


def test_each_wait_is_a_path_to_the_server_and_back() -> None:
    one, two = (predict_sum.predict(costs(), size, "window") for size in (4016, 8032))
    client = ("C7", "C8'", "C15", "C16", "C17", "C18", "C22")
    server = ("S1", "S2", "S3", "S4", "S15", "S8", "S9'")
    more = sum(CLIENT_US[step] for step in client) + sum(SERVER_US[step] for step in server) + FULL_US + FACK_US
    assert two - one == pytest.approx(more)
    counts = {part.step: part.count for part in predict_sum.parts(costs(), 24096, "window")}
    assert (counts["C7"], counts["C22"], counts["S15"], counts["S5"], counts["further PDUs"]) == (3, 2, 2, 1, 3)


def test_further_pdus_cost_what_is_slowest() -> None:
    assert predict_sum.burden(costs(), 4016).most == ("network", pytest.approx(FULL_US + 9.6))
    slow = replace(costs(), steps={**costs().steps, "S1 without waking": {4016: 2000.0}})
    assert predict_sum.burden(slow, 4016).most[0] == "server"
    # And its clock's interrupts with it: a fifth of the time is a quarter more.
    plain, ticking = (predict_sum.burden(of, 4016).server for of in (slow, replace(slow, ticks={"server": {0: 800.0}})))
    assert ticking == pytest.approx(plain * 1.25)


def test_the_wire_bounds_what_is_replayed() -> None:
    # Everything but the wire is fast: a burst of eight PDUs takes their frames.
    fast = Costs({step: dict.fromkeys(of, 1.0) for step, of in costs().steps.items()}, {}, 4000.0)
    eight, one = (replay.predict(fast, size, "window") for size in (15 * 4016, 8 * 4016))
    assert eight - one == pytest.approx(7 * (FULL_US + 9.6), rel=0.002)


@pytest.mark.parametrize("policy", ["window", "halves"])
@pytest.mark.parametrize("size", [4017, 12048, 64256, 196_608])
def test_every_call_ends_and_takes_its_frames_at_least(policy: Policy, size: int) -> None:
    took = replay.predict(costs(client=100.0, server=300.0), size, policy)
    pdus, rest = divmod(size, 4016)
    assert took > pdus * FULL_US + (SMALL_US if rest else 0)
    assert took < 4 * predict_sum.predict(costs(), size, policy)


def test_the_clock_takes_its_part_of_both_machines() -> None:
    without, ticking = (replay.predict(of, 4016, "window") for of in (costs(), costs(client=2000.0, server=2000.0)))
    # Half of the time is the clock's; the wire's part of it is not slowed.
    busy = without - FULL_US - SMALL_US
    assert 0.3 * busy < ticking - without < 1.6 * busy


def test_phases_of_the_clock_differ_and_their_mean_is_said() -> None:
    of = costs(client=900.0, server=900.0)
    each = [replay.replay(of, 0, "window", 4000.0 * (number + 0.5) / 20) for number in range(20)]
    assert max(each) > min(each) + 500
    assert replay.predict(of, 0, "window") == pytest.approx(sum(each) / 20)


def occurrence(node: str, step: str, start_us: float, us: float) -> Occurrence:
    return Occurrence(node, step, int(start_us * 1e3), int((start_us + us) * 1e3), int(us * 1e3), 0)


def test_unit_costs_are_means_and_of_small_calls_alone() -> None:
    found = unit_costs(
        [
            (0, [occurrence("client", "C7", 0, 10), occurrence("server", "S1", 50, 100)]),
            (0, [occurrence("client", "C7", 0, 30), occurrence("server", "S1 without waking", 50, 140)]),
            (4016, [occurrence("client", "C7", 0, 50), occurrence("client", "C12", 10, 90)]),
            (4017, [occurrence("client", "C22", 0, 7), occurrence("client", "C7", 9, 1000)]),
            (8032, [occurrence("client", "C7", 0, 5000), occurrence("client", "C22", 0, 5000)]),
        ]
    )
    assert found.at("C7", 0) == pytest.approx(20)
    assert found.at("C7", 2008) == pytest.approx(35)
    assert found.at("C7", 64256) == pytest.approx(50)
    # A packet alone is waited for, whatever took it from the adapter; of three frames each has its interrupt.
    assert found.at("S1", 0) == pytest.approx(120)
    assert found.at("C12", 4016) == pytest.approx(30)
    assert found.at("C22", 64256) == pytest.approx(7)
    with pytest.raises(KeyError):
        found.at("S15")


def test_ticks_carry_what_the_kernels_threads_do() -> None:
    call = [
        occurrence("server", TICK, 100, 300), occurrence("server", IDLE_TICK, 4100, 100),
        occurrence("server", KERNEL, 4300, 200),
    ]  # fmt: skip
    found = unit_costs([(4016, call)])
    assert found.tick("server", 64256) == pytest.approx(300)
    assert found.tick("client", 0) == 0
    assert found.tick_every_us == pytest.approx(4000)


def test_between_sizes_costs_are_linear() -> None:
    assert [between({0: 10.0, 100: 20.0}, size) for size in (0, 50, 100, 500)] == [10, 15, 20, 20]

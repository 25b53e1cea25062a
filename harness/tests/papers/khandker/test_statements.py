# SPDX-License-Identifier: Apache-2.0
"""K1 to K13 over a reproduction as it was measured, over numbers that break each of them, and without its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from sundial.papers.khandker.counts import bursts, packets, pdus
from sundial.papers.khandker.results import NULL, Latency, Rate, Results, Seen, StepSeen, Twins
from sundial.papers.khandker.sizes import HUB
from sundial.papers.khandker.statements import STATEMENTS, saturated_at
from sundial.reproduce.verdicts import judge, verdict
from tests.papers.khandker.recorded import results

Change = Callable[[Results], None]


def outcome(of: Results, name: str) -> str:
    (statement,) = (each for each in STATEMENTS if each.id == name)
    return verdict(statement, of).outcome


def changed(change: Change) -> Results:
    found = results()
    change(found)
    return found


def with_latency(**more: object) -> Change:
    def change(of: Results) -> None:
        of.latency["window"] = replace(of.latency["window"], **more)  # type: ignore[arg-type]

    return change


def with_seen(size: int, **more: object) -> Change:
    def change(of: Results) -> None:
        latency = of.latency["window"]
        seen = replace(latency.sizes[size], **more)  # type: ignore[arg-type]
        of.latency["window"] = replace(latency, sizes={**latency.sizes, size: seen})

    return change


def longer(size: int, factor: float) -> Change:
    return with_seen(size, times_us=tuple(factor * each for each in results().latency["window"].sizes[size].times_us))


def with_rates(procedure: str, per_s: Sequence[float]) -> Change:
    def change(of: Results) -> None:
        for threads, rate in enumerate(per_s, 1):
            of.rates[HUB, procedure, threads] = Rate(100, 100 / rate, 0)
        for wire, name, threads in list(of.rates):
            if name == procedure and threads > len(per_s):
                del of.rates[wire, name, threads]

    return change


def with_c10(work_us: float, path_us: float) -> Change:
    def change(of: Results) -> None:
        latency = of.latency["window"]
        seen = StepSeen(2.0, work_us, path_us)
        steps = {
            size: {**table, ("client", "C10"): seen} if size > 4016 else table for size, table in latency.steps.items()
        }
        of.latency["window"] = replace(latency, steps=steps)

    return change


def as_printed(of: Results) -> None:
    """Times and rates as the paper has them."""
    with_rates("null", of.paper.threads.null_calls_per_s)(of)
    with_rates("put", [8e-6 * 0 + 1000 / each for each in of.paper.threads.put_s])(of)
    with_seen(64256, times_us=(81_820.0,))(of)


def test_what_was_measured() -> None:
    said = {each.statement.id: each.outcome for each in judge(STATEMENTS, results())}
    assert list(said) == [f"K{number}" for number in range(1, 14)]
    assert said["K1"] == "undecidable"
    for name in ("K2", "K4", "K5", "K6", "K7", "K10", "K11", "K12", "K13"):
        assert said[name] == "met", name
    # One speed for both machines: the server is the bottleneck sooner than the paper's faster one.
    assert (said["K3"], said["K9"]) == ("not met", "not met")


def test_the_papers_own_numbers_meet_what_ours_do_not() -> None:
    assert [outcome(changed(as_printed), name) for name in ("K3", "K9", "K10")] == ["met", "met", "met"]


BREAKS: dict[str, list[Change]] = {
    "K2": [lambda of: of.first_us.update({NULL: 6600.0}), lambda of: of.first_us.update({NULL: 60_000.0})],
    "K3": [with_seen(64256, times_us=(81_820.0,), packets=(49,)), with_seen(64256, times_us=(90_000.0,))],
    "K4": [
        with_seen(8033, packets=(8,)),
        with_seen(8033, packets=(6,)),
        with_seen(8033, packets=(7, 8)),
        longer(32129, 0.8),
    ],
    "K5": [longer(28113, 0.92), longer(16065, 1.2), with_seen(4017, bursts=((2,),))],
    "K6": [
        with_seen(1392, data=(1390, 2)),
        with_seen(4016, data=(1392, 1480, 1140, 4)),
        with_seen(6000, packets=(6,)),
        with_seen(4016, bursts=((2,),)),
    ],
    "K7": [with_seen(64256, bursts=((1, 2, 4, 9),)), with_seen(12048, bursts=((1, 2), (1, 1, 1)))],
    "K8": [longer(24096, 1.2), longer(8032, 0.8)],
    "K10": [longer(64256, 3.0)],
    "K11": [with_latency(slack_us=(100.0, -5.0))],
    "K12": [with_c10(130.0, 0.0), with_c10(700.0, 300.0)],
    "K13": [
        lambda of: setattr(of, "twins", Twins(("fit", "traced"), 5, ("wire/lan.pcapng",))),
        with_latency(exact=3, calls=4),
    ],
}


@pytest.mark.parametrize(("name", "change"), [(name, change) for name, listed in BREAKS.items() for change in listed])
def test_numbers_that_break_it_are_not_met(name: str, change: Change) -> None:
    def all_of_it(of: Results) -> None:
        as_printed(of) if name in ("K3", "K9") else None
        change(of)

    assert outcome(changed(all_of_it), name) == "not met"


@pytest.mark.parametrize(
    ("null", "put"),
    [
        ((160, 299, 300, 300), (85, 143, 159, 172)),  # saturated one thread too early
        ((160, 250, 312, 309), (85, 143, 159, 163)),  # 4016 gains too little
        ((160, 299, 312, 250), (85, 143, 159, 172)),  # does not stay
    ],
)
def test_k9_needs_number_gain_and_what_follows(null: Sequence[float], put: Sequence[float]) -> None:
    def change(of: Results) -> None:
        with_rates("null", null)(of)
        with_rates("put", put)(of)

    assert outcome(changed(change), "K9") == "not met"


def test_the_least_number_of_threads_that_is_as_good_as_any() -> None:
    rates = {threads: Rate(100, 100 / rate, 0) for threads, rate in ((1, 50.0), (2, 96.0), (3, 98.0), (4, 100.0))}
    assert saturated_at(rates) == 3


def test_none_is_decided_without_runs() -> None:
    of = results()
    bare = Results(of.paper, "quick", of.best, of.tried)
    assert {each.outcome for each in judge(STATEMENTS, bare)} == {"undecidable"}
    assert {each.reason for each in judge(STATEMENTS, bare)} >= {"latency-window was not measured"}


@pytest.mark.parametrize("missing", [8033, 4017, 64256, 6000])
def test_a_size_that_is_missing_is_named(missing: int) -> None:
    def change(of: Results) -> None:
        latency = of.latency["window"]
        sizes = {size: seen for size, seen in latency.sizes.items() if size != missing}
        of.latency["window"] = replace(latency, sizes=sizes)

    said = {each.outcome: each.reason for each in judge(STATEMENTS, changed(change))}
    assert f"{missing} bytes were not measured" in {each.reason for each in judge(STATEMENTS, changed(change))}
    assert "undecidable" in said


def test_recorded_bursts_and_packets_are_those_of_the_rule() -> None:
    latency: Latency = results().latency["window"]
    for size, seen in latency.sizes.items():
        whole: Seen = seen
        assert whole.packets == (packets(max(size, 0)),)
        assert whole.bursts == (bursts(pdus(max(size, 0)), "window"),)

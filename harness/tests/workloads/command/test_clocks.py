# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline on clocks of machines, without a machine: what is refused, jobs, and records compared with the
timeline."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.observe.programs import fnv1a
from sundial.plan.jobs import build_jobs
from sundial.workloads.command.verify_clocks import check_clocks
from sundial.workloads.command.verify_records import are_records

SCENARIO = """\
topology: two-hosts-switched
deadline: 20 s
linger: 1 s
timeline:
{events}
workloads:
  - app: command
    programs:
      get: {{on: client, argv: [sleep, "9"]}}
{more}
"""
TWICE = "  - {app: command, programs: {other: {on: client, argv: [sleep, '1']}}}"
S, MS = 10**9, 10**6
ZERO = 5_000
BACK, SLOW = "at: 2 s, for: 1 s, step_clock: client, back: 1 h", "at: 4 s, for: 2 s, drift_clock: client, slow: 10 %"
FAST = "at: 7 s, drift_clock: client, fast: 250 ppm"


def _load(folder: Path, *events: str, more: str = "") -> Experiment:
    file = folder / "own.yaml"
    file.write_text(SCENARIO.format(events="\n".join(f"  - {{{event}}}" for event in events), more=more))
    (experiment,) = load_experiments(str(file))
    return experiment


REFUSED = [
    ("at: 1 s, step_clock: wob, back: 1 s", "timeline.0.step_clock", "there is no machine 'wob'"),
    ("at: 1 s, step_clock: server, back: 1 s", "timeline.0.step_clock", "'server' has no workload of app: command"),
    ("at: 1 s, step_clock: client", "timeline.0", "step_clock has either forward or back"),
    ("at: 1 s, step_clock: client, forward: 1 s, back: 1 s", "timeline.0", "step_clock has either forward or back"),
    ("at: 1 s, step_clock: client, fast: 1 ppm", "timeline.0", "step_clock has either forward or back"),
    ("at: 1 s, step_clock: client, back: 1 s, fast: 1 ppm", "timeline.0.fast", "step_clock has no fast"),
    ("at: 1 s, step_clock: client, back: 0 s", "timeline.0.back", "is out of range"),
    ("at: 1 s, step_clock: client, back: -1 s", "timeline.0.back", "is negative"),
    ("at: 1 s, drift_clock: client, fast: 11 %", "timeline.0.fast", "is out of range"),
    ("at: 1 s, drift_clock: client, fast: 1 s", "timeline.0.fast", "wrong unit"),
    ("at: 1 s, drift_clock: client, slow: 1 ppm, on: client", "timeline.0.on", "drift_clock has no on"),
    ("at: 1 s, cut: lan, slow: 1 ppm", "timeline.0.slow", "cut has no slow"),
    ("step_clock: client, back: 1 s", "timeline.0", "at is missing"),
    ("after: {program: get, ends: true}, step_clock: client, back: 1 s", "timeline.0.after", "only at a time"),
    ("at: 30 s, step_clock: client, back: 1 s", "timeline.0.at", "over by 21 s"),
]


@pytest.mark.parametrize(("event", "field", "what"), REFUSED)
def test_an_event_that_cannot_be_is_refused(tmp_path: Path, event: str, field: str, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        _load(tmp_path, event)
    first = caught.value.problems[0]
    assert first.field == field, str(caught.value)
    assert what in first.what


def test_a_clock_has_one_drift_at_a_time_and_one_workload_that_changes_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"timeline.1.drift_clock: .*drifts already, by timeline.0"):
        _load(tmp_path, SLOW, "at: 5 s, drift_clock: client, fast: 1 ppm")
    with pytest.raises(BadInput, match=r"timeline.0.drift_clock: .*drifts already, by timeline.1"):
        _load(tmp_path, FAST, "at: 6 s, drift_clock: client, fast: 1 ppm")
    with pytest.raises(BadInput, match="2 workloads, which follow each other"):
        _load(tmp_path, BACK, more=TWICE)
    _load(tmp_path, SLOW, "at: 6 s, drift_clock: client, fast: 1 ppm")


def test_a_job_has_each_change_of_its_machines_clock_in_time(tmp_path: Path) -> None:
    jobs = build_jobs(_load(tmp_path, FAST, BACK, SLOW))
    assert jobs["client"].steps[0].options["clocks"] == [
        {"number": 1, "at_ns": 2 * S, "by_ns": -3600 * S},
        {"number": 1, "at_ns": 3 * S, "by_ns": 3600 * S},
        {"number": 2, "at_ns": 4 * S, "ppb": -(10**8)},
        {"number": 2, "at_ns": 6 * S, "ppb": 0},
        {"number": 0, "at_ns": 7 * S, "ppb": 250_000},
    ]


Record = dict[str, Any]


def _records() -> list[Record]:
    """Those of a clock that does as BACK, SLOW and FAST say, changed 100 us late; its readings take 600 ns."""
    found: list[Record] = []
    ahead, rate, since, late = 900 * S, 0, 0, 100_000

    def read(verb: str, at: int, **more: Any) -> Record:
        nonlocal ahead, since
        ahead += (at - since) * rate // 10**9
        since = at
        return {"type": "clock", "step": 0, "app": "command", "verb": verb, "at": ZERO + at, "before": ahead,
                "after": ahead, "within": 1200, "took": 0, **more}  # fmt: skip

    for number, due, by, ppb in (
        (0, 2 * S, -3600 * S, None), (0, 3 * S, 3600 * S, None), (1, 4 * S, 0, -(10**8)), (1, 6 * S, 0, 0),
        (2, 7 * S, 0, 250_000),
    ):  # fmt: skip
        record = read("step_clock" if ppb is None else "drift_clock", due + late, number=number, due=due, late=late)
        rate, ahead = rate if ppb is None else ppb, ahead + by
        found.append(record | {"after": ahead})
    found.append(read("end", 9 * S))
    nothing = {"bytes": 0, "kept": 0, "fnv1a": fnv1a(b"")}
    found.append({"type": "program", "step": 0, "app": "command", "name": "get", "role": "job", "timed_out": False,
                  "stopped": False, "stdout": nothing, "stderr": nothing, "start": ZERO, "ready": None,
                  "end": ZERO + 9 * S, "status": 0, "signal": None})  # fmt: skip
    return found


def _findings(folder: Path, records: list[Record]) -> list[str]:
    assert are_records(records)
    events = _load(folder, BACK, SLOW, FAST).network.events
    return [each.field for each in check_clocks(events, "client", records, ZERO, MS)]


def test_changes_as_the_timeline_says_have_no_finding(tmp_path: Path) -> None:
    assert _findings(tmp_path, _records()) == []


def _changed(place: int, **by: int) -> Callable[[list[Record]], list[Record]]:
    def change(records: list[Record]) -> list[Record]:
        more = {name: records[place][name] + amount for name, amount in by.items()}
        return [*records[:place], records[place] | more, *records[place + 1 :]]

    return change


DAMAGES = {
    "a step by another time": (_changed(0, after=1300), "clock client timeline.0"),
    "a step that is not undone": (lambda records: [records[0], *records[2:]], "clock client timeline.0"),
    "a drift at another rate": (_changed(3, before=25_000), "clock client timeline.1"),
    "a drift with a step": (_changed(2, after=50_000), "clock client timeline.1"),
    "a drift that does not last": (_changed(5, before=-400_000, after=-400_000), "clock client end"),
    "a change that is late": (_changed(4, late=10**6, at=10**6), "clock client timeline.2"),
    "a change that is early": (_changed(4, late=-200_000, at=-200_000), "clock client timeline.2"),
    "a change of another instant": (_changed(1, due=1), "clock client timeline.0"),
    "a change of another event": (_changed(1, number=1), "clock client timeline.0"),
    "a clock that was not read in the end": (lambda records: [*records[:5], records[6]], "clock client end"),
    "no change at all": (lambda records: records[6:], "clock client timeline.0"),
    "one more change": (lambda records: [*records[:5], records[4], *records[5:]], "clock client timeline.2"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_the_timeline_does_not_say_is_found(tmp_path: Path, name: str) -> None:
    damage, field = DAMAGES[name]
    assert field in _findings(tmp_path, damage(_records()))

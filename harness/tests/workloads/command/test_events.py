# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline on programs, without a machine: what is refused, jobs, and records against the timeline."""

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.model.recorded import recorded_experiment
from sundial.observe.programs import fnv1a, outputs
from sundial.plan.jobs import build_jobs
from sundial.seams.samples import Line
from sundial.workloads.command.model import Command
from sundial.workloads.command.verify_events import check_events, late_ns, pauses
from sundial.workloads.command.verify_records import Ran, are_records, check_ran, read_records

SCENARIO = """\
description: A service and a job
topology: two-hosts-switched
deadline: 20 s
linger: 1 s
timeline:
{events}
workloads:
  - app: command
    ports: {{web: {{tcp: 80}}}}
    programs:
      web: {{on: [server, client], role: service, argv: [httpd], ready: {{line: "^up$"}}}}
      get: {{on: client, argv: [wget], after: [web]}}
      put: {{on: server, argv: [wget]}}
"""
MS = 1_000_000
ZERO = 5_000
PAUSE, KILL = "at: 1 s, for: 100 ms, pause: web, on: server", "at: 2 s, for: 50 ms, kill: web, on: server"
LINE = "after: {program: put, line: '^r[0-9]+$', delay: 1 ms}, restart: web, on: server"


def _load(folder: Path, *events: str) -> Experiment:
    file = folder / "own.yaml"
    file.write_text(SCENARIO.format(events="\n".join(f"  - {{{event}}}" for event in events)))
    (experiment,) = load_experiments(str(file))
    return experiment


REFUSED = [
    (("at: 1 s, pause: wob",), "timeline.0.pause", "there is no program 'wob'"),
    (("at: 1 s, pause: put, on: client",), "timeline.0.on", "'put' does not run on 'client'"),
    (("at: 1 s, restart: get",), "timeline.0.restart", "is a job"),
    (("at: 1 s, for: 1 s, kill: get",), "timeline.0.kill", "is a job"),
    (("at: 1 s, for: 1 s, restart: web",), "timeline.0.for", "restart is not for a time"),
    (("at: 1 s, pause: web, signal: TERM",), "timeline.0.signal", "pause has no signal"),
    (("at: 1 s, kill: web, signal: STOP",), "timeline.0.signal", "is not a signal"),
    (("at: 1 s, kill: web, loss: 1 %",), "timeline.0.loss", "kill has no loss"),
    (("at: 1 s, cut: lan, on: server",), "timeline.0.on", "cut has no on"),
    (("at: 1 s, kill: web, pause: web",), "timeline.0", "exactly one thing"),
    (("kill: web",), "timeline.0", "at is missing"),
    (("at: 30 s, kill: web",), "timeline.0.at", "over by 21 s"),
    (("after: {program: get, ends: true}, cut: lan",), "timeline.0.after", "wires and machines change only at a time"),
    (("at: 1 s, after: {program: get, ends: true}, kill: web",), "timeline.0.at", "either at or after"),
    (("after: {program: get}, kill: web, on: client",), "timeline.0.after", "either a line or an end"),
    (("after: {program: get, ends: true}, kill: web",), "timeline.0.after.program", "'web' runs on 'server', 'get' on"),
    (("after: {program: g, ends: true}, kill: web",), "timeline.0.after.program", "there is no program 'g'"),
    (("after: {program: get, line: '\\d'}, kill: get",), "timeline.0.after.line", "not a pattern of a line"),
    (("at: 1 s, continue: web",), "timeline.0.continue", "is not paused at 1 s"),
    (("at: 1 s, pause: web", "at: 2 s, pause: web"), "timeline.1.pause", "is paused already at 2 s"),
    (("at: 1 s, kill: web", "at: 2 s, pause: web"), "timeline.1.pause", "is killed already at 2 s"),
    (("at: 1 s, kill: web", "at: 1 s, restart: web"), "timeline.1.at", "has another event at 1 s"),
]


@pytest.mark.parametrize(("events", "field", "what"), REFUSED)
def test_an_event_that_cannot_be_is_refused(tmp_path: Path, events: tuple[str, ...], field: str, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        _load(tmp_path, *events)
    first = caught.value.problems[0]
    assert first.field == field, str(caught.value)
    assert what in first.what


@pytest.mark.parametrize(
    "pattern", [r"\d", r"a\b", "(?:a)", "a*?", "a++", "[[:alpha:]]", "[\\]]", "a{,3}", "(", "é", "a\\"]
)
def test_a_pattern_that_posix_and_python_read_differently_is_refused(tmp_path: Path, pattern: str) -> None:
    written = pattern.replace("'", "''")
    with pytest.raises(BadInput, match="not a pattern of a line"):
        _load(tmp_path, f"after: {{program: get, line: '{written}'}}, kill: get")


def test_events_of_a_program_that_fit_each_other(tmp_path: Path) -> None:
    events = ("at: 1 s, pause: web", "at: 2 s, continue: web", "at: 3 s, kill: web", "at: 4 s, restart: web")
    _load(tmp_path, *events, "at: 5 s, for: 1 s, pause: web", "at: 6 s, kill: web, signal: HUP", "at: 7 s, pause: web")


@pytest.mark.parametrize(("mips", "most_ms"), [("125", 64), ("1000", 8), ("3.90625", 2048)])
def test_an_event_may_be_late_by_instructions(mips: str, most_ms: int) -> None:
    assert late_ns(Decimal(mips)) == most_ms * MS


def test_a_job_has_the_events_of_its_machine(tmp_path: Path) -> None:
    jobs = build_jobs(_load(tmp_path, PAUSE, "at: 2 s, kill: web, signal: TERM", LINE))
    assert jobs["client"].steps[0].options["events"] == [
        {"number": 1, "verb": "kill", "program": "web", "at_ns": 2000 * MS, "signal": 15}
    ]
    assert jobs["server"].steps[0].options["events"][0] == {
        "number": 0, "verb": "pause", "program": "web", "at_ns": 1000 * MS, "for_ns": 100 * MS,
    }  # fmt: skip
    assert jobs["server"].steps[0].options["events"][2]["after"] == {
        "program": "put", "line": "^r[0-9]+$", "delay_ns": MS,
    }  # fmt: skip


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    run = _load(tmp_path, PAUSE, LINE, "at: 9 s, heal: lan", "at: 8 s, cut: lan")
    document = {"scenario": run.scenario_json(), "topology": run.topology_json(), "seed": 1, "clock": "virtual"}
    assert recorded_experiment(document).network.events == run.network.events
    assert [state.note for state in run.network.segments["lan"].timeline] == ["cut lan", "heal lan"]


def _program(name: str, role: str, lives: list[tuple[int, int, int | None, int | None]], **more: Any) -> dict[str, Any]:
    """A record; lives in ms of the run: start, end, status, signal."""
    found = [
        {
            "start": ZERO + start * MS, "ready": ZERO + start * MS if role == "service" else None,
            "end": ZERO + end * MS, "status": status, "signal": signal,
        }
        for start, end, status, signal in lives
    ]  # fmt: skip
    text = b"r12\n" if name == "put" else b""
    written = {"bytes": len(text), "kept": len(text), "fnv1a": fnv1a(text)}
    nothing = {"bytes": 0, "kept": 0, "fnv1a": fnv1a(b"")}
    record = {"type": "program", "step": 0, "app": "command", "name": name, "role": role, "timed_out": False,
              "stopped": role == "service", "stdout": written, "stderr": nothing, **found[-1]}  # fmt: skip
    return record | ({"before": found[:-1]} if found[1:] else {}) | more


def _event(number: int, verb: str, due: float, state: str, met: bool = True, late: float = 0.1) -> dict[str, Any]:
    return {"type": "event", "step": 0, "app": "command", "number": number, "name": "web", "verb": verb,
            "due": int(due * MS), "late": int(late * MS), "at": ZERO + int(due * MS) + int(late * MS), "state": state,
            "met": met}  # fmt: skip


OUTPUT = {"type": "output", "step": 0, "app": "command", "name": "put", "stream": "stdout", "at": ZERO + 2500 * MS,
          "data": base64.b64encode(b"r12\n").decode()}  # fmt: skip
EVENTS = [_event(0, "pause", 1000, "running"), _event(0, "continue", 1100, "paused"),
          _event(1, "kill", 2000, "running"), _event(1, "start", 2050, "ended"), OUTPUT,
          _event(2, "restart", 2501.2, "running")]  # fmt: skip
WEB = _program("web", "service", [(10, 2001, None, 9), (2051, 2502, None, 15), (2503, 3000, None, 15)])
PUT = _program("put", "job", [(10, 2900, 0, None)])


def _findings(folder: Path, records: list[dict[str, Any]]) -> list[str]:
    experiment = _load(folder, PAUSE, KILL, LINE)
    (workload,) = experiment.scenario.workloads
    assert isinstance(workload, Command)
    for each in records:
        Line.validate_python(each)
    events = experiment.network.events
    ran, missing = read_records(workload, "server", ZERO, records, events)
    written = outputs(records)
    found = [*missing, *(row for each in ran for row in check_ran(each, written))]
    found += check_events(events, workload, ran, {"server": records}, {"server": ZERO, "client": ZERO}, {"server": MS})
    return [f"{each.field}: {each.expected}; {each.seen}" for each in found]


def test_events_that_were_carried_out_explain_what_they_did(tmp_path: Path) -> None:
    assert _findings(tmp_path, [*EVENTS, WEB, PUT]) == []


def _changed(place: int, **fields: Any) -> list[dict[str, Any]]:
    return [*EVENTS[:place], EVENTS[place] | fields, *EVENTS[place + 1 :], WEB, PUT]


DAMAGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "an event is missing": ([*EVENTS[2:], WEB, PUT], "timeline.0: pause web"),
    "its end is missing": ([EVENTS[0], *EVENTS[2:], WEB, PUT], ""),
    "it comes early": (_changed(0, at=ZERO + 999 * MS, late=-MS), "timeline.0: pause at"),
    "it comes late": (_changed(0, at=ZERO + 1002 * MS, late=2 * MS), "timeline.0: pause at"),
    "its readings differ": (_changed(0, at=ZERO + 1001 * MS), "timeline.0: pause at"),
    "it was due at another time": (_changed(0, due=999 * MS, at=ZERO + 999 * MS, late=0), "timeline.0: due at"),
    "its end was due at another time": (_changed(1, due=1099 * MS), "timeline.0: over at"),
    "it did nothing": (_changed(2, met=False, state="waiting"), "timeline.1"),
    "it does another thing": (_changed(0, verb="restart"), "timeline.0: pause, continue"),
    "another program": (_changed(0, name="put"), "timeline.0"),
    "twice": ([EVENTS[0], *EVENTS, WEB, PUT], "timeline.0"),
    "that the timeline does not have": ([_event(7, "kill", 5, "running"), *EVENTS, WEB, PUT], "timeline.7: none"),
    "before its line": (_changed(5, due=2499 * MS, at=ZERO + 2499 * MS, late=0), "timeline.2: due after a line"),
    "without its line": ([*EVENTS[:4], OUTPUT | {"data": base64.b64encode(b"rxx\n").decode()}, EVENTS[5], WEB, PUT],
                         "timeline.2: due after a line"),
    "a life too many": ([*EVENTS, _program("web", "service", [(10, 900, 0, None), (901, 2001, None, 9),
                        (2051, 2502, None, 15), (2503, 3000, None, 15)]), PUT], "web lives"),
    "another signal": ([*EVENTS, _program("web", "service", [(10, 2001, None, 15), (2051, 2502, None, 15),
                       (2503, 3000, None, 15)]), PUT], "web end: signal KILL"),
    "an end without event": ([*EVENTS, _program("web", "service", [(10, 2001, None, 9), (2051, 2502, None, 15),
                             (2503, 2600, 1, None)], stopped=False), PUT], "web end: when all jobs"),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name, (_, words) in DAMAGES.items() if words])
def test_a_damaged_record_is_a_finding(tmp_path: Path, name: str) -> None:
    records, words = DAMAGES[name]
    found = _findings(tmp_path, records)
    assert any(words in each for each in found), found


def test_an_event_that_was_not_over_when_the_programs_ended_is_none(tmp_path: Path) -> None:
    assert _findings(tmp_path, DAMAGES["its end is missing"][0]) == []


def test_a_service_that_an_event_killed_may_stay_dead(tmp_path: Path) -> None:
    dead = _program("web", "service", [(10, 2001, None, 9)], stopped=False)
    records = [*EVENTS[:3], OUTPUT, _event(2, "restart", 2501.2, "ended", late=0.1), dead, PUT]
    assert _findings(tmp_path, records) == []


def test_pauses_last_until_what_ends_them(tmp_path: Path) -> None:
    experiment = _load(tmp_path, PAUSE, KILL, LINE)
    (workload,) = experiment.scenario.workloads
    assert isinstance(workload, Command)

    def of(*records: dict[str, Any]) -> Ran:
        ran, _ = read_records(workload, "server", ZERO, [*records, WEB, PUT], experiment.network.events)
        return ran[0]

    assert pauses(of(*EVENTS)) == [(1000 * MS + MS // 10, 1100 * MS)]
    assert pauses(of(EVENTS[0], EVENTS[2])) == [(1000 * MS + MS // 10, 2000 * MS)]
    assert pauses(of(EVENTS[0])) == [(1000 * MS + MS // 10, 3000 * MS)]


@pytest.mark.parametrize("name", ["late", "number", "met", "verb"])
def test_a_record_without_a_field_is_none(name: str) -> None:
    event = {key: value for key, value in EVENTS[0].items() if key != name}
    assert not are_records([*EVENTS, event, WEB, PUT])
    assert are_records([*EVENTS, WEB, PUT])

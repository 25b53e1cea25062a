# SPDX-License-Identifier: Apache-2.0
"""Events of a timeline on disks and memory, without a machine: what is refused, jobs, and records compared with the
timeline."""

from pathlib import Path
from typing import Any

import pytest

from sundial.errors import BadInput
from sundial.model.experiment import Experiment
from sundial.model.load import load_experiments
from sundial.observe.programs import fnv1a
from sundial.plan.jobs import build_jobs
from sundial.workloads.command.verify_amounts import check_amounts, rough_bytes
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
"""
S, MS, MIB = 10**9, 10**6, 1 << 20
ZERO = 5_000
FILL, TAKE = "at: 2 s, for: 1 s, fill_disk: client, leave: 0", "at: 4 s, take_memory: client, amount: 10001"


def _load(folder: Path, *events: str) -> Experiment:
    file = folder / "own.yaml"
    file.write_text(SCENARIO.format(events="\n".join(f"  - {{{event}}}" for event in events)))
    (experiment,) = load_experiments(str(file))
    return experiment


REFUSED = [
    ("at: 1 s, fill_disk: wob, leave: 0", "timeline.0.fill_disk", "there is no machine 'wob'"),
    ("at: 1 s, take_memory: server, leave: 0", "timeline.0.take_memory", "'server' has no workload of app: command"),
    ("at: 1 s, fill_disk: client", "timeline.0", "fill_disk has either amount or leave"),
    ("at: 1 s, fill_disk: client, leave: 0, amount: 1 MiB", "timeline.0", "fill_disk has either amount or leave"),
    ("at: 1 s, take_memory: client, amount: 0", "timeline.0.amount", "is out of range"),
    ("at: 1 s, take_memory: client, amount: 96 MiB", "timeline.0.amount", "'client' has 96 MiB of memory"),
    ("at: 1 s, take_memory: client, leave: 1 GiB", "timeline.0.leave", "'client' has 96 MiB of memory"),
    ("at: 1 s, take_memory: client, amount: 1 MiB, path: /srv", "timeline.0.path", "take_memory has no path"),
    ("at: 1 s, fill_disk: client, amount: 1 MiB, path: srv", "timeline.0.path", "is not a path"),
    ("at: 1 s, cut: lan, leave: 0", "timeline.0.leave", "cut has no leave"),
    ("at: 1 s, fill_disk: client, leave: 0, back: 1 s", "timeline.0.back", "fill_disk has no back"),
    ("after: {program: get, ends: true}, fill_disk: client, leave: 0", "timeline.0.after", "only at a time"),
    ("at: 30 s, fill_disk: client, leave: 0", "timeline.0.at", "over by 21 s"),
]


@pytest.mark.parametrize(("event", "field", "what"), REFUSED)
def test_an_event_that_cannot_be_is_refused(tmp_path: Path, event: str, field: str, what: str) -> None:
    with pytest.raises(BadInput) as caught:
        _load(tmp_path, event)
    first = caught.value.problems[0]
    assert first.field == field, str(caught.value)
    assert what in first.what


def test_a_file_system_is_filled_once_at_a_time(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"timeline.1.fill_disk: fill_disk of 'client' is in force already, by timeline"):
        _load(tmp_path, FILL, "at: 2500 ms, fill_disk: client, leave: 0")
    _load(tmp_path, FILL, "at: 3 s, fill_disk: client, leave: 0")
    _load(tmp_path, FILL, "at: 2500 ms, fill_disk: client, leave: 0, path: /tmp", TAKE)


def test_a_job_has_what_is_taken_of_its_machine_in_time(tmp_path: Path) -> None:
    jobs = build_jobs(_load(tmp_path, TAKE, FILL))
    assert jobs["client"].steps[0].options["amounts"] == [
        {"number": 1, "at_ns": 2 * S, "over_ns": 3 * S, "path": "/", "leave": 0},
        {"number": 0, "at_ns": 4 * S, "bytes": 10001},
    ]


Record = dict[str, Any]


def _record(number: int, verb: str, due: int, free: tuple[int, int], held: tuple[int, int]) -> Record:
    late, took = 20_000, 30 * MS
    times = {"due": due, "late": late, "at": ZERO + due + late + took}
    sizes = {"before": free[0], "after": free[1], "held": held[0], "holds": held[1], "sleeps": 0}
    return {"type": "amount", "step": 0, "app": "command", "number": number, "verb": verb, **times, **sizes}


def _records() -> list[Record]:
    """Of FILL and TAKE, as machines write them; 3 pages have 10001 bytes."""
    nothing = {"bytes": 0, "kept": 0, "fnv1a": fnv1a(b"")}
    program = {"type": "program", "step": 0, "app": "command", "name": "get", "role": "job", "timed_out": False,
               "stopped": False, "stdout": nothing, "stderr": nothing, "start": ZERO, "ready": None,
               "end": ZERO + 9 * S, "status": 0, "signal": None}  # fmt: skip
    return [
        _record(0, "take", 2 * S, (20 * MIB, 0), (0, 20 * MIB)),
        _record(0, "release", 3 * S, (0, 20 * MIB), (20 * MIB, 0)),
        _record(1, "take", 4 * S, (60 * MIB, 60 * MIB - 90_000), (0, 12288)),
        program,
    ]


def _findings(folder: Path, records: list[Record], late_ns: int | None = MS) -> list[str]:
    assert are_records(records)
    events = _load(folder, FILL, TAKE).network.events
    return [each.field for each in check_amounts(events, "client", records, ZERO, late_ns, 96 * MIB)]


def test_amounts_as_the_timeline_says_have_no_finding(tmp_path: Path) -> None:
    records = _records()
    assert _findings(tmp_path, records) == []
    assert _findings(tmp_path, [records[0], *records[2:]]) == [], "programs ended before its time was over"


FILLED, EMPTIED, TAKEN = "amount client timeline.0", "amount client timeline.0 end", "amount client timeline.1"


@pytest.mark.parametrize(
    ("place", "change", "fields"),
    [
        (0, {"holds": 20 * MIB - 4096}, [FILLED, FILLED, EMPTIED]),
        (0, {"after": 4096}, [FILLED]),
        (0, {"due": 2 * S + 1}, [FILLED]),
        (0, {"late": 2 * MS}, [FILLED]),
        (0, {"late": -1}, [FILLED]),
        (0, {"at": ZERO + 2 * S}, [FILLED]),
        (0, {"verb": "release"}, [FILLED]),
        (0, {"number": 7}, [FILLED, "amount client timeline.7"]),
        (1, {"after": 20 * MIB - 4096}, [EMPTIED]),
        (1, {"holds": 4096}, [EMPTIED]),
        (1, {"due": 2 * S}, [FILLED]),
        (2, {"holds": 10001}, [TAKEN]),
        (2, {"after": 60 * MIB + rough_bytes(96 * MIB)}, [TAKEN]),
    ],
)
def test_what_differs_from_the_timeline_is_found(tmp_path: Path, place: int, change: Record, fields: list[str]) -> None:
    records = _records()
    records[place] |= change
    assert _findings(tmp_path, records) == fields


def test_an_event_without_a_record_is_found(tmp_path: Path) -> None:
    assert _findings(tmp_path, _records()[3:]) == [FILLED, TAKEN]


def test_what_is_due_while_another_is_carried_out_comes_after_it(tmp_path: Path) -> None:
    records = _records()
    records[1]["late"] = 400 * MS
    records[0]["at"], records[1]["at"] = (ZERO + 3 * S + after for after in (399 * MS, 500 * MS))
    assert _findings(tmp_path, records) == []
    records[0]["at"] -= 2 * MS
    assert _findings(tmp_path, records) == [FILLED]


def test_what_is_free_where_other_programs_ran_meanwhile_is_not_compared(tmp_path: Path) -> None:
    records = _records()
    records[1] |= {"after": 19 * MIB, "sleeps": 1}
    assert _findings(tmp_path, records) == []


def test_what_is_free_under_the_real_clock_is_not_compared(tmp_path: Path) -> None:
    records = _records()
    records[0] |= {"after": 4096, "late": 90 * MS}
    assert _findings(tmp_path, records, None) == []

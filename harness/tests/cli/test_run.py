# SPDX-License-Identifier: Apache-2.0
"""`sundial run`: what is asked of the rooms, what is printed, and the exit status of every ending."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

from sundial.cli import rooms
from sundial.errors import HostLacks, Interrupted, RunFailed

Call = Callable[..., Result]


def test_a_good_run(call: Call, fake: Any, captures: Path) -> None:
    result = call("run", "quickstart", "--set", "calls=1", "--seed", "7", "--cold", "--connect", "qemu:///session")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"run      {captures}/quickstart-1",
        "verdict  pass: 12 calls, 0 mismatches",
        "unproven 2 properties; list them: ./sundial verify --unproven quickstart-1",
        "time     2.500 s simulated, 1.2 s wall, 4.0 s in all",
        f"report   {captures}/quickstart-1/report.html",
        f"capture  {captures}/quickstart-1/wire/lan.pcapng",
    ]
    assert result.stderr.splitlines()[0] == "booting"
    assert result.stderr.splitlines()[-1] == "open it with: ./sundial open quickstart-1"
    (request,) = fake.requests
    assert (request.experiment.seed, request.cold, request.connect, request.out) == (7, True, "qemu:///session", None)


def test_an_event_of_a_wire_behind_the_end_is_named(call: Call, fake: Any) -> None:
    events = "timeline=[{at: 2499 ms, cut: lan}, {at: 2500 ms, heal: lan}]"
    result = call("run", "partition", "--set", events)
    late = [line for line in result.stdout.splitlines() if line.startswith("warning")]
    assert late == ["warning  timeline.1: heal at 2.5 s was not reached: the run ended at 2.500 s"]


@pytest.mark.parametrize("words", [("run", "quickstart"), ("up", "office"), ("reproduce", "bilas97")])
def test_a_place_for_runs_that_cannot_be_written_to_is_named_before_anything_begins(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(rooms, "CAPTURES", tmp_path / "file" / "captures")
    monkeypatch.setattr(rooms, "named_room", lambda name: pytest.fail(f"{name} was called"))
    result = call(*words)
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"{tmp_path}/file/captures cannot be written to: Not a directory" in result.stderr


def test_a_run_outside_captures_is_called_by_its_path(call: Call, fake: Any, tmp_path: Path) -> None:
    result = call("run", "quickstart", "--no-report", "--out", str(tmp_path / "a run"))
    assert result.exit_code == 0
    assert f"./sundial verify --unproven '{tmp_path}/a run'" in result.stdout
    assert result.stderr.splitlines()[-1] == f"open it with: ./sundial open '{tmp_path}/a run'"


def test_a_run_without_a_report(call: Call, fake: Any, captures: Path) -> None:
    result = call("run", "quickstart", "--no-report")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        "time     2.500 s simulated, 1.2 s wall, 4.0 s in all",
        f"capture  {captures}/quickstart-1/wire/lan.pcapng",
    ]
    assert "writing the report" not in result.stderr
    assert json.loads(call("run", "quickstart", "--no-report", "--json").stdout)["report"] is None


@pytest.mark.parametrize(
    ("options", "drawn"), [((), False), (("--report", "later"), False), (("--report", "now"), True)]
)
def test_figures_of_a_report_are_drawn_when_they_are_asked_for(
    call: Call, fake: Any, captures: Path, options: tuple[str, ...], drawn: bool
) -> None:
    result = call("run", "quickstart", *options)
    assert (result.exit_code, fake.drawn) == (0, drawn)
    assert f"report   {captures}/quickstart-1/report.html\n" in result.stdout
    assert ("draw its figures with: ./sundial report quickstart-1\n" in result.stderr) is not drawn


@pytest.mark.parametrize("options", [("--report", "no"), ("--report", "now", "--no-report")])
def test_the_last_word_about_the_report_holds(call: Call, fake: Any, options: tuple[str, ...]) -> None:
    result = call("run", "quickstart", *options)
    assert (result.exit_code, fake.drawn) == (0, None)
    assert "draw its figures" not in result.stderr


def test_another_word_about_the_report_is_bad_usage(call: Call, fake: Any) -> None:
    result = call("run", "quickstart", "--report", "soon")
    assert (result.exit_code, fake.requests) == (2, [])
    assert "'soon' is not one of 'now', 'later', 'no'" in result.stderr


def test_a_mismatch_says_how_its_rule_is_explained(call: Call, fake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.verdict = "fail"
    verify = fake.verify_run

    def with_rule(path: Path) -> dict[str, Any]:
        document: dict[str, Any] = verify(path)
        return {**document, "problems": [{**problem, "rule": "call.packets"} for problem in document["problems"]]}

    monkeypatch.setattr(rooms, "verify_run", with_rule)
    assert "         its rule: ./sundial explain call.packets\n" in call("run", "quickstart").stdout


def test_a_mismatch_is_status_1(call: Call, fake: Any, captures: Path) -> None:
    fake.verdict = "fail"
    result = call("run", "quickstart")
    assert result.exit_code == 1
    assert "verdict  fail: 12 calls, 1 mismatch\n" in result.stdout
    assert result.stderr.splitlines()[-1] == f"sundial: {captures}/quickstart-1: verification failed: 1 mismatch"


@pytest.mark.parametrize(
    ("failure", "status", "lines"),
    [
        (
            HostLacks("no tshark", hint="apt-get install tshark"),
            3,
            ["sundial: no tshark", "hint: apt-get install tshark"],
        ),
        (
            RunFailed("guest died", machine="server", console_tail=["Oops", "panic [1]"]),
            4,
            ["sundial: server: guest died", "last lines of the console of server:", "    Oops", "    panic [1]"],
        ),
        (
            RunFailed("guest died", machine="server", console_tail=[]),
            4,
            ["sundial: server: guest died", "the console of server is empty"],
        ),
        (RunFailed("was killed", machine="fabric"), 4, ["sundial: fabric: was killed"]),
        (Interrupted(), 130, ["sundial: interrupted"]),
        (KeyboardInterrupt(), 130, ["sundial: interrupted"]),
    ],
)
def test_endings(call: Call, fake: Any, failure: BaseException, status: int, lines: list[str]) -> None:
    fake.failure = failure
    result = call("run", "quickstart")
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.splitlines()[-len(lines) :] == lines


@pytest.mark.parametrize(("options", "written"), [((), True), (("--no-report",), False)])
def test_a_failed_run_is_verified_and_has_a_report_where_one_is_asked_for(
    call: Call, fake: Any, tmp_path: Path, options: tuple[str, ...], written: bool
) -> None:
    fake.failure = RunFailed("its job failed", machine="client")
    fake.failure.folder = tmp_path
    result = call("run", "quickstart", *options)
    assert result.exit_code == 4
    assert fake.evaluated == ([tmp_path, tmp_path] if written else [])


def test_a_failed_run_that_cannot_be_verified_has_failed_all_the_same(call: Call, fake: Any, tmp_path: Path) -> None:
    fake.failure = RunFailed("its job failed", machine="client")
    fake.failure.folder = tmp_path
    fake.verdict = ZeroDivisionError()
    result = call("run", "quickstart")
    assert (result.exit_code, result.stderr.splitlines()[-1]) == (4, "sundial: client: its job failed")


def test_json_of_a_good_run_and_of_a_bad_one(call: Call, fake: Any, captures: Path) -> None:
    fake.verdict = "fail"
    result = call("run", "quickstart", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "path": f"{captures}/quickstart-1",
        "variant": "",
        "verdict": "fail",
        "calls": 12,
        "mismatches": 1,
        "first_mismatch": {
            "words": "request.packets: expected 2, seen 1 (wire/lan.pcapng, frames 7, 8)",
            "open": "./sundial open quickstart-1 lan --all --filter 'rpc.xid == 5'",
            "rule": None,
        },
        "bounds": [],
        "unproven": 2,
        "virtual_s": 2.5,
        "wall_s": 1.25,
        "total_s": 4.0,
        "report": f"{captures}/quickstart-1/report.html",
        "captures": [f"{captures}/quickstart-1/wire/lan.pcapng"],
    }
    fake.failure = RunFailed("guest died", machine="server", console_tail=["Oops"])
    result = call("run", "quickstart", "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["console_tail"] == ["Oops"]


def test_bad_input_starts_nothing(call: Call, fake: Any) -> None:
    result = call("run", "quickstart", "--set", "calls=0")
    assert result.exit_code == 2
    assert result.stderr == "sundial: --set: calls: 0 is out of range; allowed: a whole number from 1 to 1000000\n"
    assert fake.requests == []
    result = call("run", "quickstart", "--set", "calls=0", "--json")
    assert json.loads(result.stdout)["problems"] == [
        {
            "file": "--set",
            "line": None,
            "field": "calls",
            "what": "0 is out of range",
            "allowed": "a whole number from 1 to 1000000",
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["nothing"],
            "sundial: there is no scenario 'nothing'; allowed: atm-faults, command, dce-edges, dce-faults,",
        ),
        (["quickstart", "--topology", "x.yaml"], "sundial: x.yaml: does not exist"),
        (
            ["quickstart", "--scale", "huge"],
            "sundial: scale: scenario 'quickstart' has no scales; allowed: leave it out",
        ),
        (
            ["quickstart", "--out", "/nowhere/run"],
            "sundial: --out: /nowhere is not a directory; allowed: a new name in an existing",
        ),
        (["quickstart", "--out", "a\nb"], "sundial: --out: "),
        (["quickstart", "--out", "a\u202eb"], "sundial: --out: "),
        (
            ["quickstart", "--out", "/"],
            "sundial: --out: / exists already; allowed: a directory that does not exist yet",
        ),
    ],
)
def test_bad_arguments(call: Call, fake: Any, arguments: list[str], line: str) -> None:
    result = call("run", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(line)
    assert fake.requests == []


@pytest.mark.parametrize("arguments", [["--clock", "wall"], ["--seed", "many"], ["--frobnicate"], []])
def test_bad_usage(call: Call, arguments: list[str]) -> None:
    assert call("run", *(["quickstart", *arguments] if arguments else [])).exit_code == 2


def test_a_varied_scenario_makes_one_run_each(call: Call, fake: Any, tmp_path: Path) -> None:
    result = call("run", "loss", "--json", "--out", str(tmp_path / "mine"))
    assert result.exit_code == 0
    assert [run["variant"][-4:] for run in json.loads(result.stdout)] == ["=1 %", "=5 %", "20 %"]
    assert [request.out for request in fake.requests] == [tmp_path / f"mine-{number}" for number in (1, 2, 3)]


def test_a_dry_run_prints_the_plan(call: Call, fake: Any) -> None:
    result = call("run", "quickstart", "--dry-run")
    assert result.exit_code == 0
    (plan,) = json.loads(result.stdout)
    assert plan["fabric"]["segments"][0]["kind"] == "hub"
    assert list(plan["jobs"]) == ["client", "server"]
    assert plan["scenario"]["seed"] == 1
    assert fake.requests == []


def suites(path: Path) -> list[tuple[str, ...]]:
    """Name, errors and failures of each suite of a file."""
    root = ElementTree.parse(path).getroot()
    return [tuple(str(suite.get(name)) for name in ("name", "errors", "failures")) for suite in root]


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_a_verdict_is_written_for_ci(call: Call, fake: Any, tmp_path: Path, verdict: str) -> None:
    fake.verdict = verdict
    files = tmp_path / "t.xml", tmp_path / "t.md"
    for _ in range(2):
        result = call("run", "quickstart", "--junit", str(files[0]), "--summary", str(files[1]))
        assert result.exit_code == (verdict == "fail")
    assert suites(files[0]) == [("quickstart", "0", str(int(verdict == "fail")))]
    assert files[1].read_text().count(f" {verdict} | 12 |") == 2  # a summary is appended to


def test_each_run_of_a_varied_scenario_is_a_suite(call: Call, fake: Any, tmp_path: Path) -> None:
    call("run", "loss", "--junit", str(tmp_path / "t.xml"))
    names = [name for name, *_ in suites(tmp_path / "t.xml")]
    assert names == [f"loss segments.wan.impairments.both.loss={share} %" for share in (1, 5, 20)]


@pytest.mark.parametrize(
    ("failure", "status"),
    [(RunFailed("its job failed", machine="client"), 4), (HostLacks("no tshark"), 3), (KeyboardInterrupt(), 130)],
)
def test_a_run_that_ends_otherwise_is_written_for_ci(
    call: Call, fake: Any, tmp_path: Path, failure: BaseException, status: int
) -> None:
    fake.failure = failure
    assert call("run", "quickstart", "--junit", str(tmp_path / "t.xml")).exit_code == status
    assert suites(tmp_path / "t.xml") == [("quickstart", "1", "0")]
    assert f"status {status}: " in (tmp_path / "t.xml").read_text()


def test_a_failed_run_has_its_verdict_beside_the_error(call: Call, fake: Any, tmp_path: Path) -> None:
    fake.failure = RunFailed("its job failed", machine="client")
    fake.failure.folder = tmp_path
    fake.verdict = "fail"
    assert call("run", "quickstart", "--no-report", "--junit", str(tmp_path / "t.xml")).exit_code == 4
    assert suites(tmp_path / "t.xml") == [("quickstart", "1", "1")]


def test_a_refused_run_is_written_for_ci(call: Call, fake: Any, tmp_path: Path) -> None:
    files = ["--junit", str(tmp_path / "t.xml"), "--summary", str(tmp_path / "t.md")]
    assert call("run", "quickstart", "--set", "calls=0", *files).exit_code == 2
    assert fake.requests == []
    assert suites(tmp_path / "t.xml") == [("quickstart", "1", "0")]
    assert "0 is out of range" in (tmp_path / "t.md").read_text()


@pytest.mark.parametrize(("option", "path"), [("--junit", "/nowhere/t.xml"), ("--summary", "/")])
def test_a_place_for_ci_that_cannot_be_is_refused_before_anything(
    call: Call, fake: Any, option: str, path: str
) -> None:
    result = call("run", "quickstart", option, path)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"sundial: {option}: ")
    assert fake.requests == []


def test_a_mismatch_is_status_1_though_its_file_cannot_be_written(
    call: Call, fake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.verdict = "fail"
    (tmp_path / "folder").mkdir()

    def removed(ended: Any) -> str:
        (tmp_path / "folder").rmdir()
        return ""

    monkeypatch.setattr(rooms, "junit", removed)
    result = call("run", "quickstart", "--junit", str(tmp_path / "folder" / "t.xml"))
    assert result.exit_code == 1
    assert "cannot be written: No such file or directory" in result.stderr


def test_a_bound_with_an_unknown_column_starts_nothing(call: Call, fake: Any) -> None:
    result = call("run", "quickstart", "--set", "expect.metrics=['p99(rtu_us) < 5']")
    assert result.exit_code == 2
    assert "at character 5: there is no column 'rtu_us'; did you mean rtt_us?" in result.stderr
    assert fake.requests == []

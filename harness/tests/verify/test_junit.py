# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML and as Markdown: the structure of xunit2, and that what is wrong fails and nothing else."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from sundial.verify import markdown
from sundial.verify.junit import Ended, document

CALL = {
    "client": "c", "server": "s", "app": "raw-client", "transport": "udp", "procedure": "echo", "size": 64,
    "series": 0, "thread": 0, "batch": 0, "call": 3, "xid": 255,
}  # fmt: skip
GROUP = {name: CALL[name] for name in ("client", "server", "app", "transport", "procedure", "size")}
RUN = {
    "seed": 7,
    "clock": "virtual",
    "captures": {"wire/lan.pcapng": "ab" * 32},
    "command": ["/x/sundial", "run", "a b"],
}

ALLOWED = {
    # Element: its attributes (those that must be there first), and the elements within it.
    "testsuites": ((), ("name", "errors", "failures", "skipped", "tests", "time"), ("testsuite",)),
    "testsuite": (
        ("name", "errors", "failures", "skipped", "tests"), ("time", "timestamp", "hostname"),
        ("properties", "testcase", "system-out", "system-err"),
    ),
    "properties": ((), (), ("property",)),
    "property": (("name", "value"), (), ()),
    "testcase": (("classname", "name"), ("time",), ("skipped", "error", "failure", "system-out", "system-err")),
    "failure": ((), ("message", "type"), ()),
    "error": ((), ("message", "type"), ()),
    "system-out": ((), (), ()),
}  # fmt: skip
"""The structure of the schema for xunit2 (jenkins-junit.xsd), as far as anything is written."""


def valid(text: str) -> ElementTree.Element:
    """The document, which has this structure and counts what it has."""
    root = ElementTree.fromstring(text.encode())
    for element in root.iter():
        must, may, inside = ALLOWED[element.tag]
        assert set(must) <= set(element.keys()) <= {*must, *may}, element.tag
        assert {child.tag for child in element} <= set(inside), element.tag
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        for counter, tag in (("failures", "failure"), ("errors", "error")):
            assert int(suite.get(counter, "")) == sum(case.find(tag) is not None for case in cases)
        names = [(case.get("classname"), case.get("name")) for case in cases]
        assert len(set(names)) == len(names)
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name, "")) == sum(int(suite.get(name, "")) for suite in root)
    return root


def problem(**changes: Any) -> dict[str, Any]:
    plain = {
        "rule": "call.count", "severity": "error", "call": CALL, "capture": "wire/lan.pcapng", "frames": [7],
        "field": "request.count", "expected": "1", "seen": "2", "filter": "frame.number in {7}",
    }  # fmt: skip
    return {**plain, **changes}


def verdict(problems: list[dict[str, Any]], bounds: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    unmet = sum(not bound["met"] for bound in bounds or [])
    of_calls = sum(each["call"] is not None for each in problems)
    return {
        "verdict": "fail" if problems or unmet else "pass", "calls": 4, "mismatches": len(problems) + unmet,
        "problems": problems, "bounds": bounds or [],
        "groups": [{**GROUP, "mismatches": of_calls}, {**GROUP, "size": 1024, "mismatches": 0}],
    }  # fmt: skip


def bound(*, met: bool) -> dict[str, Any]:
    return {
        "bound": "p99(rtt_us) < 900",
        "limit": "< 900 us",
        "words": "1000 us",
        "rows": 4,
        "table": "samples",
        "met": met,
    }


def failed(root: ElementTree.Element, tag: str = "failure") -> dict[str, ElementTree.Element]:
    found = {str(case.get("name")): case.find(tag) for case in root.iter("testcase")}
    return {name: element for name, element in found.items() if element is not None}


GROUP_CASE = "echo 64 B, c to s"
FRAMES_CASE, REST_CASE, END_CASE = (
    "every frame has a reason", "headers, wires, counters and files", "the run comes to its end"
)  # fmt: skip


def test_a_run_that_passes_has_no_failure() -> None:
    root = valid(
        document([Ended("s udp=1", "r", RUN, verdict([], [bound(met=True)]), None, ["sundial", "run", "a b"])])
    )
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == [END_CASE, GROUP_CASE, "echo 1024 B, c to s", "p99(rtt_us) < 900", FRAMES_CASE, REST_CASE]
    assert (failed(root), failed(root, "error")) == ({}, {})
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties == {
        "seed": "7", "clock": "virtual", "sha256 wire/lan.pcapng": "ab" * 32, "run": "r",
        "command": "sundial run 'a b'",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("problems", "bounds", "cases"),
    [
        ([problem()], [], {GROUP_CASE}),
        ([problem(call=None, rule="frame.reason", field="frame without a call")], [], {FRAMES_CASE}),
        ([problem(call=None, rule="wire.time", field="time on the wire: arrival at c:eth0")], [], {REST_CASE}),
        ([problem(call={**CALL, "size": 4})], [], {GROUP_CASE, REST_CASE}),  # verdict() counts it among the group's
        ([], [bound(met=False)], {"p99(rtt_us) < 900"}),
        ([problem()], [bound(met=False)], {GROUP_CASE, "p99(rtt_us) < 900"}),
    ],
)
def test_what_is_wrong_fails(problems: list[Any], bounds: list[Any], cases: set[str]) -> None:
    assert set(failed(valid(document([Ended("s", "r", RUN, verdict(problems, bounds))])))) == cases


def test_a_failure_has_the_first_mismatch_and_twenty_with_their_commands() -> None:
    many = [problem(call={**CALL, "call": number}, frames=[number]) for number in range(30)]
    found = failed(valid(document([Ended("s", "r", RUN, verdict(many))])))[GROUP_CASE]
    assert str(found.get("message")).startswith("request.count of call 0 of c")
    lines = str(found.text).splitlines()
    assert len([line for line in lines if line.startswith("request.count")]) == 20
    assert len([line for line in lines if line.startswith("    ./sundial open r lan --all")]) == 20
    assert lines[-1] == "and 10 more: ./sundial verify r"


def test_mismatches_beyond_those_that_are_listed_fail_too() -> None:
    unlisted = {**verdict([]), "verdict": "fail", "mismatches": 5}
    assert set(failed(valid(document([Ended("s", "r", RUN, unlisted)])))) == {REST_CASE}


def test_a_run_that_failed_is_an_error_beside_what_was_verified() -> None:
    error = {"exit_code": 4, "message": "client: its job failed", "hint": "see", "console_tail": ["a\x1b[0m", "b"]}
    root = valid(document([Ended("s", "r", RUN, verdict([problem()]), error)]))
    assert failed(root, "error")[END_CASE].get("message") == "status 4: client: its job failed"
    assert set(failed(root)) == {GROUP_CASE}
    assert root.findtext("testsuite/system-out") == "a?[0m\nb"


def test_a_run_that_had_failed_is_an_error_when_it_is_verified_again() -> None:
    run = {**RUN, "status": "failed", "error": {"exit_code": 4, "message": "client: no"}}
    root = valid(document([Ended("s", "r", run, verdict([problem()]))]))
    assert failed(root, "error")[END_CASE].get("message") == "status 4: client: no"
    assert "| s | ❌ error (4) | 4 | 1 |" in markdown.document([Ended("s", "r", run, verdict([problem()]))])
    stopped = {"status": "interrupted", "error": None}
    assert failed(valid(document([Ended("s", "r", stopped)])), "error")[END_CASE].text == "the run is interrupted"


def test_a_run_that_was_refused_is_an_error_alone() -> None:
    root = valid(
        document([Ended("nothing", error={"exit_code": 2, "message": "there is no scenario\nx", "hint": None})])
    )
    assert list(failed(root, "error")) == [END_CASE]
    assert root.find("testsuite/properties") is not None


def test_several_runs_are_several_suites() -> None:
    root = valid(
        document([Ended("s loss=1", "r-1", RUN, verdict([])), Ended("s loss=5", "r-2", RUN, verdict([problem()]))])
    )
    assert [suite.get("name") for suite in root] == ["s loss=1", "s loss=5"]
    assert [suite.get("failures") for suite in root] == ["0", "1"]


def test_markdown_says_the_same() -> None:
    text = markdown.document(
        [
            Ended("s", "r", RUN, verdict([problem(seen="<b>|x")], [bound(met=False)]), None, ["./sundial", "run", "s"]),
            Ended("t", error={"exit_code": 2, "message": "a `quoted` word"}),
        ]
    )
    assert "| s | ❌ fail | 4 | 2 |" in text
    assert "| t | ❌ error (2) | - | - |" in text
    assert "| `p99(rtt_us) < 900` | ❌ | 1000 us |" in text
    assert "\\<b\\>\\|x" in text
    assert "  `./sundial open r lan --all --filter 'frame.number in {7}'`" in text
    assert "`` a `quoted` word ``" in text
    assert "| s | ✅ pass |" in markdown.document([Ended("s", "r", RUN, verdict([]))])

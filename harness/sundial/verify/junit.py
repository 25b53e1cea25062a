# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, in the form that pytest calls xunit2. Pure: documents in, text out.

One `testsuite` a run. Its `testcase`s: that the run came to its end, each group of calls alike, each bound of the
scenario, what its own check said, that every frame has a reason, and everything else (headers, wires, counters, files).
What a mismatch is about fails, so a suite without failures and errors is a run with the verdict pass.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from sundial.model.catalog import COMMAND
from sundial.verify.result import GROUP
from sundial.verify.words import grouped, in_words, open_command, to_show

LISTED = 20
"""Mismatches in the text of a failure."""
CONSOLE_LINES = 100
FRAMES_RULE, BOUND_RULE, CHECK_RULE = "frame.reason", "expect.metric", "expect.check"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Ended:
    """A run as it ended, or one that was refused before it began."""

    name: str
    """Of its suite: scenario and variant."""
    reference: str | None = None
    """What commands call its directory; None: there is none."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """run.json."""
    verdict: Mapping[str, Any] | None = None
    """verify.json."""
    error: Mapping[str, Any] | None = None
    """As errors say themselves in `--json`, where the run or the verification failed."""
    command: Sequence[str] = ()
    """What repeats it."""
    seconds: float = 0.0

    @property
    def failure(self) -> Mapping[str, Any] | None:
        """What ended the command, or the run itself where an earlier command made it."""
        if self.error is not None or self.run.get("status") in (None, "complete"):
            return self.error
        error = self.run.get("error")
        return error if isinstance(error, Mapping) else {"message": f"the run is {self.run['status']}"}

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.failure is None and self.verdict is not None and self.verdict["verdict"] != "fail"


@dataclass(frozen=True)
class _Case:
    """One testcase. Without `message` it passed."""

    group: str
    name: str
    message: str | None = None
    text: str = ""
    is_error: bool = False


def document(ended: Sequence[Ended]) -> str:
    """The whole file."""
    suites = [_suite(each) for each in ended]
    root = ElementTree.Element("testsuites", _totals(suites) | {"name": "sundial"})
    root.extend(suites)
    ElementTree.indent(root, " ")
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _totals(suites: Sequence[ElementTree.Element]) -> dict[str, str]:
    names = ("errors", "failures", "skipped", "tests")
    counts = {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in names}
    return counts | {"time": f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}"}


def _suite(ended: Ended) -> ElementTree.Element:
    cases = list(_cases(ended))
    counts = {
        "errors": sum(case.message is not None and case.is_error for case in cases),
        "failures": sum(case.message is not None and not case.is_error for case in cases),
        "skipped": 0,
        "tests": len(cases),
    }
    texts = {name: str(count) for name, count in counts.items()}
    suite = ElementTree.Element("testsuite", {"name": _clean(ended.name), **texts, "time": f"{ended.seconds:.3f}"})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(ended):
        ElementTree.SubElement(properties, "property", {"name": _clean(name), "value": _clean(value)})
    for case in cases:
        made = ElementTree.SubElement(
            suite, "testcase", {"classname": _clean(case.group), "name": _clean(case.name), "time": "0.000"}
        )
        if case.message is not None:
            kind = "error" if case.is_error else "failure"
            ElementTree.SubElement(made, kind, {"message": _clean(case.message)}).text = _clean(case.text)
    tail = (ended.failure or {}).get("console_tail") or ()
    if tail:
        ElementTree.SubElement(suite, "system-out").text = _clean("\n".join(map(str, tail[-CONSOLE_LINES:])))
    return suite


def _properties(ended: Ended) -> Iterator[tuple[str, str]]:
    for name in ("seed", "clock", "status"):
        if name in ended.run:
            yield name, str(ended.run[name])
    for capture, digest in (ended.run.get("captures") or {}).items():
        yield f"sha256 {capture}", str(digest)
    if ended.reference is not None:
        yield "run", ended.reference
    if ended.command:
        yield "command", shlex.join(ended.command)


def _cases(ended: Ended) -> Iterator[_Case]:
    suite = ended.name.partition(" ")[0]
    error = ended.failure
    if error is not None:
        message = str(error.get("message", "")).splitlines() or [""]
        text = "\n".join([*message, *([f"hint: {error['hint']}"] if error.get("hint") else [])])
        status = f"status {error['exit_code']}: " if "exit_code" in error else ""
        yield _Case(suite, "the run comes to its end", f"{status}{message[0]}", text, True)
    elif ended.verdict is not None:
        yield _Case(suite, "the run comes to its end")
    if ended.verdict is not None:
        yield from _of_verdict(suite, ended.reference or "latest", ended.verdict)


def _of_verdict(suite: str, reference: str, verdict: Mapping[str, Any]) -> Iterator[_Case]:
    problems = list(verdict.get("problems") or [])
    left = list(problems)
    failed = 0
    for group in verdict.get("groups") or []:
        mine = [each for each in problems if each["call"] and all(each["call"][name] == group[name] for name in GROUP)]
        left = [each for each in left if each not in mine]
        case = _case(f"{suite}.{group['app']}.{group['transport']}", group_name(group), reference, mine)
        if case.message is None and group.get("mismatches"):
            case = _unlisted(case, int(group["mismatches"]))
        failed += case.message is not None
        yield case
    for bound in verdict.get("bounds") or []:
        failed += not bound["met"]
        yield _bound_case(f"{suite}.bound", bound)
    for check in verdict.get("checks") or []:
        failed += not check["met"]
        yield _Case(f"{suite}.check", check["check"], None if check["met"] else check["words"])
    left = [each for each in left if each.get("rule") not in (BOUND_RULE, CHECK_RULE)]
    frames = [each for each in left if each.get("rule") == FRAMES_RULE]
    others = [each for each in left if each not in frames]
    for name, mine in (("every frame has a reason", frames), ("headers, wires, counters and files", others)):
        case = _case(suite, name, reference, mine)
        failed += case.message is not None
        if name.startswith("headers") and verdict.get("mismatches") and not failed:
            case = _unlisted(case, int(verdict["mismatches"]))
        yield case


def group_name(group: Mapping[str, Any]) -> str:
    """Calls alike, as one line says it."""
    return f"{group['procedure']} {group['size']} B, {group['client']} to {group['server']}"


def _case(group: str, name: str, reference: str, problems: Sequence[Mapping[str, Any]]) -> _Case:
    """Failed where there are problems: the message is the one to begin with, the text the first LISTED."""
    first = to_show(problems)
    if first is None:
        return _Case(group, name)
    shown = grouped(problems)
    lines = []
    for problem in shown[:LISTED]:
        lines.append(in_words(problem))
        command = open_command(reference, problem)
        lines += [f"    {command}"] if command else []
    if len(shown) > LISTED:
        lines.append(f"and {len(shown) - LISTED} more: {shlex.join([COMMAND, 'verify', reference])}")
    return _Case(group, name, in_words(first), "\n".join(lines))


def _unlisted(case: _Case, mismatches: int) -> _Case:
    """A case whose mismatches are beyond those that verify.json lists."""
    return _Case(case.group, case.name, f"{mismatches} mismatches", "beyond those that verify.json lists")


def _bound_case(group: str, bound: Mapping[str, Any]) -> _Case:
    words = f"expected {bound['limit']}, seen {bound['words']}"
    if bound["met"]:
        return _Case(group, bound["bound"])
    return _Case(group, bound["bound"], words, f"{words} ({bound['rows']} rows of {bound['table']}) [{BOUND_RULE}]")


def _clean(text: str) -> str:
    """Without what XML 1.0 does not allow."""
    return _NOT_XML.sub("?", text)

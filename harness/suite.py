#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Durations of the test suites, kept in .sundial/test of the checkout.

    harness/suite.py run NAME -- COMMAND...    run a suite; its wall and processor seconds and its junit file are kept
    harness/suite.py report                    print the suites and the slowest tests, write junit.xml and durations.md
    harness/suite.py clean                     forget what was kept

Needs Python alone: suites start before the environment of the project is made.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

KEPT = Path(__file__).resolve().parents[1] / ".sundial" / "test"
SLOWEST = 25


def run(name: str, argv: list[str]) -> int:
    """The status of the command. Files of make's jobserver stay open for it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGQUIT):
        # A background job of a shell ignores them, and so would the programs that tests interrupt.
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    before, started = os.times(), time.monotonic()
    status = subprocess.run(argv, close_fds=False, check=False, env={**os.environ, "SUNDIAL_SUITE": name}).returncode
    after = os.times()
    cpu_s = after.children_user - before.children_user + after.children_system - before.children_system
    kept = {"suite": name, "wall_s": time.monotonic() - started, "cpu_s": cpu_s, "status": status}
    (KEPT / f"{name}.json").write_text(json.dumps(kept) + "\n")
    print(f"{name}: {'passed' if status == 0 else f'FAILED ({status})'} in {kept['wall_s']:.0f} s", flush=True)
    return status


def merged() -> ElementTree.Element:
    """The test suites of all junit files under one root."""
    root = ElementTree.Element("testsuites")
    for file in sorted(KEPT.glob("*.junit.xml")):
        for suite in ElementTree.parse(file).getroot().iter("testsuite"):
            suite.set("name", file.name.removesuffix(".junit.xml"))
            root.append(suite)
    return root


def report() -> None:
    """Suites by name, the slowest tests, and how booted runs were checked against recorded digests."""
    root = merged()
    ElementTree.ElementTree(root).write(KEPT / "junit.xml", encoding="unicode", xml_declaration=True)
    suites = [json.loads(file.read_text()) for file in sorted(KEPT.glob("*.json"))]
    lines = ["| suite | wall s | processor s | tests | status |", "| --- | --- | --- | --- | --- |"]
    tests = Counter(suite.get("name") for suite in root for _ in suite.iter("testcase"))
    for each in suites:
        name = each["suite"]
        outcome = "passed" if each["status"] == 0 else "FAILED"
        lines.append(f"| {name} | {each['wall_s']:.0f} | {each['cpu_s']:.0f} | {tests.get(name) or ''} | {outcome} |")
    lines.append(f"| all | | {sum(each['cpu_s'] for each in suites):.0f} | {sum(tests.values())} | |")
    cases = sorted(root.iter("testcase"), key=lambda case: -float(case.get("time", 0)))[:SLOWEST]
    lines += ["", "| slowest tests | s |", "| --- | --- |"]
    lines += [f"| {case.get('classname')}::{case.get('name')} | {float(case.get('time', 0)):.1f} |" for case in cases]
    text = "\n".join(lines) + "\n"
    (KEPT / "durations.md").write_text(text)
    print(text)
    runs = Counter(each.get("value") for each in root.iter("property") if each.get("name") == "digests")
    if runs:
        print("runs checked against digests:", ", ".join(f"{count} {how}" for how, count in sorted(runs.items())))
    skipped = sum(1 for _ in root.iter("skipped"))
    failed = sum(
        1 for case in root.iter("testcase") if case.find("failure") is not None or case.find("error") is not None
    )
    print(f"{sum(tests.values()) - failed - skipped} passed, {failed} failed, {skipped} skipped")


def main(words: list[str]) -> int:
    match words:
        case ["run", name, "--", *argv] if argv:
            return run(name, argv)
        case ["report"]:
            report()
        case ["clean"]:
            shutil.rmtree(KEPT, ignore_errors=True)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

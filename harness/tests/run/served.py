# SPDX-License-Identifier: Apache-2.0
"""Runs that pass, all made by one process, as those of a scenario that varies are: what a run has to import takes
longer than most runs. A run to be hurt, or whose end is the question, is a `live.LiveRun`.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path

from tests.run.live import END_S, HARNESS, VARIABLES

SERVE = """
import json, os, sys
from sundial.cli.main import status_of, sundial
requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for line in requests:
    argv, said = json.loads(line)
    output = os.open(said, os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    status = status_of(sundial, argv)
    sys.stdout.flush()
    print(status, file=answers, flush=True)
"""
_serving: list[subprocess.Popen[str]] = []


def passed(scenario: Path, out: Path, *options: str, report: bool = False, seconds: float = END_S) -> str:
    """What `sundial run` says of a run that must verify; `out` is its directory, or the first part of their names."""
    argv = ["run", str(scenario), "--out", str(out), "--report", "now" if report else "no", *options]
    said = out.with_name(f"{out.name}.said")
    ended = status(argv, said, seconds)
    output = said.read_text()
    assert ended == 0, output
    return output


def status(argv: list[str], said: Path, seconds: float) -> int:
    """The exit status of a command line; its output goes to the file `said`. Threads may call this side by side."""
    try:
        process = _serving.pop()
    except IndexError:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", SERVE]
        # It ends with this process, which holds its requests open.
        process = subprocess.Popen(
            command, cwd=HARNESS, env=VARIABLES, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps([argv, str(said)]) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        answer = process.stdout.readline() if ready else ""
    except BaseException:
        process.kill()
        raise
    if not answer:
        process.kill()
        raise AssertionError(f"not ended within {seconds:g} s: {said.read_text() if said.exists() else argv}")
    _serving.append(process)
    return int(answer)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options that the harness writes are those that the applications take: options.py FOLDER-OF-APPS GOLDEN-JOBS.

Every service and step of the golden jobs for Linux is given to the real program, which checks its options and ends.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Programs of SSS-CORE's library, which check their options once they are a node on a network device.
NODES = "mbcf-"
REFUSED = 2
# Of the same program, and named by no job.
NO_APPLICATIONS = {"runner", "spare"}


def error_of(program: Path, options: dict) -> str | None:
    """What the program has against its options, for which it ends with status 2 and one line."""
    with tempfile.TemporaryFile() as records:

        def give_stream() -> None:
            os.dup2(records.fileno(), 3)
            os.set_inheritable(3, True)

        done = subprocess.run(
            [program, json.dumps(options)],
            stdout=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=give_stream,  # noqa: PLW1509 (no threads here)
            env={**os.environ, "SUNDIAL_APP": program.name, "SUNDIAL_CHECK_OPTIONS": "1"},
            timeout=60,
            check=False,
        )
        records.seek(0)
        said = records.read().decode()
    if done.returncode == 0:
        return said or None
    assert (done.returncode, len(said.splitlines())) == (REFUSED, 1), (program.name, options, done.returncode, said)
    return said


def main() -> None:
    apps, golden = (Path(argument).resolve() for argument in sys.argv[1:])
    checked: set[str] = set()
    for path in sorted((golden / "linux").glob("*.json")):
        job = json.loads(path.read_text())
        for task in [*job.get("services", []), *job.get("steps", [])]:
            if task["app"].startswith(NODES):
                continue
            error = error_of(apps / task["app"], task["options"])
            assert error is None, (path.name, task, error)
            checked.add(task["app"])
    programs = {path.name for path in apps.iterdir() if path.is_symlink() and path.readlink().name == "apps"}
    expected = programs - NO_APPLICATIONS
    assert checked == expected, f"no golden job has {sorted(expected - checked)}"
    assert "option more: unknown" in (error_of(apps / "iperf3-client", {"server": "10.0.0.2", "more": 1}) or "")
    for program in sorted(expected):
        assert error_of(apps / program, {"nonsense": 1}) is not None, program
    assert "whole seconds" in (error_of(apps / "iperf3-client", {"server": "10.0.0.2", "duration_ms": 1500}) or "")
    print(f"@T options ok {len(checked)} applications")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The user's own program that judges a run: how it is run, and that nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import Interrupted
from sundial.run.checker import KEPT_BYTES, run_check


def _script(folder: Path, text: str) -> str:
    file = folder / "judge"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def _result(folder: Path, *words: str, seconds: float = 60.0) -> dict[str, Any]:
    run = folder / "run"
    run.mkdir()
    run_check(run, words, seconds)
    found: dict[str, Any] = json.loads((run / "check.json").read_bytes())
    return found


def test_the_directory_is_the_last_argument_and_all_is_recorded(tmp_path: Path) -> None:
    judge = _script(tmp_path, 'echo "$1 $2"; echo no >&2; exit 3')
    found = _result(tmp_path, judge, "--strict")
    assert found == {
        "version": 1, "argv": [judge, "--strict"], "status": 3, "signal": None, "timed_out": False, "error": None,
        "stdout": f"--strict {tmp_path}/run\n", "stderr": "no\n",
    }  # fmt: skip


def test_output_is_kept_up_to_a_limit(tmp_path: Path) -> None:
    found = _result(tmp_path, _script(tmp_path, f"head -c {KEPT_BYTES + 100_000} /dev/zero | tr '\\0' x"))
    assert (found["status"], len(found["stdout"])) == (0, KEPT_BYTES)


def test_a_program_that_cannot_be_run_is_recorded(tmp_path: Path) -> None:
    assert "No such file" in _result(tmp_path, str(tmp_path / "none"))["error"]


def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_nothing_is_left_of_a_program_that_does_not_end_in_its_time(tmp_path: Path) -> None:
    judge = _script(tmp_path, f"trap '' TERM; sleep 1000 & echo $! >{tmp_path}/pid; while :; do wait; done")
    found = _result(tmp_path, judge, seconds=0.5)
    assert (found["status"], found["signal"], found["timed_out"]) == (None, signal.SIGKILL, True)
    assert _gone(int((tmp_path / "pid").read_text()))


def test_what_a_program_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    found = _result(tmp_path, _script(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/pid; exit 0"))
    assert (found["status"], found["timed_out"]) == (0, False)
    assert _gone(int((tmp_path / "pid").read_text()))


def test_nothing_is_left_after_ctrl_c(tmp_path: Path) -> None:
    judge = _script(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/begun; mv {tmp_path}/begun {tmp_path}/pid; wait")

    def interrupt() -> None:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted):
        _result(tmp_path, judge)
    thread.join()
    assert _gone(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "run" / "check.json").exists()

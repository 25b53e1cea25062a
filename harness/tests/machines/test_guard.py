# SPDX-License-Identifier: Apache-2.0
"""The guard, with dummy processes: it acts when the harness dies, by SIGKILL too, and never otherwise."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sundial.machines import reaper
from sundial.machines.guard import Guard
from sundial.machines.waiting import wait_until

HARNESS = Path(__file__).parents[2]
SLEEPER = "import signal; signal.pause()"


@pytest.fixture
def token() -> Iterator[str]:
    token = f"sundial-test-{secrets.token_hex(6)}"
    yield token
    assert reaper.processes_of(token) == []


def sleeper(token: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", SLEEPER, token])


def test_ends_only_the_processes_that_carry_the_token(token: str) -> None:
    mine, other = sleeper(token), sleeper("another-run")
    try:
        wait_until(lambda: mine.pid in reaper.processes_of(token), seconds=5, what="the dummy")
        assert reaper.end_all(token) == []
        assert mine.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_process_number_given_to_somebody_else_is_not_signalled(token: str) -> None:
    other = sleeper("another-run")
    try:
        assert reaper.end_process(other.pid, token) is None
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_normal_end_cleans_nothing(token: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    with Guard(token) as guard:
        guard.remove_on_death(kept)
    assert kept.is_dir()
    assert reaper.start_time(guard.pid) is None


HARNESS_SCRIPT = """
import signal, subprocess, sys
from pathlib import Path
from sundial.machines.guard import Guard
token, folder = sys.argv[1], Path(sys.argv[2])
guard = Guard(token)
guard.remove_on_death(folder / "runtime")
guard.remove_on_death(folder / "shm")
guard.rename_on_death(folder / ".RUN.partial", folder / "RUN")
guard.remove_on_death(folder / "forgotten")
guard.forget(folder / "forgotten")
subprocess.Popen([sys.executable, "-S", "-c", "import signal; signal.pause()", token], start_new_session=True,
                 stdout=subprocess.DEVNULL)
print("up", guard.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_cleans_up_after_a_harness_that_died(token: str, tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "runtime" / "deep").mkdir(parents=True)
    (tmp_path / "shm").touch()
    (tmp_path / "forgotten").touch()
    (tmp_path / ".RUN.partial").mkdir()
    (tmp_path / ".RUN.partial" / "run.json").write_text('{"status": "interrupted"}')
    (tmp_path / "RUN").mkdir()
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS_SCRIPT, f"{token}", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HARNESS)},
    )
    assert harness.stdout is not None
    guard = int(harness.stdout.readline().split()[1])
    wait_until(lambda: len(reaper.processes_of(token)) == 2, seconds=5, what="the dummy machine")
    harness.send_signal(how)
    harness.wait(5)
    harness.stdout.close()
    wait_until(lambda: _gone(guard), seconds=10, what="the guard's work")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["RUN", "RUN-2", "forgotten"]
    assert (tmp_path / "RUN-2" / "run.json").read_text() == '{"status": "interrupted"}'


def _gone(pid: int) -> bool:
    """No such process, or one that only waits to be noticed by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_guard_is_deaf_to_what_a_terminal_sends(token: str) -> None:
    with Guard(token) as guard:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(guard.pid, number)
        guard.remove_on_death(Path("/nonexistent"))
        assert not _gone(guard.pid)


def test_an_empty_token_is_refused() -> None:
    with pytest.raises(ValueError, match="every process"):
        Guard("")


def test_a_guard_that_was_killed_is_replaced_and_knows_everything(token: str, tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sundial.machines.guard import Guard\n"
        f"guard = Guard({token!r})\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "for name in ('socket', 'forgotten', 'partial'):\n"
        "    (folder / name).mkdir()\n"
        "guard.remove_on_death(folder / 'socket')\n"
        "guard.rename_on_death(folder / 'partial', folder / 'run')\n"
        "guard.remove_on_death(folder / 'forgotten')\n"
        "os.kill(guard.pid, signal.SIGKILL)\n"
        "os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)\n"
        "guard.forget(folder / 'forgotten')\n"
        "print(guard.pid, flush=True)\n"
        "signal.pause()\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=HARNESS)
    assert harness.stdout is not None
    second = os.pidfd_open(int(harness.stdout.readline()))
    harness.kill()
    harness.wait()
    harness.stdout.close()
    # The process that inherits the guard may ask late for its status.
    assert reaper.wait_gone(second, 20)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forgotten", "run"]


def test_what_it_was_told_before_it_was_ready_is_done(token: str, tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    (tmp_path / "socket").mkdir()
    slow = tmp_path / "slow-python"
    slow.write_text(f'#!/bin/sh\nwhile [ -e {tmp_path}/go ]; do sleep 0.01; done\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from sundial.machines.guard import Guard\n"
        f"sys.executable = {str(slow)!r}\n"
        f"guard = Guard({token!r})\n"
        f"guard.remove_on_death(Path({str(tmp_path / 'socket')!r}))\n"
        "print(guard.pid, flush=True)\n"
        "signal.pause()\n"
    )
    harness = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=HARNESS)
    assert harness.stdout is not None
    guard = os.pidfd_open(int(harness.stdout.readline()))
    harness.kill()
    harness.wait()
    harness.stdout.close()
    assert (tmp_path / "socket").exists()
    (tmp_path / "go").unlink()
    assert reaper.wait_gone(guard, 20)
    assert not (tmp_path / "socket").exists()


def test_a_killed_guard_does_not_spoil_the_end(token: str) -> None:
    guard = Guard(token)
    os.kill(guard.pid, signal.SIGKILL)
    os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
    guard.stop()

# SPDX-License-Identifier: Apache-2.0
"""Parts that are stopped while machines are prepared."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from sundial.errors import Interrupted, RunFailed
from sundial.run import stopped
from sundial.run.stopped import StoppedWatch, none_stopped, part_of, stopped_parts
from sundial.run.watchdog import HUNG_S

TOKEN = "sundial-0123456789ab"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["qemu", "-name", f"guest={TOKEN}-server,debug-threads=on"], "server"),
        (["qemu", "-name", f"guest={TOKEN}-boot-0a1b2c-server,debug-threads=on"], "server"),
        (["qemu", "-name", f"guest={TOKEN}-ask-0a1b2c-server,debug-threads=on"], "server"),
        (["sundial-fabric", "run", f"/tmp/sundial-0/aa/1/{TOKEN}.json"], "fabric"),
        (["ssh", "-o", "ControlMaster=yes", TOKEN], None),
        (["qemu", "-name", "guest=sundial-ba9876543210-server,"], None),
    ],
)
def test_a_part_is_known_by_its_command_line(words: list[str], part: str | None) -> None:
    assert part_of("".join(f"{word}\0" for word in words).encode(), TOKEN) == part


def test_a_part_that_is_stopped_for_long_is_named() -> None:
    watch = StoppedWatch()
    assert [watch.look({7: "server"}, now) for now in (0.0, HUNG_S / 3, 2 * HUNG_S / 3)] == [None] * 3
    found = watch.look({7: "server", 8: "client"}, HUNG_S)
    assert found is not None
    assert found[0] == 7
    assert str(found[1]) == "server: hung: its process has been stopped for 15 s"


def test_a_part_that_goes_on_in_between_is_not_hung() -> None:
    watch = StoppedWatch()
    seen = [{7: "server"}, {7: "server"}, {}, {7: "server"}, {7: "server"}]
    assert [watch.look(each, n * HUNG_S / 3) for n, each in enumerate(seen)] == [None] * 5


def test_a_host_that_slept_stops_nothing() -> None:
    watch = StoppedWatch()
    assert [watch.look({7: "server"}, now) for now in (0.0, 10 * HUNG_S)] == [None] * 2


@pytest.fixture
def stopped_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process like a machine's, stopped; the clock goes on by 5 s between two looks."""
    seconds = itertools.count(0.0, 5.0)
    monkeypatch.setattr(stopped, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", f"guest={TOKEN}-server,"])
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    yield process
    process.kill()
    process.wait()


def wait_and_fail(process: subprocess.Popen[bytes], error: Exception) -> None:
    with none_stopped(TOKEN, look_s=0.01):
        process.wait()
        raise error


def test_what_waits_for_a_stopped_part_goes_on_and_the_part_is_named(stopped_process: subprocess.Popen[bytes]) -> None:
    assert stopped_parts(TOKEN) == {stopped_process.pid: "server"}
    with pytest.raises(RunFailed, match="server: hung: its process has been stopped"):
        wait_and_fail(stopped_process, RunFailed("libvirt could not start it: end of file", machine="client"))


def test_a_part_that_nothing_waits_for_is_named_too(stopped_process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(RunFailed, match="server: hung"), none_stopped(TOKEN, look_s=0.01):
        stopped_process.wait()


def test_an_interrupted_command_is_interrupted(stopped_process: subprocess.Popen[bytes]) -> None:
    with pytest.raises(Interrupted):
        wait_and_fail(stopped_process, Interrupted())


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RunFailed, match="client: no"), none_stopped(TOKEN):
        raise RunFailed("no", machine="client")

# SPDX-License-Identifier: Apache-2.0
"""A command in the foreground, in a process of its own: its input, signals, its time and its terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from sundial.machines import foreground
from sundial.machines.switchboard import Switchboard
from tests.machines.guest_port import GuestPort, Say, b64, echoing

HARNESS = Path(__file__).parents[2]
PERFORM = """
import json, sys
from pathlib import Path
from sundial.errors import SundialError
from sundial.machines import foreground
from sundial.machines.foreground import Foreground, Passed, perform
path, options = Path(sys.argv[1]), json.loads(sys.argv[2])
foreground.PATIENCE_S = options.pop("patience", 30.0)
streams = options.pop("streams", True)
try:
    end = perform(path, "client", ["cat"], Foreground(0, **options), Passed(1, 2), streams=streams)
except SundialError as error:
    sys.exit(f"{error.exit_code} {error.message}")
sys.exit(end.status)
"""


class Guest:
    """A guest that says when it has started the command, and does `hear` with what follows."""

    def __init__(self, switchboard: Switchboard, folder: Path, hear: Any = echoing) -> None:
        def started(request: dict[str, Any], say: Say) -> None:
            if "argv" in request:
                say(id=request["id"], stdout=b64(b"up\n"))
            else:
                hear(request, say)

        self.port = GuestPort(folder / "port", started)
        self.path = folder / "callers"
        switchboard.serve(folder / "port", self.path, streams=True)

    def command(self, **options: object) -> list[str]:
        return [sys.executable, "-c", PERFORM, str(self.path), json.dumps(options)]

    def start(self, **options: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            self.command(**options),
            cwd=HARNESS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.read(3) == b"up\n"
        return process


def deaf(request: dict[str, Any], say: Say) -> None:
    """Whatever it hears, it goes on."""


def test_input_comes_back_whole(switchboard: Switchboard, tmp_path: Path) -> None:
    data = os.urandom(1_000_000)
    out, err = Guest(switchboard, tmp_path).start().communicate(data, timeout=60)
    assert (out, err) == (data, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_goes_to_the_command(switchboard: Switchboard, tmp_path: Path, number: signal.Signals) -> None:
    guest = Guest(switchboard, tmp_path)
    process = guest.start()
    process.send_signal(number)
    process.wait(30)
    process.communicate()
    assert process.returncode == 128 + number
    assert {"id": 1, "signal": int(number)} in guest.port.heard


def test_a_command_that_does_not_end_is_given_up(switchboard: Switchboard, tmp_path: Path) -> None:
    guest = Guest(switchboard, tmp_path, deaf)
    process = guest.start(patience=0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert err == b"130 client: cat did not end after SIGINT: killed\n"


def test_a_second_signal_gives_it_up_at_once(switchboard: Switchboard, tmp_path: Path) -> None:
    guest = Guest(switchboard, tmp_path, deaf)
    process = guest.start()
    process.send_signal(signal.SIGINT)
    while not any("signal" in request for request in guest.port.heard):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert err.startswith(b"130 client: cat did not end after SIGINT")


@pytest.mark.parametrize("hear", [echoing, deaf])
def test_time_is_limited(switchboard: Switchboard, tmp_path: Path, hear: Any) -> None:
    guest = Guest(switchboard, tmp_path, hear)
    process = guest.start(seconds=0.3, patience=0.2)
    process.wait(30)
    process.communicate()
    assert process.returncode == foreground.TIMED_OUT
    assert {"id": 1, "signal": int(signal.SIGTERM)} in guest.port.heard


def on_a_terminal(guest: Guest) -> tuple[int, int, list[Any]]:
    """The process, its terminal, and the terminal's attributes before it began."""
    waits, go = os.pipe()
    pid, keyboard = pty.fork()
    if pid == 0:
        os.read(waits, 1)
        os.chdir(HARNESS)
        os.environ["TERM"] = "vt220"
        os.execv(sys.executable, guest.command(terminal=True))
    before = termios.tcgetattr(keyboard)
    os.write(go, b"!")
    for each in (waits, go):
        os.close(each)
    return pid, keyboard, before


def test_a_terminal_is_raw_meanwhile_and_as_before_afterwards(switchboard: Switchboard, tmp_path: Path) -> None:
    guest = Guest(switchboard, tmp_path)
    pid, keyboard, before = on_a_terminal(guest)

    def until(what: bytes) -> None:
        seen = b""
        while what not in seen:
            assert select.select([keyboard], [], [], 30)[0], seen
            seen += os.read(keyboard, 4096)

    until(b"up")
    fcntl.ioctl(keyboard, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    os.write(keyboard, b"\x03")  # a key like any other
    until(b"\x03")
    assert termios.tcgetattr(keyboard) != before
    started, *rest = guest.port.heard
    assert started["terminal"]["type"] == "vt220"
    assert {"id": 1, "window": {"rows": 33, "columns": 99}} in rest
    os.kill(pid, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 128 + signal.SIGTERM
    assert termios.tcgetattr(keyboard) == before
    os.close(keyboard)


def test_a_machine_that_ends_restores_the_terminal_too(switchboard: Switchboard, tmp_path: Path) -> None:
    guest = Guest(switchboard, tmp_path)
    pid, keyboard, before = on_a_terminal(guest)
    assert select.select([keyboard], [], [], 30)[0]
    guest.port.close()
    os.waitpid(pid, 0)
    assert termios.tcgetattr(keyboard) == before
    os.close(keyboard)

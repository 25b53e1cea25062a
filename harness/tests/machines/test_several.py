# SPDX-License-Identifier: Apache-2.0
"""One command in several guests: output by lines, the ends of all, the time and signals."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import Interrupted, RunFailed
from sundial.machines import foreground
from sundial.machines.command import Ended, Gathered, Stream
from sundial.machines.several import LINE_BYTES, Callee, Prefixed, perform_all
from sundial.machines.switchboard import Switchboard
from tests.machines.guest_port import GuestPort, Say, b64

NAMES = ("n1", "n2")


def guests(switchboard: Switchboard, folder: Path, **hear: Any) -> tuple[dict[str, Callee], dict[str, GuestPort]]:
    callees, ports = {}, {}
    for name in NAMES:
        ports[name] = GuestPort(folder / f"{name}.port", hear[name])
        switchboard.serve(folder / f"{name}.port", folder / name, streams=True)
        callees[name] = Callee(folder / name, True)
    return callees, ports


def ending(status: int, text: bytes = b"") -> Any:
    def hear(request: dict[str, Any], say: Say) -> None:
        if "argv" in request:
            if text:
                say(id=request["id"], stdout=b64(text))
            say(id=request["id"], status=status)

    return hear


def obeying(request: dict[str, Any], say: Say) -> None:
    if "signal" in request:
        say(id=request["id"], status=128 + request["signal"])


def ignoring(request: dict[str, Any], say: Say) -> None:
    return


def test_all_ends_are_answered(switchboard: Switchboard, tmp_path: Path) -> None:
    callees, ports = guests(switchboard, tmp_path, n1=ending(0, b"one\n"), n2=ending(3))
    gathered = {name: Gathered() for name in NAMES}
    ends = perform_all(callees, ["do", "it"], None, gathered)
    assert ends == {"n1": Ended(0), "n2": Ended(3)}
    assert bytes(gathered["n1"].kept["stdout"]) == b"one\n"
    assert [ports[name].heard[0]["argv"] for name in NAMES] == [["do", "it"]] * 2
    assert {"id": 1, "input": None} in ports["n1"].heard


def test_a_machine_that_is_gone_does_not_stop_the_others(switchboard: Switchboard, tmp_path: Path) -> None:
    callees, _ = guests(switchboard, tmp_path, n1=ending(0), n2=ending(0))
    callees["n3"] = Callee(tmp_path / "nothing", True)
    ends = perform_all(callees, ["x"], None, {name: Gathered() for name in callees})
    assert (ends["n1"], ends["n2"]) == (Ended(0), Ended(0))
    assert isinstance(ends["n3"], RunFailed)


def test_time_ends_what_is_left(switchboard: Switchboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreground, "PATIENCE_S", 0.2)
    callees, _ = guests(switchboard, tmp_path, n1=obeying, n2=ignoring)
    ends = perform_all(callees, ["x"], 0.1, {name: Gathered() for name in NAMES})
    assert ends == {"n1": Ended(124, timed_out=True), "n2": Ended(124, timed_out=True)}


def _interrupt_once_heard(ports: dict[str, GuestPort], times: int) -> None:
    def send() -> None:
        import time

        while not all(port.heard for port in ports.values()):
            time.sleep(0.01)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    threading.Thread(target=send, daemon=True).start()


def test_a_signal_goes_to_all(switchboard: Switchboard, tmp_path: Path) -> None:
    callees, ports = guests(switchboard, tmp_path, n1=obeying, n2=obeying)
    _interrupt_once_heard(ports, 1)
    ends = perform_all(callees, ["x"], None, {name: Gathered() for name in NAMES})
    assert ends == {"n1": Ended(130), "n2": Ended(130)}


def test_the_second_signal_gives_up(switchboard: Switchboard, tmp_path: Path) -> None:
    callees, ports = guests(switchboard, tmp_path, n1=obeying, n2=ignoring)
    _interrupt_once_heard(ports, 2)
    with pytest.raises(Interrupted, match="n2: x did not end"):
        perform_all(callees, ["x"], None, {name: Gathered() for name in NAMES})


def test_each_line_has_its_machine_in_front() -> None:
    written: list[tuple[Stream, bytes]] = []
    prefixed = Prefixed(b"n1 | ", lambda stream, data: written.append((stream, data)))
    prefixed("stdout", b"a\nb")
    prefixed("stderr", b"e")
    prefixed("stdout", b"c\n\nd")
    prefixed.end()
    prefixed.end()
    assert written == [
        ("stdout", b"n1 | a\n"), ("stdout", b"n1 | bc\nn1 | \n"), ("stdout", b"n1 | d\n"), ("stderr", b"n1 | e\n")
    ]  # fmt: skip
    written.clear()
    prefixed("stdout", b"x" * (LINE_BYTES + 1))
    assert written == [("stdout", b"n1 | " + b"x" * (LINE_BYTES + 1) + b"\n")]

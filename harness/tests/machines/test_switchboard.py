# SPDX-License-Identifier: Apache-2.0
"""Many callers and one guest."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from sundial.errors import RunFailed
from sundial.machines.command import LINE_BYTES, run_command
from sundial.machines.switchboard import REQUEST_BYTES, WAITING_BYTES, Switchboard
from sundial.machines.waiting import wait_until
from tests.machines.guest_port import GuestPort, Hear, Say, b64, echoing


def joined(switchboard: Switchboard, folder: Path, hear: Hear, *, streams: bool = True) -> tuple[GuestPort, Path]:
    guest = GuestPort(folder / "port", hear)
    switchboard.serve(folder / "port", folder / "callers", streams=streams)
    return guest, folder / "callers"


class Caller:
    """One that speaks for itself."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(path))
        self._lines = self.socket.makefile("rb")

    def tell(self, **request: object) -> None:
        self.socket.sendall(json.dumps(request).encode() + b"\n")

    def hear(self) -> Any:
        return json.loads(self._lines.readline() or b"null")

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


def test_callers_are_kept_apart(switchboard: Switchboard, tmp_path: Path) -> None:
    _, path = joined(switchboard, tmp_path, echoing)
    callers = [Caller(path) for _ in range(8)]
    for caller in callers:
        caller.tell(argv=["cat"])
    for number, caller in enumerate(callers):
        caller.tell(input=b64(b"%d" % number))
    for number, caller in reversed(list(enumerate(callers))):
        assert caller.hear() == {"taken": 1}
        assert caller.hear() == {"stdout": b64(b"%d" % number)}
        caller.tell(input=None)
        assert caller.hear() == {"status": 0}
        caller.close()


def test_a_caller_that_goes_away_is_hung_up_and_no_other(switchboard: Switchboard, tmp_path: Path) -> None:
    guest, path = joined(switchboard, tmp_path, echoing)
    stays, goes, ended = Caller(path), Caller(path), Caller(path)
    for caller in (stays, goes, ended):
        caller.tell(argv=["cat"])
    ended.tell(input=None)
    assert ended.hear() == {"status": 0}
    ended.close()
    wait_until(lambda: len(guest.heard) == 4, seconds=20, what="all requests")
    number = guest.heard[1]["id"]
    goes.close()
    wait_until(lambda: len(guest.heard) == 5, seconds=20, what="the hanging up")
    assert guest.heard[4] == {"id": number, "hang_up": True}
    stays.tell(signal=2)
    assert stays.hear() == {"status": 130}
    stays.close()


def test_a_monitor_hears_of_no_hanging_up(switchboard: Switchboard, tmp_path: Path) -> None:
    waiting: list[Say] = []

    def hear(request: dict[str, Any], say: Say) -> None:
        if request["argv"] == ["slow"]:
            waiting.append(say)
            return
        for earlier in waiting:  # it answers in order
            earlier(id=1, status=0, stdout=b64(b"late"), stderr="", dropped=0)
        waiting.clear()
        say(id=request["id"], status=0, stdout=b64(b"now"), stderr="", dropped=0)

    guest, path = joined(switchboard, tmp_path, hear, streams=False)
    gone = Caller(path)
    gone.tell(argv=["slow"])
    wait_until(lambda: len(guest.heard) == 1, seconds=20, what="the request")
    gone.close()
    assert run_command(path, "node", ["tasks"], 20, streams=False).stdout == b"now"
    assert [request["argv"] for request in guest.heard] == [["slow"], ["tasks"]]


def test_a_refusal_without_a_number_is_for_the_first_that_waits(switchboard: Switchboard, tmp_path: Path) -> None:
    _, path = joined(switchboard, tmp_path, lambda request, say: say(id=None, error="a line longer than 4096 bytes"))
    with pytest.raises(RunFailed, match="node: the guest refuses: a line longer than 4096 bytes"):
        run_command(path, "node", ["x" * 5000], 20, streams=False)


def test_a_machine_that_ends_is_told_to_all(switchboard: Switchboard, tmp_path: Path) -> None:
    guest, path = joined(switchboard, tmp_path, lambda request, say: None)
    callers = [Caller(path) for _ in range(3)]
    for caller in callers:
        caller.tell(argv=["sleep"])
    wait_until(lambda: len(guest.heard) == 3, seconds=20, what="all requests")
    guest.close()
    for caller in callers:
        assert caller.hear() == {"gone": "it has ended"}
        caller.close()
    with pytest.raises(RunFailed, match="client: it has ended"):
        run_command(path, "client", ["true"], 20)


@pytest.mark.parametrize(
    "line", [b"\xff\xfe\n", b"[1]\n", b'{"id":[]}\n', b'{"id":{"a":1},"status":0}\n', b"[" * 90_000 + b"\n", b"\n"]
)
def test_junk_of_a_guest_is_passed_over(switchboard: Switchboard, tmp_path: Path, line: bytes) -> None:
    def hear(request: dict[str, Any], say: Say) -> None:
        guest.stream.sendall(line)
        echoing(request, say)

    guest, path = joined(switchboard, tmp_path, hear)
    assert run_command(path, "client", ["cat"], 20).status == 0


def test_a_line_without_end_cuts_the_guest_off(switchboard: Switchboard, tmp_path: Path) -> None:
    guest, path = joined(switchboard, tmp_path, lambda request, say: guest.stream.sendall(b"x" * (3 * LINE_BYTES)))
    for _ in range(2):
        with pytest.raises(RunFailed, match=f"client: its guest sent a line of more than {LINE_BYTES} bytes"):
            run_command(path, "client", ["true"], 20)


def test_a_guest_that_floods_a_caller_who_does_not_read(switchboard: Switchboard, tmp_path: Path) -> None:
    def flood(request: dict[str, Any], say: Say) -> None:
        threading.Thread(target=pour, args=(request["id"], say), daemon=True).start()

    def pour(number: int, say: Say) -> None:
        with contextlib.suppress(OSError):  # it is cut off at the test's end
            for _ in range(100):
                say(id=number, stdout=b64(bytes(100_000)))

    _, path = joined(switchboard, tmp_path, flood)
    caller = Caller(path)
    caller.tell(argv=["yes"])
    heard = []
    while (answer := caller.hear()) is not None:
        heard.append(answer)
        if "gone" in answer:
            break
        if len(heard) == 1:
            threading.Event().wait(1.0)
    caller.close()
    assert f"more than the {WAITING_BYTES} bytes" in heard[-1]["gone"]
    assert len(heard) < 60


def test_a_request_that_is_too_long_or_none(switchboard: Switchboard, tmp_path: Path) -> None:
    guest, path = joined(switchboard, tmp_path, echoing)
    caller = Caller(path)
    caller.tell(argv=["x" * (REQUEST_BYTES + 1)])
    assert caller.hear() == {"error": f"a request of more than {REQUEST_BYTES} bytes"}
    caller.close()
    caller = Caller(path)
    caller.socket.sendall(b"nonsense\n")
    assert caller.hear() is None
    caller.close()
    assert run_command(path, "client", ["cat"], 20).status == 0
    assert all("argv" in request or "input" in request or "hang_up" in request for request in guest.heard)

# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import RunFailed
from sundial.machines.command import KEPT_BYTES, LINE_BYTES, Line, run_command
from sundial.machines.terminal import attach, connect
from tests.machines.guest_port import b64

Answer = Callable[[dict[str, object]], list[object]]


def serve(path: Path, answer: Answer) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def work() -> None:
        with contextlib.suppress(OSError), server, server.accept()[0] as stream, stream.makefile("rb") as lines:
            for reply in answer(json.loads(lines.readline())):
                stream.sendall(reply if isinstance(reply, bytes) else json.dumps(reply).encode() + b"\n")
            while lines.readline():
                pass

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_gives_status_and_output_in_whichever_pieces(tmp_path: Path) -> None:
    def answer(request: dict[str, object]) -> list[object]:
        assert request == {"argv": ["ls", "-l"]}
        return [{"stdout": b64(b"out")}, {"stderr": b64(b"err")}, {"stdout": b64(b"\xff")}, {"status": 3}]

    thread = serve(tmp_path / "s", answer)
    result = run_command(tmp_path / "s", "client", ["ls", "-l"])
    assert (result.status, result.stdout, result.stderr, result.dropped) == (3, b"out\xff", b"err", 0)
    thread.join()


def test_a_guest_that_cannot_stream_says_all_at_once(tmp_path: Path) -> None:
    line = {"status": 0, "stdout": b64(b"tasks"), "stderr": "", "dropped": 5}
    thread = serve(tmp_path / "s", lambda request: [line])
    result = run_command(tmp_path / "s", "client", ["tasks"], streams=False)
    assert (result.status, result.stdout, result.dropped) == (0, b"tasks", 5)
    thread.join()


def test_the_reason_of_a_connection_that_closed_before_the_request_was_sent(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen(1)
        with Line(tmp_path / "s", "client", "true", streams=True) as line:
            with server.accept()[0] as stream:
                stream.sendall(b'{"gone":"it has ended"}\n')
            with pytest.raises(RunFailed, match="client: it has ended"):
                line.tell(argv=["true"])


def test_output_beyond_what_is_kept_is_counted(tmp_path: Path) -> None:
    piece = {"stdout": b64(bytes(100_000))}
    thread = serve(tmp_path / "s", lambda request: [*[piece] * 12, {"status": 0}])
    result = run_command(tmp_path / "s", "client", ["yes"])
    assert (len(result.stdout), result.dropped) == (KEPT_BYTES, 1_200_000 - KEPT_BYTES)
    thread.join()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"error": "argv is empty\x1b[2J"}, r"client: the guest refuses: argv is empty\\x1b\[2J"),
        ({"gone": "it has ended"}, "client: it has ended"),
        ({"status": "x"}, "client: sent an invalid reply"),
        ({"status": []}, "client: sent an invalid reply"),
        ({"stdout": "?"}, "client: sent an invalid reply"),
        ({"taken": {}}, "client: sent an invalid reply"),
        ([], "client: sent an invalid reply"),
        (b"\xff\n", "client: sent an invalid reply"),
        (b"[" * 100_000 + b"\n", "client: sent an invalid reply"),
        (b"x" * (LINE_BYTES + 70_000), f"client: its guest sends a line of more than {LINE_BYTES} bytes"),
    ],
)
def test_what_can_go_wrong_names_the_machine(tmp_path: Path, reply: object, message: str) -> None:
    thread = serve(tmp_path / "s", lambda request: [reply])
    with pytest.raises(RunFailed, match=message):
        run_command(tmp_path / "s", "client", ["true"], 10)
    thread.join()


def test_an_answer_that_does_not_come(tmp_path: Path) -> None:
    thread = serve(tmp_path / "s", lambda request: [])
    with pytest.raises(RunFailed, match=r"client: no answer to true within 0\.2 s"):
        run_command(tmp_path / "s", "client", ["true"], 0.2)
    thread.join()


def test_a_machine_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunFailed, match="client: it takes no commands"):
        run_command(tmp_path / "none", "client", ["true"])
    with pytest.raises(RunFailed, match="client: its console cannot be reached"):
        connect(tmp_path / "none", "client")


def test_the_terminal_carries_bytes_until_the_leaving_key() -> None:
    near, far = socket.socketpair()
    typing, keyboard = socket.socketpair()
    screen, shown = socket.socketpair()
    with near, far, typing, keyboard, screen, shown:
        far.sendall(b"login: ")
        keyboard.sendall(b"root\n\x1dnever sent")
        attach(near, typing.fileno(), screen.fileno())
        assert shown.recv(100) == b"login: "
        assert far.recv(100) == b"root\n"

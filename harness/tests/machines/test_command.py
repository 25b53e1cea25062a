# SPDX-License-Identifier: Apache-2.0
import base64
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sundial.errors import RunFailed
from sundial.machines.command import run_command
from sundial.machines.terminal import attach, connect

Answer = Callable[[dict[str, object]], list[object]]


def serve(path: Path, answer: Answer) -> threading.Thread:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def work() -> None:
        with server, server.accept()[0] as stream, stream.makefile("rw") as lines:
            for reply in answer(json.loads(lines.readline())):
                lines.write(json.dumps(reply) + "\n")
            lines.flush()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_gives_status_and_output_and_skips_answers_to_others(tmp_path: Path) -> None:
    def answer(request: dict[str, object]) -> list[object]:
        assert request["argv"] == ["ls", "-l"]
        output = {"stdout": b64(b"out\xff"), "stderr": b64(b"err"), "dropped": 5}
        return [{**output, "id": -1, "status": 9}, {**output, "id": request["id"], "status": 3}]

    thread = serve(tmp_path / "s", answer)
    result = run_command(tmp_path / "s", "client", ["ls", "-l"])
    assert (result.status, result.stdout, result.stderr, result.dropped) == (3, b"out\xff", b"err", 5)
    thread.join()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"error": "argv is empty"}, "client: the guest refuses: argv is empty"),
        ({"status": "x"}, "client: it answers what is not an answer"),
        (None, "client: it ended while true ran"),
    ],
)
def test_what_can_go_wrong_names_the_machine(tmp_path: Path, reply: dict[str, object] | None, message: str) -> None:
    thread = serve(tmp_path / "s", lambda request: [] if reply is None else [{"id": request["id"], **reply}])
    with pytest.raises(RunFailed, match=message):
        run_command(tmp_path / "s", "client", ["true"])
    thread.join()


def test_a_refusal_without_a_number_is_ours(tmp_path: Path) -> None:
    thread = serve(tmp_path / "s", lambda request: [{"id": None, "error": "a line longer than 4096 bytes"}])
    with pytest.raises(RunFailed, match="client: the guest refuses: a line longer than 4096 bytes"):
        run_command(tmp_path / "s", "client", ["true"], 10)
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

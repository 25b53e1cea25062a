# SPDX-License-Identifier: Apache-2.0
"""Tasks that mean harm, on the whole kernel: it goes on, and so does everybody else on the node."""

import base64
import contextlib
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from recipe.cpio import Archive
from testing.guest import PATIENCE_S, Guest
from testing.nodes import node_job

pytestmark = pytest.mark.vm

GUEST_APPS = Path(__file__).resolve().parents[3] / "guest-apps/sss-core"
HOSTILE = ("fuzz", "attack")
BINDER, SUM = {"app": "portmapper", "options": {}}, {"app": "sum", "options": {}}


@pytest.fixture(scope="module")
def hostile(bootable: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image with two tasks that it does not have."""
    folder = tmp_path_factory.mktemp("hostile")
    made = GUEST_APPS / "build/boots"  # as guest-apps/sss-core/tests/conftest.py has it
    made.mkdir(parents=True, exist_ok=True)
    make = ["flock", made / "lock", "make", "-s", "-C", GUEST_APPS, f"OUT={made}"]
    subprocess.run([*make, *(f"{made}/check/bin/{task}" for task in HOSTILE)], check=True, timeout=300)
    archive = Archive(over_another=True)
    for task in HOSTILE:
        archive.add_file(task, (made / "check/bin" / task).read_bytes(), 0o755)
    (folder / "initrd").write_bytes((bootable / "initrd").read_bytes() + archive.to_bytes())
    for name in ("kernel", "manifest.json"):
        (folder / name).write_bytes((bootable / name).read_bytes())
    return folder


class Node:
    """Node 1 and its monitor; node 2 serves `sum`."""

    def __init__(self, folder: Path, image: Path, stack: contextlib.ExitStack) -> None:
        ends = folder / "a", folder / "b"
        path = folder / "exec.sock"
        port = ("-chardev", f"socket,id=exec,server=on,wait=off,path={path}")
        device = ("-device", "virtserialport,chardev=exec,name=sundial.exec")
        self.guest = Guest(folder / "1", image, node_job(1, 2, interactive=True), (*port, *device))
        other = Guest(folder / "2", image, node_job(2, 1, services=[BINDER, SUM], interactive=True))
        for guest, wire in ((other, ends[::-1]), (self.guest, ends)):
            stack.enter_context(guest)
            guest.start(wire)
        for guest in (other, self.guest):
            guest.wait_for("done")
        self._commands = stack.enter_context(socket.socket(socket.AF_UNIX))
        self._commands.connect(str(path))
        self._commands.settimeout(PATIENCE_S)

    def ask(self, *argv: str) -> str:
        self._commands.sendall(json.dumps({"argv": argv}).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            answer += self._commands.recv(65536)
        reply = json.loads(answer)
        assert reply["status"] == 0, reply
        return base64.b64decode(reply["stdout"]).decode(errors="replace")

    def run(self, task: str, options: str, until: str) -> str:
        """Starts a task and waits for what it prints -> the task's number."""
        before = self.console().count(until)
        number = self.ask("run", task, options).split()[1]
        self.guest.wait_until(lambda: self.console().count(until) > before, f"no {until!r}")
        return number

    def console(self) -> str:
        return self.guest.console_path.read_text(errors="replace")

    def free_pages(self) -> int:
        found = re.search(r"^pages free +(\d+)$", self.ask("memory"), re.MULTILINE)
        assert found is not None
        return int(found[1])

    def check(self, free: int) -> None:
        """All that tasks have had is back; the node starts tasks and talks to its peer."""
        self.guest.wait_until(lambda: self.free_pages() == free, f"{self.free_pages()} pages free of {free}")
        self.run("hello", "{}", "hello: task")
        self.run("sum", '{"server":2,"numbers":[1,2,3]}', "\nsum ")
        assert "PANIC" not in self.console()


@pytest.fixture(scope="module")
def node(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with contextlib.ExitStack() as stack:
        yield Node(tmp_path_factory.mktemp("nodes"), hostile, stack)


@pytest.mark.parametrize("attack", [1, 2, 3, 4])
def test_an_attack_takes_nothing_from_others(node: Node, attack: int) -> None:
    free = node.free_pages()
    number = node.run("attack", f"{attack} hold", f"attack {attack} hold is over")
    node.run("hello", "{}", "hello: task")  # while it holds whatever it has got
    node.ask("kill", number)
    node.check(free)


@pytest.mark.parametrize("calls", [50_000, pytest.param(1_000_000, marks=pytest.mark.night)])
def test_random_calls_leave_the_node_as_it_was(node: Node, calls: int) -> None:
    free = node.free_pages()
    node.run("fuzz", f"8 {calls}", " calls by ")
    node.check(free)

# SPDX-License-Identifier: Apache-2.0
"""The agent on another host, as ssh would start it: a separate process with all commands on its input."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sundial.machines import reaper, remote, remote_agent
from sundial.machines.remote_agent import Gone, Input, clear_stale
from sundial.machines.waiting import wait_until


class Agent:
    """One, and what it answers."""

    def __init__(self, home: Path) -> None:
        self.token = f"sundial-{os.urandom(6).hex()}"
        words = ["/usr/bin/python3", "-I", "-S", "-u", "-c", remote._LOAD, self.token]
        variables = {**os.environ, "XDG_CACHE_HOME": str(home)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(words, env=variables, bufsize=0, **pipes)  # type: ignore[call-overload]
        modules = [(each.__name__, Path(str(each.__file__)).read_text()) for each in (reaper, remote_agent)]
        source = json.dumps(modules).encode()
        self.process.stdin.write(f"{len(source)}\n".encode() + source)
        self.hello = self.heard()

    def heard(self) -> dict[str, Any]:
        answer = json.loads(self.process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def ask(self, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
        view = memoryview(json.dumps(request).encode() + b"\n" + data)
        while view:
            view = view[self.process.stdin.write(view) :]
        return self.heard()

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    made = Agent(tmp_path)
    yield made
    made.end()


def test_it_says_what_there_is_and_keeps_files(agent: Agent) -> None:
    folder = Path(agent.hello["folder"])
    assert (agent.hello["user"], agent.hello["group"]) == (os.geteuid(), os.getegid())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert agent.ask({"alive": True}) == {}
    path = Path(agent.ask({"write": "0-1j", "data": base64.b64encode(b"a\0job").decode()})["path"])
    assert (path.parent, path.read_bytes()) == (folder, b"a\0job")
    outside = Path(agent.ask({"write": "../../etc/x", "data": ""})["path"])
    assert outside.parent == folder
    agent.ask({"write": "1-1j", "data": ""})
    agent.ask({"remove": "0-"})
    assert sorted(each.name for each in folder.iterdir()) == ["1-1j", "owner", "x"]


def test_a_boot_file_is_copied_once_and_checked_each_time(agent: Agent, tmp_path: Path) -> None:
    data = os.urandom(3_000_000) + b"."
    digest = hashlib.sha256(data).hexdigest()
    assert agent.ask({"have": digest}) == {"path": None}
    assert agent.ask({"keep": digest, "bytes": len(data)}, data[:-1] + b"x") == {"path": None}
    assert list((tmp_path / "sundial" / "boot").iterdir()) == []
    path = Path(agent.ask({"keep": digest, "bytes": len(data)}, data)["path"])
    assert (path.read_bytes(), agent.ask({"have": digest})) == (data, {"path": str(path)})
    path.write_bytes(data[:-1])
    assert (agent.ask({"have": digest}), path.exists()) == ({"path": None}, False)


def test_what_was_not_used_for_long_leaves_the_cache(tmp_path: Path) -> None:
    kept = tmp_path / "sundial" / "boot"
    kept.mkdir(parents=True)
    for name, days in (("a" * 64, 31), ("b" * 64, 29)):
        (kept / name).write_bytes(b"")
        when = kept.stat().st_mtime - days * 86400
        os.utime(kept / name, (when, when))
    Agent(tmp_path).end()
    assert [path.name for path in kept.iterdir()] == ["b" * 64]


@pytest.mark.parametrize("how", ["said", "closed"])
def test_the_end_of_the_connection_ends_machines_and_removes_the_folder(tmp_path: Path, how: str) -> None:
    agent = Agent(tmp_path)
    machine = _machine(agent)
    folder = Path(agent.hello["folder"])
    if how == "said":
        assert agent.ask({"end": True}) == {}
    agent.end()
    assert machine.wait(20) == -9
    assert not folder.exists()


def _machine(agent: Agent) -> subprocess.Popen[bytes]:
    """A process that looks like a machine of this agent's."""
    arguments = [sys.executable, "-c", "import signal; signal.pause()", f"guest={agent.token}-server,"]
    process = subprocess.Popen(arguments)
    # The program is there a moment before its arguments are.
    command_line = Path(f"/proc/{process.pid}/cmdline")
    wait_until(lambda: agent.token.encode() in command_line.read_bytes(), seconds=20, what="its arguments")
    return process


def test_rubbish_ends_it_and_cleans_up(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    folder = Path(agent.hello["folder"])
    agent.process.stdin.write(b"{rubbish\n")
    agent.end()
    assert not folder.exists()


def test_silence_is_the_end() -> None:
    reading, writing = os.pipe()
    source = Input(reading, silence_s=0.05)
    os.write(writing, b'{"alive": true}\nrest')
    assert (source.line(), source.some(2), source.some(9)) == (b'{"alive": true}', b"re", b"st")
    with pytest.raises(Gone, match=r"nothing was heard for 0\.05 s"):
        source.line()
    os.close(writing)
    with pytest.raises(Gone, match="has ended"):
        source.line()
    os.close(reading)


def test_what_a_killed_agent_left_is_taken_away_by_the_next(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    folder = Path(agent.hello["folder"])
    machine = _machine(agent)
    agent.process.kill()
    agent.end()
    assert folder.exists()
    other = tmp_path / "r-foreign"
    other.mkdir()
    (other / "owner").write_text("rubbish")
    clear_stale(tmp_path)
    assert other.exists()
    second = Agent(tmp_path)
    assert (machine.wait(20), folder.exists()) == (-9, False)
    third = Agent(tmp_path)
    assert Path(second.hello["folder"]).exists()
    for each in (second, third):
        each.end()
    wait_until(lambda: not Path(third.hello["folder"]).exists(), seconds=5, what="the folder to be gone")

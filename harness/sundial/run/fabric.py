# SPDX-License-Identifier: Apache-2.0
"""The fabric's process: started with its configuration, observed through its stdout, stopped by its control socket."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

from sundial.errors import RunFailed
from sundial.run.supervisor import FabricEnded, FabricFinished, FabricStands, JobDone

LISTEN_S = 15.0
CONTROL_S = 3.0
WORDS_MOST = 2
"""Last lines of stderr to keep: a failure is one line, a panic of Rust two."""

Heard = FabricFinished | FabricEnded | FabricStands | JobDone
OnHeard = Callable[[Heard], None]


class Fabric(Protocol):
    """The fabric of a run. Its output arrives through the callback of `start`."""

    def wait_listening(self) -> None:
        """Wait until it serves. Raises RunFailed if it does not."""

    def pid(self) -> int | None:
        """Its process id; None if it has none."""

    def counters(self) -> dict[str, Any]:
        """Its counters now; empty if it does not answer."""

    def change(self, segment: str, change: Mapping[str, Any]) -> int:
        """Change a segment from now on; returns the instant in ns. Raises RunFailed."""

    def until(self, at_ns: int | None) -> None:
        """Have all machines stand at an instant; None: at none. Before the run begins, or while they stand. Raises
        RunFailed."""

    def stop(self, seconds: float) -> bool:
        """Request the end of the run and wait. True if the fabric ended."""

    def kill(self) -> None:
        """Kill it."""


StartFabric = Callable[[Path, Path, OnHeard], Fabric]
"""Program, configuration file, callback."""


class FabricProcess:
    """A Fabric that is `sundial-fabric`. The callback is called on this object's threads."""

    def __init__(self, program: Path, config: Path, on_heard: OnHeard) -> None:
        self._control: str = json.loads(config.read_text())["control"]
        self._on_heard = on_heard
        self._listening = threading.Event()
        self._words = ""
        try:
            self._process = subprocess.Popen(
                [str(program), "run", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise RunFailed(f"cannot be started: {error.strerror}", machine="fabric") from error
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._talk = threading.Thread(target=self._read_talk, args=(self._process.stderr,), daemon=True)
        self._talk.start()
        threading.Thread(target=self._read_events, args=(self._process.stdout,), daemon=True).start()

    def wait_listening(self) -> None:
        if not self._listening.wait(LISTEN_S):
            raise RunFailed(f"did not listen within {LISTEN_S:g} s", machine="fabric")
        if self._process.poll() is not None:
            self._talk.join(CONTROL_S)
            said = self._words or f"status {self._process.returncode}"
            raise RunFailed(f"did not start: {said}", machine="fabric")

    def pid(self) -> int:
        return self._process.pid

    def counters(self) -> dict[str, Any]:
        answer = self._command("counters")
        return answer if isinstance(answer, dict) else {}

    def change(self, segment: str, change: Mapping[str, Any]) -> int:
        answer = self._command("change", segment=segment, change=dict(change))
        if not isinstance(answer, dict) or "at_ns" not in answer:
            why = answer.get("error") if isinstance(answer, dict) else "no answer"
            raise RunFailed(f"does not change {segment}: {why}", machine="fabric")
        return int(answer["at_ns"])

    def until(self, at_ns: int | None) -> None:
        answer = self._command("until", at_ns=at_ns)
        if not isinstance(answer, dict) or "until_ns" not in answer:
            why = answer.get("error") if isinstance(answer, dict) else "no answer"
            raise RunFailed(f"does not stop the machines: {why}", machine="fabric")

    def stop(self, seconds: float) -> bool:
        if self._process.poll() is None:
            self._command("stop")
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def _command(self, command: str, **more: object) -> Any:
        """Its answer, or None."""
        with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as stream:
            stream.settimeout(CONTROL_S)
            stream.connect(self._control)
            stream.sendall(json.dumps({"command": command, **more}).encode() + b"\n")
            with stream.makefile() as lines:
                return json.loads(lines.readline())
        return None

    def _read_events(self, stdout: IO[str]) -> None:
        with stdout:
            for line in stdout:
                heard = _event(line)
                if isinstance(heard, str):
                    self._listening.set()
                elif heard is not None:
                    self._on_heard(heard)
        status = self._process.wait()
        self._talk.join(CONTROL_S)
        self._listening.set()
        self._on_heard(FabricEnded(status, self._words))

    def _read_talk(self, stderr: IO[str]) -> None:
        with stderr:
            for line in stderr:
                if line.strip() and self._words.count(";") < WORDS_MOST:
                    self._words = "; ".join(part for part in (self._words, line.strip()) if part)


def _event(line: str) -> Heard | str | None:
    """The event of one line of its stdout, or None."""
    try:
        event = json.loads(line)
        match event["event"]:
            case "listening":
                return "listening"
            case "done":
                return JobDone(str(event["machine"]), int(event["status"]))
            case "stands":
                return FabricStands(int(event["at_ns"]))
            case "finished":
                return FabricFinished(int(event["virtual_ns"]), tuple(map(str, event.get("late", ()))))
            case _:
                return None
    except (ValueError, KeyError, TypeError):
        return None


class FakeFabric:
    """A Fabric without frames; tests decide what it does."""

    def __init__(self, program: Path, config: Path, on_heard: OnHeard) -> None:
        self.config: dict[str, Any] = json.loads(config.read_text())
        self.heard = on_heard
        self.ended = False
        self.stopped = False
        self.silent = False
        self.changes: list[tuple[str, dict[str, Any]]] = []
        self.instants: list[int | None] = []

    def wait_listening(self) -> None:
        return

    def pid(self) -> None:
        return None

    def counters(self) -> dict[str, Any]:
        return {} if self.silent else {"segments": {}}

    def change(self, segment: str, change: Mapping[str, Any]) -> int:
        self.changes.append((segment, dict(change)))
        return 1_000 * len(self.changes)

    def until(self, at_ns: int | None) -> None:
        self.instants.append(at_ns)

    def stop(self, seconds: float) -> bool:
        self.stopped = True
        self.end(0)
        return True

    def kill(self) -> None:
        self.end(-9)

    def finish(self, virtual_ns: int, *late: str) -> None:
        """End the run successfully, or at its deadline without the machines `late`."""
        self.heard(FabricFinished(virtual_ns, late))
        self.end(0)

    def end(self, status: int, said: str = "") -> None:
        """End the process."""
        if not self.ended:
            self.ended = True
            self.heard(FabricEnded(status, said))
